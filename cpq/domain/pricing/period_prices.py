"""PURE. The price of a recurring line for one billing period, its number of periods, and both in words."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from cpq.base.money import Amount
from cpq.base.rounding import MinorUnit
from cpq.domain.billing_periods import ONE_TIME, counted, is_recurring
from cpq.domain.pricing.parts import ONCE, Term
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, LineTerm, Request
from cpq.domain.pricing.result import PricedLine, Stage, Step, unit_price
from cpq.domain.pricing.terms import Terms, terms_of_line

TERM, TAX, CREDIT = Stage.TERM, Stage.TAX, Stage.CREDIT

_AFTER_REGULAR = frozenset(
    [Stage.OVERRIDE, Stage.LINE_DISCOUNT, Stage.QUOTE_DISCOUNT, Stage.TAX, Stage.CREDIT, Stage.COST_AND_MARGIN]
)


class PeriodPrice(NamedTuple):
    """A unit's price for one billing period, before and after discounts, in millionths; with a ramp, the mean.

    Rounded to the minor unit, `unit_price` times quantity times `periods` is the line's subtotal, and with
    `net_unit_price` its total, as long as quantity times periods is below a minor unit in millionths (10,000 for
    dollars); beyond that, where the price of a unit for a period has no more than six decimals.
    """

    billing_period: str
    unit_price: int
    net_unit_price: int
    periods: Fraction


def period_prices(request: Request, lines: Iterable[PricedLine]) -> dict[str, PeriodPrice]:
    """By line id, for lines with one recurring price; a bundle of several billing periods has none."""
    terms: dict[LineTerm | None, Terms] = {None: Terms(request)}
    minor_unit = MinorUnit(request.currency, request.rounding)
    own = {line.id: line.term for line in request.lines if line.term}
    counts: dict[Term, Fraction] = {}
    found = {}
    recurs = {ONE_TIME: False}
    for line in lines:
        if line.billing_period not in recurs:
            recurs[line.billing_period] = is_recurring(line.billing_period)
        if recurs[line.billing_period]:
            # Without the step of a term one period is charged: there is no term, or the price has no end.
            is_over_term = TERM in [step.stage for step in line.steps]
            dates = own.get(line.id)
            if dates not in terms:
                terms[dates] = terms_of_line(request, dates)
            term = terms[dates].of(line.billing_period) if is_over_term else ONCE
            if term not in counts:
                counts[term] = Fraction(term.periods, term.of)
            found[line.id] = _period_price(line, counts[term], minor_unit)
    return found


def in_words(price: str, billing_period: str, periods: Amount | str, *, has_term: bool, has_end: bool = True) -> str:
    """`4,900.00 a month × 12 months`; `price` is for one period.

    Without a term `4,900.00 a month, for one month`; without an end `4,900.00 a month, until cancelled`; and of several
    weeks, months or years `300.00 for 2 weeks × 26`.
    """
    count, noun = counted(billing_period)
    if count > 1:
        each = f"{price} for {count} {noun}"
        return f"{each}, until cancelled" if not has_end else f"{each}, once" if not has_term else f"{each} × {periods}"
    if not has_end:
        return f"{price} a {noun}, until cancelled"
    if not has_term:
        return f"{price} a {noun}, for one {noun}"
    return f"{price} a {noun} × {periods} {noun if periods == 1 else noun + 's'}"


def _period_price(line: PricedLine, periods: Fraction, minor_unit: MinorUnit) -> PeriodPrice:
    """In whole numbers, a fraction as two of them: this is done for every line of every answer."""
    units, units_of = line.units
    times, times_of = units * periods.numerator, units_of * periods.denominator
    amount, is_for_one_period = _regular_amount(line.steps)
    price, of = (amount * units_of, units) if is_for_one_period else (amount * times_of, times)
    last = line.steps[-2 if line.steps[-1].stage == CREDIT else -1]
    if last.stage == TAX:
        price, of = price * ONE_HUNDRED_PERCENT, of * (ONE_HUNDRED_PERCENT + (last.value or 0))

    def shown(price: int, of: int, charged: int) -> int:
        """The price where it re-adds to the charged amount, else the amount divided by units and periods.

        A line of an agreement may have no period left to charge.
        """
        micro = unit_price(price, of) if of else 0
        if not times:
            return micro
        return micro if minor_unit.round(micro, times, times_of) == charged else unit_price(charged, times, times_of)

    kept = ONE_HUNDRED_PERCENT - line.discount
    return PeriodPrice(
        line.billing_period,
        shown(price, of, line.regular),
        shown(price * kept, of * ONE_HUNDRED_PERCENT, line.net),
        periods,
    )


def _regular_amount(steps: Iterable[Step]) -> tuple[int, bool]:
    """The regular price of all units before rounding, with tax where it is included, and whether for one period.

    Steps have six decimals, so the step before the term is more exact than the one after it.
    """
    regular = [step for step in steps if step.stage not in _AFTER_REGULAR]
    if len(regular) > 1 and regular[-1].stage == TERM and not regular[-2].part:
        return regular[-2].amount, True
    return regular[-1].amount, False
