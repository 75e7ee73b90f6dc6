"""PURE. Changes of an agreement as lines of a quote: what each line was worth from a day on, and what it is after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.money import amount
from cpq.base.rounding import nearest
from cpq.domain.agreements.agreement import Agreement, AgreementLine, is_continued, require_line
from cpq.domain.agreements.order import Basis, CancellationCredit, Phase, Sold
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Quantity
from cpq.domain.pricing.terms import Left, last_day
from cpq.domain.quotes.draft import DraftLine
from cpq.domain.quotes.special_terms import AgreedLine, SpecialTerms


class Action(StrEnum):
    """What an amendment does to a line."""

    SET_QUANTITY = "set_quantity"
    ADD_LINE = "add_line"
    REMOVE_LINE = "remove_line"
    SWAP_PRODUCT = "swap_product"
    CHANGE_TERM = "change_term"
    CHANGE_PRICE = "change_price"


_TAKES = {
    Action.SET_QUANTITY: frozenset({"quantity"}),
    Action.ADD_LINE: frozenset(
        {"product_id", "quantity", "attributes", "selling_model", "end_date"}
        | {"unit_price", "price_reason", "discount_pct"}
    ),
    Action.REMOVE_LINE: frozenset[str](),
    Action.SWAP_PRODUCT: frozenset({"product_id", "quantity", "attributes", "selling_model"}),
    Action.CHANGE_TERM: frozenset({"end_date"}),
    Action.CHANGE_PRICE: frozenset({"unit_price", "price_reason", "discount_pct"}),
}
"""The fields that each action takes besides the line; a new line has none."""


class RenewalPrice(StrEnum):
    """The price of a renewal: the last one, today's list price, or today's price for the account."""

    SAME = "same"
    LIST = "list"
    CONTRACTED = "contracted"


@dataclass(frozen=True)
class Change:
    """One change of an amendment. Which fields it takes depends on its action."""

    action: Action
    line_id: str | None = None
    quantity: Quantity | None = None
    product_id: str | None = None
    attributes: Mapping[str, Any] | None = None
    selling_model: str | None = None
    end_date: date | None = None
    unit_price: int | None = None
    discount_pct: int | None = None
    price_reason: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """As the argument of a call."""
        money = {"unit_price": self.unit_price, "discount_pct": self.discount_pct}
        plain = {
            "action": self.action.value,
            "line_id": self.line_id,
            "quantity": self.quantity,
            "product_id": self.product_id,
            "attributes": dict(self.attributes) if self.attributes else None,
            "selling_model": self.selling_model,
            "end_date": self.end_date.isoformat() if self.end_date else None,
            **{name: amount(value) for name, value in money.items() if value is not None},
            "price_reason": self.price_reason,
        }
        return {name: value for name, value in plain.items() if value is not None}


def amended_lines(agreement: Agreement, effective: date, changes: Sequence[Change]) -> list[DraftLine]:
    """The lines of an amendment; a change that changes nothing has none. Unchanged lines are not on it."""
    named: set[str] = set()
    lines: list[DraftLine] = []
    for place, change in enumerate(changes):
        at = f"/changes/{place}"
        _require_fitting(change, at)
        if change.line_id is not None:
            if change.line_id in named:
                raise bad_field(f"{at}/line_id", f"The line {change.line_id} is changed twice.")
            named.add(change.line_id)
        number = len(lines) + 1
        made = _added(agreement, effective, change, number, at)
        if made is None:
            made = _changed(agreement, effective, change, number, at)
        if made is not None:
            lines.append(made)
    return lines


def _require_fitting(change: Change, at: str) -> None:
    """Whether every field is one that the action takes, so that none is silently left out."""
    takes = _TAKES[change.action] | (set() if change.action is Action.ADD_LINE else {"line_id"})
    if other := [name for name in change.given if name not in ("action", *takes)]:
        raise bad_field(
            f"{at}/{other[0]}",
            f"{change.action} takes no {other[0]}; it takes {', '.join(sorted(takes))}.",
            hint="Leave it out. What it is to change is a change of its own, in another amendment after this one.",
            allowed=sorted(takes),
        )


def cancelled_lines(agreement: Agreement, effective: date, line_ids: Sequence[str] | None) -> list[DraftLine]:
    """The lines of a cancellation: those that are named, or all that are owned on the day or later."""
    if line_ids is None:
        owned = [line for line in agreement.lines if line.from_(effective)]
        fields = ["/effective_date"] * len(owned)
    else:
        fields = [f"/lines/{place}" for place in range(len(line_ids))]
        owned = [require_line(agreement, id_, at) for id_, at in zip(line_ids, fields, strict=True)]
    return [
        _removed(agreement, line, _owned(line, effective, at), effective, number)
        for number, (line, at) in enumerate(zip(owned, fields, strict=True), 1)
    ]


def renewed_lines(
    agreements: Sequence[Agreement], start: date, months: int, *, price: RenewalPrice, uplift: int
) -> list[DraftLine]:
    """The lines of a renewal, which all end together: those with a term that are owned on its first day or just before.

    What is left of their old terms is given back. The first agreement goes on; lines of others move into it.
    """
    end = last_day(start, months)
    found: list[DraftLine] = []
    for agreement in agreements:
        for line in agreement.lines:
            held = tuple(phase for phase in line.from_(start - timedelta(days=1)) if phase.calendar and phase.end)
            if held:
                other = None if agreement is agreements[0] else agreement.id
                number = len(found) + 1
                found.append(_renewed(agreement, line, held, start, end, number, price, uplift, other))
    return found


def _renewed(
    agreement: Agreement,
    line: AgreementLine,
    held: Sequence[Phase],
    start: date,
    end: date,
    number: int,
    price: RenewalPrice,
    uplift: int,
    other: str | None,
) -> DraftLine:
    """A line at the price it had last, raised, or at today's."""
    last, minor_unit = held[-1], agreement.minor_unit
    sold, is_same = last.sold, price is RenewalPrice.SAME
    raised = ONE_HUNDRED_PERCENT + uplift
    unit_price = sold.unit_price if is_same else None
    if unit_price is not None:
        unit_price = nearest(unit_price * raised, ONE_HUNDRED_PERCENT)
    total = nearest((ONE_HUNDRED_PERCENT + sold.uplift) * raised, ONE_HUNDRED_PERCENT) - ONE_HUNDRED_PERCENT
    return DraftLine(
        number,
        sold.product_id,
        sold.quantity,
        sold.discount if is_same else 0,
        sold.attributes,
        selling_model=sold.selling_model,
        special=SpecialTerms(
            unit_price=unit_price,
            price_reason="as agreed" if unit_price is not None else None,
            start_date=start,
            end_date=end,
            agreed=AgreedLine(
                "renew",
                line.id,
                other,
                name=sold.product_name if is_same else None,
                quantity_before=str(sold.quantity),
                credit=sum([phase.left(start, minor_unit) for phase in held if phase.end and phase.end > start]),
                bound=_bound([phase for phase in held if phase.end and phase.end > start], start, agreement),
                prolongs=True,
                part_periods=last.calendar.mode if last.calendar else "",
                basis=_plain(sold.basis) if is_same else None,
                uplift=total if is_same else 0,
                yearly_before=minor_unit.round(last.yearly),
                ignores_contract=price is RenewalPrice.LIST,
            ),
        ),
    )


