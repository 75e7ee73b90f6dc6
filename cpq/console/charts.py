"""Positions of the marks of a chart, in whole pixels; the templates only draw them.

Every chart is drawn twice, for a wide window and for a phone, where labels are above their bars: a chart that is only
scaled down cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from cpq.services.quotes.review import WaterfallStage
from cpq.services.reports.figures import OutcomeFigure

COLUMN = 150
"""Height of the highest column."""


class Frame(NamedTuple):
    """The layout of a chart: where bars begin and end, and where labels go."""

    name: str
    width: int
    left: int
    right: int
    row: int
    words: int
    bar: int
    is_above: bool
    """Whether labels are above their bar instead of beside it."""
    axis: int
    label: int
    """`axis` and `label`: room for the numbers of an axis, and for the label of a column."""
    thickness: int = 18
    """Height of a bar."""


BROAD = Frame("broad", 640, left=148, right=132, row=32, words=20, bar=7, is_above=False, axis=30, label=56)
NARROW = Frame("slim", 340, left=0, right=0, row=46, words=13, bar=20, is_above=True, axis=24, label=48)
FRAMES = (BROAD, NARROW)


class Mark(NamedTuple):
    """One row of a waterfall: a bar from the axis, or a step that hangs between two levels."""

    stage: str
    kind: str
    amount: Decimal
    x: int
    width: int
    y: int
    words_y: int
    joins: int
    """The level after this stage; a thin line leads from here to the next row."""


class Waterfall(NamedTuple):
    frame: Frame
    marks: list[Mark]
    height: int


class Bar(NamedTuple):
    label: str
    text: str
    x: int
    y: int
    width: int
    words_y: int
    text_x: int


class Bars(NamedTuple):
    frame: Frame
    bars: list[Bar]
    height: int


class Tick(NamedTuple):
    number: int
    y: int


class Column(NamedTuple):
    label: str
    """Empty where there is no room for it."""
    since: str
    won: int
    ended: int
    share: str
    center: int
    won_height: int
    lost_height: int


class Columns(NamedTuple):
    frame: Frame
    columns: list[Column]
    ticks: list[Tick]
    thickness: int
    base: int = COLUMN + 20
    height: int = COLUMN + 44


def waterfall(stages: Sequence[WaterfallStage], frame: Frame) -> Waterfall:
    """A bar from zero for each level, and a floating bar for each change between levels."""
    levels = [Decimal(0)]
    level = Decimal(0)
    for stage in stages:
        change = Decimal(stage["amount"])
        level = change if stage["is_level"] else level + change
        levels.append(level)
    lowest = min(levels)  # Below zero where a change of an agreement gives money back.
    highest = (max(levels) - lowest) or Decimal(1)
    room = frame.width - frame.left - frame.right
    marks, level = [], Decimal(0)
    for place, stage in enumerate(stages):
        change = Decimal(stage["amount"])
        before, level = (Decimal(0), change) if stage["is_level"] else (level, level + change)
        start, stop = (_scaled(one - lowest, highest, room) for one in (before, level))
        left, right = sorted((start, stop))
        kind = "level" if stage["is_level"] else "up" if change > 0 else "down"
        top = place * frame.row
        where = (frame.left + left, max(2, right - left), top + frame.bar, top + frame.words)
        marks.append(Mark(stage["stage"], kind, change, *where, frame.left + stop))
    return Waterfall(frame, marks, len(stages) * frame.row)


def bars(rows: Sequence[tuple[str, Decimal, str]], frame: Frame) -> Bars:
    """Horizontal bars from rows of label, value and text. A value below zero has the shortest bar."""
    highest = max((value for _, value, _ in rows if value > 0), default=Decimal(1))
    room = frame.width - frame.left - frame.right
    drawn = []
    for place, (label, value, text) in enumerate(rows):
        width, top = max(2 if value else 0, _scaled(value, highest, room)), place * frame.row
        text_x = frame.width if frame.is_above else frame.left + width + 8
        drawn.append(Bar(label, text, frame.left, top + frame.bar, width, top + frame.words, text_x))
    return Bars(frame, drawn, max(1, len(rows)) * frame.row)


def columns(rows: Sequence[tuple[str, OutcomeFigure]], frame: Frame) -> Columns:
    """A column for each part of a period: quotes won at the bottom, quotes lost on top."""
    gap = _gap(max((_ended(one) for _, one in rows), default=0))
    highest = max(gap, *(-(-_ended(one) // gap) * gap for _, one in rows)) if rows else gap
    step = (frame.width - frame.axis) // max(1, len(rows))
    every = -(-frame.label // step)
    drawn = []
    for place, (since, one) in enumerate(rows):
        ended, won = _ended(one), one["accepted"]
        heights = (won * COLUMN // highest, (ended - won) * COLUMN // highest)
        share = _share(won, ended) + ("" if every > 1 else " %") if ended else ""
        label = since if place % every == 0 else ""
        drawn.append(Column(label, since, won, ended, share, frame.axis + place * step + step // 2, *heights))
    ticks = [Tick(number, COLUMN + 20 - number * COLUMN // highest) for number in range(0, highest + 1, gap)]
    return Columns(frame, drawn, ticks, step * 3 // 5)


def _gap(highest: int) -> int:
    """The distance between grid lines: few lines, round numbers."""
    gaps: Iterator[int] = (digit * 10**power for power in range(30) for digit in (1, 2, 5))
    return next(gap for gap in gaps if highest <= 4 * gap)


def _ended(one: OutcomeFigure) -> int:
    return one["accepted"] + one["declined"] + one["expired"]


def _share(part: int, whole: int) -> str:
    return f"{(Decimal(part * 100) / whole).quantize(Decimal(1), ROUND_HALF_UP)}"


def _scaled(value: Decimal, highest: Decimal, room: int) -> int:
    return int(value * room / highest)
