"""Terms: how many billing periods lie between two days, in every mode, across month ends and leap years."""

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.errors import Code, CpqError
from cpq.domain.pricing import price
from cpq.domain.pricing.request import Line, PriceRow, Product, Request, Segment
from cpq.domain.pricing.terms import add_months, factor, last_day, part, periods, whole_months
from tests.support.random_quotes import PART_PERIODS

days = st.dates(date(2019, 1, 1), date(2033, 12, 31))
lengths = st.sampled_from([1, 3, 12])
modes = st.sampled_from(PART_PERIODS)
law = settings(max_examples=2000)


def day(text: str) -> date:
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("start", "months", "expected"),
    [
        ("2026-01-31", 1, "2026-02-28"),
        ("2024-01-31", 1, "2024-02-29"),
        ("2026-01-31", 2, "2026-03-31"),
        ("2026-01-30", 1, "2026-02-28"),
        ("2026-03-31", 1, "2026-04-30"),
        ("2026-08-31", 6, "2027-02-28"),
        ("2024-02-29", 12, "2025-02-28"),
        ("2024-02-29", 48, "2028-02-29"),
        ("2025-02-28", 12, "2026-02-28"),
        ("2026-12-15", 1, "2027-01-15"),
        ("2026-12-31", 0, "2026-12-31"),
        ("2026-03-31", -1, "2026-02-28"),
    ],
)
def test_an_anniversary_clamps_to_the_end_of_the_month(start: str, months: int, expected: str):
    assert add_months(day(start), months) == day(expected)


@pytest.mark.parametrize(
    ("start", "months", "expected"),
    [
        ("2026-01-01", 12, "2026-12-31"),
        ("2026-03-01", 12, "2027-02-28"),
        ("2027-03-01", 12, "2028-02-29"),
        ("2024-02-29", 12, "2025-02-27"),
        ("2026-01-31", 1, "2026-02-27"),
    ],
)
def test_a_term_ends_the_day_before_its_anniversary(start: str, months: int, expected: str):
    assert last_day(day(start), months) == day(expected)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-01-31", "2026-02-27", 0),
        ("2026-01-31", "2026-02-28", 1),
        ("2026-01-31", "2026-03-30", 1),
        ("2026-01-31", "2026-03-31", 2),
        ("2024-02-29", "2025-02-28", 12),
        ("2026-08-03", "2027-08-03", 12),
        ("2026-08-03", "2027-08-02", 11),
        ("2026-08-03", "2026-08-03", 0),
    ],
)
def test_months_are_counted_by_anniversaries(start: str, end: str, expected: int):
    assert whole_months(day(start), day(end)) == expected


@pytest.mark.parametrize(
    ("mode", "start", "end", "months", "expected"),
    [
        ("whole_months", "2026-01-01", "2027-01-01", 12, "1"),
        ("whole_months", "2026-01-01", "2027-01-01", 1, "12"),
        ("whole_months", "2026-01-01", "2027-04-01", 12, "5/4"),
        ("whole_months", "2026-01-31", "2026-02-28", 1, "1"),
        ("whole_months_up", "2026-01-01", "2026-02-02", 1, "2"),
        ("whole_months_up", "2026-01-01", "2026-02-02", 12, "1/6"),
        ("whole_months_up", "2026-01-01", "2026-01-02", 1, "1"),
        ("whole_months_up", "2026-01-01", "2026-02-01", 1, "1"),
        ("actual_days", "2026-01-01", "2026-01-16", 1, "15/31"),
        ("actual_days", "2026-02-01", "2026-02-16", 1, "15/28"),
        ("actual_days", "2024-02-01", "2024-02-16", 1, "15/29"),
        ("actual_days", "2026-01-01", "2026-07-01", 12, "181/365"),
        ("actual_days", "2024-01-01", "2024-07-01", 12, "182/366"),
        ("actual_days", "2026-01-01", "2027-07-01", 12, "546/365"),
        ("actual_days", "2026-01-31", "2026-03-15", 1, "46/31"),
        ("thirty_360", "2026-01-01", "2026-01-16", 1, "1/2"),
        ("thirty_360", "2026-02-01", "2026-02-16", 1, "1/2"),
        ("thirty_360", "2026-01-01", "2026-07-16", 12, "195/360"),
        ("thirty_360", "2026-01-30", "2026-01-31", 1, "0"),
        ("thirty_360", "2026-02-28", "2026-03-28", 12, "1/12"),
        ("months_and_days", "2026-01-01", "2026-07-16", 12, "201/372"),
        ("months_and_days", "2026-01-31", "2026-03-15", 1, "46/31"),
        ("months_and_days", "2026-01-01", "2026-02-15", 1, "3/2"),
        ("months_and_days", "2024-02-29", "2025-03-14", 12, "362/348"),
    ],
)
def test_a_part_of_a_period_is_reckoned_by_the_named_mode(mode: str, start: str, end: str, months: int, expected: str):
    assert factor(mode, day(start), day(end), months) == Fraction(expected)


