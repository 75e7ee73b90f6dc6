"""PURE. Stage 10, cost and margin: our cost of a line, and the rest of its net price."""

from __future__ import annotations

from collections.abc import Iterable

from cpq.base.rounding import Exact, divide
from cpq.domain.pricing.parts import ONCE, Part
from cpq.domain.pricing.quantities import Counts
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT
from cpq.domain.pricing.terms import bills_alike
from cpq.domain.pricing.tiers import counted_quantity, times_charged


def take_cost(part: Part, counts: Counts) -> None:
    """Our cost of the quantity over the term; unknown when the price has no cost.

    An option costs the same share of its price as the product does. The uplift of a segment adds no cost.
    """
    plan, row, quantity = part.plan, part.plan.costs, part.quantity
    if row.cost is None:
        return
    cost = row.cost * quantity if row.package_size is None else _cost_of_packages(part, counts)
    if part.surcharge:
        base = (plan.listed if plan.is_like_list else row).unit_price
        if not base:
            return
        cost = divide(max(0, cost * base + row.cost * part.surcharge * quantity), base)
    if part.term is not ONCE or not plan.is_like_list:
        cost = (part.term if bills_alike(row, plan.row) else part.listed_term).times(cost)
    part.cost = cost


def _cost_of_packages(part: Part, counts: Counts) -> Exact:
    row = part.plan.costs
    assert row.cost is not None
    counted = counted_quantity(part, row, counts)
    # Free units cost us what others do.
    free = row if part.among is None else row._replace(free_quantity=0)
    return divide(row.cost * times_charged(free, counted) * part.quantity, counted)


def margin(net: int, cost: int | None) -> int | None:
    """The margin of the net price in millionths of a percent, rounded down; unknown without a cost or a price."""
    return None if cost is None or net == 0 else (net - cost) * ONE_HUNDRED_PERCENT // net


def margin_with_rates(
    net: int, cost: int | None, margins_of_rates: Iterable[int | None], *, is_all_use: bool
) -> int | None:
    """The margin of several lines: of what they sell, or of rates that put nothing into the total, if that is lower.

    `is_all_use` says that there are no lines but those of rates. An unknown one makes the whole unknown.
    """
    known = [*margins_of_rates] if is_all_use else [margin(net, cost), *margins_of_rates]
    return None if None in known else min(one for one in known if one is not None)
