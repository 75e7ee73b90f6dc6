"""PURE. Lines with several prices: bundles priced by their components, ramps of segments, and both at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.rounding import Exact, added, divide
from cpq.domain.pricing.overrides import own_prices
from cpq.domain.pricing.parts import WHOLE_TERM, LinePrice, Part, Plan
from cpq.domain.pricing.plans import Plans, agreed, usage_of_bundle
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Component, Line, Segment, exact, largest_quantity
from cpq.domain.pricing.result import MIXED, Stage


@dataclass
class Contents:
    """The parts of a line: its own price and its components, once for each segment of its ramp."""

    own: list[Part] = field(default_factory=list)
    inside: list[Part] = field(default_factory=list)
    charged: list[Part] = field(default_factory=list)
    """The parts whose sum is the line's price: a price agreed for the bundle replaces the prices of the components that
    each of it has, not of those that the buyer chose."""


def take_apart(line: Line, plans: Plans) -> Contents:
    """The parts of a bundle or a ramp, each to be priced separately."""
    plan = plans.of(line.price_key, line.selling_model, line.term)
    if plan.row.is_usage:
        raise usage_of_bundle(plan.product_id)
    _check_ramp(plan, line)
    components = [(_component(plans, plan, component, line), component.quantity) for component in plan.components]
    chosen = [(_component(plans, plan, component, line), component.quantity) for component in line.charged]
    contents = Contents()
    offset = 0
    for position, segment in enumerate(line.ramp or (WHOLE_TERM,), 1):
        name = f"segment {position}" if line.ramp else ""
        own = _parts(line, plan, 1, segment, offset, name)
        inside = [part for found, each in components for part in _parts(line, found, each, segment, offset, name)]
        added = [part for found, each in chosen for part in _parts(line, found, each, segment, offset, name)]
        contents.own += own
        contents.inside += inside + added
        is_agreed = plan.is_contracted or segment.unit_price is not None
        contents.charged += own + added if is_agreed else own + inside + added
        offset += segment.months
    return contents


def put_together(line: Line, plan: Plan, contents: Contents) -> LinePrice:
    """The whole line after its parts are priced: their sum, their steps, and a last step with that sum.

    A price agreed for the bundle changes neither the list prices nor the costs of its components.
    """
    own, inside, charged = contents.own, contents.inside, contents.charged
    if plan.bundle_discount:
        for part in inside:
            part.amount = divide(part.amount * (ONE_HUNDRED_PERCENT - plan.bundle_discount), ONE_HUNDRED_PERCENT)
    cost = _cost_of_bundle(own, inside) if plan.components else _sum_of_costs(own + inside)
    amount, listed = added([part.amount for part in charged]), _sum_of_lists(own + inside)
    whole = LinePrice(
        line,
        plan,
        exact(largest_quantity(line.quantity, line.ramp)),
        line.choices,
        amount=max(0, amount),
        listed=max(0, listed),
        cost=None if cost is None else max(0, cost),
        divisor=amount.denominator,
        listed_divisor=listed.denominator,
        steps=tuple([step for part in (*own, *inside) for step in part.steps]),
    )
    whole.own = own_prices(charged) if line.ramp else None
    _settle_tax(whole, charged)
    _note_sum(whole)
    return whole


def _check_ramp(plan: Plan, line: Line) -> None:
    is_agreed = plan.is_contracted or any(segment.unit_price is not None for segment in line.ramp)
    if line.ramp and plan.row.billing_period == "one_time" and (is_agreed or not plan.components):
        message = f"{line.product_id} has a one-time price, and a ramp is for prices that recur."
        raise bad_field("/ramp", message, hint="Leave the ramp out, or split the quantity into lines.")
    if plan.components and any(segment.override is not None for segment in line.ramp):
        message = f"{line.product_id} is priced by its parts, and a segment of its ramp takes no price for all of them."
        raise bad_field("/ramp", message, hint="Give discount_pct in the segment instead.")
    _refuse_ramp_without_end(plan, line)


def _refuse_ramp_without_end(plan: Plan, line: Line) -> None:
    if line.ramp and plan.row.is_evergreen:
        message = f"{plan.product_id} is sold without an end, and a ramp divides a term."
        raise bad_field("/ramp", message, hint="Leave the ramp out, or pick a selling model with a term.")


def _component(plans: Plans, plan: Plan, component: Component, line: Line) -> Plan:
    found = plans.of(component.product_id, line.part_models.get(component.product_id, ""), line.term)
    _refuse_ramp_without_end(found, line)
    if found.row.is_usage:
        raise CpqError(
            Code.CONFLICT,
            f"{plan.product_id} contains {found.product_id}, which is charged by its use.",
            field="/product_id",
            hint=f"Sell {found.product_id} on a line of its own, and take it out of {plan.product_id}.",
        )
    if found.components:
        raise CpqError(
            Code.CONFLICT,
            f"{plan.product_id} contains {found.product_id}, which is itself priced by its components.",
            field="/product_id",
            hint=f"Give {found.product_id} a price of its own, or put its components into {plan.product_id}.",
        )
    return found


def _parts(line: Line, plan: Plan, each: int, segment: Segment, offset: int, name: str) -> list[Part]:
    """A product in one segment. A one-time price is charged in the first, for the largest quantity of the line."""
    is_own = plan.product_id == line.price_key
    quantity = exact(segment.quantity or line.quantity)
    if line.ramp and plan.row.billing_period == "one_time":
        if offset:
            return []
        segment, name, quantity = WHOLE_TERM, "", exact(largest_quantity(line.quantity, line.ramp))
    if not is_own:
        name = f"{name} {plan.product_id}".strip()
    elif segment.unit_price is not None:
        plan = agreed(plan, segment.unit_price)
    return [Part(line, plan, quantity * each, line.choices if is_own else {}, segment, offset, name)]


def _sum_of_lists(parts: Iterable[Part]) -> Exact:
    return added([part.listed for part in parts])


def _sum_of_costs(parts: Iterable[Part]) -> Exact | None:
    costs = [part.cost for part in parts]
    known = [cost for cost in costs if cost is not None]
    return added(known) if len(known) == len(costs) else None


def _cost_of_bundle(own: Iterable[Part], inside: Iterable[Part]) -> Exact | None:
    """The cost of the components, and for the bundle's own options the same share of their price."""
    cost, options, before = _sum_of_costs(inside), _sum_of_lists(own), _sum_of_lists(inside)
    if cost is None or not options:
        return cost
    return Fraction(cost * (before + options)) / before if before else None


