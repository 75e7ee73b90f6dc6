"""Positions of a timeline: lines of agreements over time, with their orders; the template only draws them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from cpq.console.charts import FRAMES, Frame
from cpq.console.formats import number
from cpq.services.agreements.ownership import OrderMark, Span

ROWS_MAX = 20
AHEAD = timedelta(days=365)
"""So far a line without an end is drawn, beyond today and every other day of the picture."""

POINT = 6
"""Width of a purchase, which is one day."""

LABEL_LENGTH = 20


class Stretch(NamedTuple):
    x: int
    width: int
    text: str
    is_point: bool


class Row(NamedTuple):
    label: str
    y: int
    words_y: int
    stretches: list[Stretch]


class Mark(NamedTuple):
    x: int
    text: str


class Timeline(NamedTuple):
    frame: Frame
    rows: list[Row]
    marks: list[Mark]
    years: list[Mark]
    today: int
    base: int
    height: int
    left_out: int


def timelines(spans: Sequence[Span], orders: Sequence[OrderMark], today: date) -> list[Timeline]:
    """The picture for a wide window and for a phone; none where nothing is owned."""
    return [_timeline(spans, orders, today, frame) for frame in FRAMES] if spans else []


def _timeline(spans: Sequence[Span], orders: Sequence[OrderMark], today: date, frame: Frame) -> Timeline:
    days = [today, *(one["start"] for one in spans), *(one["effective_date"] for one in orders)]
    days += [one["end"] for one in spans if one["end"]]
    first, last = min(days), max(days)
    if any(one["end"] is None and one["is_recurring"] for one in spans):
        last += AHEAD
    room = frame.width - frame.left
    length = max(1, (last - first).days)

    def x(day: date) -> int:
        return frame.left + (day - first).days * room // length

    lines: dict[str, list[Span]] = {}
    for span in spans:
        lines.setdefault(span["line_id"], []).append(span)
    rows = []
    for place, parts in enumerate([*lines.values()][:ROWS_MAX]):
        top = place * frame.row
        stretches = [_stretch(one, x(one["start"]), x(one["end"] or last)) for one in parts]
        label = parts[0]["label"]
        label = label if frame.is_above or len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH - 1]}…"
        rows.append(Row(label, top + frame.bar, top + frame.words, stretches))
    base = len(rows) * frame.row + 4
    years = [Mark(x(date(year, 1, 1)), str(year)) for year in range(first.year + 1, last.year + 1)]
    marks = [
        Mark(x(one["effective_date"]), f"{one['kind']} {one['number']}, {one['effective_date']}") for one in orders
    ]
    return Timeline(frame, rows, marks, years, x(today), base, base + 22, max(0, len(lines) - ROWS_MAX))


def _stretch(span: Span, left: int, right: int) -> Stretch:
    until = f"to {span['end'] - timedelta(days=1)}" if span["end"] else "without an end"
    is_point = not span["is_recurring"]
    days = f"on {span['start']}" if is_point else f"{span['start']} {until}"
    return Stretch(
        left, POINT if is_point else max(2, right - left - 1), f"{number(span['quantity'])}, {days}", is_point
    )
