"""PURE. Changes of an agreement as lines of a quote: what each line was worth from a day on, and what it is after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.base.money import amount
from cpq.base.rounding import nearest
from cpq.domain.agreements.agreement import Agreement, AgreementLine, is_continued, require_line
from cpq.domain.agreements.order import Basis, Phase, Sold
from cpq.domain.billing_periods import in_words
from cpq.domain.billing_terms import CancellationCredit
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Quantity
from cpq.domain.pricing.selling_models import is_usage
from cpq.domain.pricing.terms import Left, last_day
from cpq.domain.quotes.draft import DraftLine
from cpq.domain.quotes.special_terms import WHOLE_TERM, AgreedLine, Commitment, SpecialTerms

_TODAY = Basis("", 0, 0)
"""Of what a change sells at today's prices."""


class Action(StrEnum):
    """What an amendment does to a line."""

    SET_QUANTITY = "set_quantity"
    ADD_LINE = "add_line"
    REMOVE_LINE = "remove_line"
    SWAP_PRODUCT = "swap_product"
    CHANGE_TERM = "change_term"
    CHANGE_PRICE = "change_price"


_TAKES = {
    Action.SET_QUANTITY: frozenset({"quantity", "commitment"}),
    Action.ADD_LINE: frozenset(
        {"product_id", "quantity", "attributes", "selling_model", "end_date"}
        | {"unit_price", "price_reason", "discount_pct", "commitment"}
    ),
    Action.REMOVE_LINE: frozenset[str](),
    Action.SWAP_PRODUCT: frozenset({"product_id", "quantity", "attributes", "selling_model", "commitment"}),
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
    commitment: Commitment | None = None

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
            "commitment": self._commitment,
        }
        return {name: value for name, value in plain.items() if value is not None}

    @property
    def _commitment(self) -> dict[str, Any] | None:
        if self.commitment is None:
            return None
        given = self.commitment.given
        return {name: amount(value) if name == "amount" else value for name, value in given.items()}


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
        if change.action is Action.ADD_LINE:
            lines.append(_added(agreement, effective, change, number, at))
        else:
            lines += _changed(agreement, effective, change, number, at)
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
        first = {id_: place for place, id_ in reversed([*enumerate(line_ids)])}
        if twice := next((place for place, id_ in enumerate(line_ids) if first[id_] != place), 0):
            raise bad_field(fields[twice], f"The line {line_ids[twice]} is named twice.")
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
    first, *others = agreements
    for agreement in agreements:
        for line in agreement.lines:
            held = tuple(phase for phase in line.from_(start - timedelta(days=1)) if phase.calendar and phase.end)
            if held and line.is_part and price is RenewalPrice.SAME:
                others_too = {"also": [one.id for one in others]} if others else {}
                raise CpqError(
                    Code.CONFLICT,
                    f"The line {line.id} is a part of a bundle whose parts are billed in different periods.",
                    field="/price",
                    hint="Its price was a share of the bundle's. Renew at today's prices, or remove it first.",
                    next_call=next_call(
                        "agreement_renew",
                        agreement_id=first.id,
                        price=RenewalPrice.CONTRACTED.value,
                        start_date=start.isoformat(),
                        term_months=months,
                        **others_too,
                    ),
                )
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
    is_as_before = is_same and not uplift and len(held) == 1 and last.stop == end + timedelta(days=1)
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
            commitment=sold.commitment,
            agreed=AgreedLine(
                "renew",
                line.id,
                other,
                name=sold.product_name if is_same else None,
                quantity_before=str(sold.quantity),
                credit=sum([phase.left(start, minor_unit) for phase in held if phase.stop and phase.stop > start]),
                bound=_bound([phase for phase in held if phase.stop and phase.stop > start], start, agreement),
                prolongs=True,
                part_periods=last.calendar.mode if last.calendar else "",
                basis=_plain(sold.basis) if is_same else None,
                uplift=total if is_same else 0,
                settled=last.left(start, minor_unit) if is_as_before else None,
                settled_price=last.price if is_as_before else None,
                settled_periods=_settled_periods(last, start, agreement) if is_as_before else "",
                yearly_before=minor_unit.round(last.yearly),
                ignores_contract=price is RenewalPrice.LIST,
            ),
        ),
    )


