"""PURE. A coarse grid of costs: verdicts rest on it, so that no series of prices reveals a cost more precisely.

A cost is rounded up to the next point, against the seller's risk: a verdict is never more lenient than by the cost.
The points depend on the cost of a unit alone, never on a quote, so that other quantities or discounts reveal no more.
"""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from functools import cache

COST_MAX = 10**18
"""In millionths, as amounts are."""


def coarse(cost: int, percent: Decimal) -> int:
    """The smallest point that is not below a cost in millionths; each is at most `percent` above the one before it."""
    if not percent or cost <= 0:
        return cost
    points = _points(percent)
    place = bisect_left(points, cost)
    return points[place] if place < len(points) else cost


@cache
def _points(percent: Decimal) -> list[int]:
    step, whole = (percent + 100).as_integer_ratio()
    points = [1]
    while points[-1] < COST_MAX:
        points.append(max(points[-1] + 1, points[-1] * step // (whole * 100)))
    return points
