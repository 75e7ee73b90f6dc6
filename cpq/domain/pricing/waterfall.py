"""PURE. The price of a quote, to the last minor unit, with the steps that led to it: one computation for both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from cpq.base.errors import CpqError, bad_field
from cpq.base.money import split_units
from cpq.domain.pricing.adjustments import adjust
from cpq.domain.pricing.bundles import compose
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, Request, mean_quantity
from cpq.domain.pricing.result import PricedLine, PricedQuote, Step, TaxGroup
from cpq.domain.pricing.stages import Part, Prices, nearest, new_tuple
from cpq.domain.pricing.tax import MinorUnit, TaxTable

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

SQUARE = ONE_HUNDRED_PERCENT**2
"""The whole, where a line discount and the quote's are multiplied."""

OF_LINE = ("/product_id", "/ramp")
"""Fields of a refusal that are about the line at hand, and not about the quote."""

FINE = 10**12
"""Parts of a millionth to which amounts are cut before their discount is told, so it is right to the last digit."""


def price(request: Request) -> PricedQuote:
    """Price a gathered request. The same request gives the same answer for ever, whatever the order of its lines."""
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = Prices(request)
    bills = [_bill(prices, minor_unit, line) for line in request.lines]
    shares = _quote_discount(request, minor_unit, bills)
    taxes = TaxTable(_rates(request), request.tax_rounding, minor_unit)
    totals = Totals()
    lines = _finish(request, minor_unit, taxes, bills, shares, totals)
    return _add_up(request, minor_unit, lines, totals, taxes.groups())


def refusals(request: Request) -> list[CpqError]:
    """Why single lines cannot be priced, for all of them at once: `line` is the id, `field` the line's own field."""
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = Prices(request)
    refused = []
    for line in request.lines:
        try:
            _bill(prices, minor_unit, line)
        except CpqError as error:
            refused.append(error)
    return [error for error in refused if "line" in error.details]


def _bill(prices: Prices, minor_unit: MinorUnit, line: Line) -> Part:
    """Everything a line's amount owes to the line alone, up to the customer price, where it is rounded."""
    id_, product_id, quantity, discount, choices, ramp, adjustments = line
    try:
        plan = prices.plan(product_id)
        if ramp or plan.components:
            bill = compose(prices, line)
        else:
            bill = Part(plan, quantity, choices)
            for stage in plan.stages:
                stage(prices, bill)
    except CpqError as error:
        if error.details.get("field") in OF_LINE:
            error.details["line"] = id_
        raise
    if adjustments:
        exact, listed = Fraction(bill.numerator, bill.denominator), Fraction(bill.listed, bill.listed_below)
        exact, adjusted = adjust(adjustments, Fraction(*mean_quantity(quantity, ramp)), exact, listed)
        bill.numerator, bill.denominator = exact.numerator, exact.denominator
        bill.steps += tuple(adjusted)
    numerator, denominator = bill.numerator, bill.denominator
    customer = bill.regular = minor_unit.round(numerator, denominator)
    if discount:
        kept = ONE_HUNDRED_PERCENT - discount
        customer = minor_unit.round(numerator * kept, denominator * ONE_HUNDRED_PERCENT)
    bill.customer = customer
    if discount or customer != bill.steps[-1][1]:
        bill.steps += (new_tuple(Step, ("line discount", customer, "discount_pct", discount, "")),)
    return bill


