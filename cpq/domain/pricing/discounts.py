"""PURE. Stages 7 and 8, line discount and quote discount, and the total discounts of a line and of a quote."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.base.rounding import Exact, MinorUnit, nearest
from cpq.domain.pricing.parts import LinePrice
from cpq.domain.pricing.request import EDITION, ONE_HUNDRED_PERCENT, Line
from cpq.domain.pricing.result import Stage

LINE_DISCOUNT, QUOTE_DISCOUNT = Stage.LINE_DISCOUNT, Stage.QUOTE_DISCOUNT

FINE = 10**12
"""Parts of a millionth to which amounts are cut before their discount is computed; it is exact to the last digit."""


def discount_line(price: LinePrice, minor_unit: MinorUnit) -> None:
    """Stage 7: the line discount gives the customer price. A line is first rounded here."""
    discount = price.line.discount
    price.list_amount = price.regular = customer = minor_unit.round(price.amount)
    if price.listed != price.amount:
        price.list_amount = minor_unit.round(price.listed)
    if discount:
        customer = minor_unit.round(price.amount, ONE_HUNDRED_PERCENT - discount, ONE_HUNDRED_PERCENT)
    price.net = customer
    if discount or customer != price.steps[-1].amount:
        price.note(LINE_DISCOUNT, customer, "discount_pct", discount)


def discount_quote(
    prices: Sequence[LinePrice], requested: int, minor_unit: MinorUnit, *, edition: int = EDITION
) -> None:
    """Stage 8: the requested discount off the sum of customer prices, rounded once, then allocated to the lines."""
    if not requested:
        return
    customers = [price.net for price in prices]
    whole = minor_unit.round(sum(customers), requested, ONE_HUNDRED_PERCENT)
    # The first of equal claims gets the last cent, so lines are ordered by content, not by position.
    shares = minor_unit.allocate(whole, customers, order=lambda index: _identity(prices[index].line, edition))
    for price, share in zip(prices, shares, strict=True):
        if share:
            price.net -= share
            price.note(QUOTE_DISCOUNT, price.net, "requested_discount_pct", requested)


def _identity(line: Line, edition: int) -> tuple[object, ...]:
    """The content of a line. Its number comes last, so that it decides only between otherwise equal lines."""
    number = line.id if edition == 1 else (len(line.id), line.id)  # The first edition read 10 as less than 2.
    return (
        line.product_id,
        line.quantity,
        line.discount,
        sorted(line.choices.items()),
        str(line.ramp),
        str(line.adjustments),
        line.selling_model,
        number,
    )


def line_discount_percents(price: LinePrice, requested: int) -> tuple[int, int]:
    """Line and quote discount together, off the regular price, and off list; negative when the price is above list."""
    kept = (ONE_HUNDRED_PERCENT - price.line.discount) * (ONE_HUNDRED_PERCENT - requested)
    discount = together(price.line.discount, requested)
    amount, listed = price.amount, price.listed
    # Where both are zero, stored prices depend on whether the two fractions were equal before they were reduced.
    if amount == listed and (listed or price.divisor == price.listed_divisor):
        return discount, discount
    if not listed:
        return discount, 0
    before = listed.numerator * amount.denominator * ONE_HUNDRED_PERCENT
    return discount, ONE_HUNDRED_PERCENT - amount.numerator * listed.denominator * kept // before


def together(line_discount: int, requested: int) -> int:
    """The percentage that a line discount and then the requested discount take off the regular price."""
    return ONE_HUNDRED_PERCENT - (
        (ONE_HUNDRED_PERCENT - line_discount) * (ONE_HUNDRED_PERCENT - requested) // ONE_HUNDRED_PERCENT
    )


def quote_discount_percents(prices: Sequence[LinePrice], requested: int) -> tuple[int, int]:
    """All discounts of the quote, off the regular prices and off list, from unrounded amounts."""
    regular = customer = listed = 0
    for price in prices:
        amount = _fine(price.amount)
        regular += amount
        customer += amount * (ONE_HUNDRED_PERCENT - price.line.discount)
        listed += amount if price.listed == price.amount else _fine(price.listed)
    kept = customer * (ONE_HUNDRED_PERCENT - requested)
    return _percent_off(regular, kept), _percent_off(listed, kept)


def _fine(amount: Exact) -> int:
    return amount.numerator * FINE // amount.denominator


def _percent_off(before: int, kept: int) -> int:
    return ONE_HUNDRED_PERCENT - nearest(kept, before * ONE_HUNDRED_PERCENT) if before else 0
