"""PURE. The smallest discount on a quote whose total is at most a target."""

from __future__ import annotations

from cpq.base.errors import bad_field
from cpq.base.money import from_micro
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.waterfall import price

NEAR = 8
"""Steps below the found discount that are tried, too: where odd cents move between tax groups, a total may stand still
while the discount grows."""


def discount_for_total(request: Request, target: int) -> int:
    """The amount off the whole quote; 0 where its total without a discount is the target.

    The total with tax falls as the discount grows, so it is found by halving.
    """
    minor = MinorUnit(request.currency, request.rounding).size
    selection = PriceSelection(request)
    plain = request._replace(requested_discount=0, requested_amount=0)
    without = price(plain, selection)
    if target > without.total:
        raise bad_field(
            "/target_total",
            f"The total without a discount on the quote is {from_micro(without.total)} {request.currency}, "
            "which is less than the target.",
            maximum=from_micro(without.total),
            hint="Give a target below it, or raise prices with unit_price of the lines.",
        )

    def reaches(steps: int) -> bool:
        return price(plain._replace(requested_amount=steps * minor), selection).total <= target

    low, high = 0, without.net // minor
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    nearby = [steps for steps in range(max(0, low - NEAR), low) if reaches(steps)]
    return min(nearby, default=low) * minor
