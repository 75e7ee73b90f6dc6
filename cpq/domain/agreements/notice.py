"""PURE. The notice of a line without an end: the last day to give it, and the period that then does not begin."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from cpq.domain.agreements.billing_calendar import Calendar


class Notice(NamedTuple):
    """Given by `last_day`, the line ends before the period that starts on `period_start`."""

    last_day: date
    period_start: date


def next_notice(calendar: Calendar, day: date, notice_days: int) -> Notice:
    """The next chance to end a line from `day` on: `notice_days` before a period starts."""
    start = calendar.period_of(day)[1]
    while start - timedelta(days=notice_days) < day:
        start = calendar.period_of(start)[1]
    return Notice(start - timedelta(days=notice_days), start)
