"""PURE. The billing schedule: for every line its periods, when each is due, and its amount; they add up to the net."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from cpq.base.rounding import MinorUnit
from cpq.domain.agreements.billing_calendar import tiles
from cpq.domain.agreements.order import OrderLine, Phase
from cpq.domain.billing_terms import Billed


class Due(NamedTuple):
    """One amount of one line. Its days are half-open; a purchase, and what is not given back, have none."""

    line_id: str
    start: date
    end: date
    due_on: date
    amount: int


def of_order(lines: Iterable[OrderLine], minor_unit: MinorUnit) -> list[Due]:
    """What an order bills, in time. Periods that an earlier order billed are given back one by one and billed again.

    The amounts of a line add up to its net. A line without an end bills its first period.
    """
    found: list[Due] = []
    for line in lines:
        for phase in line.replaced:
            given_back = of_phase(line.id, phase, minor_unit, since=line.effective)
            found += [due._replace(amount=-due.amount) for due in given_back]
        if line.kept:
            found.append(Due(line.id, line.effective, line.effective, line.effective, line.kept))
        for phase in line.phases:
            found += of_phase(line.id, phase, minor_unit)
    return sorted(found, key=_in_time)


def of_phase(
    line_id: str, phase: Phase, minor_unit: MinorUnit, *, since: date | None = None, until: date | None = None
) -> Iterator[Due]:
    """What a phase bills from `since` on. A purchase bills once; without an end it bills to `until`, or one period."""
    start = max(since or phase.start, phase.start)
    if phase.calendar is None:
        yield Due(line_id, start, start, start, phase.value)
        return
    stop = (phase.stop if phase.end else until) or phase.calendar.period_of(start)[1]
    is_advance, before = phase.sold.billed is Billed.ADVANCE, phase.used(start, minor_unit)
    for begin, end in tiles(phase.calendar, start, stop):
        after = phase.used(end, minor_unit)
        yield Due(line_id, begin, end, begin if is_advance else end, after - before)
        before = after


def _in_time(due: Due) -> tuple[date, date, str, int]:
    return due.due_on, due.start, due.line_id, due.amount
