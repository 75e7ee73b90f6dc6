"""PURE. An agreement: what an account owns on any day, as a fold over its orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from cpq.base.errors import Code, CpqError
from cpq.base.rounding import MinorUnit
from cpq.domain.agreements import billing_schedule
from cpq.domain.agreements.billing_schedule import Due
from cpq.domain.agreements.order import Order, OrderLine, Phase, Sold
from cpq.domain.agreements.order_kind import OrderKind

HORIZON_DAYS = 366
"""So far ahead the billing of lines without an end is listed."""


class AgreementStatus(StrEnum):
    ACTIVE = "active"
    FUTURE = "future"
    ENDED = "ended"
    CANCELLED = "cancelled"


class Source(NamedTuple):
    """An order and the number of a line in it, which holds from its effective day on."""

    order_id: str
    number: int
    effective: date


@dataclass(frozen=True)
class AgreementLine:
    """A line with all its phases in time. A phase that was cut by a later order keeps its value and says where."""

    id: str
    sources: tuple[Source, ...]
    """What each order did to it, in their sequence."""
    phases: tuple[Phase, ...]

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a bundle whose parts are billed differently; its price is a share of the bundle's."""
        return "." in self.id

    @property
    def source(self) -> Source:
        """The order that changed it last."""
        return self.sources[-1]

    def source_on(self, day: date) -> Source:
        """The order that says what it is on a day on which it is owned."""
        return next(one for one in reversed(self.sources) if one.effective <= day)

    def on(self, day: date) -> Phase | None:
        """What it is on a day."""
        return next((phase for phase in self.phases if phase.is_on(day)), None)

    @property
    def last(self) -> Phase | None:
        """What it is at its end; None where it ends before it starts."""
        return next((phase for phase in reversed(self.phases) if phase.is_real), None)

    def from_(self, day: date) -> tuple[Phase, ...]:
        """The phases that hold on the day or later."""
        return tuple(phase for phase in self.phases if phase.stop is None or phase.stop > max(day, phase.start))

    @property
    def start(self) -> date:
        return self.phases[0].start

    @property
    def stop(self) -> date | None:
        """The first day on which it is not owned any more; None for a purchase or a line without an end."""
        stops = [phase.stop for phase in self.phases if phase.is_real] or [self.start]
        return None if None in stops else max(stop for stop in stops if stop)


@dataclass(frozen=True)
class Agreement:
    """The state after all orders of an agreement; any day can be asked for."""

    id: str
    account_id: str
    currency: str
    rounding: str
    sequence: int
    """The number of orders that it is the fold of."""
    lines: tuple[AgreementLine, ...]
    orders: tuple[Order, ...]
    renewed_into: str | None = None
    """The agreement that goes on instead, where several were renewed into one."""

    @property
    def minor_unit(self) -> MinorUnit:
        return MinorUnit(self.currency, self.rounding)

    @property
    def starts_on(self) -> date:
        return min(line.start for line in self.lines)

    @property
    def end(self) -> date | None:
        """The first day after its last term; None where nothing recurs with an end, or something has no end."""
        recurring = [line for line in self.lines if any(phase.calendar for phase in line.phases)]
        stops = [line.stop for line in recurring]
        return None if None in stops or not stops else max(stop for stop in stops if stop)

    @cached_property
    def by_id(self) -> dict[str, AgreementLine]:
        return {line.id: line for line in self.lines}

    @property
    def is_cancelled(self) -> bool:
        return bool(self.orders) and self.orders[-1].kind is OrderKind.CANCELLATION and not self.remains

    @property
    def remains(self) -> bool:
        """Whether any line is owned after the last order took effect."""
        effective = self.orders[-1].effective
        return any(line.stop is None or line.stop > effective for line in self.lines)

    def status(self, day: date) -> AgreementStatus:
        end = self.end
        if self.is_cancelled and day >= self.orders[-1].effective:
            return AgreementStatus.CANCELLED
        if day < self.starts_on:
            return AgreementStatus.FUTURE
        return AgreementStatus.ENDED if end is not None and day >= end else AgreementStatus.ACTIVE

    def on(self, day: date) -> list[tuple[AgreementLine, Phase]]:
        """What is owned on a day."""
        return [(line, phase) for line in self.lines if (phase := line.on(day)) is not None]

    def yearly(self, day: date) -> int:
        """The recurring revenue of a year at the prices of a day (ARR), rounded once."""
        return self.minor_unit.round(sum((phase.yearly for _, phase in self.on(day)), Fraction(0)))

    def schedule(self, until: date) -> list[Due]:
        """Everything that is billed, order by order; lines without an end to `until`."""
        found = [due for order in self.orders for due in self._of_terms(order)]
        for line in self.lines:
            for phase in line.phases:
                if phase.sold.is_evergreen:
                    last = min(until, phase.stop or until)
                    if last > phase.start:
                        found += billing_schedule.of_phase(line.id, phase, self.minor_unit, until=last)
        return sorted(found, key=lambda due: (due.due_on, due.start, due.line_id, due.amount))

    def _of_terms(self, order: Order) -> list[Due]:
        """What an order bills for lines with an end, and for purchases."""
        lines = [
            line._replace(
                phases=tuple(phase for phase in line.phases if not phase.sold.is_evergreen),
                replaced=tuple(phase for phase in line.replaced if not phase.sold.is_evergreen),
            )
            for line in order.lines
            if line.agreement_id == self.id
        ]
        return billing_schedule.of_order(lines, self.minor_unit)

    def next_due(self, day: date) -> tuple[date, int] | None:
        """The next day after `day` on which something is billed, and its amount."""
        amounts: dict[date, int] = {}
        for due in self.schedule(day + timedelta(days=HORIZON_DAYS)):
            if due.due_on > day:
                amounts[due.due_on] = amounts.get(due.due_on, 0) + due.amount
        return next(((when, amount) for when, amount in sorted(amounts.items()) if amount), None)


