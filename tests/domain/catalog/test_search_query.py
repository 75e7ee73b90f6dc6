"""Better kinds of hits lie inside wider ones, and nothing is found in another scope."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.domain.catalog.search_query import QUERY_WORDS_MAX, All, Any, Expression, Query, Term
from cpq.domain.catalog.spelling import nearest_words
from cpq.domain.catalog.words import CODE_LENGTH_MAX, WORD_LENGTH_MAX, Indexed, scope_code, words

SCOPE = scope_code("t1")
KNOWN_WORDS = ("pro", "plan", "plans", "PLAN-PRO-001", "qmb30", "30", "hp", "a", "ab", "abc", "abcd", "x-1")
sentences = st.lists(st.sampled_from(KNOWN_WORDS), max_size=4)
typed = sentences.map(" ".join)


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
