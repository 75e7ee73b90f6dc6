"""PURE. Stage 5, term: the number of billing periods, whole months exactly, parts of a period by a named mode."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from cpq.base.errors import bad_field
from cpq.base.rounding import divide, nearest
from cpq.domain.billing_periods import Length, length
from cpq.domain.pricing.parts import ONCE, Part, Term
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, LineTerm, PriceRow, Request
from cpq.domain.pricing.result import Stage

TERM = Stage.TERM


def apply_term(part: Part) -> None:
    """Stage 5: a recurring price times its billing periods, and for a segment of a ramp its uplift.

    The uplift changes only the price, neither the list price nor our cost.
    """
    take_term(part)
    plan, segment, term, listed_term = part.plan, part.segment, part.term, part.listed_term
    part.amount, part.listed = term.times(part.amount), listed_term.times(part.listed)
    part.divisor, part.listed_divisor = part.divisor * term.of, listed_term.of
    if segment.uplift:
        part.amount = divide(part.amount * (ONE_HUNDRED_PERCENT + segment.uplift), ONE_HUNDRED_PERCENT)
    if segment.uplift or term is not ONCE:
        part.note(TERM, part.amount, plan.billing_period, term.shown)


def take_term(part: Part) -> None:
    """The billing periods of its price and of its list price."""
    plan, segment, terms = part.plan, part.segment, part.plan.terms
    part.term = terms.of(plan.billing_period, part.offset, segment.months) if segment.months else plan.term
    part.listed_term = part.term
    if not bills_alike(plan.listed, plan.row):
        part.listed_term = terms.of_row(plan.listed, part.offset, segment.months)


def request_of_line(request: Request, term: LineTerm | None) -> Request:
    """The request as if its term were that of a line with dates of its own."""
    if term is None:
        return request
    return request._replace(
        term_months=term.months,
        starts_on=term.starts_on,
        ends_on=term.ends_on,
        part_periods=term.part_periods or request.part_periods,
    )


class Left(NamedTuple):
    """What the calendar of an agreement's line has left: a number of months, or of weeks."""

    months: Fraction = Fraction(0)
    weeks: Fraction = Fraction(0)

    def of(self, period: Length) -> Fraction:
        """As a number of periods; weeks and months are compared by a year of 365 days."""
        if period.weeks:
            return (self.weeks or self.months * Fraction(365, 84)) / period.weeks
        return (self.months or self.weeks * Fraction(84, 365)) / period.months

    @property
    def stored(self) -> str:
        return f"{self.weeks} weeks" if self.weeks else f"{self.months} months"

    @classmethod
    def load(cls, text: str) -> Left:
        number, _, unit = text.partition(" ")
        return cls(weeks=Fraction(number)) if unit == "weeks" else cls(Fraction(number))


class Terms:
    """The number of billing periods of a request's term or of a segment, each computed once."""

    def __init__(self, request: Request, term: LineTerm | None = None) -> None:
        self._request = request
        self._left = Left.load(term.left) if term and term.left else None
        self._anchored_on = term.anchored_on if term else None
        self._terms: dict[tuple[str, int, int], Term] = {}

    def of(self, billing_period: str, offset: int = 0, months: int = 0) -> Term:
        """The periods of the whole term, or of a segment of `months` that starts `offset` months into the term."""
        key = (billing_period, offset, months)
        term = self._terms.get(key)
        if term is None:
            periods = self._periods(length(billing_period), offset, months)
            shown = nearest(periods.numerator * 1_000_000, periods.denominator)
            term = ONCE if periods == 1 else Term(periods.numerator, periods.denominator, shown)
            self._terms[key] = term
        return term

    def of_row(self, row: PriceRow, offset: int = 0, months: int = 0) -> Term:
        """The periods that a price is charged for: of one without an end the first."""
        return ONCE if row.is_evergreen else self.of(row.billing_period, offset, months)

    def _periods(self, period: Length | None, offset: int, segment_months: int) -> Fraction:
        """The number of periods: one when the price does not recur or the quote has no term."""
        request = self._request
        months = segment_months or request.term_months
        if period is None or not (months or request.ends_on):
            return Fraction(1)
        if self._left is not None:
            return self._left.of(period)
        if self._anchored_on and request.ends_on:
            return self._since(date.fromisoformat(self._anchored_on), period)
        if months and period.months and self._is_by_months(period.months, offset, months):
            return Fraction(months, period.months)
        start = date.fromisoformat(request.starts_on or request.as_of)
        try:
            end = add_months(start, offset + months) if months else _day_after(request.ends_on or "")
            periods = count_periods(request.part_periods, start, end, period)
        except (ValueError, OverflowError):
            raise bad_field("/term_months", "The term ends after the last day of the calendar.") from None
        if offset:
            periods -= count_periods(request.part_periods, start, add_months(start, offset), period)
        return periods

    def _is_by_months(self, period_months: int, offset: int, months: int) -> bool:
        """Whether months are divided by months, whatever the dates are."""
        return self._request.part_periods != "actual_days" or (offset + months) % period_months == 0 == offset

    def _since(self, anchor: date, period: Length) -> Fraction:
        """The periods of the term, counted from a day on or before its first one."""
        request = self._request
        start = date.fromisoformat(request.starts_on or request.as_of)
        periods = count_periods(request.part_periods, anchor, _day_after(request.ends_on or ""), period)
        return periods - (count_periods(request.part_periods, anchor, start, period) if start > anchor else 0)


