"""PURE. Usage prices: what a rate card charges for a period, what a line commits to, and how low its rates are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from cpq.base.errors import CpqError, bad_field
from cpq.base.money import amount, from_micro
from cpq.base.rounding import Exact, divide, nearest, written
from cpq.domain.pricing.adjustments import adjust
from cpq.domain.pricing.parts import ONCE, LinePrice, Plan, Term
from cpq.domain.pricing.price_selection import conversion_in_words
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, PriceRow, Request, Usage, exact
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.terms import bills_alike
from cpq.domain.pricing.tiers import charge

LIST, CURRENCY, CONTRACTED, USAGE, TERM = Stage.LIST, Stage.CURRENCY, Stage.CONTRACTED, Stage.USAGE, Stage.TERM

NOTHING = Usage()

ENDLESS = 10**15
"""A quantity beyond all tiers, where only the last rate counts."""


def charge_for_use(row: PriceRow, quantity: Exact) -> Exact:
    """What a rate card charges for the use of one period, before minimum and maximum spend.

    Included units come first and are free; tiers and packages count what is above them, so that no use costs nothing.
    """
    above = max(0, quantity - row.free_quantity)
    if not above:
        return 0
    return row.unit_price * -(-above // row.package_size) if row.package_size else charge(row, above)


def bill(row: PriceRow, quantity: Exact) -> Exact:
    """What is due for the use of one period: at least the minimum spend, at most the maximum."""
    due = max(charge_for_use(row, quantity), row.minimum_spend or 0)
    return due if row.maximum_spend is None else min(due, row.maximum_spend)


def price_usage(line: Line, plan: Plan) -> LinePrice:
    """Stages 1 to 5 of a rate card. What is committed is charged for each period; other use is in no total."""
    if line.ramp:
        raise _refused("/ramp", plan, "has no ramp", "Give each stretch its own line, with start_date and term_months.")
    usage, row, listed = line.usage or NOTHING, plan.row, listed_card(plan)
    price = LinePrice(line, plan, 1, line.choices, term=plan.term, listed_term=plan.term)
    price.listed, price.amount = committed(listed, usage, plan), committed(row, usage, plan)
    charged, at_list = per_period(price.amount, plan.term), per_period(price.listed, plan.term)
    if plan.is_listed:
        price.note(LIST, at_list, listed.id, listed.unit_price)
        if listed.derived is not None:
            price.note(CURRENCY, at_list, conversion_in_words(listed.derived), listed.derived.shown_rate)
    if plan.is_contracted:
        price.note(CONTRACTED, charged, row.id, row.unit_price)
    price.note(USAGE, charged, in_figures(row, usage), None)
    if plan.term is not ONCE:
        price.note(TERM, price.amount, plan.billing_period, plan.term.shown)
    price.cost = _cost(plan, usage, charged)
    return price


def listed_card(plan: Plan) -> PriceRow:
    """The list price to compare with; the charged one where the list counts in other periods."""
    return plan.listed if bills_alike(plan.listed, plan.row) else plan.row


def given_rate(price: LinePrice, unit_price: int) -> Exact:
    """What is committed at a rate that the seller gives instead of all rates of the card."""
    return committed(overridden(price.plan.row, unit_price), price.line.usage or NOTHING, price.plan)


def overridden(row: PriceRow, unit_price: int) -> PriceRow:
    """The rate card with one rate for every unit above the included ones, or for every package."""
    return row._replace(unit_price=unit_price, tier_mode="package" if row.package_size else "none", tiers=())


def rule_factor(line: Line, plan: Plan) -> Fraction:
    """What the percentages of pricing rules make of a rate; amounts off change only what is committed."""
    rules = tuple(rule for rule in line.adjustments if rule.kind != "amount")
    if not rules:
        return Fraction(1)
    rates = [Fraction(_rate(card, ENDLESS)) or Fraction(1) for card in (plan.row, listed_card(plan))]
    tried = LinePrice(line._replace(adjustments=rules), plan, 1, {}, amount=rates[0], listed=rates[1])
    adjust(tried)
    return Fraction(tried.amount) / rates[0]


def usage_discounts(price: LinePrice, request: Request) -> tuple[int, int]:
    """The discounts of a usage line, off the regular price and off list: on what is committed or on the rates, the
    larger one. So a discount counts where nothing is committed, and its rates are all that is sold.

    The discount on the quote lowers what is committed, and not the rates.
    """
    kept = ONE_HUNDRED_PERCENT - price.line.discount
    of_regular, of_list = _lowered_rates(price.line, price.plan)
    regular = of_regular[0] * kept, of_regular[1] * ONE_HUNDRED_PERCENT
    listed = of_list[0] * kept, of_list[1] * ONE_HUNDRED_PERCENT
    money = _kept_money(price, request)
    if money is not None:
        regular = _smaller(regular, money)
        listed = _smaller(listed, (price.net, price.list_amount) if price.list_amount else _WHOLE)
    return max(0, _percent_less(regular)), _percent_less(listed)


Share = tuple[Exact, Exact]
"""A part and its whole. Fractions would take most of the time of a usage line."""

_WHOLE: Share = (1, 1)


def _smaller(one: Share, other: Share) -> Share:
    return one if one[0] * other[1] <= other[0] * one[1] else other


def _percent_less(kept: Share) -> int:
    return ONE_HUNDRED_PERCENT - int(kept[0] * ONE_HUNDRED_PERCENT // kept[1])


def _kept_money(price: LinePrice, request: Request) -> Share | None:
    """The share of the regular commitment that is charged, exact where no amount was given; None of nothing."""
    line, amount = price.line, price.amount
    if not price.regular:
        return None
    if line.amount_off or request.requested_amount:
        return price.net, price.regular
    given = amount if price.given is None else price.given
    kept = (ONE_HUNDRED_PERCENT - line.discount) * (ONE_HUNDRED_PERCENT - request.requested_discount)
    return (
        given.numerator * amount.denominator * kept,
        given.denominator * amount.numerator * ONE_HUNDRED_PERCENT**2,
    )


def _lowered_rates(line: Line, plan: Plan) -> tuple[Share, Share]:
    """The smallest shares of the regular rates and of the list rates that are charged at any quantity."""
    row, listed = plan.row, listed_card(plan)
    factor = rule_factor(line, plan) if line.adjustments else Fraction(1)
    if line.override is None:
        least, of = _WHOLE if row is listed else _least(row, listed)
        return _WHOLE, (least * factor.numerator, of * factor.denominator)
    card = overridden(row, line.override)
    least, of = _least(card, row)
    of_list = (least, of) if row is listed else _least(card, listed)
    return (least * factor.denominator, of * factor.numerator) if factor else _WHOLE, of_list


def least_share(card: PriceRow, other: PriceRow) -> Fraction:
    """The smallest share of another card's charge that a card makes, at any quantity above the included units.

    Between two bounds both charges are lines, so that the share is smallest at a bound, just above one, or far beyond.
    Packages are compared as full ones where the other card has none of their size.
    """
    least, of = _least(card, other)
    return Fraction(least) / of


def _least(card: PriceRow, other: PriceRow) -> Share:
    if card.package_size != other.package_size:
        card, other = _by_unit(card), _by_unit(other)
    if not card.tiers and not other.tiers:
        return (card.unit_price, other.unit_price) if other.unit_price else _WHOLE
    bounds = [tier.up_to for row in (card, other) for tier in row.tiers if tier.up_to is not None]
    tried = {1, ENDLESS, *bounds, *(bound + 1 for bound in bounds)}
    least: Exact = 1
    of: Exact = 0
    for above in tried:
        rate, usual = _rate(card, above), _rate(other, above)
        if usual and (not of or rate * of < least * usual):
            least, of = rate, usual
    return (least, of) if of else _WHOLE


def _rate(row: PriceRow, above: int) -> Exact:
    """The charge for units above the included ones."""
    return row.unit_price * -(-above // row.package_size) if row.package_size else charge(row, above)


def _by_unit(row: PriceRow) -> PriceRow:
    """The card with the price of a unit of a full package, which may be less than a millionth."""
    if row.package_size is None:
        return row
    rate: Any = Fraction(row.unit_price, row.package_size)
    return row._replace(unit_price=rate, tier_mode="none", package_size=None)


def margin_of_rates(line: Line, plan: Plan) -> int | None:
    """The margin of the lowest rate that is charged above the included units; unknown without a cost or for no rate."""
    cost = plan.costs.cost
    if cost is None:
        return None
    if line.override is None:
        card, factor = plan.row, rule_factor(line, plan)
    else:
        card, factor = overridden(plan.row, line.override), Fraction(1)
    times_cost = least_share(card, overridden(plan.costs, cost or 1))
    rate = times_cost * factor * Fraction(ONE_HUNDRED_PERCENT - line.discount, ONE_HUNDRED_PERCENT)
    if not rate:
        return None
    return ONE_HUNDRED_PERCENT if not cost else int((1 - 1 / rate) * ONE_HUNDRED_PERCENT // 1)


def committed(row: PriceRow, usage: Usage, plan: Plan) -> Exact:
    """The committed amount over the term, at least the minimum spend of all periods."""
    term = plan.term
    least = term.times(row.minimum_spend) if row.minimum_spend else 0
    if usage.quantity is not None:
        return term.times(bill(row, exact(usage.quantity)))
    if usage.amount is None:
        return least
    of_term = plan.terms.of(usage.per) if usage.per and usage.per != row.billing_period else term
    over_term = of_term.times(usage.amount)
    if row.maximum_spend is not None and over_term > term.times(row.maximum_spend):
        raise bad_field(
            "/commitment",
            f"The rate card of {plan.product_id} charges at most {from_micro(row.maximum_spend)} for a period, "
            "which is less than the commitment.",
            maximum=from_micro(row.maximum_spend),
            hint="Commit to at most the maximum spend.",
        )
    return max(over_term, least)


def per_period(over_term: Exact, term: Term) -> Exact:
    """Nothing for a change after the last period that was started and charged in whole."""
    if term is ONCE or not term.periods:
        return over_term
    return divide(over_term * term.of, term.periods)


def _cost(plan: Plan, usage: Usage, charged: Exact) -> Exact | None:
    """Our cost of all units that the committed amount buys, over the term; unknown where that has no limit."""
    row, cost = plan.row, plan.costs.cost
    if cost is None:
        return None
    units: Exact | None
    if usage.quantity is not None and charge_for_use(row, exact(usage.quantity)) >= charged:
        units = exact(usage.quantity)
    else:
        units = most_units(row, charged)
    if units is None:
        return None
    return plan.term.times(cost * (-(-units // row.package_size) if row.package_size else units))


def most_units(row: PriceRow, money: Exact) -> Exact | None:
    """The largest use of one period that costs at most this; None without limit."""
    if row.maximum_spend is not None and money >= row.maximum_spend:
        return None
    if row.tier_mode == "volume":
        above = _most_at_volume(row, money)
    elif row.tier_mode == "graduated":
        above = _most_graduated(row, money)
    elif not row.unit_price:
        return None
    elif row.package_size:
        above = money // row.unit_price * row.package_size
    else:
        above = Fraction(money) / row.unit_price
    return None if above is None else row.free_quantity + above


def _most_at_volume(row: PriceRow, money: Exact) -> Exact | None:
    most: Exact = 0
    low = 0
    for up_to, unit_price, flat_fee in row.tiers:
        if flat_fee <= money:
            if not unit_price and up_to is None:
                return None
            bought: Exact = Fraction(money - flat_fee) / unit_price if unit_price else ENDLESS
            bought = bought if up_to is None else min(bought, up_to)
            most = max(most, bought) if bought > low else most
        low = up_to or low
    return most


def _most_graduated(row: PriceRow, money: Exact) -> Exact | None:
    low = 0
    for up_to, unit_price, flat_fee in row.tiers:
        money -= flat_fee
        if money < 0:
            return low
        if up_to is None or (up_to - low) * unit_price > money:
            return low + Fraction(money) / unit_price if unit_price else None
        money -= (up_to - low) * unit_price
        low = up_to
    raise AssertionError("the last tier is open")


def in_figures(row: PriceRow, usage: Usage) -> str:
    """The rate card and the commitment, in the step of the trace: a fingerprint changes with each of them."""
    return "; ".join([*rate_figures(row), *_commitment_figures(row, usage)])


def rate_figures(row: PriceRow) -> Iterator[str]:
    """The parts of a rate card: rates, included units, minimum and maximum spend."""
    unit, period = row.unit or "unit", row.billing_period
    if row.package_size:
        yield f"{amount(row.unit_price)} per {row.package_size} {unit}, {period}"
    elif row.tiers:
        yield f"{row.tier_mode} per {unit}, {period}"
        for up_to, unit_price, flat_fee in row.tiers:
            bound = "beyond" if up_to is None else f"to {up_to}"
            yield f"{bound} {amount(unit_price)}" + (f" + {amount(flat_fee)}" if flat_fee else "")
    else:
        yield f"{amount(row.unit_price)} per {unit}, {period}"
    if row.free_quantity:
        yield f"included {row.free_quantity}"
    if row.minimum_spend:
        yield f"minimum {amount(row.minimum_spend)}"
    if row.maximum_spend is not None:
        yield f"maximum {amount(row.maximum_spend)}"


def _commitment_figures(row: PriceRow, usage: Usage) -> Iterator[str]:
    unit, period = row.unit or "unit", row.billing_period
    if usage.quantity is not None:
        yield f"committed {written(exact(usage.quantity))} {unit}"
    elif usage.amount is not None:
        yield f"committed {amount(usage.amount)} {usage.per or period}"
    elif not row.minimum_spend:
        yield "nothing committed, nothing in the total"


def _refused(field: str, plan: Plan, why: str, hint: str) -> CpqError:
    return bad_field(field, f"{plan.product_id} is charged by its use, and {why}.", hint=hint)


def rounded_rate(rate: Exact) -> int:
    """A rate in millionths."""
    return nearest(rate.numerator, rate.denominator)
