"""What a recurring line costs for one billing period: it re-adds to the line, and says the row's own price."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.rounding import MinorUnit, written
from cpq.domain.billing_periods import NAMED, is_recurring
from cpq.domain.pricing import price
from cpq.domain.pricing.period_prices import in_words, period_prices
from cpq.domain.pricing.request import Line, PriceRow, Product, Request
from tests.support.random_quotes import PART_PERIODS, requests

law = settings(max_examples=max(2000, settings().max_examples))
SHOWN_EXACTLY = 10**15
"""A unit price of more millionths has fewer than six decimals."""


@law
@given(requests)
def test_q27b_price_a_period_times_quantity_times_periods_is_the_amount_of_the_line(request: Request):
    priced = price(request)
    minor_unit = MinorUnit(request.currency, request.rounding)
    found = period_prices(request, priced.lines)
    assert found.keys() == {line.id for line in priced.lines if is_recurring(line.billing_period)}
    for line in priced.lines:
        if line.id not in found:
            continue
        one = found[line.id]
        times = Fraction(*line.units) * one.periods
        for shown, charged in ((one.unit_price, line.regular), (one.net_unit_price, line.net)):
            if times < minor_unit.size and shown < SHOWN_EXACTLY:
                assert minor_unit.round(shown * times) == charged
            assert abs(shown * times - charged) <= Fraction(minor_unit.size, 2) + times / 2 or shown >= SHOWN_EXACTLY


@law
@given(
    st.integers(1, 10**10),
    st.integers(1, 1_000_000),
    st.sampled_from([*NAMED, "2_weeks", "18_months", "2_years"]),
    st.sampled_from(PART_PERIODS[1:]),
    st.integers(1, 28),
    st.integers(1, 12),
    st.sampled_from(("USD", "JPY", "KWD")),
)
def test_q27b_a_plain_line_says_the_price_of_its_row_whatever_its_term(
    unit_price: int, quantity: int, period: str, mode: str, day: int, month: int, currency: str
):
    """A part of a month makes the amount of the term odd, and the price of a month stays what the list says."""
    request = Request(
        currency,
        "2026-01-31",
        (Line("1", "p", quantity),),
        {"p": Product((PriceRow("r", unit_price, "list", billing_period=period),))},
        ("list",),
        {"standard": 0},
        starts_on="2026-01-31",
        ends_on=f"2027-{month:02}-{day:02}",
        part_periods=mode,
    )
    line = price(request).lines[0]
    assert period_prices(request, [line])["1"].unit_price == unit_price


@given(st.fractions(min_value=0, max_value=1200, max_denominator=366))
def test_a_number_of_periods_is_written_exactly(periods: Fraction):
    value = written(periods)
    whole, _, part = str(value).partition(" ")
    assert Fraction(whole) + Fraction(part or 0) == periods
    assert isinstance(value, str) == ((periods * 10**6).denominator != 1)


@pytest.mark.parametrize(
    ("period", "periods", "has_term", "words"),
    [
        ("monthly", 12, True, "4,900.00 a month × 12 months"),
        ("monthly", 1, True, "4,900.00 a month × 1 month"),
        ("monthly", 1, False, "4,900.00 a month, for one month"),
        ("yearly", written(Fraction(3, 2)), True, "4,900.00 a year × 1.5 years"),
        ("yearly", 1, False, "4,900.00 a year, for one year"),
        ("quarterly", written(Fraction(388, 31)), True, "4,900.00 a quarter × 12 16/31 quarters"),
        ("monthly", written(Fraction(1, 3)), True, "4,900.00 a month × 0 1/3 months"),
    ],
)
def test_a_recurring_price_in_words(period: str, periods: object, has_term: bool, words: str):
    assert in_words("4,900.00", period, periods, has_term=has_term) == words  # type: ignore[arg-type]
