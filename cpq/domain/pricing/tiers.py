"""PURE. Stage 3, tier: the charge for a quantity by volume, graduated or package prices."""

from __future__ import annotations

from cpq.base.rounding import Exact, divide, written
from cpq.domain.pricing.parts import Part
from cpq.domain.pricing.quantities import Counts
from cpq.domain.pricing.request import PriceRow
from cpq.domain.pricing.result import Stage

TIER = Stage.TIER


def apply_tiers(part: Part, counts: Counts) -> None:
    """Stage 3: the charge by tiers. Counted over the quote, a line bears its quantity's share of the whole charge."""
    row, quantity = part.plan.row, part.quantity
    counted = counted_quantity(part, row, counts)
    part.amount = charge(row, counted, part.among)
    if counted != quantity:
        part.amount = divide(part.amount * quantity, counted)
        part.divisor = 1 if isinstance(part.amount, int) else counted.numerator
    if counted.denominator == 1:
        part.note(TIER, part.amount, row.tier_mode, counted.numerator)
    else:  # The value of a step is whole.
        part.note(TIER, part.amount, f"{row.tier_mode}, {written(counted)} units", None)


def charge(row: PriceRow, quantity: Exact, among: Exact | None = None) -> Exact:
    """The charge for a quantity by the row's own tiers; free units are shared `among` these."""
    if row.tier_mode == "volume":
        return _volume_charge(row, quantity)
    if row.tier_mode == "graduated":
        return _graduated_charge(row, quantity)
    return row.unit_price * times_charged(row, quantity, among)


def _volume_charge(row: PriceRow, quantity: Exact) -> Exact:
    """The whole quantity at the price of the tier it reaches."""
    for up_to, unit_price, flat_fee in row.tiers:
        if up_to is None or quantity <= up_to:
            return unit_price * quantity + flat_fee
    raise AssertionError("the last tier is open")


def _graduated_charge(row: PriceRow, quantity: Exact) -> Exact:
    """Each unit at the price of its tier, plus the flat fee of each tier that is reached."""
    amount: Exact = 0
    low = 0
    for up_to, unit_price, flat_fee in row.tiers:
        if up_to is None or quantity <= up_to:
            return amount + (quantity - low) * unit_price + flat_fee
        amount += (up_to - low) * unit_price + flat_fee
        low = up_to
    raise AssertionError("the last tier is open")


def times_charged(row: PriceRow, quantity: Exact, among: Exact | None = None) -> Exact:
    """How many times the unit price is charged: once per unit, or per package, rounded up.

    `among` are the units of the quote that share the free ones by their quantities, so that more lines get no more of
    them; without it all are the quantity's own.
    """
    if row.package_size is None:
        return quantity
    free: Exact = row.free_quantity if among is None else divide(row.free_quantity * quantity, among)
    return -(-max(0, quantity - free) // row.package_size)


def counted_quantity(part: Part, row: PriceRow, counts: Counts) -> Exact:
    """The quantity that decides the tier: the line's, or that of all lines with the product in the same months."""
    if row.quantity_scope == "line":
        return part.quantity
    plan = part.plan
    if plan.row.billing_period == "one_time":
        return counts.once(plan.product_id)
    months, term = part.segment.months, part.line.term
    span = (part.offset, part.offset + months) if months else counts.whole(term)
    return counts.during(plan.product_id, span, term)
