"""PURE. Business hours: when a number of open hours is over, by a calendar of weekdays, hours and holidays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60


@dataclass(frozen=True)
class Span:
    """Open from one minute of a day to another; 1440 is its end."""

    start: int
    end: int

    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02d}:{minute % 60:02d}" for minute in (self.start, self.end))


@dataclass(frozen=True)
class Calendar:
    """The open hours of a week in one time zone, and the days on which nobody works."""

    name: str
    time_zone: str
    week: Mapping[int, tuple[Span, ...]]
    """By weekday, Monday is 0; in order and apart. At least one day has hours."""
    holidays: frozenset[date] = frozenset()

    @property
    def week_hours(self) -> Decimal:
        """The open hours of a week without holidays."""
        return Decimal(sum(span.end - span.start for spans in self.week.values() for span in spans)) / 60

    def __str__(self) -> str:
        """In words, for reviews: every part of it."""
        days = ", ".join(f"{WEEKDAYS[day]} {' '.join(map(str, spans))}" for day, spans in sorted(self.week.items()))
        holidays = "".join(f", not {day}" for day in sorted(self.holidays))
        return f"{self.name} ({self.time_zone}: {days}{holidays})"

    def hours(self, day: date) -> tuple[Span, ...]:
        return () if day in self.holidays else self.week.get(day.weekday(), ())

    def open_times(self, since: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The open times from a moment on, in UTC, without end; shorter or longer where the clocks are changed."""
        zone = ZoneInfo(self.time_zone)
        day = since.astimezone(zone).date()
        while True:
            for span in self.hours(day):
                start, end = _instant(day, span.start, zone), _instant(day, span.end, zone)
                if max(start, since) < end:
                    yield max(start, since), end
            day += timedelta(days=1)


def deadline(start: datetime, hours: int, calendar: Calendar | None) -> datetime:
    """The moment at which `hours` are over: by the clock, or as open hours of a calendar.

    What ends with a working day ends at its close, not at the next opening.
    """
    left = timedelta(hours=hours)
    if calendar is None or not left:
        return start + left
    for opened, closed in calendar.open_times(start):
        if left <= closed - opened:
            return opened + left
        left -= closed - opened
    raise AssertionError("a calendar has open hours in every week")


def local(moment: datetime, calendar: Calendar | None) -> str:
    """A moment in words, in the zone of the calendar: `2026-11-16 14:00 (Europe/Berlin)`; in UTC without one."""
    if calendar is None:
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    return f"{moment.astimezone(ZoneInfo(calendar.time_zone)):%Y-%m-%d %H:%M} ({calendar.time_zone})"


def _instant(day: date, minute: int, zone: ZoneInfo) -> datetime:
    """A minute on the clock of a day as a moment in UTC: the first of two, and for one that the clocks skip the moment
    at which they are changed. So the spans of a day neither overlap nor leave a gap."""
    if minute == DAY_MINUTES:
        day, minute = day + timedelta(days=1), 0
    clock = datetime.combine(day, time(minute // 60, minute % 60), zone)
    after, before = clock.astimezone(UTC), clock.replace(fold=1).astimezone(UTC)
    if before >= after:  # As on any day, or twice.
        return after
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before).total_seconds() // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
