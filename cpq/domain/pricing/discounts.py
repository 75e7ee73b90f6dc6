"""PURE. Stages 7 and 8, line discount and quote discount, and the total discounts of a line and of a quote."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.base.errors import bad_field
from cpq.base.money import from_micro
from cpq.base.rounding import Exact, MinorUnit, nearest
from cpq.domain.pricing.parts import LinePrice
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, Request
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.usage import usage_discounts

LINE_DISCOUNT, QUOTE_DISCOUNT = Stage.LINE_DISCOUNT, Stage.QUOTE_DISCOUNT

_AMOUNTS = ("regular", "list_amount", "net")

FINE = 10**12
"""Parts of a millionth to which amounts are cut before their discount is computed; it is exact to the last digit."""


def discount_line(price: LinePrice, minor_unit: MinorUnit) -> None:
    """Stage 7: the line discount gives the customer price. A line is first rounded here."""
    if price.given is not None or price.line.amount_off or price.line.settled is not None:
        _discount_in_money(price, minor_unit)
        return
    discount = price.line.discount
    price.list_amount = price.regular = customer = minor_unit.round(price.amount)
    if price.listed != price.amount:
        price.list_amount = minor_unit.round(price.listed)
    if discount:
        customer = minor_unit.round(price.amount, ONE_HUNDRED_PERCENT - discount, ONE_HUNDRED_PERCENT)
    price.net = customer
    if discount or customer != price.steps[-1].amount:
        price.note(LINE_DISCOUNT, customer, "discount_pct", discount)


def _discount_in_money(price: LinePrice, minor_unit: MinorUnit) -> None:
    """A line whose price or discount was given as an amount."""
    line = price.line
    price.regular, price.list_amount = minor_unit.round(price.amount), minor_unit.round(price.listed)
    given = price.amount if price.given is None else price.given
    price.net = minor_unit.round(given, ONE_HUNDRED_PERCENT - line.discount, ONE_HUNDRED_PERCENT)
    if line.amount_off > price.net:
        raise bad_field(
            "/discount_amount",
            "The discount is larger than the price of the line.",
            maximum=from_micro(price.net),
            hint="Give at most the price of the line.",
        )
    price.net -= line.amount_off
    if line.amount_off:
        price.note(LINE_DISCOUNT, price.net, "discount_amount", line.amount_off)
    elif line.discount or price.net != price.steps[-1].amount:
        price.note(LINE_DISCOUNT, price.net, "discount_pct", line.discount)
    if line.settled is not None and line.settled != price.net:
        price.net, price.regular = line.settled, max(price.regular, line.settled)
        price.note(LINE_DISCOUNT, price.net, "agreement", None)


def discount_quote(prices: Sequence[LinePrice], request: Request, minor_unit: MinorUnit) -> None:
    """Stage 8: the requested discount off the sum of customer prices, rounded once, then allocated to the lines."""
    requested = request.requested_discount
    if not requested and not request.requested_amount:
        return
    customers = [price.net for price in prices]
    whole = request.requested_amount or minor_unit.round(sum(customers), requested, ONE_HUNDRED_PERCENT)
    if whole > sum(customers):
        raise bad_field(
            "/requested_discount_amount",
            "The discount is larger than the price of the quote without tax.",
            maximum=from_micro(sum(customers)),
        )
    source = ("requested_discount_amount", whole) if request.requested_amount else ("requested_discount_pct", requested)
    for price, share in zip(prices, shares_of(whole, prices, request, minor_unit), strict=True):
        if share:
            price.net -= share
            price.note(QUOTE_DISCOUNT, price.net, *source)


def shares_of(whole: int, prices: Sequence[LinePrice], request: Request, minor_unit: MinorUnit) -> list[int]:
    """What each line bears of a discount on the quote, by its customer price."""
    edition = request.edition
    # The first of equal claims gets the last cent, so lines are ordered by content, not by position.
    return minor_unit.allocate(
        whole, [price.net for price in prices], order=lambda index: _identity(prices[index].line, edition)
    )


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
        (-1 if line.override is None else line.override, line.amount_off, str(line.term)),
        str(line.usage) if line.usage else "",
        number,
    )


def line_discount_percents(price: LinePrice, request: Request) -> tuple[int, int]:
    """Line and quote discount together, off the regular price, and off list; negative when the price is above list."""
    requested = request.requested_discount
    if not price.plan.is_plain and price.plan.row.is_usage:
        return usage_discounts(price, request)
    if price.given is not None or price.line.amount_off or request.requested_amount:
        return percent_off(price.regular, price.net), percent_off(price.list_amount, price.net)
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


def percent_off(before: int, after: int) -> int:
    """The discount in percent where it was given in money, never too small; 0 off nothing."""
    return ONE_HUNDRED_PERCENT - after * ONE_HUNDRED_PERCENT // before if before else 0


def quote_discount_percents(prices: Sequence[LinePrice], request: Request) -> tuple[int, int]:
    """All discounts of the quote, off the regular prices and off list, from unrounded amounts.

    From the amounts that are shown where one of them was given in money.
    """
    requested = request.requested_discount
    if request.requested_amount or any(price.given is not None or price.line.amount_off for price in prices):
        regular, listed, net = (sum([getattr(price, name) for price in prices]) for name in _AMOUNTS)
        return percent_off(regular, net), percent_off(listed, net)
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
