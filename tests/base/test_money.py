"""Exact money: the form in the database, the digits that count, and amounts written for people."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.money import (
    MINOR_DIGITS,
    from_micro,
    minor_digits,
    plain,
    readable,
    significant_digits,
    to_micro,
)

CURRENCIES = ("JPY", "USD", "KWD", "CLF")

currencies = st.sampled_from(CURRENCIES)
amounts = st.decimals(-(10**12), 10**12, places=6)


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


@pytest.mark.parametrize("amount", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_q06_money_is_a_finite_number(amount: str):
    with pytest.raises(ValueError, match=r"NaN|not an amount of money"):
        to_micro(Decimal(amount))


@pytest.mark.parametrize("code", ["", "usd", "US", "USDX", "XXX", "XAU", "DEM", "USD "])
def test_money_has_a_currency_that_iso_4217_lists(code: str):
    with pytest.raises(ValueError, match="is not an ISO 4217 currency code"):
        minor_digits(code)


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