def _added(agreement: Agreement, effective: date, change: Change, number: int, at: str) -> DraftLine | None:
    """A new line. It ends with the agreement, unless it says otherwise."""
    if change.action is not Action.ADD_LINE:
        return None
    if change.product_id is None or change.quantity is None:
        raise bad_field(f"{at}/product_id", "A new line needs product_id and quantity.")
    end = change.end_date or (agreement.end - timedelta(days=1) if agreement.end else None)
    if end is not None and end < effective:
        raise bad_field(f"{at}/end_date", "The line would end before it starts.", minimum=effective.isoformat())
    return DraftLine(
        number,
        change.product_id,
        change.quantity,
        change.discount_pct or 0,
        change.attributes or {},
        selling_model=change.selling_model,
        special=SpecialTerms(
            unit_price=change.unit_price,
            price_reason=change.price_reason,
            start_date=effective,
            end_date=end,
            agreed=AgreedLine("add", anchored_on=_anchor(agreement, effective), part_periods=_mode(agreement)),
        ),
    )


def _changed(agreement: Agreement, effective: date, change: Change, number: int, at: str) -> DraftLine | None:
    if change.line_id is None:
        raise bad_field(f"{at}/line_id", f"{change.action} needs the line_id of a line of the agreement.")
    line = require_line(agreement, change.line_id, f"{at}/line_id")
    held = _owned(line, effective, f"{at}/line_id")
    if change.action is Action.REMOVE_LINE:
        return _removed(agreement, line, held, effective, number)
    before = held[0]
    sold, end = _after(before, held[-1].end, change, max(effective, before.start), at)
    _require_boundary(before, effective)
    if sold == before.sold and end == before.end and len(held) == 1:
        return None
    start = max(effective, before.start)
    return _draft_line(agreement, line, held, sold, start, end, number, change)