def _quote_discount(request: Request, minor_unit: MinorUnit, bills: Sequence[Part]) -> list[int]:
    """The requested discount off the sum of the lines, rounded once, and each line's share of it."""
    if not request.requested_discount:
        return [0] * len(bills)
    size = minor_unit.size
    customers = [bill.customer for bill in bills]
    whole = minor_unit.round(sum(customers) * request.requested_discount, ONE_HUNDRED_PERCENT)
    # Of equal claims to a last cent the first wins, so the order is by what the lines are, not by where they stand.
    shares = split_units(whole // size, customers, order=lambda index: _identity(request.lines[index]))
    return [share * size for share in shares]


def _identity(line: Line) -> tuple[object, ...]:
    """What a line is; its id comes last, so that it tells only lines apart that are otherwise the same."""
    return (
        line.product_id,
        line.quantity,
        line.discount,
        sorted(line.choices.items()),
        str(line.ramp),
        str(line.adjustments),
        line.id,
    )


def _rates(request: Request) -> Mapping[str, int]:
    """What the account pays: nothing when it is exempt or when the tax is its own to declare."""
    return request.tax_rates if request.tax_status == "taxable" else defaultdict(int)


class Totals:
    """What the lines come to; added up on the way, because a second walk through a long quote costs a tenth."""

    __slots__ = ("cost", "customer", "has_unknown_cost", "list_amount", "listed", "net", "regular", "subtotal")

    def __init__(self) -> None:
        self.subtotal = self.net = self.list_amount = self.cost = 0
        self.has_unknown_cost = False
        self.regular = self.customer = self.listed = 0
        """Unrounded, in parts of a millionth: rounding of amounts has no part in the quote's discount."""


def _finish(
    request: Request,
    minor_unit: MinorUnit,
    taxes: TaxTable,
    bills: Sequence[Part],
    shares: Sequence[int],
    totals: Totals,
) -> tuple[PricedLine, ...]:
    """What the quote does to its lines: their shares of the discount, their taxes, their margins."""
    asked, is_document, rounded = request.requested_discount, request.tax_rounding == "document", minor_unit.round
    lines: list[PricedLine] = []
    subtotal = nets = list_amount = costs = regular = customer = all_listed = 0
    for line, bill, share in zip(request.lines, bills, shares, strict=True):
        id_, product_id, quantity, line_discount, _, ramp, _ = line
        plan, listed, net = bill.plan, bill.regular, bill.customer - share
        numerator, denominator, cost = bill.numerator, bill.denominator, bill.cost
        # The exact regular price times this is what the line comes to, unrounded.
        kept = ONE_HUNDRED_PERCENT - line_discount
        amount = numerator * FINE if denominator == 1 else numerator * FINE // denominator
        regular += amount
        customer += amount * kept
        kept *= ONE_HUNDRED_PERCENT - asked
        discount = off_list = ONE_HUNDRED_PERCENT - kept // ONE_HUNDRED_PERCENT
        if bill.listed != numerator or bill.listed_below != denominator:
            listed = rounded(bill.listed, bill.listed_below)
            off_list = _percent_off(bill.listed * denominator, numerator * bill.listed_below * kept)
            amount = bill.listed * FINE // bill.listed_below
        all_listed += amount
        if share:
            bill.steps += (new_tuple(Step, ("quote discount", net, "requested_discount_pct", asked, "")),)
        if plan.is_tax_included:
            net, listed = _take_tax_out(request, minor_unit, taxes, bill, net, listed)
        elif bill.taxed:
            _tax_mixed(taxes, minor_unit, bill, net)
        else:
            taxes.add(plan.tax_category, net)
        if is_document and not plan.is_tax_included:
            _tax_unrounded(taxes, bill, numerator * kept, denominator * SQUARE)
        if cost is None:
            totals.has_unknown_cost = True
        else:
            cost = rounded(cost, bill.cost_below)
            costs += cost
        subtotal += bill.regular
        nets += net
        list_amount += listed
        mean = mean_quantity(quantity, ramp) if ramp else None
        rest = (_margin(net, cost), plan.billing_period, plan.tax_category, bill.steps, mean)
        known = (id_, product_id, bill.quantity, listed, bill.regular, net, discount, off_list, cost, *rest)
        lines.append(new_tuple(PricedLine, known))
    totals.subtotal, totals.net, totals.list_amount, totals.cost = subtotal, nets, list_amount, costs
    totals.regular, totals.customer, totals.listed = regular, customer, all_listed
    return tuple(lines)


def _take_tax_out(
    request: Request, minor_unit: MinorUnit, taxes: TaxTable, bill: Part, gross: int, listed: int
) -> tuple[int, int]:
    """Net and list amount without the tax that is in them, and the regular price likewise."""
    category, is_taxable = bill.plan.tax_category, request.tax_status == "taxable"
    rate = request.tax_rates[category]
    net, bill.regular, listed = (
        minor_unit.round(amount * ONE_HUNDRED_PERCENT, ONE_HUNDRED_PERCENT + rate)
        for amount in (gross, bill.regular, listed)
    )
    taxes.add_inside(category, net, gross - net if is_taxable else 0)
    bill.steps += (Step("tax", net, f"{category}, included", rate),)
    return net, listed


def _tax_mixed(taxes: TaxTable, minor_unit: MinorUnit, bill: Part, net: int) -> None:
    """A bundle's amount belongs to several tax categories, to each by the weight of its parts."""
    shares = split_units(net // minor_unit.size, [weight for _, weight in bill.taxed])
    for (category, _), share in zip(bill.taxed, shares, strict=True):
        taxes.add(category, share * minor_unit.size)


def _tax_unrounded(taxes: TaxTable, bill: Part, numerator: int, denominator: int) -> None:
    weights = bill.taxed or ((bill.plan.tax_category, 1),)
    below = denominator * sum([weight for _, weight in weights])
    for category, weight in weights:
        taxes.add_unrounded(category, numerator * weight, below)


def _percent_off(before: int, after: int) -> int:
    """By how many percent `after`, whose whole is `SQUARE`, is below `before`; negative when it is above."""
    return 0 if before == 0 else ONE_HUNDRED_PERCENT - after // (before * ONE_HUNDRED_PERCENT)


def _margin(net: int, cost: int | None) -> int | None:
    """In millionths of a percent, rounded down; unknown without a cost, and for what is given away."""
    return None if cost is None or net == 0 else (net - cost) * ONE_HUNDRED_PERCENT // net


def _add_up(
    request: Request,
    minor_unit: MinorUnit,
    lines: tuple[PricedLine, ...],
    totals: Totals,
    groups: tuple[TaxGroup, ...],
) -> PricedQuote:
    subtotal, net = totals.subtotal, totals.net
    tax = sum([group.tax for group in groups])
    cost = None if totals.has_unknown_cost else totals.cost
    largest = max(subtotal + tax, totals.list_amount, totals.cost)
    if largest > min(AMOUNT_MAX, 10**DIGITS_MAX * minor_unit.size - minor_unit.size):
        raise _too_large()
    # Against the regular prices, and against list.
    kept = totals.customer * (ONE_HUNDRED_PERCENT - request.requested_discount)
    return PricedQuote(
        request.currency,
        lines,
        subtotal,
        subtotal - net,
        tax,
        net + tax,
        groups,
        request.tax_note if request.tax_status != "taxable" else None,
        _rest(kept, totals.regular),
        _rest(kept, totals.listed),
        cost,
        _margin(net, cost),
    )


def _rest(kept: int, before: int) -> int:
    return ONE_HUNDRED_PERCENT - nearest(kept, before * ONE_HUNDRED_PERCENT) if before else 0


def _too_large() -> CpqError:
    return bad_field(
        "/line_items",
        "The quote comes to more than an amount of money can be.",
        maximum=AMOUNT_MAX // 10**6,
        hint="Split it into several quotes, or check the quantities.",
    )
