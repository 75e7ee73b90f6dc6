"""Exact money: splitting, rounding, the database's form, and arithmetic that never mixes currencies."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.money import (
    MINOR_DIGITS,
    Money,
    Percent,
    Rounding,
    allocate,
    from_micro,
    minor_digits,
    plain,
    readable,
    round_minor,
    significant_digits,
    to_micro,
)

CASES = json.loads(Path(__file__).with_name("money_cases.json").read_text(encoding="utf-8"))
CURRENCIES = ("JPY", "USD", "KWD", "CLF")

currencies = st.sampled_from(CURRENCIES)
units = st.integers(-(10**15), 10**15)
weights = st.lists(st.decimals(0, 10**9, places=4) | st.integers(0, 5).map(Decimal), min_size=1, max_size=12)
amounts = st.decimals(-(10**12), 10**12, places=6)


def in_units(amount: Decimal, currency: str) -> int:
    whole = amount.scaleb(minor_digits(currency))
    assert whole == whole.to_integral_value()
    return int(whole)


def split(whole: int, parts: list[Decimal], currency: str) -> list[int]:
    shares = allocate(Decimal(whole).scaleb(-minor_digits(currency)), parts, currency)
    return [in_units(share, currency) for share in shares]


def fair_shares(whole: int, parts: list[Decimal]) -> list[Fraction]:
    exact = [Fraction(part) for part in parts]
    exact = exact if any(exact) else [Fraction(1)] * len(parts)
    return [whole * part / sum(exact) for part in exact]


@pytest.mark.parametrize("case", [c for c in CASES if c["group"] == "apportion"], ids=lambda c: c["case"])
def test_published_cases_of_splitting_come_out_the_same(case: dict):
    parts = [Decimal(weight) for weight in case["input"]["weights"]]
    assert split(case["input"]["amount"], parts, "USD") == case["expected"]


@pytest.mark.parametrize("case", [c for c in CASES if c["group"] == "rounding"], ids=lambda c: c["case"])
def test_published_cases_of_rounding_come_out_the_same(case: dict):
    for currency, expected in case["expected"].items():
        exact = Money(Decimal(case["input"]["amount"]), currency).times(Decimal(case["input"]["factor"]))
        assert str(exact.rounded().amount) == expected


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_shares_always_add_up(whole: int, parts: list[Decimal], currency: str):
    assert sum(split(whole, parts, currency)) == whole


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_no_share_is_a_whole_unit_away_from_its_fair_share(whole: int, parts: list[Decimal], currency: str):
    for share, fair in zip(split(whole, parts, currency), fair_shares(whole, parts), strict=True):
        assert abs(share - fair) < 1


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_no_share_has_the_opposite_sign_and_a_weight_of_zero_gets_nothing(
    whole: int, parts: list[Decimal], currency: str
):
    for share, part in zip(split(whole, parts, currency), parts, strict=True):
        assert share * whole >= 0
        assert share == 0 or part > 0 or not any(parts)


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_the_units_left_over_go_to_the_largest_remainders_and_of_equal_ones_to_the_first(
    whole: int, parts: list[Decimal], currency: str
):
    fair = fair_shares(abs(whole), parts)
    lucky = [share - int(exact) for share, exact in zip(split(abs(whole), parts, currency), fair, strict=True)]
    order = sorted(range(len(parts)), key=lambda n: (-(fair[n] - int(fair[n])), n))
    assert [lucky[n] for n in order] == sorted(lucky, reverse=True)
    assert set(lucky) <= {0, 1}


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_a_negative_amount_mirrors_the_positive(whole: int, parts: list[Decimal], currency: str):
    assert split(-whole, parts, currency) == [-share for share in split(whole, parts, currency)]


@given(units, st.integers(1, 12), currencies)
def test_weights_of_zero_split_equally(whole: int, count: int, currency: str):
    assert split(whole, [Decimal(0)] * count, currency) == split(whole, [Decimal(1)] * count, currency)


@given(units, weights, st.decimals("0.0001", 10**6, places=4), currencies)
def test_only_the_proportion_of_weights_counts(whole: int, parts: list[Decimal], factor: Decimal, currency: str):
    assert split(whole, [part * factor for part in parts], currency) == split(whole, parts, currency)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12), st.integers(0, 100), currencies)
def test_a_discount_split_over_lines_never_exceeds_a_line(lines: list[int], percent: int, currency: str):
    discount = sum(lines) * percent // 100
    for share, line in zip(split(discount, [Decimal(line) for line in lines], currency), lines, strict=True):
        assert share <= line or not any(lines)


@pytest.mark.parametrize(
    ("amount", "parts", "currency", "expected"),
    [
        ("10", ["1", "1", "1"], "JPY", ["4", "3", "3"]),
        ("10", ["1", "1", "1"], "USD", ["3.34", "3.33", "3.33"]),
        ("10", ["1", "1", "1"], "KWD", ["3.334", "3.333", "3.333"]),
        ("10", ["1", "1", "1"], "CLF", ["3.3334", "3.3333", "3.3333"]),
        ("-10", ["1", "1", "1"], "USD", ["-3.34", "-3.33", "-3.33"]),
        ("0.01", ["1", "1"], "USD", ["0.01", "0.00"]),
        ("0.01", ["0", "0", "0"], "USD", ["0.01", "0.00", "0.00"]),
        ("0.01", ["0.1", "0.9"], "USD", ["0.00", "0.01"]),
        ("100", ["0.335", "0.665"], "USD", ["33.50", "66.50"]),
        ("1", ["1E+3", "2000"], "USD", ["0.33", "0.67"]),
        ("0", ["3", "4"], "USD", ["0.00", "0.00"]),
        ("9" * 40, ["1", "1"], "JPY", ["5" + "0" * 39, "4" + "9" * 39]),
    ],
)
def test_an_amount_is_split_in_whole_minor_units(amount: str, parts: list[str], currency: str, expected: list[str]):
    assert [str(share) for share in allocate(Decimal(amount), list(map(Decimal, parts)), currency)] == expected


@pytest.mark.parametrize(
    ("amount", "parts", "currency", "reason"),
    [
        ("1", [], "USD", "at least one share"),
        ("1", ["1", "-1"], "USD", "not negative"),
        ("1", ["NaN"], "USD", "finite"),
        ("1", ["Infinity"], "USD", "finite"),
        ("NaN", ["1"], "USD", "finite"),
        ("-Infinity", ["1"], "USD", "finite"),
        ("0.001", ["1"], "USD", "not a whole number of minor units of USD"),
        ("0.5", ["1"], "JPY", "not a whole number of minor units of JPY"),
        ("1", ["1"], "XXX", "'XXX' is not an ISO 4217 currency code"),
    ],
)
def test_what_cannot_be_split_is_refused(amount: str, parts: list[str], currency: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        allocate(Decimal(amount), list(map(Decimal, parts)), currency)


@pytest.mark.parametrize(
    ("amount", "currency", "half_up", "half_even"),
    [
        ("0.005", "USD", "0.01", "0.00"),
        ("0.015", "USD", "0.02", "0.02"),
        ("2.675", "USD", "2.68", "2.68"),
        ("2.665", "USD", "2.67", "2.66"),
        ("-2.665", "USD", "-2.67", "-2.66"),
        ("-0.005", "USD", "-0.01", "0.00"),
        ("-0.001", "USD", "0.00", "0.00"),
        ("1.0049999999", "USD", "1.00", "1.00"),
        ("0.5", "JPY", "1", "0"),
        ("2.5", "JPY", "3", "2"),
        ("1.0005", "KWD", "1.001", "1.000"),
        ("1.00005", "CLF", "1.0001", "1.0000"),
        ("7", "CLF", "7.0000", "7.0000"),
        ("1" * 40 + ".005", "USD", "1" * 40 + ".01", "1" * 40 + ".00"),
    ],
)
def test_the_named_rounding_decides_what_happens_to_a_half(amount: str, currency: str, half_up: str, half_even: str):
    assert str(round_minor(Decimal(amount), currency, Rounding.HALF_UP)) == half_up
    assert str(round_minor(Decimal(amount), currency, Rounding.HALF_EVEN)) == half_even
    assert str(round_minor(Decimal(amount), currency)) == half_up


@settings(max_examples=2000)
@given(amounts, currencies, st.sampled_from(Rounding))
def test_rounding_moves_by_half_a_unit_at_most_and_only_once(amount: Decimal, currency: str, rounding: Rounding):
    rounded = round_minor(amount, currency, rounding)
    assert abs(rounded - amount) * 2 <= Decimal(1).scaleb(-minor_digits(currency))
    assert round_minor(rounded, currency, rounding) == rounded
    assert not (rounded.is_zero() and rounded.is_signed())


@given(amounts, currencies, st.sampled_from(Rounding))
def test_rounding_is_the_same_on_both_sides_of_zero(amount: Decimal, currency: str, rounding: Rounding):
    assert round_minor(-amount, currency, rounding) == -round_minor(amount, currency, rounding)


@settings(max_examples=2000)
@given(st.integers(-(2**63), 2**63 - 1))
def test_every_whole_number_of_the_database_reads_back_as_itself(micro: int):
    assert to_micro(from_micro(micro)) == micro


@settings(max_examples=2000)
@given(amounts)
def test_every_amount_of_six_decimals_comes_back_from_the_database_unchanged(amount: Decimal):
    stored = from_micro(to_micro(amount))
    assert stored == amount
    assert "E" not in str(stored)


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("0.0000001", "more than 6 decimals"),
        ("1.1234567", "more than 6 decimals"),
        ("1E-400", "more than 6 decimals"),
        ("1E+400", "not an amount of money"),
        ("Infinity", "not an amount of money"),
        ("NaN", "NaN"),
        ("sNaN", "not an amount of money"),
    ],
)
def test_an_amount_that_would_lose_a_digit_is_not_stored(amount: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        to_micro(Decimal(amount))


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("10.00", "10"),
        ("1E+3", "1000"),
        ("1.10", "1.1"),
        ("-0", "0"),
        ("-0.00", "0"),
        ("0E+5", "0"),
        ("-1.50", "-1.5"),
        ("0.000001", "0.000001"),
        ("1" * 40 + "0", "1" * 40 + "0"),
    ],
)
def test_a_plain_number_has_no_exponent_no_trailing_zeros_and_no_negative_zero(number: str, written: str):
    assert str(plain(Decimal(number))) == written


@pytest.mark.parametrize(
    ("amount", "currency", "written"),
    [
        ("1350", "USD", "1,350.00"),
        ("-150", "USD", "-150.00"),
        ("0", "JPY", "0"),
        ("1234567", "JPY", "1,234,567"),
        ("1.5", "KWD", "1.500"),
        ("7.392857", "USD", "7.392857"),
        ("0.000001", "JPY", "0.000001"),
        ("1E+3", "EUR", "1,000.00"),
    ],
)
def test_an_amount_is_written_for_people_with_the_digits_of_its_currency(amount: str, currency: str, written: str):
    assert readable(Decimal(amount), currency) == written


@given(amounts, currencies)
def test_an_amount_written_for_people_is_the_same_amount(amount: Decimal, currency: str):
    assert Decimal(readable(amount, currency).replace(",", "")) == amount


@given(amounts)
def test_a_plain_number_is_the_same_number(amount: Decimal):
    assert plain(amount) == amount
    assert plain(plain(amount)).as_tuple() == plain(amount).as_tuple()


@pytest.mark.parametrize(
    ("number", "digits"), [("0", 1), ("100", 1), ("1.10", 2), ("123456789.012345", 15), ("1E+400", 1), ("-0.05", 1)]
)
def test_only_the_digits_that_carry_meaning_count(number: str, digits: int):
    assert significant_digits(Decimal(number)) == digits


@settings(max_examples=2000)
@given(amounts, amounts, currencies)
def test_money_of_one_currency_adds_up_exactly(one: Decimal, other: Decimal, currency: str):
    a, b = Money(one, currency), Money(other, currency)
    assert a + b == b + a == Money(one + other, currency)
    assert (a + b) - b == a
    assert a + -a == Money(Decimal(0), currency)
    assert (a < b, a <= b, a > b, a >= b) == (one < other, one <= other, one > other, one >= other)


def test_money_keeps_more_digits_than_pythons_own_arithmetic():
    long = Money(Decimal("1" * 40 + ".000001"), "USD")
    assert (-long).amount == Decimal("-" + "1" * 40 + ".000001")
    assert (long + Money(Decimal("0.000001"), "USD")).amount == Decimal("1" * 40 + ".000002")
    assert long.times(10).amount == Decimal("1" * 40 + "0.00001")


@pytest.mark.parametrize("operation", ["__add__", "__sub__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_money_of_two_currencies_never_mixes(operation: str):
    with pytest.raises(ValueError, match="USD and EUR do not mix"):
        getattr(Money(Decimal(1), "USD"), operation)(Money(Decimal(2), "EUR"))


def test_money_of_two_currencies_is_never_equal():
    assert Money(Decimal(1), "USD") != Money(Decimal(1), "EUR")
    assert Money(Decimal("1.0"), "USD") == Money(Decimal("1.00"), "USD")
    assert len({Money(Decimal("1.0"), "USD"), Money(Decimal("1.00"), "USD")}) == 1


@pytest.mark.parametrize("amount", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_q06_money_is_a_finite_number(amount: str):
    with pytest.raises(ValueError, match="finite"):
        Money(Decimal(amount), "USD")


@pytest.mark.parametrize("code", ["", "usd", "US", "USDX", "XXX", "XAU", "DEM", "USD "])
def test_money_has_a_currency_that_iso_4217_lists(code: str):
    with pytest.raises(ValueError, match="is not an ISO 4217 currency code"):
        Money(Decimal(1), code)


@given(amounts, st.decimals(0, 100, places=4), currencies)
def test_a_percentage_of_money_is_exact_until_it_is_rounded(amount: Decimal, value: Decimal, currency: str):
    part = Percent(value).of(Money(amount, currency))
    assert Fraction(part.amount) == Fraction(amount) * Fraction(value) / 100
    assert part.rounded().amount == round_minor(part.amount, currency)


@pytest.mark.parametrize(
    ("code", "digits"),
    [
        ("USD", 2),
        ("EUR", 2),
        ("GBP", 2),
        ("CHF", 2),
        ("JPY", 0),
        ("KRW", 0),
        ("VND", 0),
        ("ISK", 0),
        ("CLP", 0),
        ("BHD", 3),
        ("KWD", 3),
        ("TND", 3),
        ("CLF", 4),
        ("UYW", 4),
    ],
)
def test_minor_units_are_those_of_iso_4217(code: str, digits: int):
    assert minor_digits(code) == digits


def test_the_table_of_currencies_is_whole():
    assert {len(code) for code in MINOR_DIGITS} == {3}
    assert set(MINOR_DIGITS.values()) == {0, 2, 3, 4}
    assert len(MINOR_DIGITS) == 165
