"""Rounding and splitting: published cases, and what holds for any amount, weight and currency."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.money import from_micro, minor_digits
from cpq.base.rounding import MinorUnit, Rounding, divide, nearest

CASES = json.loads(Path(__file__).with_name("rounding_cases.json").read_text(encoding="utf-8"))
CURRENCIES = ("JPY", "USD", "KWD", "CLF")
MILLION = 10**6

currencies = st.sampled_from(CURRENCIES)
roundings = st.sampled_from(Rounding)
units = st.integers(-(10**15), 10**15)
weights = st.lists(st.integers(0, 10**13) | st.integers(0, 5), min_size=1, max_size=12)
amounts = st.fractions(-(10**18), 10**18, max_denominator=10**4) | st.integers(-(10**18), 10**18)


def split(whole: int, parts: list[int], currency: str) -> list[int]:
    unit = MinorUnit(currency)
    shares = unit.allocate(whole * unit.size, parts)
    assert not [share for share in shares if share % unit.size]
    return [share // unit.size for share in shares]


def fair_shares(whole: int, parts: list[int]) -> list[Fraction]:
    exact = parts if any(parts) else [1] * len(parts)
    return [Fraction(whole * part, sum(exact)) for part in exact]


def rounded(amount: Fraction, currency: str, rounding: Rounding = Rounding.HALF_UP) -> str:
    """An amount of whole units, rounded and written with the digits of its currency."""
    return f"{from_micro(MinorUnit(currency, rounding).round(amount * MILLION)):.{minor_digits(currency)}f}"


@pytest.mark.parametrize("case", [c for c in CASES if c["group"] == "apportion"], ids=lambda c: c["case"])
def test_published_cases_of_splitting_come_out_the_same(case: dict):
    assert split(case["input"]["amount"], case["input"]["weights"], "USD") == case["expected"]


@pytest.mark.parametrize("case", [c for c in CASES if c["group"] == "rounding"], ids=lambda c: c["case"])
def test_published_cases_of_rounding_come_out_the_same(case: dict):
    for currency, expected in case["expected"].items():
        assert rounded(Fraction(case["input"]["amount"]) * Fraction(case["input"]["factor"]), currency) == expected


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_shares_always_add_up(whole: int, parts: list[int], currency: str):
    assert sum(split(whole, parts, currency)) == whole


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_no_share_is_a_whole_unit_away_from_its_fair_share(whole: int, parts: list[int], currency: str):
    for share, fair in zip(split(whole, parts, currency), fair_shares(whole, parts), strict=True):
        assert abs(share - fair) < 1


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_no_share_has_the_opposite_sign_and_a_weight_of_zero_gets_nothing(whole: int, parts: list[int], currency: str):
    for share, part in zip(split(whole, parts, currency), parts, strict=True):
        assert share * whole >= 0
        assert share == 0 or part > 0 or not any(parts)


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_the_units_left_over_go_to_the_largest_remainders_and_of_equal_ones_to_the_first(
    whole: int, parts: list[int], currency: str
):
    fair = fair_shares(abs(whole), parts)
    lucky = [share - int(exact) for share, exact in zip(split(abs(whole), parts, currency), fair, strict=True)]
    order = sorted(range(len(parts)), key=lambda n: (-(fair[n] - int(fair[n])), n))
    assert [lucky[n] for n in order] == sorted(lucky, reverse=True)
    assert set(lucky) <= {0, 1}


@settings(max_examples=2000)
@given(units, st.lists(st.integers(0, 5), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_with_an_order_it_does_not_matter_where_a_share_stands(whole: int, parts: list[int], chance):
    unit, names = MinorUnit("USD"), list(range(len(parts)))
    in_order = unit.allocate(whole * unit.size, parts, order=names.__getitem__)
    chance.shuffle(names)
    shuffled = unit.allocate(whole * unit.size, [parts[name] for name in names], order=names.__getitem__)
    assert dict(zip(names, shuffled, strict=True)) == dict(enumerate(in_order))


@settings(max_examples=2000)
@given(units, weights, currencies)
def test_a_negative_amount_mirrors_the_positive(whole: int, parts: list[int], currency: str):
    assert split(-whole, parts, currency) == [-share for share in split(whole, parts, currency)]


@given(units, st.integers(1, 12), currencies)
def test_weights_of_zero_split_equally(whole: int, count: int, currency: str):
    assert split(whole, [0] * count, currency) == split(whole, [1] * count, currency)


@given(units, weights, st.integers(1, 10**10), currencies)
def test_only_the_proportion_of_weights_counts(whole: int, parts: list[int], factor: int, currency: str):
    assert split(whole, [part * factor for part in parts], currency) == split(whole, parts, currency)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12), st.integers(0, 100), currencies)
def test_a_discount_split_over_lines_never_exceeds_a_line(lines: list[int], percent: int, currency: str):
    discount = sum(lines) * percent // 100
    for share, line in zip(split(discount, lines, currency), lines, strict=True):
        assert share <= line or not any(lines)


@pytest.mark.parametrize(
    ("amount", "parts", "currency", "expected"),
    [
        (10, [1, 1, 1], "JPY", [4, 3, 3]),
        (1000, [1, 1, 1], "USD", [334, 333, 333]),
        (10_000, [1, 1, 1], "KWD", [3334, 3333, 3333]),
        (100_000, [1, 1, 1], "CLF", [33334, 33333, 33333]),
        (-1000, [1, 1, 1], "USD", [-334, -333, -333]),
        (1, [1, 1], "USD", [1, 0]),
        (1, [0, 0, 0], "USD", [1, 0, 0]),
        (1, [1, 9], "USD", [0, 1]),
        (10_000, [335, 665], "USD", [3350, 6650]),
        (100, [1000, 2000], "USD", [33, 67]),
        (0, [3, 4], "USD", [0, 0]),
        (int("9" * 40), [1, 1], "JPY", [int("5" + "0" * 39), int("4" + "9" * 39)]),
    ],
)
def test_an_amount_is_split_in_whole_minor_units(amount: int, parts: list[int], currency: str, expected: list[int]):
    assert split(amount, parts, currency) == expected


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
    assert rounded(Fraction(amount), currency, Rounding.HALF_UP) == half_up
    assert rounded(Fraction(amount), currency, Rounding.HALF_EVEN) == half_even
    assert rounded(Fraction(amount), currency) == half_up


@settings(max_examples=2000)
@given(amounts, currencies, roundings)
def test_rounding_moves_by_half_a_unit_at_most_and_only_once(amount: Fraction, currency: str, rounding: Rounding):
    unit = MinorUnit(currency, rounding)
    once = unit.round(amount)
    assert once % unit.size == 0
    assert abs(once - amount) * 2 <= unit.size
    assert unit.round(once) == once


@given(amounts, currencies, roundings)
def test_rounding_is_the_same_on_both_sides_of_zero(amount: Fraction, currency: str, rounding: Rounding):
    assert MinorUnit(currency, rounding).round(-amount) == -MinorUnit(currency, rounding).round(amount)


@settings(max_examples=2000)
@given(amounts, st.integers(0, 10**8), st.integers(1, 10**9), currencies, roundings)
def test_a_share_of_an_amount_is_exact_until_it_is_rounded(
    amount: Fraction, share: int, of: int, currency: str, rounding: Rounding
):
    unit = MinorUnit(currency, rounding)
    assert unit.round(amount, share, of) == unit.round(amount * Fraction(share, of))


@given(amounts, st.integers(1, 10**9))
def test_an_exact_quotient_is_an_int_where_it_is_whole(amount: Fraction, divisor: int):
    quotient = divide(amount, divisor)
    assert quotient * divisor == amount
    assert isinstance(quotient, int) == (quotient.denominator == 1)


@given(st.integers(-(10**18), 10**18), st.integers(1, 10**9))
def test_the_nearest_whole_number_is_half_away_at_most_and_a_half_goes_up(numerator: int, denominator: int):
    away = nearest(numerator, denominator) - Fraction(numerator, denominator)
    assert Fraction(-1, 2) < away <= Fraction(1, 2)


@given(st.integers(-(10**6), 10**6), currencies)
def test_the_size_of_a_minor_unit_is_that_of_iso_4217(count: int, currency: str):
    unit = Decimal(1).scaleb(-minor_digits(currency))
    assert from_micro(count * MinorUnit(currency).size) == count * unit
