"""PURE. Segments of a ramp that name their last day: how many months each has, from the first day of its line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from cpq.base.errors import Code, CpqError
from cpq.domain.pricing import terms
from cpq.domain.pricing.request import Segment
from cpq.domain.quotes.draft import Draft, DraftLine


def with_months(draft: Draft) -> tuple[Draft, list[CpqError]]:
    """The draft with months in every segment, and the problems of segments that end within a month or too early."""
    if not any(segment.until for line in draft.lines for segment in line.ramp):
        return draft, []
    lines, problems = [], []
    for index, line in enumerate(draft.lines):
        try:
            lines.append(line._replace(ramp=_counted(draft, line)))
        except CpqError as error:
            details = {**error.details, "field": f"/line_items/{index}{error.details['field']}"}
            problems.append(CpqError(error.code, error.message, **details))
            lines.append(line._replace(ramp=()))
    return replace(draft, lines=tuple(lines)), problems


def _counted(draft: Draft, line: DraftLine) -> tuple[Segment, ...]:
    start = (line.special and line.special.start_date) or draft.start_date
    found, before = [], 0
    for place, segment in enumerate(line.ramp):
        if segment.until is None:
            months = segment.months
        elif start is None:
            raise _wrong(place, "until needs the start_date of the line or the quote.")
        else:
            months = _months_until(place, start, before, date.fromisoformat(segment.until))
        found.append(segment._replace(months=months, until=None))
        before += months
    return tuple(found)


def _months_until(place: int, start: date, before: int, last: date) -> int:
    end = last + timedelta(days=1)
    whole = terms.whole_months(start, end)
    if whole > before and terms.add_months(start, whole) == end:
        return whole - before
    near = [max(before + 1, whole), max(before + 1, whole) + 1]
    days = [terms.last_day(start, months).isoformat() for months in near]
    message = f"The segment would end on {last}, which ends no month of the line after the segment before."
    raise _wrong(place, message, allowed=days)


def _wrong(place: int, message: str, **details: object) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, message, field=f"/ramp/{place}/until", **details)