def _added(agreement: Agreement, effective: date, change: Change, number: int, at: str) -> DraftLine:
    """A new line. It ends with the agreement, unless it says otherwise."""
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
            commitment=change.commitment,
            agreed=AgreedLine("add", anchored_on=_anchor(agreement, effective), part_periods=_mode(agreement)),
        ),
    )


class _Span(NamedTuple):
    """A run of days in which a changed line has one price; `held` is what it had in these days and is given back."""

    held: tuple[Phase, ...]
    sold: Sold
    start: date
    end: date | None

    @property
    def is_changed(self) -> bool:
        return len(self.held) > 1 or self.sold != self.held[0].sold or self.end != self.held[0].stop


def _changed(agreement: Agreement, effective: date, change: Change, number: int, at: str) -> list[DraftLine]:
    """The lines of a change: one for each run of days that it changes, because a ramp stays a ramp."""
    if change.line_id is None:
        raise bad_field(f"{at}/line_id", f"{change.action} needs the line_id of a line of the agreement.")
    line = require_line(agreement, change.line_id, f"{at}/line_id")
    held = _owned(line, effective, f"{at}/line_id")
    if change.action is Action.REMOVE_LINE:
        return [_removed(agreement, line, held, effective, number)]
    _require_whole(agreement, line, at)
    _require_boundary(held, effective)
    spans = _spans(held, max(effective, held[0].start), change, at)
    changed = [(place, span) for place, span in enumerate(spans) if span.is_changed]
    return [
        _draft_line(agreement, line, span, spans[place + 1 :], number + count, change)
        for count, (place, span) in enumerate(changed)
    ]


def _require_whole(agreement: Agreement, line: AgreementLine, at: str) -> None:
    """CONFLICT for a part of a bundle: its price is a share of the bundle's, so that it cannot be priced alone."""
    if not line.is_part:
        return
    bundle = line.id.rpartition(".")[0]
    parts = [one.id for one in agreement.lines if one.id.rpartition(".")[0] == bundle]
    basis = line.phases[-1].sold.basis
    raise CpqError(
        Code.CONFLICT,
        f"The line {line.id} is a part of a bundle whose parts are billed in different periods.",
        field=f"{at}/line_id",
        parts=parts,
        sold_on={"quote_id": basis.quote_id, "version": basis.version, "line": basis.number},
        hint="In one amendment, end its parts with remove_line and add_line the bundle, or products, as they shall be. "
        "The quote and line in `sold_on` name the bundle.",
        next_call=next_call("agreement_get", agreement_id=agreement.id),
    )


def _spans(held: Sequence[Phase], start: date, change: Change, at: str) -> list[_Span]:
    """What the line sells after a change, and when."""
    spans = [_Span((phase,), _after(phase, change, at), max(phase.start, start), phase.stop) for phase in held]
    return _with_end(spans, change, at) if change.action is Action.CHANGE_TERM else spans


def _with_end(spans: Sequence[_Span], change: Change, at: str) -> list[_Span]:
    """The last run that begins before the new end goes on to it, and gives back what came after it."""
    if change.end_date is None or any(span.end is None for span in spans):
        raise bad_field(f"{at}/end_date", "change_term needs end_date, and a line with an end.")
    end, start = change.end_date + timedelta(days=1), spans[0].start
    if end <= start:
        message = "The line would end before the change; remove_line ends it on the day of the change."
        raise bad_field(f"{at}/end_date", message, minimum=start.isoformat())
    kept = [span for span in spans if span.start < end]
    rest = tuple(phase for span in spans[len(kept) :] for phase in span.held)
    return [*kept[:-1], kept[-1]._replace(held=kept[-1].held + rest, end=end)]


