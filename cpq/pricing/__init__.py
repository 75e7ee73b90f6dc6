"""PURE. The price of a quote, to the last minor unit, with the steps that led to it: one computation for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cpq.errors import CpqError, bad_field
from cpq.money import split_units
from cpq.pricing.request import ONE_HUNDRED_PERCENT, Line, Request
from cpq.pricing.result import PricedLine, PricedQuote, Step, TaxGroup
from cpq.pricing.tax import MinorUnit, TaxTable
from cpq.pricing.waterfall import WHOLE_TERM, Part, Prices, adjust, nearest

__all__ = ["AMOUNT_MAX", "WATERFALL", "PricedLine", "PricedQuote", "Request", "Step", "price"]

WATERFALL = (
    "list",
    "contracted",
    "tier",
    "options",
    "term",
    "adjustment",
    "line discount",
    "quote discount",
    "tax",
    "cost and margin",
)
"""The order of the stages. Each that acts on a line's amount is a step of its trace."""

AMOUNT_MAX = 10**18
"""A million million units, in millionths: what the database holds and a JSON number carries to every client."""

DIGITS_MAX = 15


def price(request: Request) -> PricedQuote:
    """Price a gathered request. The same request gives the same answer for ever, whatever the order of its lines."""
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = Prices(request)
    bills = [_bill(prices, minor_unit, line) for line in request.lines]
    shares = _quote_discount(request, minor_unit, bills)
    taxes = TaxTable(_rates(request), request.tax_rounding, minor_unit)
    lines = tuple(_finish(request, minor_unit, taxes, bill, share) for bill, share in zip(bills, shares, strict=True))
    return _add_up(request, minor_unit, bills, lines, taxes.groups())


class _Bill(NamedTuple):
    """A line between its own stages and those of the quote. The regular price is still an exact fraction."""

    line: Line
    steps: list[Step]
    listed: int
    numerator: int
    denominator: int
    customer: int
    cost: int | None
    billing_period: str
    includes_tax: bool
    taxed: tuple[tuple[str, int], ...]
    """Tax categories with their weights; more than one only for a bundle."""


def _bill(prices: Prices, minor_unit: MinorUnit, line: Line) -> _Bill:
    """Everything a line's amount owes to the line alone."""
    if line.ramp or prices.request.products[line.product_id].components:
        parts, steps, numerator, denominator = _compose(prices, line)
        billing_period = _common(part.row.billing_period for part in parts)
        taxed = _tax_weights(parts)
        listed = sum(part.listed_amount for part in parts)
        costs = [part.cost for part in parts]
        cost = None if None in costs else sum(filter(None, costs))
    else:
        part = Part(line, line.product_id, line.quantity, WHOLE_TERM, "")
        prices.run(part, line)
        parts, steps, numerator, denominator = [part], part.steps, part.numerator, part.denominator
        billing_period, listed, cost = part.row.billing_period, part.listed_amount, part.cost
        taxed = ((part.row.tax_category, 1),)
    if line.adjustments:
        numerator, denominator, adjusted = adjust(line.adjustments, line.quantity, numerator, denominator, listed)
        steps += adjusted
    customer = minor_unit.round(numerator * (ONE_HUNDRED_PERCENT - line.discount), denominator * ONE_HUNDRED_PERCENT)
    if line.discount or customer != steps[-1].amount:
        steps.append(Step("line discount", customer, "discount_pct", line.discount))
    includes_tax = parts[0].row.tax_included
    return _Bill(line, steps, listed, numerator, denominator, customer, cost, billing_period, includes_tax, taxed)