def _after(before: Phase, end: date | None, change: Change, effective: date, at: str) -> tuple[Sold, date | None]:
    """What the line sells after a change, and the first day after its end."""
    sold = before.sold
    match change.action:
        case Action.SET_QUANTITY:
            if change.quantity is None:
                raise bad_field(f"{at}/quantity", "set_quantity needs the new quantity.")
            return sold._replace(quantity=change.quantity), end
        case Action.SWAP_PRODUCT:
            if change.product_id is None:
                raise bad_field(f"{at}/product_id", "swap_product needs the new product_id.")
            return (
                sold._replace(
                    product_id=change.product_id,
                    quantity=change.quantity or sold.quantity,
                    attributes=change.attributes or {},
                    selling_model=change.selling_model or "",
                ),
                end,
            )
        case Action.CHANGE_TERM:
            if change.end_date is None or before.calendar is None or before.end is None:
                message = "change_term needs end_date, and a line with an end."
                raise bad_field(f"{at}/end_date", message)
            if change.end_date < effective:
                message = "The line would end before the change; remove_line ends it on the day of the change."
                raise bad_field(f"{at}/end_date", message, minimum=effective.isoformat())
            return sold, change.end_date + timedelta(days=1)
        case _:
            if change.unit_price is None and change.discount_pct is None:
                raise bad_field(f"{at}/unit_price", "change_price needs unit_price with price_reason, or discount_pct.")
            if change.unit_price is not None and not change.price_reason:
                raise bad_field(f"{at}/price_reason", "A unit_price needs a price_reason.")
            discount = 0 if change.discount_pct is None else change.discount_pct
            return sold._replace(unit_price=change.unit_price, discount=discount, uplift=sold.uplift), end


def _draft_line(
    agreement: Agreement,
    line: AgreementLine,
    held: Sequence[Phase],
    sold: Sold,
    start: date,
    end: date | None,
    number: int,
    change: Change,
) -> DraftLine:
    """A line at its own prices, or at today's where it sells another product."""
    before = held[0]
    minor_unit = agreement.minor_unit
    is_swap = change.action is Action.SWAP_PRODUCT
    today = [phase for phase in line.phases if phase.ends == start]
    returns = [phase.sold for phase in today if is_swap and _is_return(phase.sold, sold)]
    if returns:
        sold, is_swap = returns[-1], False
    earlier = next((phase for phase in today if is_continued(phase, sold, end, start)), None)
    settled = earlier.left(start, minor_unit) if earlier is not None and not is_swap else None
    calendar = before.calendar
    return DraftLine(
        number,
        sold.product_id,
        sold.quantity,
        0 if is_swap else sold.discount,
        sold.attributes,
        selling_model=(sold.selling_model or None) if is_swap else sold.selling_model,
        special=SpecialTerms(
            unit_price=None if is_swap else sold.unit_price,
            price_reason=(change.price_reason or "as agreed") if sold.unit_price is not None and not is_swap else None,
            start_date=start,
            end_date=end - timedelta(days=1) if end else None,
            agreed=AgreedLine(
                "change",
                line.id,
                name=None if is_swap else sold.product_name,
                quantity_before=str(before.sold.quantity),
                credit=sum([phase.left(start, minor_unit) for phase in held]),
                bound=_bound(held, start, agreement),
                prolongs=end is not None and held[-1].end is not None and end > held[-1].end and not is_swap,
                anchored_on=calendar.anchor.isoformat() if calendar else None,
                left="" if is_swap else _left(held, start, end),
                part_periods=calendar.mode if calendar else _mode(agreement),
                basis=None if is_swap else _plain(sold.basis),
                uplift=0 if is_swap else sold.uplift,
                settled=settled,
                yearly_before=minor_unit.round(before.yearly),
            ),
        ),
    )


