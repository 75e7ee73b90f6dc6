"""PURE. A coarse grid of costs: verdicts rest on it, so that no series of prices reveals a cost more precisely.

A cost is rounded up to the next point, against the seller's risk: a verdict is never more lenient than by the cost.
Nothing else of a cost reaches a verdict, so that neither quantities, discounts nor other products in the quote reveal
more: costs that are rounded to the same point give the same verdict everywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from functools import cache

from cpq.domain.pricing import Costs, Request, costs
from cpq.domain.pricing.request import PriceRow, Product

COST_MAX = 10**18
"""In millionths, as amounts are."""


def coarse(cost: int, percent: Decimal) -> int:
    """The smallest point that is not below a cost in millionths; each is at most `percent` above the one before it."""
    if not percent or cost <= 0:
        return cost
    points = _points(percent)
    place = bisect_left(points, cost)
    return points[place] if place < len(points) else cost


def coarse_costs(request: Request, percent: Decimal) -> Costs:
    """The known costs of the lines, made of unit costs on the grid: for a bundle, of those of its parts.

    All prices of a product are raised by the factor that brings the first cost of the standard book to its point. Each
    by a factor of its own, the monthly and the yearly price would together reveal more than one of them. A price that
    was converted has the factor of the price it comes from: the same cost in many currencies would reveal it.
    """
    standard = request.price_books[-1] if request.price_books else None

    def unit_cost(product: Product, cost: int) -> int:
        rows = [row for row in product.rows if row.price_book_id == standard and row.cost]
        rows = rows or [row for row in product.rows if row.cost == cost]
        _, first = min(((row.id, _first(row)) for row in rows), default=("", cost))
        return -(-cost * coarse(first, percent) // first)

    return costs(request, unit_cost)


def _first(row: PriceRow) -> int:
    """The cost as the catalogue has it, before it was converted."""
    found = row.derived.cost if row.derived else row.cost
    assert found is not None
    return found


@cache
def _points(percent: Decimal) -> list[int]:
    step, whole = (percent + 100).as_integer_ratio()
    points = [1]
    while points[-1] < COST_MAX:
        points.append(max(points[-1] + 1, points[-1] * step // (whole * 100)))
    return points
