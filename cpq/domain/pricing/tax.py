"""PURE. Stage 9, tax by category code and rate: rounded per group, line or document; or included in the price.

Where a line bears several taxes, each is a group of its own: by tax, category code and rate. A tax on top of others has
them in its base, which is rounded once, like the tax.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm

from cpq.base.rounding import MinorUnit, divide
from cpq.domain.pricing.parts import LinePrice, Part
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Request, Tax
from cpq.domain.pricing.result import Stage, TaxGroup

TAX = Stage.TAX


def tax_lines(prices: Sequence[LinePrice], request: Request, minor_unit: MinorUnit) -> tuple[TaxGroup, ...]:
    """Stage 9: the tax of the quote in groups, added to net prices and extracted from prices that include it."""
    table = TaxTable(_rates(request), request.tax_rounding, minor_unit, request.tax_codes, _several(request))
    is_document = request.tax_rounding == "document"
    for price in prices:
        if price.line.credit:
            _add_credit(price, table, minor_unit, is_document=is_document)
        if price.plan.is_tax_included:
            _take_tax_out(price, table, request, minor_unit)
            continue
        if price.tax_weights:
            _add_mixed(price, table, minor_unit)
        else:
            table.add(price.plan.tax_category, price.net)
        if is_document:
            _add_unrounded(price, table, request)
    return table.groups(request.tax_reasons)


def tax_note(request: Request, groups: Sequence[TaxGroup]) -> str | None:
    """Why tax is not charged; a request without codes has only the note of its account."""
    if not request.tax_codes:
        return request.tax_note if request.tax_status != "taxable" else None
    return "; ".join(dict.fromkeys(group.reason for group in groups if group.reason)) or None


def shares(taxes: Sequence[Tax]) -> dict[str, Fraction]:
    """By tax, the share of the net amount that it is; one on top of others is also a share of theirs."""
    found: dict[str, Fraction] = {}
    for tax in taxes:
        found[tax.name] = Fraction(tax.rate, ONE_HUNDRED_PERCENT) * (1 + sum(found[name] for name in tax.on_top_of))
    return found


def level_list_tax(part: Part, request: Request) -> None:
    """Make the list amount include tax exactly when the charged price does."""
    plan = part.plan
    if plan.row.tax_included == plan.listed.tax_included:
        return
    taxed = plan.row if plan.is_tax_included else plan.listed
    with_tax, without = _with_tax(request, taxed.tax_category)
    factor, divisor = (with_tax, without) if plan.is_tax_included else (without, with_tax)
    part.listed = divide(part.listed * factor, divisor)
    part.listed_divisor *= divisor


def _rates(request: Request) -> Mapping[str, int]:
    """The tax rates of the account: none when it is exempt or declares the tax itself."""
    return request.tax_rates if request.tax_status == "taxable" else defaultdict(int)


def _several(request: Request) -> Mapping[str, tuple[Tax, ...]]:
    """The taxes of categories that bear several; an account that pays none has its own code for all of them."""
    return request.taxes if request.tax_status == "taxable" else {}


def _with_tax(request: Request, category: str) -> tuple[int, int]:
    """A price with its tax as a share of the price without it, exactly."""
    if category in request.taxes:
        found = 1 + sum(shares(request.taxes[category]).values())
        return found.numerator, found.denominator
    return ONE_HUNDRED_PERCENT + request.tax_rates.get(category, 0), ONE_HUNDRED_PERCENT


def _take_tax_out(price: LinePrice, table: TaxTable, request: Request, minor_unit: MinorUnit) -> None:
    """Remove the included tax from the amounts of a line."""
    category, gross = price.plan.tax_category, price.net
    with_tax, without = _with_tax(request, category)
    price.net, price.regular, price.list_amount = (
        minor_unit.round(amount, without, with_tax) for amount in (gross, price.regular, price.list_amount)
    )
    table.add_inside(category, price.net, gross - price.net if request.tax_status == "taxable" else 0)
    price.note(TAX, price.net, f"{category}, included", request.tax_rates[category])


def _add_mixed(price: LinePrice, table: TaxTable, minor_unit: MinorUnit) -> None:
    """Split a bundle's amount between its tax groups by the weights of its parts."""
    weights = table.by_group(price.tax_weights)
    shares = minor_unit.allocate(price.net, [weight for _, weight in weights])
    for (category, _), share in zip(weights, shares, strict=True):
        table.add(category, share)


