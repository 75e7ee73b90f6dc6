"""PURE. The billing periods of a line, counted from one day, and how much of a term has passed by any day."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from cpq.domain.billing_periods import Length, length
from cpq.domain.pricing.terms import add_months, count_periods, whole_months

CACHED_MAX = 65_536


class Calendar(NamedTuple):
    """Periods that follow each other from `anchor` without gap or overlap. Parts of a period are counted by `mode`.

    Every change of a line counts from the same anchor, so that the days before and after it add up to its periods.
    """

    anchor: date
    billing_period: str
    mode: str

    @property
    def length(self) -> Length:
        found = length(self.billing_period)
        assert found is not None, "only what recurs has a calendar"
        return found

    @property
    def periods_of_year(self) -> Fraction:
        """A year of weeks has 365 days."""
        return Fraction(365, 7 * self.length.weeks) if self.length.weeks else Fraction(12, self.length.months)

    def elapsed(self, day: date) -> Fraction:
        """The periods from the anchor to `day` (exclusive); negative before the anchor is not asked for."""
        return _elapsed(self.mode, self.anchor, day, self.billing_period)

    def period_of(self, day: date) -> tuple[date, date]:
        """The period that contains the day, its end exclusive."""
        number = self.number_of(day)
        return self.boundary(number), self.boundary(number + 1)

    def number_of(self, day: date) -> int:
        """Of the period that contains the day."""
        weeks, months = self.length.weeks, self.length.months
        return (day - self.anchor).days // (7 * weeks) if weeks else whole_months(self.anchor, day) // months

    def boundary(self, number: int) -> date:
        """The first day of the period with this number, counted from 0 at the anchor."""
        if self.length.weeks:
            return self.anchor + timedelta(weeks=number * self.length.weeks)
        return add_months(self.anchor, number * self.length.months)

    def is_boundary(self, day: date) -> bool:
        return self.period_of(day)[0] == day


@lru_cache(maxsize=CACHED_MAX)
def _elapsed(mode: str, anchor: date, day: date, billing_period: str) -> Fraction:
    period = length(billing_period)
    assert period is not None
    return count_periods(mode, anchor, day, period) if day > anchor else Fraction(0)


def tiles(calendar: Calendar, start: date, end: date) -> list[tuple[date, date]]:
    """The billing periods from `start` to `end` (exclusive), the first and the last cut to these days."""
    found, begin, number = [], start, calendar.number_of(start)
    while begin < end:
        number += 1
        stop = min(calendar.boundary(number), end)
        found.append((begin, stop))
        begin = stop
    return found


def passed(calendar: Calendar, start: date, end: date, day: date, charged: Fraction) -> Fraction:
    """How many of the `charged` periods from `start` to `end` have passed by `day`.

    Whole periods count 1. Where the term starts or ends inside a period, as with a fixed billing day, the first and
    the last part share what is left of the charged periods, so that each whole period costs the same.
    """
    day = min(max(day, start), end)
    begin = calendar.elapsed(start)
    raw, so_far = calendar.elapsed(end) - begin, calendar.elapsed(day) - begin
    if raw == charged:
        return so_far
    if not raw:  # A started period counts in full, and was counted before.
        return charged if day > start else Fraction(0)
    first = start if calendar.is_boundary(start) else calendar.period_of(start)[1]
    last = calendar.period_of(end)[0]
    whole = calendar.elapsed(last) - calendar.elapsed(first) if first < last else Fraction(0)
    if raw == whole or charged < whole:
        return so_far * charged / raw
    inside = calendar.elapsed(min(max(day, first), last)) - calendar.elapsed(first) if whole else Fraction(0)
    return inside + (so_far - inside) * (charged - whole) / (raw - whole)