def _compose(prices: Prices, line: Line) -> tuple[list[Part], list[Step], int, int]:
    """A bundle that is priced by its components, a ramp of segments, or a bundle on a ramp."""
    product = prices.request.products[line.product_id]
    parts: list[Part] = []
    numerator, denominator = 0, 1
    for position, segment in enumerate(line.ramp or (WHOLE_TERM,), 1):
        quantity = segment.quantity or line.quantity
        when = f"segment {position}" if line.ramp else ""
        parts.append(Part(line, line.product_id, quantity, segment, when))
        for component in product.components:
            name = f"{when} {component.product_id}".strip()
            parts.append(Part(line, component.product_id, quantity * component.quantity, segment, name))
    for part in parts:
        prices.run(part, line)
        if product.bundle_discount and part.product_id != line.product_id:
            part.numerator *= ONE_HUNDRED_PERCENT - product.bundle_discount
            part.denominator *= ONE_HUNDRED_PERCENT
        numerator = numerator * part.denominator + part.numerator * denominator
        denominator *= part.denominator
    steps = [step for part in parts for step in part.steps]
    stage_name, off = ("options", product.bundle_discount) if product.components else ("term", None)
    steps.append(Step(stage_name, nearest(numerator, denominator), "bundle" if product.components else "ramp", off))
    return parts, steps, numerator, denominator


def _common(words: Iterable[str]) -> str:
    found = set(words)
    return found.pop() if len(found) == 1 else "mixed"


def _tax_weights(parts: Sequence[Part]) -> tuple[tuple[str, int], ...]:
    weights: dict[str, int] = {}
    for part in parts:
        amount = nearest(part.numerator, part.denominator)
        weights[part.row.tax_category] = weights.get(part.row.tax_category, 0) + amount
    if len({part.row.tax_included for part in parts}) > 1 or (parts[0].row.tax_included and len(weights) > 1):
        named = parts[0].product_id
        raise bad_field("/line_items", f"The prices of the components of {named} do not all treat tax alike.")
    return tuple(sorted((name, weight) for name, weight in weights.items() if weight)) or ((next(iter(weights)), 1),)


