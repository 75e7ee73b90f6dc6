"""How text becomes words, and under which terms a product is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.catalog.words import WORD_LENGTH_MAX, Indexed, compact, scope_code, words


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