def _add_credit(price: LinePrice, table: TaxTable, minor_unit: MinorUnit, *, is_document: bool) -> None:
    """Take what is given back from the bases of the line's taxes; it is without tax, whatever the price includes."""
    weights = table.by_group(price.tax_weights or ((price.plan.tax_category, 1),))
    shares = minor_unit.allocate(-price.line.credit, [weight for _, weight in weights])
    for (category, _), share in zip(weights, shares, strict=True):
        table.add(category, share)
        if is_document:
            table.add_unrounded(category, share, 1)


def _add_unrounded(price: LinePrice, table: TaxTable, request: Request) -> None:
    """Add the exact net price by tax category; where an amount was taken off, the net price is exact as it is."""
    kept = (ONE_HUNDRED_PERCENT - price.line.discount) * (ONE_HUNDRED_PERCENT - request.requested_discount)
    amount = price.amount
    if request.edition > 3 and (price.line.amount_off or request.requested_amount):
        amount, kept = price.net, ONE_HUNDRED_PERCENT**2
    elif request.edition > 3 and price.given is not None:
        amount = price.given
    weights = price.tax_weights or ((price.plan.tax_category, 1),)
    below = amount.denominator * ONE_HUNDRED_PERCENT**2 * sum([weight for _, weight in weights])
    for category, weight in weights:
        table.add_unrounded(category, amount.numerator * kept * weight, below)


Key = tuple[str, int] | tuple[str, int, str]
"""A tax group: category code and rate, or category and rate where a request has no codes; the name of several taxes."""