def _quote_discount(request: Request, minor_unit: MinorUnit, bills: Sequence[_Bill]) -> list[int]:
    """The requested discount off the sum of the lines, rounded once, and each line's share of it."""
    if not request.requested_discount:
        return [0] * len(bills)
    size = minor_unit.size
    whole = minor_unit.round(sum(bill.customer for bill in bills) * request.requested_discount, ONE_HUNDRED_PERCENT)
    # Of equal claims to a last cent the first wins, so the order is by what the lines are, not by where they stand.
    order = sorted(range(len(bills)), key=list(map(_content, bills)).__getitem__)
    shares = [0] * len(bills)
    for index, share in zip(order, split_units(whole // size, [bills[i].customer // size for i in order]), strict=True):
        shares[index] = share * size
    return shares


def _content(bill: _Bill) -> tuple[str, int, int, int, str]:
    line = bill.line
    return (
        line.product_id,
        line.quantity,
        line.discount,
        bill.customer,
        str(sorted(line.choices.items())) if line.choices else "",
    )


def _rates(request: Request) -> dict[str, int]:
    """What the account pays: nothing when it is exempt or when the tax is its own to declare."""
    is_taxable = request.tax_status == "taxable"
    return {category: rate if is_taxable else 0 for category, rate in request.tax_rates.items()}


def _finish(request: Request, minor_unit: MinorUnit, taxes: TaxTable, bill: _Bill, share: int) -> PricedLine:
    """What the quote does to a line: its share of the discount, its tax, its margin."""
    line, steps = bill.line, bill.steps
    # A line's customer price times this is what it comes to, unrounded; numerator and denominator.
    kept = (ONE_HUNDRED_PERCENT - line.discount) * (ONE_HUNDRED_PERCENT - request.requested_discount)
    regular = minor_unit.round(bill.numerator, bill.denominator)
    net = bill.customer - share
    if share:
        steps.append(Step("quote discount", net, "requested_discount_pct", request.requested_discount))
    if bill.includes_tax:
        category, rate = bill.taxed[0][0], request.tax_rates[bill.taxed[0][0]]
        gross, net = net, minor_unit.round(net * ONE_HUNDRED_PERCENT, ONE_HUNDRED_PERCENT + rate)
        regular = minor_unit.round(regular * ONE_HUNDRED_PERCENT, ONE_HUNDRED_PERCENT + rate)
        taxes.add_inside(category, net, gross - net if request.tax_status == "taxable" else 0)
        steps.append(Step("tax", net, f"{category}, included", rate))
    elif len(bill.taxed) == 1:
        taxes.add(bill.taxed[0][0], net, bill.numerator * kept, bill.denominator * ONE_HUNDRED_PERCENT**2)
    else:
        weights = [weight for _, weight in bill.taxed]
        parts = split_units(net // minor_unit.size, weights)
        below = bill.denominator * ONE_HUNDRED_PERCENT**2 * sum(weights)
        for (category, weight), part in zip(bill.taxed, parts, strict=True):
            taxes.add(category, part * minor_unit.size, bill.numerator * kept * weight, below)
    cost = None if bill.cost is None else minor_unit.round(bill.cost, 1)
    return PricedLine(
        line.id,
        line.product_id,
        line.quantity,
        bill.listed,
        regular,
        net,
        ONE_HUNDRED_PERCENT - kept // ONE_HUNDRED_PERCENT,
        _percent_off(bill.listed * bill.denominator * ONE_HUNDRED_PERCENT**2, bill.numerator * kept),
        cost,
        _margin(net, cost),
        bill.billing_period,
        bill.taxed[0][0] if len(bill.taxed) == 1 else "mixed",
        tuple(steps),
    )


def _percent_off(before: int, after: int) -> int:
    """By how many percent `after` is below `before`, in millionths; negative when it is above."""
    return 0 if before == 0 else ONE_HUNDRED_PERCENT - after * ONE_HUNDRED_PERCENT // before


def _margin(net: int, cost: int | None) -> int | None:
    """In millionths of a percent, rounded down; unknown without a cost, and for what is given away."""
    return None if cost is None or net == 0 else (net - cost) * ONE_HUNDRED_PERCENT // net


def _add_up(
    request: Request,
    minor_unit: MinorUnit,
    bills: Sequence[_Bill],
    lines: tuple[PricedLine, ...],
    groups: tuple[TaxGroup, ...],
) -> PricedQuote:
    subtotal = sum(line.regular for line in lines)
    net = sum(line.net for line in lines)
    tax = sum(group.tax for group in groups)
    if subtotal + tax > min(AMOUNT_MAX, 10**DIGITS_MAX * minor_unit.size - minor_unit.size):
        raise _too_large()
    costs = [line.cost for line in lines]
    cost = None if None in costs else sum(filter(None, costs))
    return PricedQuote(
        request.currency,
        lines,
        subtotal,
        subtotal - net,
        tax,
        net + tax,
        groups,
        request.tax_note if request.tax_status != "taxable" else None,
        *_discounts(request, bills),
        cost,
        _margin(net, cost),
    )


def _discounts(request: Request, bills: Sequence[_Bill]) -> tuple[int, int]:
    """The quote's discount against the regular prices, and against list. Rounding of amounts has no part in them."""
    scale = 10**6
    regular = sum(bill.numerator * scale // bill.denominator for bill in bills)
    customer = sum(
        bill.numerator * scale * (ONE_HUNDRED_PERCENT - bill.line.discount) // (bill.denominator * ONE_HUNDRED_PERCENT)
        for bill in bills
    )
    kept = customer * (ONE_HUNDRED_PERCENT - request.requested_discount)
    listed = sum(bill.listed for bill in bills) * scale
    return tuple(ONE_HUNDRED_PERCENT - nearest(kept, before) if before else 0 for before in (regular, listed))  # type: ignore[return-value] # Two of them.


def _too_large() -> CpqError:
    return bad_field(
        "/line_items",
        "The quote comes to more than an amount of money can be.",
        maximum=AMOUNT_MAX // 10**6,
        hint="Split it into several quotes, or check the quantities.",
    )
