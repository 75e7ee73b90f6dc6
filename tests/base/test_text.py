"""What counts as text, the one spelling of a stored value, and numbers that survive the wire."""

import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.errors import Code
from cpq.base.text import (
    canonical_json,
    clean,
    clean_identifier,
    clean_line,
    fingerprint,
    plain_json,
    read_json,
    to_wire,
)

SAME_LETTER = "é", "e\N{COMBINING ACUTE ACCENT}"

storable = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=12)
scalars = st.none() | st.booleans() | st.integers(-(10**40), 10**40) | decimals | storable
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(storable, inner, max_size=4), max_leaves=12
)


def shown(text: str) -> str:
    return ascii(text[:12])


def comparable(value: Any) -> Any:
    """Equal for equal values, and only for them: in Python true equals 1, in JSON it does not."""
    if isinstance(value, Mapping):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return ("number", Decimal(value)) if is_number else (type(value), value)


@pytest.mark.parametrize(
    "hostile",
    [
        "a\0b",
        "a\x07",
        "\x1b[31m",
        "a\x0bb",
        "a\x7fb",
        "a\x85b",
        "\x9b",
        "\ud800",
        "a\udfff",
        "\ud83d\ude00",
        "a\ufffe",
        "\uffff",
        "é\0",
        "a" + "\u0301" * 31,
        "a" + "\u0301" * 500_000 + "\u0316" * 500_000,
    ],
    ids=shown,
)
def test_what_no_database_or_log_should_hold_is_refused(hostile: str):
    for check in (clean, clean_line, clean_identifier):
        with pytest.raises(ValueError, match=r"^contains "):
            check(hostile)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Pro Plan",
        "tab\tand\nline\r\nend",
        "空气压缩机",
        "مضخة",
        "👩‍🔧 ü €",
        "नमस्ते",
        "—" * 100,
        "😀" * 100,
        "a" + "\u0323\u0302" * 15,
        "\u202e",
    ],
)
def test_text_of_people_is_kept_in_one_form(text: str):
    assert clean(text) == unicodedata.normalize("NFC", text)


def test_the_same_letter_written_two_ways_is_the_same_text():
    assert {clean(spelling) for spelling in SAME_LETTER} == {"é"}


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str):
    try:
        cleaned = clean(text)
    except ValueError:
        return
    assert clean(cleaned) == cleaned
    assert cleaned.encode().decode() == cleaned
    assert "\0" not in cleaned


@pytest.mark.parametrize(("given_", "kept"), [(" a ", "a"), ("\ta b\n", "a b"), ("\u2003a\u00a0", "a"), ("ﬁ", "ﬁ")])
def test_q05_an_identifier_is_trimmed(given_: str, kept: str):
    assert clean_identifier(given_) == kept


@pytest.mark.parametrize("blank", ["", " ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000"], ids=shown)
def test_q05_a_blank_identifier_is_refused(blank: str):
    for check in (clean_identifier, clean_line):
        with pytest.raises(ValueError, match="is blank"):
            check(blank)


@pytest.mark.parametrize(
    "unseen",
    [
        *"\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u200f\u202a\u202e\u2028\u2060\u2066\u2069\u3164\ufe0f\ufeff\uffa0",
        *"\U000e0041\U000e0100\u00a0\t\n\r\u2003",
    ],
    ids=shown,
)
def test_an_identifier_holds_nothing_that_cannot_be_seen(unseen: str):
    with pytest.raises(ValueError, match="contains an invisible character or a blank other than a space"):
        clean_identifier(f"a{unseen}b")


@pytest.mark.parametrize("broken", ["a\nb", "a\rb", "a\r\nb", "a\tb", "a\u2028b", "a\u2029b"], ids=shown)
def test_a_line_has_no_end_in_the_middle(broken: str):
    with pytest.raises(ValueError, match="must be one line of text"):
        clean_line(broken)


@pytest.mark.parametrize("turned", ["\u202eevil", "a\u2066b", "a\u202ab", "a\u061cb"], ids=shown)
def test_a_line_reads_in_the_order_it_is_written(turned: str):
    with pytest.raises(ValueError, match="changes the direction of the text"):
        clean_line(turned)


