"""Business hours: a table of days that people get wrong, and laws against a count minute by minute."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.business_hours import Calendar, Span, deadline, local

OFFICE = (Span(9 * 60, 12 * 60), Span(13 * 60, 17 * 60))
BERLIN = Calendar("berlin", "Europe/Berlin", dict.fromkeys(range(5), OFFICE), frozenset({date(2026, 12, 25)}))
ROUND_THE_CLOCK = dict.fromkeys(range(7), (Span(0, 1440),))
NIGHT = dict.fromkeys(range(7), (Span(60, 4 * 60),))


def at(text: str, zone: str = "Europe/Berlin") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize(
    ("start", "hours", "end"),
    [
        ("2026-11-16 10:00", 2, "2026-11-16 12:00"),  # Exactly the end of the morning, not the end of lunch.
        ("2026-11-16 11:00", 2, "2026-11-16 14:00"),  # Over lunch.
        ("2026-11-16 12:30", 1, "2026-11-16 14:00"),  # Asked at lunch.
        ("2026-11-16 16:00", 4, "2026-11-17 12:00"),  # Over night.
        ("2026-11-20 16:00", 4, "2026-11-23 12:00"),  # Over a weekend.
        ("2026-11-21 03:00", 7, "2026-11-23 17:00"),  # Asked on a Saturday.
        ("2026-12-24 16:00", 2, "2026-12-28 10:00"),  # Over a holiday and a weekend.
        ("2026-11-30 16:30", 1, "2026-12-01 09:30"),  # Over the end of a month.
        ("2028-02-29 16:00", 2, "2028-03-01 10:00"),  # A leap day.
        ("2026-12-31 16:00", 2, "2027-01-01 10:00"),  # Over the end of a year; New Year is not in this calendar.
        ("2027-03-26 16:00", 2, "2027-03-29 10:00"),  # Over the change to summer time: still ten by the clock.
        ("2026-10-23 16:00", 2, "2026-10-26 10:00"),  # And back.
        ("2026-11-16 10:00", 0, "2026-11-16 10:00"),
    ],
)
def test_open_hours_end_when_people_expect_it(start: str, hours: int, end: str):
    assert deadline(at(start), hours, BERLIN) == at(end)


def test_without_a_calendar_hours_are_hours():
    assert deadline(at("2026-12-25 23:00"), 4, None) == at("2026-12-26 03:00")


@pytest.mark.parametrize(
    ("start", "hours", "end"),
    [
        ("2027-03-28T00:00+00:00", 2, "2027-03-28T02:00+00:00"),  # 1 to 4 o'clock has two hours when clocks go forward.
        ("2027-03-28T00:00+00:00", 3, "2027-03-29T00:00+00:00"),
        ("2026-10-24T23:00+00:00", 4, "2026-10-25T03:00+00:00"),  # And four when they go back.
        ("2026-10-24T23:00+00:00", 5, "2026-10-26T01:00+00:00"),
    ],
)
def test_a_night_with_a_change_of_clocks_has_the_hours_it_has(start: str, hours: int, end: str):
    calendar = Calendar("night", "Europe/Berlin", NIGHT)
    assert deadline(datetime.fromisoformat(start), hours, calendar) == datetime.fromisoformat(end)


def test_a_deadline_is_told_in_the_zone_of_its_calendar():
    assert local(at("2026-07-01 14:00"), BERLIN) == "2026-07-01 14:00 (Europe/Berlin)"
    assert local(at("2026-07-01 14:00"), None) == "2026-07-01 12:00 UTC"


zones = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Africa/Cairo",
        "Pacific/Apia",
    ]
)
spans = st.lists(st.integers(0, 96), min_size=2, max_size=6, unique=True).map(
    lambda quarters: tuple(
        Span(start * 15, end * 15) for start, end in zip(sorted(quarters)[::2], sorted(quarters)[1::2], strict=False)
    )
)
weeks = st.dictionaries(st.integers(0, 6), spans, min_size=1)
YEAR_SECONDS = 366 * 86_400
starts = st.builds(
    lambda base, seconds: base + timedelta(seconds=seconds),
    st.sampled_from(
        [datetime(2011, 6, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)]
    ),
    st.integers(0, YEAR_SECONDS),
)
holidays = st.sets(st.dates(date(2026, 1, 1), date(2028, 3, 1)), max_size=30).map(frozenset)
calendars = st.builds(Calendar, st.just("any"), zones, weeks, holidays)


@given(calendars, starts.map(lambda moment: moment.replace(second=0, microsecond=0)), st.integers(1, 9))
def test_a_deadline_is_where_a_count_minute_by_minute_ends(calendar: Calendar, start: datetime, hours: int):
    zone, moment, left = ZoneInfo(calendar.time_zone), start, hours * 60
    for _ in range(16 * 24 * 60):
        if left == 0:
            break
        clock = moment.astimezone(zone)
        minute = clock.hour * 60 + clock.minute
        left -= _is_open(calendar, clock.date(), minute, moment, zone)
        moment += timedelta(minutes=1)
    else:
        assert deadline(start, hours, calendar) > moment
        return
    assert deadline(start, hours, calendar) == moment


def _is_open(calendar: Calendar, day: date, minute: int, moment: datetime, zone: ZoneInfo) -> bool:
    """By the clock, unless it shows this minute for the second time: then by whether the span that was open at the
    change has a later end."""
    is_second = moment.astimezone(zone).fold == 1
    spans = calendar.hours(day)
    if not is_second:
        return any(span.start <= minute < span.end for span in spans)
    change = moment
    while (change - timedelta(minutes=1)).astimezone(zone).fold == 1:
        change -= timedelta(minutes=1)
    before = (change - timedelta(minutes=1)).astimezone(zone)
    last = before.hour * 60 + before.minute
    return any(span.start <= last and span.end > last for span in calendar.hours(before.date()))


@given(calendars, starts, st.integers(1, 100), st.integers(1, 100))
def test_hours_add_up_and_more_hours_never_end_sooner(calendar: Calendar, start: datetime, first: int, second: int):
    once = deadline(start, first + second, calendar)
    assert once == deadline(deadline(start, first, calendar), second, calendar)
    assert start < deadline(start, first, calendar) < once
    assert deadline(start, first, calendar) <= deadline(start + timedelta(minutes=7), first, calendar)


@given(zones, starts, st.integers(0, 500))
def test_a_calendar_that_never_closes_is_the_clock(zone: str, start: datetime, hours: int):
    assert deadline(start, hours, Calendar("always", zone, ROUND_THE_CLOCK)) == start + timedelta(hours=hours)
