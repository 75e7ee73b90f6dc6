"""PURE. Exact money: amounts with a currency, percentages, named rounding, and splitting without a lost cent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from enum import StrEnum
from functools import total_ordering
from typing import Any, Self

SIGNIFICANT_DIGITS_MAX = 15
"""A decimal of up to 15 digits survives a JSON number on any client; more might not."""

UNIT_PRICE_DIGITS = 6
"""Decimals of a unit price, and of an amount in the database."""

_EXACT = Context(prec=60)
_MICRO = Decimal(10) ** -UNIT_PRICE_DIGITS
_MICROS = 10**UNIT_PRICE_DIGITS


Amount = Decimal | int
"""Exact: a whole number where it is one."""


def amount(micro: int) -> Amount:
    """Whole millionths as a number: 10000000 is 10."""
    whole, rest = divmod(micro, 1_000_000)
    return from_micro(micro) if rest else whole


class Rounding(StrEnum):
    """How an amount becomes a whole number of minor units."""

    HALF_UP = "half_up"
    HALF_EVEN = "half_even"

    @property
    def mode(self) -> str:
        return ROUND_HALF_UP if self is Rounding.HALF_UP else ROUND_HALF_EVEN


@total_ordering
@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in one currency. Amounts of different currencies never mix."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if not self.amount.is_finite():
            raise ValueError("an amount of money is a finite number")
        minor_digits(self.currency)

    def __add__(self, other: Money) -> Self:
        return type(self)(_EXACT.add(self.amount, self._same(other)), self.currency)

    def __sub__(self, other: Money) -> Self:
        return type(self)(_EXACT.subtract(self.amount, self._same(other)), self.currency)

    def __neg__(self) -> Self:
        return type(self)(_EXACT.minus(self.amount), self.currency)

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def times(self, factor: Decimal | int) -> Self:
        return type(self)(_EXACT.multiply(self.amount, Decimal(factor)), self.currency)

    def rounded(self, rounding: Rounding = Rounding.HALF_UP) -> Self:
        """To the currency's minor unit. Call it once, where the rule says so."""
        return type(self)(round_minor(self.amount, self.currency, rounding), self.currency)

    def _same(self, other: Money) -> Decimal:
        if other.currency != self.currency:
            raise ValueError(f"{self.currency} and {other.currency} do not mix")
        return other.amount


@dataclass(frozen=True, slots=True, order=True)
class Percent:
    """A share in percent: `Percent(10)` of 150 is 15."""

    value: Decimal

    def of(self, money: Money) -> Money:
        """Exact, not rounded."""
        return money.times(self.value.scaleb(-2))


def minor_digits(currency: str) -> int:
    """Decimals of the currency's minor unit by ISO 4217; ValueError for an unknown code."""
    try:
        return MINOR_DIGITS[currency]
    except KeyError:
        raise ValueError(f"{currency!r} is not an ISO 4217 currency code") from None


def round_minor(amount: Decimal, currency: str, rounding: Rounding = Rounding.HALF_UP) -> Decimal:
    quantum = Decimal(1).scaleb(-minor_digits(currency))
    return _EXACT.plus(amount.quantize(quantum, rounding.mode, _EXACT))  # `plus` turns -0 into 0.


def allocate(amount: Decimal, weights: Sequence[Decimal], currency: str) -> list[Decimal]:
    """Split `amount` by `weights` into shares of whole minor units that always add up.

    Largest remainder; ties go to the first; all-zero weights split equally; a negative amount mirrors the positive.
    """
    if not weights:
        raise ValueError("an amount is split over at least one share")
    if not all(weight.is_finite() and weight >= 0 for weight in weights):
        raise ValueError("weights are finite and not negative")
    if not amount.is_finite():
        raise ValueError("an amount of money is a finite number")
    digits = minor_digits(currency)
    units = int(amount.scaleb(digits, _EXACT))
    if Decimal(units).scaleb(-digits, _EXACT) != amount:
        raise ValueError(f"{amount} is not a whole number of minor units of {currency}")
    shares = split_units(abs(units), _whole_weights(weights))
    sign = -1 if units < 0 else 1
    return [Decimal(sign * share).scaleb(-digits, _EXACT) for share in shares]


def split_units(units: int, weights: Sequence[int], order: Callable[[int], Any] | None = None) -> list[int]:
    """`allocate` for whole units and weights, none of them negative.

    Of equal remainders the first wins, or where `order` is given, the one for whose index it is smallest.
    """
    total = sum(weights)
    if total == 0:
        weights, total = [1] * len(weights), len(weights)
    shares = [units * weight // total for weight in weights]
    if left := units - sum(shares):
        remainders = [units * weight - share * total for weight, share in zip(weights, shares, strict=True)]
        # Sorted in reverse, equals keep their order.
        lucky = sorted(range(len(weights)), key=remainders.__getitem__, reverse=True)
        if order and left < len(lucky) and remainders[lucky[left - 1]] == remainders[lucky[left]]:
            last = remainders[lucky[left]]
            first = [index for index in lucky if remainders[index] > last]
            lucky = first + sorted((index for index in lucky if remainders[index] == last), key=order)
        for index in lucky[:left]:
            shares[index] += 1
    return shares


def to_micro(amount: Decimal) -> int:
    """The amount as whole millionths, the form the database keeps; ValueError when it would lose a digit."""
    try:
        micro = int(_EXACT.quantize(amount, _MICRO).scaleb(UNIT_PRICE_DIGITS, _EXACT))
    except InvalidOperation:
        raise ValueError(f"{amount} is not an amount of money") from None
    if from_micro(micro) != amount:
        raise ValueError(f"{amount} has more than {UNIT_PRICE_DIGITS} decimals")
    return micro


def from_micro(micro: int) -> Decimal:
    """The amount without trailing zeros: 10000000 is 10."""
    whole, rest = divmod(micro, _MICROS)
    if rest == 0:
        return Decimal(whole)
    return _EXACT.normalize(Decimal(micro).scaleb(-UNIT_PRICE_DIGITS, _EXACT))


def plain(number: Decimal) -> Decimal:
    """The same number written without exponent, trailing zeros or a negative zero."""
    number = _EXACT.plus(number.normalize(_EXACT))
    return number.quantize(Decimal(1), context=_EXACT) if int(number.as_tuple().exponent) > 0 else number


def readable(amount: Decimal | int, currency: str) -> str:
    """For people: `1,350.00`, with the digits of the currency, and more where the amount has more."""
    exact = Decimal(amount)
    exponent = exact.normalize(_EXACT).as_tuple().exponent
    digits = max(minor_digits(currency), -exponent if isinstance(exponent, int) else 0)
    return f"{exact:,.{digits}f}"


def significant_digits(number: Decimal) -> int:
    return len(number.normalize(_EXACT).as_tuple().digits)


def _whole_weights(weights: Sequence[Decimal]) -> list[int]:
    scale = max(0, *(-int(weight.as_tuple().exponent) for weight in weights))
    return [int(weight.scaleb(scale, _EXACT)) for weight in weights]


_CODES_BY_DIGITS = {
    0: ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF "
        "CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL "
        "MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR "
        "PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP "
        "TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
    ),
    3: ("BHD IQD JOD KWD LYD OMR TND"),
    4: ("CLF UYW"),
}

MINOR_DIGITS = {code: digits for digits, codes in _CODES_BY_DIGITS.items() for code in codes.split()}
"""ISO 4217: decimals of every currency that has a minor unit."""