def _after(before: Phase, change: Change, at: str) -> Sold:
    """What a run of days sells after a change."""
    sold = before.sold
    match change.action:
        case Action.SET_QUANTITY:
            if change.commitment or is_usage(sold.selling_model):
                return sold._replace(commitment=_committed(sold, change, at))
            if change.quantity is None:
                raise bad_field(f"{at}/quantity", "set_quantity needs the new quantity.")
            return sold._replace(quantity=change.quantity)
        case Action.SWAP_PRODUCT:
            return _swapped(sold, change, at)
        case Action.CHANGE_TERM:
            return sold
        case _:
            if change.unit_price is None and change.discount_pct is None:
                raise bad_field(f"{at}/unit_price", "change_price needs unit_price with price_reason, or discount_pct.")
            if change.unit_price is not None and not change.price_reason:
                raise bad_field(f"{at}/price_reason", "A unit_price needs a price_reason.")
            return sold._replace(unit_price=change.unit_price, discount=change.discount_pct or 0)


def _committed(sold: Sold, change: Change, at: str) -> Commitment:
    """What a line that is charged by its use commits to from now on; its quantity is always 1."""
    if not is_usage(sold.selling_model):
        raise bad_field(f"{at}/commitment", f"{sold.product_id} is not charged by its use: give the quantity.")
    period, given = in_words(sold.billing_period), change.commitment
    if given is None or change.quantity not in (None, 1):
        field = f"{at}/quantity" if change.quantity is not None else f"{at}/commitment"
        raise bad_field(
            field,
            f"{sold.product_id} is charged by its use: what changes is its commitment.",
            hint=f'Give commitment {{"quantity": …, "per": "{period}"}} or {{"amount": …, "per": "{period}"}} '
            "instead of a quantity; remove_line ends it.",
        )
    if (given.quantity is None) == (given.amount is None):
        raise bad_field(f"{at}/commitment", "A commitment is a quantity or an amount, and not both.")
    if given.per == WHOLE_TERM or (given.quantity is not None and given.per not in ("", sold.billing_period)):
        raise bad_field(
            f"{at}/commitment/per", f"The commitment of a change counts for each {period}.", allowed=[period]
        )
    return given._replace(per=given.per or sold.billing_period)


def _swapped(sold: Sold, change: Change, at: str) -> Sold:
    """Another product, or another way to sell or configure the same one, at today's price."""
    if change.product_id is None:
        raise bad_field(f"{at}/product_id", "swap_product needs the new product_id.")
    quantity = change.quantity or sold.quantity
    is_same = (
        change.product_id == sold.product_id
        and change.selling_model in (None, sold.selling_model)
        and (change.attributes is None or dict(change.attributes) == dict(sold.attributes))
    )
    if is_same:
        committed = _committed(sold, change, at) if change.commitment else sold.commitment
        return sold._replace(quantity=quantity, commitment=committed)
    return sold._replace(
        product_id=change.product_id,
        quantity=quantity,
        attributes=change.attributes or {},
        selling_model=change.selling_model or "",
        basis=_TODAY,
        unit_price=None,
        discount=0,
        uplift=0,
        commitment=change.commitment,
    )


