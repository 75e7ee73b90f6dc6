"""Where the marks of a chart stand: whole pixels in, whole pixels out; the templates only draw them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from cpq.reviews import OutcomeFigure, WaterfallStage

WIDTH = 640
BAR = 18
ROW = 32
LABEL = 148
VALUES = 132
"""Room at the right for the amounts."""

COLUMN = 150


class Mark(NamedTuple):
    """One row of a waterfall: a bar from the axis, or a step that hangs between two levels."""

    stage: str
    kind: str
    amount: Decimal
    x: int
    width: int
    y: int
    joins: int
    """Where the level stands after it; a thin line leads from here to the next row."""


class Waterfall(NamedTuple):
    marks: list[Mark]
    height: int
    width: int = WIDTH
    label: int = LABEL


class Bar(NamedTuple):
    label: str
    value: Decimal
    said: str
    x: int
    y: int
    width: int
    kind: str = ""


class Bars(NamedTuple):
    bars: list[Bar]
    height: int
    width: int = WIDTH
    label: int = LABEL


class Column(NamedTuple):
    label: str
    won: int
    ended: int
    share: str
    center: int
    won_height: int
    lost_height: int


class Columns(NamedTuple):
    columns: list[Column]
    thickness: int
    base: int = COLUMN + 20
    height: int = COLUMN + 44
    width: int = WIDTH


def waterfall(stages: Sequence[WaterfallStage]) -> Waterfall:
    """Bars that start at nothing for levels, and hang from level to level for what changed them."""
    levels = [Decimal(0)]
    standing = Decimal(0)
    for stage in stages:
        change = Decimal(stage["amount"])
        standing = change if stage["is_level"] else standing + change
        levels.append(standing)
    highest = max(levels) or Decimal(1)
    room = WIDTH - LABEL - VALUES
    marks, standing = [], Decimal(0)
    for place, stage in enumerate(stages):
        change = Decimal(stage["amount"])
        before, standing = (Decimal(0), change) if stage["is_level"] else (standing, standing + change)
        left, right = sorted((_scaled(before, highest, room), _scaled(standing, highest, room)))
        kind = "level" if stage["is_level"] else "up" if change > 0 else "down"
        joins = LABEL + _scaled(standing, highest, room)
        marks.append(Mark(stage["stage"], kind, change, LABEL + left, max(2, right - left), place * ROW + 7, joins))
    return Waterfall(marks, len(stages) * ROW)


def bars(rows: Sequence[tuple[str, Decimal, str, str]]) -> Bars:
    """Horizontal bars of label, value, what is written beside it, and its kind."""
    highest = max((value for _, value, _, _ in rows), default=Decimal(0)) or Decimal(1)
    room = WIDTH - LABEL - VALUES
    drawn = [
        Bar(label, value, said, LABEL, place * ROW + 7, max(2 if value else 0, _scaled(value, highest, room)), kind)
        for place, (label, value, said, kind) in enumerate(rows)
    ]
    return Bars(drawn, max(1, len(rows)) * ROW)


def columns(rows: Sequence[tuple[str, OutcomeFigure]]) -> Columns:
    """A column for each part of a period: what was won stands on the axis, what was lost on top of it."""
    highest = max((_ended(one) for _, one in rows), default=0) or 1
    step = WIDTH // max(1, len(rows))
    drawn = []
    for place, (label, one) in enumerate(rows):
        ended = _ended(one)
        won = one["accepted"] * COLUMN // highest
        lost = (ended - one["accepted"]) * COLUMN // highest
        share = f"{one['accepted'] * 100 // ended} %" if ended else ""
        drawn.append(Column(label, one["accepted"], ended, share, place * step + step // 2, won, lost))
    return Columns(drawn, step * 3 // 5)


def _ended(one: OutcomeFigure) -> int:
    return one["accepted"] + one["declined"] + one["expired"]


def _scaled(value: Decimal, highest: Decimal, room: int) -> int:
    return int(value * room / highest)
