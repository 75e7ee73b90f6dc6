"""How text becomes words, which misspellings are near, and that better kinds of hits lie inside wider ones."""

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.domain.catalog.words import (
    CODE_LENGTH_MAX,
    NEAR_WORDS_MAX,
    QUERY_WORDS_MAX,
    WORD_LENGTH_MAX,
    All,
    Any,
    Expression,
    Indexed,
    Query,
    Term,
    compact,
    distance,
    may_be_misspelt,
    nearest_words,
    scope_code,
    shortened,
    words,
)

SCOPE = scope_code("t1")
KNOWN_WORDS = ("pro", "plan", "plans", "PLAN-PRO-001", "qmb30", "30", "hp", "a", "ab", "abc", "abcd", "x-1")

letters = st.text("abc", max_size=7)
sentences = st.lists(st.sampled_from(KNOWN_WORDS), max_size=4)
typed = sentences.map(" ".join)


@st.composite
def edited(draw: st.DrawFn, word: str, times: int) -> str:
    """The word after a few typing errors."""
    for _ in range(draw(st.integers(0, times))):
        place = draw(st.integers(0, len(word)))
        kind = draw(st.sampled_from(("add", "drop", "change", "swap")))
        letter = draw(st.sampled_from("abc"))
        after = {
            "add": letter + word[place:],
            "drop": word[place + 1 :],
            "change": letter + word[place + 1 :],
            "swap": word[place + 1 : place + 2] + word[place : place + 1] + word[place + 2 :],
        }
        word = word[:place] + after[kind]
    return word


near_pairs = st.text("ab", min_size=4, max_size=24).flatmap(
    lambda word: st.tuples(st.just(word), edited(word, times=2).filter(may_be_misspelt))
)


@st.composite
def documents(draw: st.DrawFn) -> Indexed:
    return Indexed(codes=draw(sentences), titles=draw(sentences), prose=draw(sentences), is_active=draw(st.booleans()))


def hits(expression: Expression, index: Iterable[set[str]]) -> set[int]:
    """What a database would find: the numbers of the documents whose terms satisfy the expression."""
    numbered = list(enumerate(index))
    if isinstance(expression, Term):
        if expression.is_prefix:
            return {n for n, terms in numbered if any(term.startswith(expression.text) for term in terms)}
        return {n for n, terms in numbered if expression.text in terms}
    if isinstance(expression, All):
        return set.intersection(*(hits(part, index) for part in expression.parts))
    if isinstance(expression, Any):
        return set().union(*(hits(part, index) for part in expression.parts))
    return hits(expression.wanted, index) - hits(expression.unwanted, index)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("!!! ???", []),
        ("Pro Plan", ["pro", "plan"]),
        ("100HP 460V", ["100", "hp", "460", "v"]),
        ("3/4in 1.5kW", ["3", "4", "in", "1", "5", "kw"]),
        ("PLAN-PRO-001", ["plan", "pro", "001"]),
        ("prod_pro_v2", ["prod", "pro", "v", "2"]),
        ("compressors pumps", ["compressor", "pump"]),
        ("gas bus glass axis gases", ["gas", "bus", "glass", "axis", "gase"]),
        ("Öl Ø café CAFÉ cafe\u0301", ["ol", "ø", "cafe", "cafe", "cafe"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ﬁlter ２００", ["filter", "200"]),
        ("m² x³", ["m", "2", "x", "3"]),
        ("İstanbul", ["istanbul"]),
        ("空气压缩机 100L", ["空气压缩机", "100", "l"]),
        ("コンプレッサー", ["コンプレッサー"]),
        ("압축기", ["압축기"]),
        ("насосы", ["насосы"]),
        ('" OR 1=1 --', ["or", "1", "1"]),
        ("NEAR(a b, 2)*", ["near", "a", "b", "2"]),
        ("a:* & b | !c <-> d\\", ["a", "b", "c", "d"]),
        ("😀", []),
    ],
)
def test_text_is_read_into_words(text: str, expected: list[str]):
    assert words(text) == expected


@pytest.mark.parametrize("code", ["PLAN-PRO-001", "plan pro 001", "planpro001", "Plan_Pro/001", " plan.pro.001 "])
def test_a_code_is_the_same_however_it_is_written(code: str):
    assert compact(code) == "planpro001"


@given(st.text())
def test_words_hold_letters_or_digits_only_so_no_query_syntax_reaches_a_database(text: str):
    for word in words(text):
        assert word.isalnum()
        assert word.isdecimal() or not any(letter.isdecimal() for letter in word)
        assert 1 <= len(word) <= WORD_LENGTH_MAX
    assert compact(text) == "" or compact(text).isalnum()


@given(st.text())
def test_reading_words_again_changes_nothing(text: str):
    assert words(" ".join(words(text))) == words(text)


def test_a_very_long_word_or_code_still_fits_a_database():
    text = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 200
    query = Query(text, SCOPE, active_only=False)
    terms = [
        *Indexed(codes=[text], titles=[text], prose=["x" * 20_000], is_active=True).terms([SCOPE]).split(),
        *leaves(query),
    ]
    assert max(len(term.encode()) for term in terms) < 2046
    assert len(words("x" * 20_000)[0]) == WORD_LENGTH_MAX
    assert CODE_LENGTH_MAX * 4 < 2046


def leaves(query: Query) -> list[str]:
    found, waiting = [], list(query.exact_sets())
    while waiting:
        part = waiting.pop()
        if isinstance(part, Term):
            found.append(part.text)
        elif isinstance(part, All | Any):
            waiting += part.parts
        else:
            waiting += [part.wanted, part.unwanted]
    return found


