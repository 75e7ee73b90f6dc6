"""How text becomes terms, and a query slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base import vocabulary
from cpq.retrieval.search.lexicon import BARE_NUMBER, CORRECTED, EXACT, SYNONYM, read_query, stem, terms
from cpq.retrieval.search.passages import excerpt, split


def slots(query: str, *texts: str) -> dict[str, dict[str, float]]:
    """The slots of a query against a corpus of these texts."""
    known = [terms(text) for text in texts]
    read = read_query(query, lambda term: sum(term in held for held in known), lambda _word: ["compressor"])
    return {slot.word: dict(slot.fillings) for slot in read.slots}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("100HP", "100 hp"),
        ("100 horsepower", "100-HP"),
        ("oil-less", "oilless"),
        ("food-grade", "food grade"),
        ("QMB30", "qmb-30"),
        ("1,200 lb", "1200 lbs"),
        ("7.5 HP", "7,5 hp"),
        ("servicing", "service"),
        ("Générateur", "generateur"),
        ("compressors", "compressor"),
        ("bagging", "bags"),
    ],
)
def test_two_spellings_share_what_matters(one: str, other: str):
    shared = terms(one) & terms(other)
    assert max(map(len, shared)) >= max(len(term) for term in terms(other)) - 1


def test_a_number_belongs_to_its_unit_and_not_to_the_next():
    found = terms("30 HP at 100 PSI")
    assert {"30hp", "100psi"} <= found
    assert "100hp" not in found


def test_a_number_with_another_unit_earns_less():
    asked = slots("100 HP", "100 HP motor", "30 HP, 100 PSI")
    assert asked["100"] == {"100hp": EXACT, "100": BARE_NUMBER}


def test_a_unit_nobody_has_in_that_size_leaves_the_bare_number_weak():
    assert slots("100 HP", "30 HP, 100 PSI")["100"] == {"100": BARE_NUMBER}


def test_other_words_for_the_same_thing_count_nearly_as_much():
    assert slots("piston", "reciprocating pump")["piston"] == {"reciprocat": SYNONYM}
    assert slots("variable speed", "VSD drive")["variabl"] == {"vsd": SYNONYM}


def test_a_word_of_another_language_is_one_of_the_words_for_a_thing():
    assert slots("Kompressor", "compressor")["kompress"] == {"compress": SYNONYM}
    assert slots("Wartung", "upkeep")["wartung"] == {"upkeep": SYNONYM}


def test_no_word_is_in_two_groups():
    groups = [{"".join(map(stem, phrase.split())) for phrase in group} for group in vocabulary.SYNONYMS]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_a_word_that_nothing_holds_is_corrected():
    assert slots("comprassor", "compressor")["comprass"] == {"compress": CORRECTED}


def test_little_words_do_not_count():
    assert set(slots("do you have the pump", "pump")) == {"pump"}
    assert slots("what is it", "it is") == {}


def test_what_is_denied_is_not_there():
    assert not terms("This is not an oilless machine") & {"oilless"}
    assert "machin" in terms("This is not an oilless machine")
    assert set(slots("compressor without a tank", "tank compressor")) == {"compress"}


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str):
    found = terms(text)
    assert all(found)
    read_query(text, lambda _term: 1, lambda _word: [])


@given(st.text(max_size=400), st.integers(2, 50))
def test_the_parts_of_a_text_are_the_text(text: str, characters: int):
    parts = split(text, characters)
    assert "".join(parts) == text
    assert all(len(part) <= characters for part in parts)


def test_a_text_is_cut_between_sentences_where_it_can():
    assert split("One is here. Two is there. Three.", 28) == ["One is here. Two is there. ", "Three."]


def test_an_excerpt_shows_the_words_that_were_found():
    text = "First nothing of interest. " * 30 + "An oilless scroll compressor. " + "And more of nothing. " * 30
    shown = excerpt(text, {"oilless", "scroll"})
    assert "oilless scroll" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= 242


@given(st.text(max_size=600), st.text(max_size=50))
def test_an_excerpt_is_short_and_on_one_line(text: str, query: str):
    shown = excerpt(text, terms(query))
    assert len(shown) <= 242
    assert "\n" not in shown


def test_prose_is_found_by_what_it_denies():
    said = terms("Freight is never refunded without a claim", with_denied=True)
    assert {"refund", "claim"} <= said
    read = read_query("no claim without refund", lambda _term: 1, lambda _word: [], with_denied=True)
    assert {"claim", "refund"} <= {slot.word for slot in read.slots}
