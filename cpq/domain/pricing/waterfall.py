"""PURE. Prices a quote to the last minor unit, with its trace: the stages of the waterfall in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cpq.base.errors import CpqError, bad_field
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing.adjustments import adjust
from cpq.domain.pricing.bundles import put_together, take_apart
from cpq.domain.pricing.discounts import (
    discount_line,
    discount_quote,
    line_discount_percents,
    quote_discount_percents,
)
from cpq.domain.pricing.margin import margin, margin_with_rates, take_cost
from cpq.domain.pricing.option_surcharges import add_options
from cpq.domain.pricing.overrides import override
from cpq.domain.pricing.parts import ONCE, WHOLE_TERM, LinePrice, Part
from cpq.domain.pricing.plans import Plans, UnitCost
from cpq.domain.pricing.price_selection import PriceSelection, take_contracted_price, take_list_price
from cpq.domain.pricing.request import Line, Request, exact, largest_quantity, mean_quantity
from cpq.domain.pricing.result import PricedLine, PricedQuote, Stage, TaxGroup, new_tuple
from cpq.domain.pricing.tax import level_list_tax, tax_lines, tax_note
from cpq.domain.pricing.terms import apply_term, take_term
from cpq.domain.pricing.tiers import apply_tiers
from cpq.domain.pricing.usage import margin_of_rates, price_usage

AMOUNT_MAX = 10**18
"""A million million units, in millionths: fits the database, and a JSON number on every client."""

DIGITS_MAX = 15

OF_LINE = ("/product_id", "/ramp", "/unit_price", "/discount_amount", "/commitment")
"""Fields of an error that are about the line, not about the quote."""


def price(request: Request, selection: PriceSelection | None = None) -> PricedQuote:
    """Price a request. The same request always gives the same result, whatever the order of its lines.

    `selection` is the request's price selection, if the caller has it already.
    """
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = customer_prices(request, selection)
    discount_quote(prices, request, minor_unit)
    tax_groups = tax_lines(prices, request, minor_unit)
    lines = tuple([_priced_line(line_price, request, minor_unit) for line_price in prices])
    return _total(request, prices, lines, tax_groups, minor_unit)


def customer_prices(request: Request, selection: PriceSelection | None = None) -> list[LinePrice]:
    """The lines after all stages before the discount on the quote."""
    plans = Plans(request, selection or PriceSelection(request))
    minor_unit = MinorUnit(request.currency, request.rounding)
    return [_customer_price(line, plans, minor_unit) for line in request.lines]


def refusals(request: Request, selection: PriceSelection | None = None) -> list[CpqError]:
    """The errors of all lines that cannot be priced: `line` is the id, `field` the field of that line."""
    plans = Plans(request, selection or PriceSelection(request))
    minor_unit = MinorUnit(request.currency, request.rounding)
    refused = []
    for line in request.lines:
        try:
            _customer_price(line, plans, minor_unit)
        except CpqError as error:
            refused.append(error)
    return [error for error in refused if "line" in error.details]


class Costs(NamedTuple):
    """What is known of our costs, by line id."""

    of_lines: dict[str, int]
    margins_of_rates: dict[str, int]
    """Of lines that are charged by their use and put nothing into the total."""


def costs(request: Request, unit_cost: UnitCost) -> Costs:
    """The costs of the lines if a unit cost `unit_cost` instead of what its price says."""
    plans = Plans(request, PriceSelection(request), unit_cost)
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = [_cost_over_term(line, plans) for line in request.lines]
    rates = {price.line.id: margin_of_rates(price.line, price.plan) for price in prices if _is_open(price, request)}
    return Costs(
        {price.line.id: minor_unit.round(price.cost) for price in prices if price.cost is not None},
        {id_: known for id_, known in rates.items() if known is not None},
    )


def _is_open(price: LinePrice, request: Request) -> bool:
    """Whether it is charged by its use and puts nothing into the total; before the fifth edition nobody asked."""
    return not price.amount and not price.plan.is_plain and price.plan.row.is_usage and request.edition > 4


def _customer_price(line: Line, plans: Plans, minor_unit: MinorUnit) -> LinePrice:
    """All stages up to the line discount, which depend only on the line itself."""
    try:
        line_price = _price_over_term(line, plans)
        if line.adjustments:
            adjust(line_price)
        if line.override is not None or line_price.own is not None:
            override(line_price)
        discount_line(line_price, minor_unit)
    except CpqError as error:
        if error.details.get("field") in OF_LINE or (line.term and error.details.get("field") == "/end_date"):
            error.details["line"] = line.id
        raise
    return line_price


def _price_over_term(line: Line, plans: Plans) -> LinePrice:
    """Stages 1 to 5, for a bundle or a ramp part by part."""
    plan = plans.of(line.priced_as or line.product_id, line.selling_model, line.term)
    if not line.ramp and plan.is_plain and not (line.chosen and line.charged):
        quantity = line.quantity
        # Most quantities are whole, and a call would take as long as a stage.
        line_price = LinePrice(line, plan, quantity if type(quantity) is int else exact(quantity), line.choices)
        _run_stages(line_price, plans)
        return line_price
    if plan.row.is_usage and not line.charged:
        return price_usage(line, plan)
    contents = take_apart(line, plans)
    for part in (*contents.own, *contents.inside):
        _run_stages(part, plans)
    return put_together(line, plan, contents)


def _cost_over_term(line: Line, plans: Plans) -> LinePrice:
    """`_price_over_term` as far as our cost depends on it: that of most lines depends on no stage but the term."""
    plan = plans.of(line.price_key, line.selling_model, line.term)
    if line.ramp or line.choices or line.charged or plan.shares_free_units or not plan.is_plain:
        return _price_over_term(line, plans)
    part = LinePrice(line, plan, exact(line.quantity), line.choices)
    if plan.term is not ONCE or not plan.is_like_list:
        take_term(part)
    take_cost(part, plans.counts)
    return part


def _run_stages(part: Part, plans: Plans) -> None:
    """Stages 1 to 5, and our cost for stage 10. A stage without effect on the product is skipped."""
    plan = part.plan
    if plan.shares_free_units:
        part.among = plans.counts.once(plan.product_id)
    take_list_price(part)
    if plan.is_contracted:
        take_contracted_price(part)
    if plan.row.tier_mode != "none":
        apply_tiers(part, plans.counts)
    if part.choices:
        add_options(part)
    if plan.term is not ONCE or part.segment is not WHOLE_TERM or not plan.is_like_list:
        apply_term(part)
    if not plan.is_like_list:
        level_list_tax(part, plans.request)
    take_cost(part, plans.counts)


def _priced_line(line_price: LinePrice, request: Request, minor_unit: MinorUnit) -> PricedLine:
    """Stage 10, and the line as stored: what is sold. What it gives back comes off the total, and is its last step."""
    line, plan = line_price.line, line_price.plan
    ramp = line.ramp
    if line.credit:
        line_price.note(Stage.CREDIT, line_price.net - line.credit, "agreement", line.credit)
    discount, discount_off_list = line_discount_percents(line_price, request)
    cost = None if line_price.cost is None else minor_unit.round(line_price.cost)
    is_open = not line_price.amount and _is_open(line_price, request)
    fields = (
        line.id,
        line.product_id,
        largest_quantity(line.quantity, ramp) if ramp else line.quantity,
        line_price.list_amount,
        line_price.regular,
        line_price.net,
        discount,
        discount_off_list,
        cost,
        margin_of_rates(line, plan) if is_open else margin(line_price.net, cost),
        plan.billing_period,
        plan.tax_category,
        line_price.steps,
        mean_quantity(line.quantity, ramp) if ramp else None,
    )
    return new_tuple(PricedLine, fields)


def _total(
    request: Request,
    prices: Sequence[LinePrice],
    lines: tuple[PricedLine, ...],
    tax_groups: tuple[TaxGroup, ...],
    minor_unit: MinorUnit,
) -> PricedQuote:
    """The totals of the lines. One unknown cost makes the cost of the quote unknown."""
    credit = sum([one.credit for one in request.lines])
    subtotal, net = sum([one.regular for one in prices]) - credit, sum([one.net for one in prices]) - credit
    tax = sum([group.tax for group in tax_groups])
    costs = [line.cost for line in lines if line.cost is not None]
    cost = sum(costs) if len(costs) == len(lines) else None
    _check_size(minor_unit, subtotal + tax, sum([one.list_amount for one in prices]), sum(costs))
    discount, discount_off_list = quote_discount_percents(prices, request)
    return PricedQuote(
        currency=request.currency,
        lines=lines,
        subtotal=subtotal,
        discount_total=subtotal - net,
        tax_total=tax,
        total=net + tax,
        tax_groups=tax_groups,
        tax_note=tax_note(request, tax_groups),
        discount=discount,
        discount_off_list=discount_off_list,
        cost=cost,
        margin=_margin(prices, lines, request, net + credit, cost),
    )


def _margin(
    prices: Sequence[LinePrice], lines: Sequence[PricedLine], request: Request, net: int, cost: int | None
) -> int | None:
    both = zip(prices, lines, strict=True)
    rates = [line.margin for price, line in both if not price.amount and _is_open(price, request)]
    return margin_with_rates(net, cost, rates, is_all_use=len(rates) == len(lines)) if rates else margin(net, cost)


def _check_size(minor_unit: MinorUnit, *amounts: int) -> None:
    if max(amounts) > min(AMOUNT_MAX, 10**DIGITS_MAX * minor_unit.size - minor_unit.size):
        raise bad_field(
            "/line_items",
            "The quote's amount is larger than the maximum.",
            maximum=AMOUNT_MAX // 10**6,
            hint="Split it into several quotes, or check the quantities.",
        )