@settings(max_examples=1000)
@given(letters, letters)
def test_distance_is_the_fewest_typing_errors(one: str, other: str):
    assert distance(one, other) == fewest_errors(one, other)


@cache
def fewest_errors(one: str, other: str) -> int:
    """By trying everything, from the end."""
    if not one or not other:
        return len(one) + len(other)
    choices = [
        fewest_errors(one[:-1], other) + 1,
        fewest_errors(one, other[:-1]) + 1,
        fewest_errors(one[:-1], other[:-1]) + (one[-1] != other[-1]),
    ]
    if one[-2:] == other[:-3:-1] and len(one) > 1 and len(other) > 1:
        choices.append(fewest_errors(one[:-2], other[:-2]) + 1)
    return min(choices)


@given(letters, letters)
def test_distance_is_the_same_both_ways_and_zero_only_for_the_same_word(one: str, other: str):
    assert distance(one, other) == distance(other, one)
    assert (distance(one, other) == 0) == (one == other)


@settings(max_examples=2000)
@given(near_pairs)
def test_every_word_that_counts_as_near_shares_a_shortened_form(pair: tuple[str, str]):
    one, other = pair
    if nearest_words(one, [other]):
        assert set(shortened(one)) & set(shortened(other))


@pytest.mark.parametrize(
    ("typed_", "meant", "is_near"),
    [
        ("compresor", "compressor", True),
        ("vaccum", "vacuum", True),
        ("dyrer", "dryer", True),
        ("dryr", "dryer", True),
        ("pump", "plug", False),
        ("comprezzor", "compressor", True),
        ("komprezzor", "compressor", False),
        ("abcdefghijklmnop", "abcdefghijklmnopqr", False),
        ("abcdefghijklmnopq", "abcdefghijklmnopqr", True),
    ],
)
def test_one_error_is_forgiven_and_two_in_a_long_word(typed_: str, meant: str, is_near: bool):
    assert nearest_words(typed_, [meant]) == ([meant] if is_near else [])


def test_nearest_words_come_nearest_first_then_by_letter_without_the_word_itself():
    candidates = ["compressed", "compressor", "zompressor", "compresser", "compressor", "pump"]
    assert nearest_words("compressor", candidates) == ["compresser", "zompressor", "compressed"]
    assert len(nearest_words("abcd", [f"abcd{letter}" for letter in "abcdefghijkl"])) == NEAR_WORDS_MAX


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("pump", True),
        ("hp", False),
        ("abc", False),
        ("1000", False),
        ("a1b2", False),
        ("x" * 24, True),
        ("x" * 25, False),
    ],
)
def test_only_words_of_letters_are_corrected(word: str, answer: bool):
    assert may_be_misspelt(word) is answer


@settings(max_examples=1000)
@given(typed, st.lists(documents(), max_size=6), st.booleans())
def test_q14_each_kind_of_hit_holds_the_better_kinds(text: str, found: list[Indexed], active_only: bool):
    index = [set(document.terms([SCOPE]).split()) for document in found]
    query = Query(text, SCOPE, active_only=active_only)
    sets = [hits(expression, index) for expression in query.exact_sets()]
    assert bool(sets) == bool(words(text))
    for better, wider in pairwise(sets):
        assert better <= wider
    if sets:
        near = {word: nearest_words(word, {w for document in found for w in document.words}) for word in query.words}
        in_titles, anywhere = (hits(expression, index) for expression in query.corrected_sets(near))
        assert in_titles <= anywhere
        assert hits(query.corrected_sets({})[-1], index) <= anywhere
        assert all(f"{SCOPE}x" not in index[n] or not active_only for n in sets[-1] | anywhere)


@settings(max_examples=1000)
@given(typed, st.lists(documents(), max_size=6))
def test_q14_a_document_with_all_words_is_found_whatever_their_order(text: str, found: list[Indexed]):
    index = [set(document.terms([SCOPE]).split()) for document in found]
    wanted = set(words(text))
    expected = {n for n, document in enumerate(found) if wanted <= document.words}
    for order in (text, " ".join(reversed(text.split()))):
        sets = Query(order, SCOPE, active_only=False).exact_sets()
        assert not wanted or expected <= hits(sets[-1], index)


@given(typed, st.lists(documents(), max_size=6))
def test_nothing_is_found_in_another_scope(text: str, found: list[Indexed]):
    index = [set(document.terms([scope_code("t2"), scope_code("t1", "saas")]).split()) for document in found]
    for expression in Query(text, SCOPE, active_only=False).exact_sets():
        assert hits(expression, index) == set()


def test_a_query_has_a_limited_number_of_words_each_once():
    query = Query(" ".join(f"word{chr(97 + n)} word" for n in range(20)), SCOPE, active_only=True)
    assert len(query.words) == QUERY_WORDS_MAX
    assert len(set(query.words)) == QUERY_WORDS_MAX


def test_terms_say_where_a_word_stands_and_stand_under_every_scope():
    document = Indexed(codes=["QMB-30"], titles=["Quiet pumps"], prose=["For pumps"], is_active=False)
    assert document.title_words == {"quiet", "pump"}
    assert document.words == {"quiet", "pump", "for"}
    bare = {"nquiet", "npump", "tfor", "sqmb30", "x"}
    assert set(document.terms(["one.", "two."]).split()) == {
        scope + term for scope in ("one.", "two.") for term in bare
    }


def test_scopes_differ_by_tenant_and_by_category_and_have_one_length():
    scopes = [scope_code("t1"), scope_code("t2"), scope_code("t1", "a"), scope_code("t1", "b"), scope_code("t1\na")]
    assert len(set(scopes[:4])) == 4
    assert {len(scope) for scope in scopes} == {8}
    assert scope_code("t1", None) == scope_code("t1")