def _left(held: Sequence[Phase], start: date, end: date | None) -> str:
    """What the calendar of a line has left, to its end or to another one; empty without an end."""
    first, last = held[0], held[-1]
    if first.calendar is None or last.calendar is None or last.end is None or end is None:
        return ""
    periods = sum([phase.periods for phase in held]) - first.passed(start)
    if end != last.end:
        periods += last.calendar.elapsed(end) - last.calendar.elapsed(last.end)
    length = first.calendar.length
    return Left(periods * length.months, periods * length.weeks).stored


def _is_return(earlier: Sold, asked: Sold) -> bool:
    """Whether a swap leads back to the product that the line had before, on the same day."""
    return (
        earlier.product_id == asked.product_id
        and earlier.quantity == asked.quantity
        and asked.selling_model in ("", earlier.selling_model)
        and dict(asked.attributes) in ({}, dict(earlier.attributes))
    )


def _removed(
    agreement: Agreement, line: AgreementLine, held: Sequence[Phase], effective: date, number: int
) -> DraftLine:
    """The end of a line. What is given back of its value follows the terms of its price."""
    before, minor_unit = held[0], agreement.minor_unit
    _require_boundary(before, effective)
    start = max(effective, before.start)
    left = sum([phase.left(start, minor_unit) for phase in held])
    credit = sum([credit_of(phase, start, effective, agreement) for phase in held])
    return DraftLine(
        number,
        before.sold.product_id,
        before.sold.quantity,
        special=SpecialTerms(
            start_date=start,
            agreed=AgreedLine(
                "remove",
                line.id,
                name=before.sold.product_name,
                quantity_before=str(before.sold.quantity),
                credit=credit,
                kept=left - credit,
                basis=_plain(before.sold.basis),
                yearly_before=minor_unit.round(before.yearly),
            ),
        ),
    )


def credit_of(phase: Phase, start: date, effective: date, agreement: Agreement) -> int:
    """What is given back for a phase that is cancelled: never more than was billed for its rest, nothing at its end.

    What has not begun is given back in whole. A purchase that was delivered is not, nor the running period of a line
    without an end.
    """
    minor_unit = agreement.minor_unit
    if effective <= phase.start:
        return phase.left(phase.start, minor_unit)
    if phase.calendar is None or phase.end is None or phase.sold.credit is CancellationCredit.NONE:
        return 0
    if phase.sold.credit is CancellationCredit.FULL_PERIODS:
        period = phase.calendar.period_of(start)
        start = start if period[0] == start else min(period[1], phase.end)
    return phase.left(start, minor_unit)


def _bound(held: Sequence[Phase], start: date, agreement: Agreement) -> int:
    """What these phases are still worth beyond what their end would give back. An endless one was not billed."""
    minor_unit = agreement.minor_unit
    billed = [phase for phase in held if phase.calendar is None or phase.end]
    return sum([phase.left(start, minor_unit) - credit_of(phase, start, start, agreement) for phase in billed])


def _owned(line: AgreementLine, effective: date, at: str) -> tuple[Phase, ...]:
    held = line.from_(effective)
    if not held:
        stop = line.stop
        raise CpqError(
            Code.CONFLICT,
            f"The line {line.id} ended on {stop - timedelta(days=1) if stop else effective}.",
            field=at,
            maximum=(stop - timedelta(days=1)).isoformat() if stop else None,
        )
    return held


def _require_boundary(before: Phase, effective: date) -> None:
    """A line without an end changes with a billing period, so that no period is billed in part."""
    if before.calendar is None or before.end is not None or effective <= before.start:
        return
    period = before.calendar.period_of(effective)
    if effective not in period:
        days = [day.isoformat() for day in period if day >= before.start]
        raise bad_field(
            "/effective_date",
            f"A line without an end changes with a billing period: on {' or '.join(days)}.",
            allowed=days,
        )


def _plain(basis: Basis) -> tuple[str, int, int]:
    return basis.quote_id, basis.version, basis.number


def _anchor(agreement: Agreement, day: date) -> str | None:
    """The day from which a new line counts: with the recurring line that is owned then and ends last."""
    owned = [phase for _, phase in agreement.on(day) if phase.calendar and phase.end]
    last = max(owned, key=lambda phase: phase.end or day, default=None)
    return last.calendar.anchor.isoformat() if last is not None and last.calendar else None


def _mode(agreement: Agreement) -> str:
    """How the agreement counts parts of a period: like its first recurring line."""
    phases = (phase for line in agreement.lines for phase in line.phases)
    return next((phase.calendar.mode for phase in phases if phase.calendar), "")