@pytest.mark.parametrize("mode", PART_PERIODS)
def test_a_term_that_ends_before_it_starts_is_refused(mode: str):
    for end in ("2026-01-01", "2025-12-31"):
        with pytest.raises(CpqError, match="ends before it starts") as refused:
            factor(mode, day("2026-01-01"), day(end), 12)
        assert refused.value.details == {"field": "/end_date", "minimum": "2026-01-01"}


@pytest.mark.parametrize(
    ("end", "allowed"),
    [("2026-02-03", ["2026-01-31", "2026-02-28"]), ("2026-01-15", ["2026-01-31"])],
)
def test_by_default_a_term_is_whole_months_and_the_refusal_names_the_nearest(end: str, allowed: list[str]):
    with pytest.raises(CpqError) as refused:
        factor("whole_months", day("2026-01-01"), day(end), 1)
    assert refused.value.code is Code.VALIDATION_ERROR
    assert refused.value.details["allowed"] == allowed


@law
@given(days, st.integers(0, 900), st.integers(1, 900), lengths)
def test_periods_tile_without_gap_or_overlap(anchor: date, wait: int, length: int, period_months: int):
    start = anchor + timedelta(days=wait)
    end = start + timedelta(days=length)
    tiles = periods(anchor, start, end, period_months)
    assert tiles[0][0] <= start < tiles[0][1]
    assert tiles[-1][0] < end <= tiles[-1][1]
    assert [tile[1] for tile in tiles[:-1]] == [tile[0] for tile in tiles[1:]]
    assert all(whole_months(anchor, tile[0]) % period_months == 0 for tile in tiles)


@law
@given(days, st.integers(1, 60), lengths, modes)
def test_whole_periods_count_one_in_every_mode(start: date, count: int, period_months: int, mode: str):
    assert factor(mode, start, add_months(start, count * period_months), period_months) == count


@law
@given(days, st.integers(1, 60), lengths, modes.filter(lambda mode: mode != "actual_days"))
def test_whole_months_are_exact_in_every_mode_but_by_days(start: date, months: int, period_months: int, mode: str):
    assert factor(mode, start, add_months(start, months), period_months) == Fraction(months, period_months)


@law
@given(days, st.integers(1, 1200), st.integers(0, 100), lengths, modes.filter(lambda mode: mode != "whole_months"))
def test_a_longer_term_never_counts_less(start: date, length: int, more: int, period_months: int, mode: str):
    end = start + timedelta(days=length)
    shorter, longer = (factor(mode, start, last, period_months) for last in (end, end + timedelta(days=more)))
    assert 0 <= shorter <= longer
    tiles = periods(start, start, end, period_months)
    assert len(tiles) - 1 <= shorter <= len(tiles)


@law
@given(days, st.integers(1, 900), lengths)
def test_by_days_the_denominator_is_the_whole_period(start: date, length: int, period_months: int):
    end = start + timedelta(days=length)
    shares = [part(tile, max(start, tile[0]), min(end, tile[1])) for tile in periods(start, start, end, period_months)]
    assert factor("actual_days", start, end, period_months) == sum(shares)
    assert set(shares[:-1]) <= {1}


@law
@given(days, st.lists(st.integers(1, 20), min_size=1, max_size=4), st.sampled_from(["yearly", "quarterly"]), modes)
def test_the_segments_of_a_ramp_add_up_to_its_term(start: date, months: list[int], period: str, mode: str):
    ramp = tuple(Segment(count) for count in months)
    row = PriceRow("row", 365 * 10**6, price_book_id="list", billing_period=period)

    def quote(line: Line, term: int | None) -> Request:
        fields: dict = {"term_months": term, "starts_on": start.isoformat(), "part_periods": mode}
        return Request("USD", "2026-01-01", (line,), {"p": Product((row,))}, ("list",), {"standard": 0}, **fields)

    whole = price(quote(Line("l", "p", 1), sum(months)))
    assert price(quote(Line("l", "p", 1, ramp=ramp), None)).total == whole.total


def test_a_term_beyond_the_calendar_is_refused():
    row = PriceRow("row", 10**6, price_book_id="list", billing_period="yearly")
    products = {"p": Product((row,))}
    lines = (Line("l", "p", 1),)
    term: dict = {"term_months": 7, "starts_on": "9999-12-01", "part_periods": "actual_days"}
    with pytest.raises(CpqError, match="last day of the calendar"):
        price(Request("USD", "2026-01-01", lines, products, ("list",), {"standard": 0}, **term))