def fold(agreement_id: str, orders: Iterable[Order]) -> Agreement:
    """The state after the orders, in their sequence, in whatever order they were read."""
    in_sequence = sorted(orders, key=lambda order: order.sequence)
    assert in_sequence, "an agreement begins with an order"
    lines: dict[str, AgreementLine] = {}
    renewed_into = None
    for order in in_sequence:
        mine = [line for line in order.lines if line.agreement_id == agreement_id]
        for id_, parts in groupby(mine, key=attrgetter("id")):
            changed = tuple(parts)
            before = lines.get(id_) or AgreementLine(id_, (), ())
            sources = tuple(Source(order.id, one.number, one.effective) for one in changed)
            phases = applied(before.phases, changed, order.minor_unit)
            lines[id_] = AgreementLine(id_, before.sources + sources, phases)
        if order.kind is OrderKind.RENEWAL and order.agreement_id != agreement_id:
            renewed_into = order.agreement_id
    first, last = in_sequence[0], in_sequence[-1]
    return Agreement(
        agreement_id,
        first.account_id,
        first.currency,
        first.rounding,
        last.sequence,
        tuple(lines.values()),
        tuple(in_sequence),
        renewed_into,
    )


def applied(phases: Sequence[Phase], lines: Sequence[OrderLine], minor_unit: MinorUnit) -> tuple[Phase, ...]:
    """The phases of a line after an order, whose lines for it follow each other in time.

    What they replace is cut, and their own phases follow. An order that leads back to what held before, on the same
    day, leaves no trace in the state. For that a phase that was replaced on its first day or before is remembered; it
    holds on no day.
    """
    day = lines[0].effective
    found = [phase for phase in phases if phase.is_real or (phase.ends is not None and phase.ends >= day)]
    for line in lines:
        found = [phase.cut(line.effective) if phase._replace(ended=None) in line.replaced else phase for phase in found]
    for phase in [phase for line in lines for phase in line.phases]:
        place = next((place for place, one in enumerate(found) if _leads_back(one, phase, minor_unit)), None)
        if place is None:
            found.append(phase)
        else:
            found.append(found.pop(place).restored)
    return tuple(sorted(found, key=attrgetter("start")))


def _leads_back(before: Phase, phase: Phase, minor_unit: MinorUnit) -> bool:
    return (
        is_continued(before, phase.sold, phase.end, phase.start)
        and before.restored.left(phase.start, minor_unit) == phase.value
    )


def is_continued(before: Phase, sold: Sold, end: date | None, day: date) -> bool:
    """Whether these terms are the rest of a phase that was cut on the day."""
    return before.ends == day and before.sold == sold and before.restored.stop == end


def require_line(agreement: Agreement, line_id: str, field: str) -> AgreementLine:
    """A line by its id; NOT_FOUND with those there are."""
    found = agreement.by_id.get(line_id)
    if found is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"The agreement has no line {line_id!r}.",
            field=field,
            allowed=[line.id for line in agreement.lines][:20],
        )
    return found
