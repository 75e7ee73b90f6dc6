"""PURE. The smallest discount on a quote whose total is at most a target."""

from __future__ import annotations

from collections.abc import Callable

from cpq.base.errors import bad_field
from cpq.base.money import from_micro
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing.discounts import shares_of
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.tax import tax_lines
from cpq.domain.pricing.waterfall import customer_prices

NEAR = 8
"""Steps below the found discount that are tried, too: where odd cents move between tax groups, a total may stand still
while the discount grows."""


def discount_for_total(request: Request, target: int) -> int:
    """The amount off the whole quote; 0 where its total without a discount is the target.

    The lines are priced once. The total falls as the discount grows, nearly in proportion, so that a few trials of the
    last two stages find the discount.
    """
    plain = request._replace(requested_discount=0, requested_amount=0)
    minor = MinorUnit(request.currency, request.rounding).size
    most, total_less = _totals(plain, minor)
    without = total_less(0)
    if target > without:
        raise bad_field(
            "/target_total",
            f"The total without a discount on the quote is {from_micro(without)} {request.currency}, "
            "which is less than the target.",
            maximum=from_micro(without),
            hint="Give a target below it, or raise prices with unit_price of the lines.",
        )
    if target == without:
        return 0
    found = _first_reaching(total_less, target, most)
    while nearby := [steps for steps in range(max(0, found - NEAR), found) if total_less(steps) <= target]:
        found = nearby[0]
    return found * minor


def _totals(request: Request, minor: int) -> tuple[int, Callable[[int], int]]:
    """The largest discount in minor units, and the total with a discount of a number of them."""
    minor_unit = MinorUnit(request.currency, request.rounding)
    prices = customer_prices(request)
    before = [(price.net, price.regular, price.list_amount, price.steps) for price in prices]
    credit = sum([line.credit for line in request.lines])
    known: dict[int, int] = {}

    def total_less(steps: int) -> int:
        if steps not in known:
            asked = request._replace(requested_amount=steps * minor)
            shares = shares_of(steps * minor, prices, asked, minor_unit)
            for price, share in zip(prices, shares, strict=True):
                price.net -= share
            groups = tax_lines(prices, asked, minor_unit)
            known[steps] = sum([price.net for price in prices]) - credit + sum([group.tax for group in groups])
            # Taking an included tax out changes the line.
            for price, was in zip(prices, before, strict=True):
                price.net, price.regular, price.list_amount, price.steps = was
        return known[steps]

    return sum([net for net, *_ in before]) // minor, total_less


def _first_reaching(total_less: Callable[[int], int], target: int, most: int) -> int:
    """A number of steps whose total is at most the target, while that of one step less is not.

    Between two trials the total is taken for a straight line; every third trial halves, so that it ends in any case.
    """
    low, high, tries = 0, most, 0
    while high - low > 1:
        above, below = total_less(low), total_less(high)
        middle = (low + high) // 2 if tries % 3 == 2 else low + (above - target) * (high - low) // (above - below)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if total_less(middle) <= target else (middle, high)
        tries += 1
    return high
