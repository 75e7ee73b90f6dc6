"""PURE. Stage 9, tax by category code and rate: rounded per group, line or document; or included in the price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from cpq.base.rounding import MinorUnit, divide
from cpq.domain.pricing.parts import LinePrice, Part
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Request
from cpq.domain.pricing.result import Stage, TaxGroup

TAX = Stage.TAX


def tax_lines(prices: Sequence[LinePrice], request: Request, minor_unit: MinorUnit) -> tuple[TaxGroup, ...]:
    """Stage 9: the tax of the quote in groups, added to net prices and extracted from prices that include it."""
    table = TaxTable(_rates(request), request.tax_rounding, minor_unit, request.tax_codes)
    is_document = request.tax_rounding == "document"
    for price in prices:
        if price.plan.is_tax_included:
            _take_tax_out(price, table, request, minor_unit)
            continue
        if price.tax_weights:
            _add_mixed(price, table, minor_unit)
        else:
            table.add(price.plan.tax_category, price.net)
        if is_document:
            _add_unrounded(price, table, request.requested_discount)
    return table.groups(request.tax_reasons)


def tax_note(request: Request, groups: Sequence[TaxGroup]) -> str | None:
    """Why tax is not charged; a request without codes has only the note of its account."""
    if not request.tax_codes:
        return request.tax_note if request.tax_status != "taxable" else None
    return "; ".join(dict.fromkeys(group.reason for group in groups if group.reason)) or None


def level_list_tax(part: Part, rates: Mapping[str, int]) -> None:
    """Make the list amount include tax exactly when the charged price does."""
    plan = part.plan
    if plan.row.tax_included == plan.listed.tax_included:
        return
    taxed = plan.row if plan.is_tax_included else plan.listed
    with_tax, without = ONE_HUNDRED_PERCENT + rates.get(taxed.tax_category, 0), ONE_HUNDRED_PERCENT
    factor, divisor = (with_tax, without) if plan.is_tax_included else (without, with_tax)
    part.listed = divide(part.listed * factor, divisor)
    part.listed_divisor *= divisor


def _rates(request: Request) -> Mapping[str, int]:
    """The tax rates of the account: none when it is exempt or declares the tax itself."""
    return request.tax_rates if request.tax_status == "taxable" else defaultdict(int)


def _take_tax_out(price: LinePrice, table: TaxTable, request: Request, minor_unit: MinorUnit) -> None:
    """Remove the included tax from the amounts of a line."""
    category, gross = price.plan.tax_category, price.net
    rate = request.tax_rates[category]
    price.net, price.regular, price.list_amount = (
        minor_unit.round(amount, ONE_HUNDRED_PERCENT, ONE_HUNDRED_PERCENT + rate)
        for amount in (gross, price.regular, price.list_amount)
    )
    table.add_inside(category, price.net, gross - price.net if request.tax_status == "taxable" else 0)
    price.note(TAX, price.net, f"{category}, included", rate)


def _add_mixed(price: LinePrice, table: TaxTable, minor_unit: MinorUnit) -> None:
    """Split a bundle's amount between its tax groups by the weights of its parts."""
    weights = table.by_group(price.tax_weights)
    shares = minor_unit.allocate(price.net, [weight for _, weight in weights])
    for (category, _), share in zip(weights, shares, strict=True):
        table.add(category, share)


def _add_unrounded(price: LinePrice, table: TaxTable, requested: int) -> None:
    """Add the exact net price by tax category."""
    kept = (ONE_HUNDRED_PERCENT - price.line.discount) * (ONE_HUNDRED_PERCENT - requested)
    weights = price.tax_weights or ((price.plan.tax_category, 1),)
    below = price.amount.denominator * ONE_HUNDRED_PERCENT**2 * sum([weight for _, weight in weights])
    for category, weight in weights:
        table.add_unrounded(category, price.amount.numerator * kept * weight, below)


Key = tuple[str, int]
"""A tax group: category code and rate, or category and rate where a request has no codes."""


