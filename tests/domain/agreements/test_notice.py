"""Notices of lines without an end (A-17)."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.agreements.billing_calendar import Calendar
from cpq.domain.agreements.notice import next_notice

PERIODS = st.sampled_from(["monthly", "quarterly", "yearly"])


@given(st.dates(date(2020, 1, 1), date(2028, 12, 31)), PERIODS, st.integers(0, 900), st.integers(0, 400))
def test_a17_a_notice_is_the_next_one_that_can_still_be_given(anchor: date, period: str, later: int, days: int):
    calendar, day = Calendar(anchor, period, "actual"), anchor + timedelta(days=later)
    found = next_notice(calendar, day, days)
    assert found.last_day >= day
    assert found.period_start - found.last_day == timedelta(days=days)
    assert calendar.is_boundary(found.period_start)
    before = calendar.period_of(found.period_start - timedelta(days=1))[0]
    assert before - timedelta(days=days) < day or before <= day
