"""Free texts: what no clause of the library says, and whether it holds terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.free_text import NO_FREE_TEXT, ClauseLibrary

WARRANTY = "The warranty is 12 months from start-up."
LIBRARY = ClauseLibrary({"warranty": WARRANTY, "access": "Please give us access."})
lines = st.sampled_from(["40 % rebate", WARRANTY, "With care", "RAL 5010", "", "3 months", "net 180"]) | st.text(
    max_size=20
)


@pytest.mark.parametrize(
    "text",
    [
        "40 % rebate, net 180", "We pay 40 % back.", "forty percent", "Payment in 60 days", "free of charge",
        "€ 500",        "Preisnachlass", "Kündigung jederzeit", "60 jours", "Remise", "descuento", "割引", "خصم",
        "re\u200bbate", "ＲＥＢＡＴＥ",
        "r\u0435bate", "40\n%", "Cancel at any time", "net180",
        "40 pct off every invoice", "We take 40 off", "half off", "½ off", "forty per-cent", "Net thirty", "net-180",
        "n/180", "2/10 n/30", "180-day term", "due in 180d", "5000 dollars back", "1000 Euro", "CAD 5000 back",
        "EUR500", "400 kr", "₹ 4000", "two units free", "no charge for installation", "free-of-charge",
        "_rebate_", "net_180", "free_of_charge", "40_%",
        "Zahlbar in sechs Monaten", "1 Monat", "in six months", "net\u2011180",
    ],
)  # fmt: skip
def test_terms_are_found_in_every_spelling(text: str):
    assert LIBRARY.facts([text]).free_text_has_terms


@pytest.mark.parametrize(
    "text",
    [
        "Deliver before 1 July.",
        "Painted RAL 5010.",
        "Call +971 4 555 0142.",
        "Oil-free air",
        "Network",
        "Two docks.",
        "Deliver to gate 4",
        "Contact: Ms Lee",
        "GA 37",
        "GA 37 oil free",
        "Gate 4 is free after noon",
        "S/N 12",
        "KR 400",
        "Net weight 400 kg",
        "The 2 docks are off-site",
        "Call half an hour before",
        "One crane, three pallets",
    ],
)
def test_ordinary_notes_hold_no_terms(text: str):
    found = LIBRARY.facts([text])
    assert (found.has_free_text, found.free_text_has_terms) == (True, False)


def test_a_number_of_an_attribute_is_data_and_terms_are_not():
    assert not LIBRARY.facts([], ["colour: RAL 9010", "3 years", "36 months"]).free_text_has_terms
    assert LIBRARY.facts([], ["remark: 40 % rebate"]).free_text_has_terms
    for value in ("3 Monate frei", "remark: 3 Monate frei", "invoice after: 180 days"):
        assert LIBRARY.facts([], [value]).free_text_has_terms, value


@pytest.mark.parametrize(
    "reference", [None, "D-2026-7", "OPP_77", "acme-renewal-2026", "ACME-USD-2026", "60-month-deal"]
)
def test_a_reference_of_one_word_says_nothing(reference: str | None):
    assert LIBRARY.spoken(reference) == []


@pytest.mark.parametrize("reference", ["40 % rebate, net 180", "net_180", "40%-off", "free_of_charge", "€500-back"])
def test_terms_in_a_reference_are_found(reference: str):
    assert LIBRARY.facts([], LIBRARY.spoken(reference)).free_text_has_terms


def test_a_reference_of_several_words_is_a_text():
    found = LIBRARY.facts([], LIBRARY.spoken("Acme renewal 2026"))
    assert (found.has_free_text, found.free_text_has_terms) == (True, False)


@given(st.lists(st.sampled_from(sorted(LIBRARY.clauses)), max_size=4))
def test_clauses_are_no_free_text(ids: list[str]):
    note = LIBRARY.text_of("\n".join(f"clause:{id_}" for id_ in ids)) or ""
    assert LIBRARY.facts([note, note.upper()]) == NO_FREE_TEXT


@given(st.lists(lines, max_size=4), st.lists(lines, max_size=4), lines)
def test_more_text_never_hides_what_another_holds(texts: list[str], values: list[str], more: str):
    before = LIBRARY.facts(texts, values)
    for after in (LIBRARY.facts([*texts, more], values), LIBRARY.facts(texts, [*values, more])):
        assert all(is_now or not was for was, is_now in zip(before, after, strict=True))
