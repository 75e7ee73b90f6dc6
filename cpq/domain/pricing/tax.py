"""PURE. Tax by category: rounded per group, per line, or once for the document; or already inside the price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from cpq.base.money import MINOR_DIGITS, UNIT_PRICE_DIGITS, split_units
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT
from cpq.domain.pricing.result import TaxGroup


class MinorUnit:
    """Rounds to a currency's minor unit, in a named way. Called where the rules say so, nowhere else."""

    def __init__(self, currency: str, rounding: str) -> None:
        self.size: int = 10 ** (UNIT_PRICE_DIGITS - MINOR_DIGITS[currency])
        self._is_half_up = rounding == "half_up"

    def round(self, numerator: int, denominator: int) -> int:
        """The nearest whole number of minor units to a fraction, in millionths."""
        size = self.size
        whole = denominator * size
        if self._is_half_up:
            return (numerator + whole // 2) // whole * size  # A minor unit is an even number of millionths.
        quotient, rest = divmod(numerator, whole)
        return (quotient + (2 * rest > whole or (2 * rest == whole and quotient % 2 == 1))) * size


class TaxTable:
    """Collects what is taxed, and says the tax once all of it is there."""

    def __init__(self, rates: Mapping[str, int], mode: str, minor_unit: MinorUnit) -> None:
        self._rates = rates
        self._mode = mode
        self._minor_unit = minor_unit
        self._outside: defaultdict[str, int] = defaultdict(int)
        self._inside: defaultdict[str, int] = defaultdict(int)
        self._taxes: defaultdict[str, int] = defaultdict(int)
        self._unrounded: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, category: str, base: int) -> None:
        """An amount to which tax is added."""
        self._outside[category] += base
        if self._mode == "line":
            self._taxes[category] += self._minor_unit.round(base * self._rates[category], ONE_HUNDRED_PERCENT)

    def add_unrounded(self, category: str, numerator: int, denominator: int) -> None:
        """The exact fraction that an added amount was rounded from: what the mode `document` reckons with."""
        self._unrounded[category][denominator] += numerator

    def add_inside(self, category: str, base: int, tax: int) -> None:
        """An amount from which its tax was taken out."""
        self._inside[category] += base
        self._taxes[category] += tax

    def groups(self) -> tuple[TaxGroup, ...]:
        rates, taxes = self._rates, self._taxes
        if self._mode == "group":
            for category, base in self._outside.items():
                taxes[category] += self._minor_unit.round(base * rates[category], ONE_HUNDRED_PERCENT)
        if self._unrounded:
            self._round_once()
        categories = sorted(self._outside.keys() | self._inside.keys())
        return tuple(
            TaxGroup(name, rates[name], self._outside[name] + self._inside[name], taxes[name]) for name in categories
        )

    def _round_once(self) -> None:
        """One rounding for the whole document; the groups share it by what each would owe."""
        owed = {
            category: _sum([Fraction(n, d) for d, n in amounts.items()]) * self._rates[category]
            for category, amounts in sorted(self._unrounded.items())
        }
        whole = _sum(list(owed.values())) / ONE_HUNDRED_PERCENT
        tax = self._minor_unit.round(whole.numerator, whole.denominator)
        size = self._minor_unit.size
        for category, share in zip(owed, split_units(tax // size, [int(a) for a in owed.values()]), strict=True):
            self._taxes[category] += share * size


def _sum(amounts: list[Fraction]) -> Fraction:
    """In pairs, and pairs of those: one after the other, a thousand denominators would grow too long to add."""
    while len(amounts) > 1:
        pairs = zip(amounts[::2], amounts[1::2], strict=False)
        amounts = [one + other for one, other in pairs] + amounts[len(amounts) // 2 * 2 :]
    return amounts[0]