def _settle_tax(whole: LinePrice, charged: Sequence[Part]) -> None:
    """Take tax and period from the parts with an amount, which must all treat tax alike."""
    taxed = [part for part in charged if part.amount] or charged[:1]
    names = sorted({part.plan.tax_category for part in taxed})
    weights: dict[str, Exact] = dict.fromkeys(names, 0)
    if len(names) > 1:
        weights = {name: added([part.amount for part in taxed if part.plan.tax_category == name]) for name in names}
        weights = {name: weight for name, weight in weights.items() if weight > 0} or weights
    is_included = {part.plan.is_tax_included for part in taxed}
    if len(is_included) > 1 or (len(weights) > 1 and True in is_included):
        named = whole.plan.product_id
        raise bad_field("/product_id", f"The prices of the components of {named} do not all treat tax alike.")
    terms = {part.term for part in taxed}
    whole.has_one_term, whole.term = len(terms) == 1, taxed[0].term
    periods = {(part.plan.billing_period, part.plan.row.is_evergreen) for part in taxed}
    whole.plan = replace(
        whole.plan,
        billing_period=periods.pop()[0] if len(periods) == 1 else MIXED,
        tax_category=next(iter(weights)) if len(weights) == 1 else MIXED,
        is_tax_included=is_included.pop(),
    )
    if len(weights) > 1:
        below = lcm(*(weight.denominator for weight in weights.values()))
        whole.tax_weights = tuple((name, int(weight * below)) for name, weight in weights.items())


def _note_sum(whole: LinePrice) -> None:
    plan = whole.plan
    if not plan.components and not whole.line.charged:
        whole.note(Stage.TERM, whole.amount, "ramp", None)
    elif plan.is_contracted and not whole.line.charged:
        whole.note(Stage.CONTRACTED, whole.amount, plan.row.id, plan.row.unit_price)
    else:
        whole.note(Stage.OPTIONS, whole.amount, "bundle", plan.bundle_discount)
