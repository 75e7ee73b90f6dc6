"""PURE. Lines of several prices: bundles that are priced by their components, ramps of segments, and both at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

from cpq.base.errors import Code, CpqError, bad_field
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Component, Line, Segment, largest_quantity
from cpq.domain.pricing.result import Step
from cpq.domain.pricing.stages import WHOLE_TERM, Part, Plan, Prices, nearest


def compose(prices: Prices, line: Line) -> Part:
    """The whole line as one part: the sum of its parts, their steps, and a last step with that sum.

    A price that is agreed for the bundle, by contract or for a segment, replaces the sum of the components; what the
    components list at and what they cost us is the same as ever.
    """
    plan = prices.plan(line.product_id)
    _check_ramp(plan, line)
    contents = [(_content(prices, plan, component), component.quantity) for component in plan.components]
    own: list[Part] = []
    inside: list[Part] = []
    counting: list[Part] = []
    offset = 0
    for position, segment in enumerate(line.ramp or (WHOLE_TERM,), 1):
        when = f"segment {position}" if line.ramp else ""
        mine = _run(prices, line, plan, 1, segment, offset, when)
        theirs = [
            _less(part, plan.bundle_discount)
            for content, each in contents
            for part in _run(prices, line, content, each, segment, offset, when)
        ]
        own, inside = own + mine, inside + theirs
        is_agreed = plan.is_contracted or segment.unit_price is not None
        counting += mine if is_agreed else mine + theirs
        offset += segment.months
    return _add_up(line, plan, own, inside, counting)


def _check_ramp(plan: Plan, line: Line) -> None:
    is_agreed = plan.is_contracted or any(segment.unit_price is not None for segment in line.ramp)
    if line.ramp and plan.row.billing_period == "one_time" and (is_agreed or not plan.components):
        message = f"{line.product_id} has a one-time price, and a ramp is for prices that recur."
        raise bad_field("/ramp", message, hint="Leave the ramp out, or split the quantity into lines.")


def _content(prices: Prices, plan: Plan, component: Component) -> Plan:
    content = prices.plan(component.product_id)
    if content.components:
        raise CpqError(
            Code.CONFLICT,
            f"{plan.product_id} contains {content.product_id}, which is itself priced by its components.",
            field="/product_id",
            hint=f"Give {content.product_id} a price of its own, or put its components into {plan.product_id}.",
        )
    return content


def _run(prices: Prices, line: Line, plan: Plan, each: int, segment: Segment, offset: int, when: str) -> list[Part]:
    """A product in one segment. What is paid once is paid with the first, for the largest quantity of the line."""
    is_own = plan.product_id == line.product_id
    quantity = segment.quantity or line.quantity
    if line.ramp and plan.row.billing_period == "one_time":
        if offset:
            return []
        segment, when, quantity = WHOLE_TERM, "", largest_quantity(line.quantity, line.ramp)
    if not is_own:
        when = f"{when} {plan.product_id}".strip()
    elif segment.unit_price is not None:
        plan = prices.agreed(plan, segment.unit_price)
    part = Part(plan, quantity * each, line.choices if is_own else {}, segment, when)
    part.offset = offset
    return [prices.run(part)]


def _less(part: Part, discount: int) -> Part:
    if discount:
        part.numerator *= ONE_HUNDRED_PERCENT - discount
        part.denominator *= ONE_HUNDRED_PERCENT
    return part


def _add_up(line: Line, plan: Plan, own: list[Part], inside: list[Part], counting: list[Part]) -> Part:
    whole = Part(plan, largest_quantity(line.quantity, line.ramp), line.choices)
    amounts = [Fraction(part.numerator, part.denominator) for part in counting]
    whole.numerator, whole.denominator = _ratio(sum(amounts, Fraction(0)))
    whole.listed, whole.listed_below = _ratio(_listed(own + inside))
    cost = _cost(own, inside) if plan.components else _sum_of_costs(own)
    whole.cost, whole.cost_below = (None, 1) if cost is None else _ratio(cost)
    _settle_tax(whole, counting, amounts)
    last = _last_step(plan, nearest(whole.numerator, whole.denominator))
    whole.steps = (*(step for part in (*own, *inside) for step in part.steps), last)
    return whole


def _ratio(amount: Fraction) -> tuple[int, int]:
    return max(0, amount.numerator), amount.denominator


def _listed(parts: Iterable[Part]) -> Fraction:
    return sum((Fraction(part.listed, part.listed_below) for part in parts), Fraction(0))


def _sum_of_costs(parts: Iterable[Part]) -> Fraction | None:
    costs = [None if part.cost is None else Fraction(part.cost, part.cost_below) for part in parts]
    return None if None in costs else sum(filter(None, costs), Fraction(0))


def _cost(own: Iterable[Part], inside: Iterable[Part]) -> Fraction | None:
    """What the components cost us, and for the bundle's own options the same share of their price."""
    cost, options, before = _sum_of_costs(inside), _listed(own), _listed(inside)
    if cost is None or not options:
        return cost
    return cost * (before + options) / before if before else None


def _settle_tax(whole: Part, counting: Sequence[Part], amounts: Sequence[Fraction]) -> None:
    """Parts that come to nothing say nothing about tax or period; the others treat tax alike."""
    counted = [(part, amount) for part, amount in zip(counting, amounts, strict=True) if amount]
    counted = counted or [(counting[0], amounts[0])]
    weights: dict[str, Fraction] = {}
    for part, amount in counted:
        weights[part.plan.tax_category] = weights.get(part.plan.tax_category, Fraction(0)) + amount
    weights = {name: weight for name, weight in sorted(weights.items()) if weight > 0} or weights
    is_included = {part.plan.is_tax_included for part, _ in counted}
    if len(is_included) > 1 or (len(weights) > 1 and True in is_included):
        named = whole.plan.product_id
        raise bad_field("/product_id", f"The prices of the components of {named} do not all treat tax alike.")
    period = {part.plan.billing_period for part, _ in counted}
    whole.plan = replace(
        whole.plan,
        billing_period=period.pop() if len(period) == 1 else "mixed",
        tax_category=next(iter(weights)) if len(weights) == 1 else "mixed",
        is_tax_included=is_included.pop(),
    )
    if len(weights) > 1:
        below = lcm(*(weight.denominator for weight in weights.values()))
        whole.taxed = tuple((name, int(weight * below)) for name, weight in weights.items())


def _last_step(plan: Plan, amount: int) -> Step:
    if not plan.components:
        return Step("term", amount, "ramp")
    if plan.is_contracted:
        return Step("contracted", amount, plan.row.id, plan.row.unit_price)
    return Step("options", amount, "bundle", plan.bundle_discount)