def terms_of_line(request: Request, term: LineTerm | None) -> Terms:
    """The billing periods of lines with this term."""
    return Terms(request_of_line(request, term), term)


def bills_alike(one: PriceRow, other: PriceRow) -> bool:
    """Whether two prices are charged for the same periods."""
    return one.billing_period == other.billing_period and one.is_evergreen == other.is_evergreen


def add_months(day: date, months: int) -> date:
    """The same day some months later, or the last day of a shorter month."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def last_day(start: date, months: int) -> date:
    """The day before the anniversary: 12 months from 1 March end on the last day of February."""
    return add_months(start, months) - timedelta(days=1)


def whole_months(start: date, end: date) -> int:
    """The whole months from `start` to `end` (exclusive)."""
    months = (end.year - start.year) * 12 + end.month - start.month
    return months if add_months(start, months) <= end else months - 1


def periods(anchor: date, start: date, end: date, period_months: int) -> list[tuple[date, date]]:
    """The whole periods that cover `start` to `end` (exclusive), counted from `anchor`, which is not after `start`.

    They have no gap and no overlap, because each is counted from the anchor and not from the previous one.
    """
    first = whole_months(anchor, start) // period_months
    tiles = []
    while (begin := add_months(anchor, first * period_months)) < end:
        first += 1
        tiles.append((begin, add_months(anchor, first * period_months)))
    return tiles


def part(period: tuple[date, date], start: date, end: date) -> Fraction:
    """The share of one period from `start` to `end` (exclusive), by days; the denominator is the whole period."""
    return Fraction((end - start).days, (period[1] - period[0]).days)


def factor(mode: str, start: date, end: date, period_months: int) -> Fraction:
    """The number of periods between `start` and `end` (exclusive).

    Whole periods count 1 in every mode. By days, a part of a period is its share of that period's days; in the other
    modes whole months are exact and only the rest is divided.
    """
    if end <= start:
        raise bad_field("/end_date", "The term ends before it starts.", minimum=start.isoformat())
    if mode == "actual_days":
        tiles = periods(start, start, end, period_months)
        return len(tiles) - 1 + part(tiles[-1], tiles[-1][0], end)
    months = whole_months(start, end)
    return (months + _part_of_month(mode, start, months, end)) / period_months


def weeks_factor(mode: str, start: date, end: date, period_weeks: int) -> Fraction:
    """The number of periods of `period_weeks` between `start` and `end` (exclusive): a week is always seven days.

    A part of a week is its days, in sevenths; where a part of a month counts as a month, a part of a week is a week.
    Where only whole months are sold, whole weeks are, too.
    """
    if end <= start:
        raise bad_field("/end_date", "The term ends before it starts.", minimum=start.isoformat())
    days = (end - start).days
    if mode == "whole_months_up":
        return Fraction(-(-days // 7), period_weeks)
    if mode == "whole_months" and days % 7:
        _part_of_month(mode, start, whole_months(start, end), end)
    return Fraction(days, 7 * period_weeks)


def is_whole(start: date, end: date) -> bool:
    """Whether the term from `start` to `end` (exclusive) is a whole number of months or of weeks."""
    return (end - start).days % 7 == 0 or add_months(start, whole_months(start, end)) == end


def count_periods(mode: str, start: date, end: date, period: Length) -> Fraction:
    return weeks_factor(mode, start, end, period.weeks) if period.weeks else factor(mode, start, end, period.months)


def _part_of_month(mode: str, start: date, months: int, end: date) -> Fraction:
    """The rest of a term after its whole months, as a share of the month in which it ends."""
    begin = add_months(start, months)
    if begin == end:
        return Fraction(0)
    if mode == "whole_months_up":
        return Fraction(1)
    if mode == "thirty_360":
        return Fraction(_days_360(begin, end), 30)
    finish = add_months(start, months + 1)
    if mode == "months_and_days":
        return part((begin, finish), begin, end)
    last_days = [(day - timedelta(days=1)).isoformat() for day in (begin, finish) if day > start]
    raise bad_field(
        "/end_date",
        "The term is not a whole number of months.",
        allowed=last_days,
        hint=f"End it on {' or '.join(last_days)}.",
    )


def _days_360(start: date, end: date) -> int:
    """Days between dates when every month has thirty; the 31st and the end of February count as the 30th."""
    return (end.year - start.year) * 360 + (end.month - start.month) * 30 + _day_360(end) - _day_360(start)


def _day_360(day: date) -> int:
    is_last = day.day == monthrange(day.year, day.month)[1]
    return 30 if is_last else day.day


def _day_after(day: str) -> date:
    return date.fromisoformat(day) + timedelta(days=1)
