"""PURE. Rounds and splits amounts: exact fractions become whole minor units, and no cent is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any

from cpq.base.money import MINOR_DIGITS, UNIT_PRICE_DIGITS, Amount, amount

Exact = int | Fraction
"""An amount before rounding; an int where it is whole, because most are and ints are fast."""


class Rounding(StrEnum):
    """How an amount becomes a whole number of minor units."""

    HALF_UP = "half_up"
    HALF_EVEN = "half_even"


class PriceRounding(StrEnum):
    """To what a converted price is rounded."""

    EXACT = "exact"
    """Six decimals, as prices have at most."""
    MINOR_UNIT = "minor_unit"
    WHOLE = "whole"
    FIVE = "five"
    TEN = "ten"
    JUST_BELOW = "just_below"
    """The smallest coin below a whole unit, `.99`; in a currency without coins one below a hundred."""


class MinorUnit:
    """Rounds and splits amounts of one currency, in whole millionths. Used only where the pricing rules say so."""

    def __init__(self, currency: str, rounding: str = Rounding.HALF_UP) -> None:
        self.size: int = 10 ** (UNIT_PRICE_DIGITS - MINOR_DIGITS[currency])
        self._is_half_up = rounding == Rounding.HALF_UP

    def round(self, amount: Exact, share: int = 1, of: int = 1) -> int:
        """`amount * share / of`, rounded to minor units; a negative amount mirrors the positive one."""
        numerator, whole = amount.numerator * share, amount.denominator * of * self.size
        if numerator < 0:
            return -self.round(-amount, share, of)
        if self._is_half_up:
            return (numerator + whole // 2) // whole * self.size  # A minor unit is an even number of millionths.
        quotient, rest = divmod(numerator, whole)
        return (quotient + (2 * rest > whole or (2 * rest == whole and quotient % 2 == 1))) * self.size

    def allocate(self, amount: int, weights: Sequence[int], order: Callable[[int], Any] | None = None) -> list[int]:
        """Split whole minor units by weights of zero or more; the shares always add up.

        Uses the largest remainder. Of equal remainders the first wins, or with `order`, the index for which `order` is
        smallest. All-zero weights split equally; a negative amount mirrors the positive one.
        """
        size = self.size
        if amount < 0:
            return [-share for share in self.allocate(-amount, weights, order)]
        return [share * size for share in _split(amount // size, weights, order)]


def divide(numerator: Exact, denominator: Exact) -> Exact:
    """The exact quotient, as an int where it is whole."""
    quotient, rest = divmod(numerator, denominator)
    return Fraction(numerator, denominator) if rest else quotient


def added(amounts: Iterable[Exact]) -> Exact:
    """The exact sum, reduced once: most of the time of a sum of fractions goes into reducing each step."""
    above, below = 0, 1
    for one in amounts:
        if (under := one.denominator) == below:
            above += one.numerator
        else:
            above, below = above * under + one.numerator * below, below * under
    return above if below == 1 else divide(above, below)


def written(number: Exact) -> Amount | str:
    """A fraction, exactly: a number of up to six decimals, else a text such as `12 16/31`."""
    micro, rest = divmod(number.numerator * 1_000_000, number.denominator)
    if not rest:
        return amount(micro)
    whole, rest = divmod(number.numerator, number.denominator)
    # Always with its whole number, because a spreadsheet takes a lone `1/3` for a day.
    return f"{whole} {rest}/{number.denominator}"


def nearest(numerator: int, denominator: int) -> int:
    """The whole number nearest to a fraction; a half rounds up."""
    return (2 * numerator + denominator) // (2 * denominator)


def _split(units: int, weights: Sequence[int], order: Callable[[int], Any] | None) -> list[int]:
    total = sum(weights)
    if total == 0:
        weights, total = [1] * len(weights), len(weights)
    shares = [units * weight // total for weight in weights]
    if left := units - sum(shares):
        remainders = [units * weight - share * total for weight, share in zip(weights, shares, strict=True)]
        # A reverse sort keeps the order of equals.
        lucky = sorted(range(len(weights)), key=remainders.__getitem__, reverse=True)
        if order and left < len(lucky) and remainders[lucky[left - 1]] == remainders[lucky[left]]:
            last = remainders[lucky[left]]
            first = [index for index in lucky if remainders[index] > last]
            lucky = first + sorted((index for index in lucky if remainders[index] == last), key=order)
        for index in lucky[:left]:
            shares[index] += 1
    return shares