@pytest.mark.parametrize("name", ["Pumpe, öl­frei", "مضخة هواء", "👩‍🔧", "نمی‌خواهم", "A – B × 2"])
def test_a_line_may_be_in_any_script(name: str):
    assert clean_line(f"  {name}\n") == name


@settings(max_examples=1000)
@given(values)
def test_a_stored_value_reads_back_exactly(value: Any):
    assert comparable(read_json(canonical_json(value))) == comparable(value)


@given(values)
def test_what_was_read_back_is_spelt_the_same(value: Any):
    assert canonical_json(read_json(canonical_json(value))) == canonical_json(value)


@given(st.dictionaries(storable, values, max_size=6), st.randoms())
def test_the_order_of_names_does_not_matter(value: dict[str, Any], random: Any):
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert canonical_json(dict(shuffled)) == canonical_json(value) == canonical_json(MappingProxyType(value))


@settings(max_examples=1000)
@given(values, values)
def test_fingerprints_are_equal_exactly_when_the_values_are(one: Any, other: Any):
    assert (fingerprint(one) == fingerprint(other)) == (comparable(one) == comparable(other))
    assert fingerprint(read_json(canonical_json(one))) == fingerprint(one)


@pytest.mark.parametrize(
    ("number", "spelt"),
    [
        ("1.10", "1.1"),
        ("1.0", "1"),
        ("-0", "0"),
        ("-0.00", "0"),
        ("1E+3", "1000"),
        ("1E-6", "0.000001"),
        ("1E+30", "1" + "0" * 30),
        ("1.5E-30", "0." + "0" * 29 + "15"),
        ("1" * 40 + "." + "1" * 40, "1" * 40 + "." + "1" * 40),
        ("100", "100"),
    ],
)
def test_a_decimal_has_one_spelling(number: str, spelt: str):
    assert canonical_json(Decimal(number)) == spelt
    assert canonical_json({"a": [Decimal(number)]}) == f'{{"a":[{spelt}]}}'


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (None, "null"), ("1", 1), ([], {}), ([1], 1), ({"a": None}, {})]
)
def test_values_that_python_confuses_have_their_own_fingerprints(one: object, other: object):
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("hostile", [float("nan"), float("inf"), "\ud800", Decimal("NaN"), Decimal("Infinity"), "\0"])
def test_a_fingerprint_can_be_taken_of_refused_values_too(hostile: object):
    assert len(fingerprint({"a": hostile})) == 64


@settings(max_examples=2000)
@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 20))
def test_q06_fifteen_digits_survive_the_wire(digits: int, places: int):
    number = Decimal(digits).scaleb(-places)
    sent = json.dumps(to_wire({"amount": number}))
    assert json.loads(sent, parse_float=Decimal)["amount"] == number
    assert Decimal(repr(json.loads(sent)["amount"])) == number


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (Decimal("1.10"), "1.1"),
        (Decimal("1.00"), "1"),
        (Decimal("-0"), "0"),
        (Decimal("-0.00"), "0"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.000001"), "1e-06"),
        (Decimal("123456789.012345"), "123456789.012345"),
        (Decimal(999999999999999), "999999999999999"),
        (datetime(2026, 1, 31, 12, 30, 5, 999999, tzinfo=UTC), '"2026-01-31T12:30:05Z"'),
        (date(2026, 1, 31), '"2026-01-31"'),
        (Code.NOT_FOUND, '"NOT_FOUND"'),
        ((1, Decimal("2.5")), "[1, 2.5]"),
        (MappingProxyType({"a": (Decimal(1),)}), '{"a": [1]}'),
        ({"a": {"b": [Decimal("0.1"), None, True, "x"]}}, '{"a": {"b": [0.1, null, true, "x"]}}'),
    ],
    ids=str,
)
def test_q07_values_go_out_as_json_knows_them(value: object, sent: str):
    assert json.dumps(to_wire(value)) == sent


def test_q07_a_moment_of_another_zone_goes_out_in_utc():
    moment = datetime(2026, 1, 31, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert to_wire(moment) == "2026-01-31T10:00:00Z"


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=1000)
@given(plain_values)
def test_the_quick_way_to_write_spells_everything_the_same(value: Any):
    assert plain_json(value) == canonical_json(value)
