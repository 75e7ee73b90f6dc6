"""PURE. The sentence of a violation: amounts with their currency, margins with one decimal, large numbers in groups."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from cpq.base.money import MINOR_DIGITS, plain
from cpq.domain.policy.facts import EXACT, WORKING, Unit

SHOWN_DECIMALS = 4
MARGIN_DECIMALS = 1
DECIMALS_MAX = 12
"""The decimals that a limit may have."""


@dataclass(frozen=True)
class Measure:
    """What the numbers of a violation are: their unit, and the two currencies."""

    unit: Unit
    policy_currency: str
    currency: str
    """The quote's own."""
    rate: Decimal | None
    """The value of one unit of the quote's currency in the policy's; None when it is unknown."""
    is_margin: bool = False

    @property
    def name(self) -> str:
        """The unit for programs: a currency code, `percent`, `months`, `days` or `pieces`; empty when unknown."""
        return {Unit.VALUE: self.policy_currency, Unit.AMOUNT: self.currency}.get(self.unit, self.unit.value)

    @property
    def is_money(self) -> bool:
        return self.unit in (Unit.VALUE, Unit.AMOUNT)


def filled(sentence: str, *, actual: Decimal | None, threshold: Decimal | None, measure: Measure) -> str:
    """The message of a policy with its numbers."""
    if "{actual}" in sentence:
        sentence = sentence.replace("{actual}", _actual(actual, threshold, measure))
    if "{threshold}" in sentence:
        sentence = sentence.replace("{threshold}", _limit(threshold, measure))
    return sentence


def _limit(threshold: Decimal | None, measure: Measure) -> str:
    if threshold is None:
        return "unknown"
    return _money(threshold, measure.name) if measure.is_money else f"{plain(threshold):,f}"


def _actual(actual: Decimal | None, limit: Decimal | None, measure: Measure) -> str:
    """The number, rounded, but never onto or past its limit. An amount in the policy's currency is
    followed by the quote's own where that is another one."""
    if actual is None:
        return "unknown"
    if not measure.is_money:
        decimals = _decimals(actual, limit, MARGIN_DECIMALS if measure.is_margin else SHOWN_DECIMALS)
        rounded = _rounded(actual, decimals)
        return f"{rounded if measure.is_margin else plain(rounded):,f}"
    shown = _money(actual, measure.name, limit)
    if measure.unit is Unit.AMOUNT or measure.currency == measure.policy_currency or not measure.rate:
        return shown
    return f"{shown} ({_money(EXACT.divide(actual, measure.rate), measure.currency)})"


def _money(amount: Decimal, currency: str, limit: Decimal | None = None) -> str:
    decimals = _decimals(amount, limit, MINOR_DIGITS.get(currency, SHOWN_DECIMALS))
    return f"{currency} {_rounded(amount, decimals):,f}"


def _decimals(number: Decimal, limit: Decimal | None, fewest: int) -> int:
    """The fewest decimals from `fewest` on with which the number is still on its side of the limit."""
    if limit is None:
        return fewest
    side = number.compare(limit)
    enough = (decimals for decimals in range(fewest, DECIMALS_MAX) if _rounded(number, decimals).compare(limit) == side)
    return next(enough, DECIMALS_MAX)


def _rounded(number: Decimal, decimals: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, WORKING)