class TaxTable:
    """Collects the taxed amounts by group and then computes the tax."""

    def __init__(
        self,
        rates: Mapping[str, int],
        mode: str,
        minor_unit: MinorUnit,
        codes: Mapping[str, str] | None = None,
        several: Mapping[str, tuple[Tax, ...]] | None = None,
    ) -> None:
        self._rates = rates
        self._mode = mode
        self._minor_unit = minor_unit
        self._codes = codes or {}
        self._several = several or {}
        self._keys: dict[str, Key] = {}
        self._named: dict[Key, set[str]] = {}
        """The categories of each group of several taxes."""
        self._bases: dict[str, list[tuple[Tax, Fraction]]] = {}
        self._above: defaultdict[Key, Fraction] = defaultdict(Fraction)
        """The part of a base that is other taxes, before it is rounded."""
        self._outside: defaultdict[Key, int] = defaultdict(int)
        self._inside: defaultdict[Key, int] = defaultdict(int)
        self._taxes: defaultdict[Key, int] = defaultdict(int)
        self._unrounded: defaultdict[Key, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, category: str, base: int) -> None:
        """Add an amount without its tax."""
        if category in self._several:
            self._add_several(category, base)
            return
        key = self._key(category)
        self._outside[key] += base
        if self._mode == "line":
            self._taxes[key] += self._tax(key, base)

    def add_unrounded(self, category: str, numerator: int, denominator: int) -> None:
        """Add the exact fraction of a rounded amount: the tax base in the mode `document`."""
        if category not in self._several:
            self._unrounded[self._key(category)][denominator] += numerator
            return
        for tax, above in self._taxes_of(category):
            key = self._key_of(category, tax)
            self._unrounded[key][denominator * above.denominator] += numerator * (above.numerator + above.denominator)

    def add_inside(self, category: str, base: int, tax: int) -> None:
        """Add an amount and the tax that was extracted from it."""
        if category in self._several:
            self._add_several_inside(category, base, tax)
            return
        key = self._key(category)
        self._inside[key] += base
        self._taxes[key] += tax

    def by_group(self, weights: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """One weight for each group, under the first of its categories."""
        merged: dict[object, tuple[str, int]] = {}
        for category, weight in weights:
            taxed = self._several.get(category) or self._key(category)
            first, sum_ = merged.get(taxed, (category, 0))
            merged[taxed] = first, sum_ + weight
        return list(merged.values())

    def groups(self, reasons: Mapping[str, str] | None = None) -> tuple[TaxGroup, ...]:
        """The groups in a stable order: the highest rate first, then by code; without codes by category.

        Several taxes come in their own order.
        """
        for key, above in self._above.items():
            self._outside[key] += self._minor_unit.round(above)
        if self._mode == "group":
            for key, base in self._outside.items():
                self._taxes[key] += self._tax(key, base)
        if self._unrounded:
            self._round_once()
        keys = sorted(self._outside.keys() | self._inside.keys())
        if not self._codes and not self._named:
            return tuple(TaxGroup(key[0], key[1], *self._amounts(key)) for key in keys)
        places = self._places()
        keys.sort(key=lambda key: (places.get(key[2:], 0), -key[1]))
        return tuple(self._coded(key, reasons or {}) for key in keys)

    def _key(self, category: str) -> Key:
        key = self._keys.get(category)
        if key is None:
            key = self._keys[category] = self._codes.get(category, category), self._rates[category]
        return key

    def _key_of(self, category: str, tax: Tax) -> Key:
        key = tax.code, tax.rate, tax.name
        self._named.setdefault(key, set()).add(category)
        return key

    def _places(self) -> dict[tuple[str, ...], int]:
        """The order of several taxes: that of the category with most of them, whatever the order of the lines."""
        categories = sorted(self._several, key=lambda category: (-len(self._several[category]), category))
        names = dict.fromkeys((tax.name,) for category in categories for tax in self._several[category])
        return {name: place for place, name in enumerate(names)}

    def _taxes_of(self, category: str) -> list[tuple[Tax, Fraction]]:
        """The taxes of a category, each with the share of the net amount by which its base is larger."""
        known = self._bases.get(category)
        if known is None:
            taxes = self._several[category]
            found = shares(taxes)
            known = [(tax, sum((found[name] for name in tax.on_top_of), Fraction(0))) for tax in taxes]
            self._bases[category] = known
        return known

    def _add_several(self, category: str, net: int) -> None:
        charged: dict[str, int] = {}
        for tax, above in self._taxes_of(category):
            key = self._key_of(category, tax)
            self._outside[key] += net
            if self._mode != "line":
                if above:
                    self._above[key] += net * above
                continue
            below = sum(charged[name] for name in tax.on_top_of)
            self._outside[key] += below
            charged[tax.name] = self._tax(key, net + below)
            self._taxes[key] += charged[tax.name]

    def _add_several_inside(self, category: str, net: int, total: int) -> None:
        """The taxes share what was extracted by what each would be."""
        taxes = self._several[category]
        found = list(shares(taxes).values())
        whole = lcm(*(share.denominator for share in found))
        split = self._minor_unit.allocate(total, [int(share * whole) for share in found])
        charged = {tax.name: part for tax, part in zip(taxes, split, strict=True)}
        for tax in taxes:
            key = self._key_of(category, tax)
            self._inside[key] += net + sum(charged[name] for name in tax.on_top_of)
            self._taxes[key] += charged[tax.name]

    def _tax(self, key: Key, base: int) -> int:
        return self._minor_unit.round(base, key[1], ONE_HUNDRED_PERCENT)

    def _amounts(self, key: Key) -> tuple[int, int]:
        return self._outside[key] + self._inside[key], self._taxes[key]

    def _coded(self, key: Key, reasons: Mapping[str, str]) -> TaxGroup:
        code, rate, *names = key
        categories = sorted(self._named.get(key) or [one for one, found in self._keys.items() if found == key])
        if names:
            return TaxGroup(", ".join(categories), rate, *self._amounts(key), code, None, names[0])
        reason = "; ".join(dict.fromkeys(reasons[category] for category in categories if category in reasons))
        return TaxGroup(", ".join(categories), rate, *self._amounts(key), code, reason or None)

    def _round_once(self) -> None:
        """Round once for the whole document; the groups share the result in proportion to their exact tax."""
        owed = {
            key: _sum([Fraction(n, d) for d, n in amounts.items()]) * key[1]
            for key, amounts in sorted(self._unrounded.items())
        }
        if any(amount < 0 for amount in owed.values()):  # A change gives back some and charges others.
            for key, amount in owed.items():
                self._taxes[key] += self._minor_unit.round(amount, 1, ONE_HUNDRED_PERCENT)
            return
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