class TaxTable:
    """Collects the taxed amounts by group and then computes the tax."""

    def __init__(
        self, rates: Mapping[str, int], mode: str, minor_unit: MinorUnit, codes: Mapping[str, str] | None = None
    ) -> None:
        self._rates = rates
        self._mode = mode
        self._minor_unit = minor_unit
        self._codes = codes or {}
        self._keys: dict[str, Key] = {}
        self._outside: defaultdict[Key, int] = defaultdict(int)
        self._inside: defaultdict[Key, int] = defaultdict(int)
        self._taxes: defaultdict[Key, int] = defaultdict(int)
        self._unrounded: defaultdict[Key, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, category: str, base: int) -> None:
        """Add an amount without its tax."""
        key = self._key(category)
        self._outside[key] += base
        if self._mode == "line":
            self._taxes[key] += self._tax(key, base)

    def add_unrounded(self, category: str, numerator: int, denominator: int) -> None:
        """Add the exact fraction of a rounded amount: the tax base in the mode `document`."""
        self._unrounded[self._key(category)][denominator] += numerator

    def add_inside(self, category: str, base: int, tax: int) -> None:
        """Add an amount and the tax that was extracted from it."""
        key = self._key(category)
        self._inside[key] += base
        self._taxes[key] += tax

    def by_group(self, weights: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """One weight for each group, under the first of its categories."""
        merged: dict[Key, tuple[str, int]] = {}
        for category, weight in weights:
            first, sum_ = merged.get(self._key(category), (category, 0))
            merged[self._key(category)] = first, sum_ + weight
        return list(merged.values())

    def groups(self, reasons: Mapping[str, str] | None = None) -> tuple[TaxGroup, ...]:
        """The groups in a stable order: the highest rate first, then by code; without codes by category."""
        if self._mode == "group":
            for key, base in self._outside.items():
                self._taxes[key] += self._tax(key, base)
        if self._unrounded:
            self._round_once()
        keys = sorted(self._outside.keys() | self._inside.keys())
        if not self._codes:
            return tuple(TaxGroup(*key, *self._amounts(key)) for key in keys)
        return tuple(self._coded(key, reasons or {}) for key in sorted(keys, key=lambda key: -key[1]))

    def _key(self, category: str) -> Key:
        key = self._keys.get(category)
        if key is None:
            key = self._keys[category] = self._codes.get(category, category), self._rates[category]
        return key

    def _tax(self, key: Key, base: int) -> int:
        return self._minor_unit.round(base, key[1], ONE_HUNDRED_PERCENT)

    def _amounts(self, key: Key) -> tuple[int, int]:
        return self._outside[key] + self._inside[key], self._taxes[key]

    def _coded(self, key: Key, reasons: Mapping[str, str]) -> TaxGroup:
        code, rate = key
        categories = sorted(category for category, found in self._keys.items() if found == key)
        reason = "; ".join(dict.fromkeys(reasons[category] for category in categories if category in reasons))
        return TaxGroup(", ".join(categories), rate, *self._amounts(key), code, reason or None)

    def _round_once(self) -> None:
        """Round once for the whole document; the groups share the result in proportion to their exact tax."""
        owed = {
            key: _sum([Fraction(n, d) for d, n in amounts.items()]) * key[1]
            for key, amounts in sorted(self._unrounded.items())
        }
        tax = self._minor_unit.round(_sum(list(owed.values())), 1, ONE_HUNDRED_PERCENT)
        shares = self._minor_unit.allocate(tax, [int(amount) for amount in owed.values()])
        for key, share in zip(owed, shares, strict=True):
            self._taxes[key] += share


def _sum(amounts: list[Fraction]) -> Fraction:
    """The sum, computed in pairs: added in sequence, a thousand denominators would grow too long."""
    while len(amounts) > 1:
        pairs = zip(amounts[::2], amounts[1::2], strict=False)
        amounts = [one + other for one, other in pairs] + amounts[len(amounts) // 2 * 2 :]
    return amounts[0]