def _draft_line(
    agreement: Agreement, line: AgreementLine, span: _Span, later: Sequence[_Span], number: int, change: Change
) -> DraftLine:
    """A line at its own prices, or at today's where it sells another product."""
    before, sold, start, end = span.held[0], span.sold, span.start, span.end
    minor_unit = agreement.minor_unit
    today = [phase for phase in line.phases if phase.ends == start]
    returns = [phase.sold for phase in today if sold.basis == _TODAY and _is_return(phase.sold, sold)]
    sold = returns[-1] if returns else sold
    is_swap = sold.basis == _TODAY
    earlier = next((phase.restored for phase in today if is_continued(phase, sold, end, start)), None)
    if sold == before.sold and end == before.stop:
        earlier = before
    calendar = before.calendar
    return DraftLine(
        number,
        sold.product_id,
        sold.quantity,
        sold.discount,
        sold.attributes,
        selling_model=sold.selling_model or None,
        special=SpecialTerms(
            unit_price=sold.unit_price,
            price_reason=(change.price_reason or "as agreed") if sold.unit_price is not None else None,
            start_date=start,
            end_date=end - timedelta(days=1) if end else None,
            commitment=sold.commitment,
            agreed=AgreedLine(
                "change",
                line.id,
                name=None if is_swap else sold.product_name,
                quantity_before=str(before.sold.quantity),
                credit=sum([phase.left(start, minor_unit) for phase in span.held]),
                bound=_bound(span.held, start, agreement),
                prolongs=not is_swap and _is_later(end, span.held[-1].stop),
                anchored_on=calendar.anchor.isoformat() if calendar else None,
                left="" if is_swap else _left(span.held, start, end),
                part_periods=calendar.mode if calendar else _mode(agreement),
                until=later[0].start.isoformat() if later else None,
                basis=None if is_swap else _plain(sold.basis),
                uplift=sold.uplift,
                settled=earlier.left(start, minor_unit) if earlier is not None else None,
                settled_price=earlier.price if earlier is not None else None,
                settled_periods=_settled_periods(earlier, start, agreement) if earlier is not None else "",
                yearly_before=minor_unit.round(before.yearly),
            ),
        ),
    )


def _settled_periods(phase: Phase, start: date, agreement: Agreement) -> str:
    """For which the rest of a phase without a price of its own is worth as much in a year as all of it."""
    if phase.price is not None or not phase.value or phase.calendar is None:
        return ""
    periods = phase.left(start, agreement.minor_unit) * phase.periods / phase.value
    return str(periods) if periods else ""


def _is_later(end: date | None, before: date | None) -> bool:
    return end is not None and before is not None and end > before


def _left(held: Sequence[Phase], start: date, end: date | None) -> str:
    """What the calendar of a line has left, to its end or to another one; empty without an end."""
    last = held[-1]
    if last.calendar is None or last.stop is None or end is None:
        return ""
    periods = sum([phase.periods_from(max(phase.start, start)) for phase in held], Fraction(0))
    if end != last.stop:
        periods += last.calendar.elapsed(end) - last.calendar.elapsed(last.stop)
    length = last.calendar.length
    return Left(periods * length.months, periods * length.weeks).stored


def _is_return(earlier: Sold, asked: Sold) -> bool:
    """Whether a swap leads back to the product that the line had before, on the same day."""
    return (
        earlier.product_id == asked.product_id
        and earlier.quantity == asked.quantity
        and asked.selling_model in ("", earlier.selling_model)
        and asked.commitment in (None, earlier.commitment)
        and dict(asked.attributes) in ({}, dict(earlier.attributes))
    )


def _removed(
    agreement: Agreement, line: AgreementLine, held: Sequence[Phase], effective: date, number: int
) -> DraftLine:
    """The end of a line. What is given back of its value follows the terms of its price."""
    before, minor_unit = held[0], agreement.minor_unit
    _require_boundary(held[:1], effective)
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
        start = start if period[0] == start else min(period[1], phase.stop or phase.end)
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


def _require_boundary(held: Sequence[Phase], effective: date) -> None:
    """A line without an end changes with a billing period, so that no period is billed in part."""
    before = held[0]
    if before.calendar is None or before.end is not None:
        return
    if before.stop is not None and len(held) > 1:
        stop = before.stop.isoformat()
        message = f"A line without an end changes after its last change: from {stop} on."
        raise bad_field("/effective_date", message, minimum=stop)
    if effective <= before.start:
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
