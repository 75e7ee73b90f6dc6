"""PURE. Stage 9, tax by category: rounded per group, per line or once per document; or included in the price."""

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
    """Stage 9: the tax of the quote by category, added to net prices and extracted from prices that include it."""
    table = TaxTable(_rates(request), request.tax_rounding, minor_unit)
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
    return table.groups()


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
    """Split a bundle's amount between its tax categories by the weights of its parts."""
    shares = minor_unit.allocate(price.net, [weight for _, weight in price.tax_weights])
    for (category, _), share in zip(price.tax_weights, shares, strict=True):
        table.add(category, share)


def _add_unrounded(price: LinePrice, table: TaxTable, requested: int) -> None:
    """Add the exact net price by tax category."""
    kept = (ONE_HUNDRED_PERCENT - price.line.discount) * (ONE_HUNDRED_PERCENT - requested)
    weights = price.tax_weights or ((price.plan.tax_category, 1),)
    below = price.amount.denominator * ONE_HUNDRED_PERCENT**2 * sum([weight for _, weight in weights])
    for category, weight in weights:
        table.add_unrounded(category, price.amount.numerator * kept * weight, below)


class TaxTable:
    """Collects the taxed amounts and then computes the tax."""

    def __init__(self, rates: Mapping[str, int], mode: str, minor_unit: MinorUnit) -> None:
        self._rates = rates
        self._mode = mode
        self._minor_unit = minor_unit
        self._outside: defaultdict[str, int] = defaultdict(int)
        self._inside: defaultdict[str, int] = defaultdict(int)
        self._taxes: defaultdict[str, int] = defaultdict(int)
        self._unrounded: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, category: str, base: int) -> None:
        """Add an amount without its tax."""
        self._outside[category] += base
        if self._mode == "line":
            self._taxes[category] += self._minor_unit.round(base, self._rates[category], ONE_HUNDRED_PERCENT)

    def add_unrounded(self, category: str, numerator: int, denominator: int) -> None:
        """Add the exact fraction of a rounded amount: the tax base in the mode `document`."""
        self._unrounded[category][denominator] += numerator

    def add_inside(self, category: str, base: int, tax: int) -> None:
        """Add an amount and the tax that was extracted from it."""
        self._inside[category] += base
        self._taxes[category] += tax

    def groups(self) -> tuple[TaxGroup, ...]:
        rates, taxes = self._rates, self._taxes
        if self._mode == "group":
            for category, base in self._outside.items():
                taxes[category] += self._minor_unit.round(base, rates[category], ONE_HUNDRED_PERCENT)
        if self._unrounded:
            self._round_once()
        categories = sorted(self._outside.keys() | self._inside.keys())
        return tuple(
            TaxGroup(name, rates[name], self._outside[name] + self._inside[name], taxes[name]) for name in categories
        )

    def _round_once(self) -> None:
        """Round once for the whole document; the groups share the result in proportion to their exact tax."""
        owed = {
            category: _sum([Fraction(n, d) for d, n in amounts.items()]) * self._rates[category]
            for category, amounts in sorted(self._unrounded.items())
        }
        tax = self._minor_unit.round(_sum(list(owed.values())), 1, ONE_HUNDRED_PERCENT)
        shares = self._minor_unit.allocate(tax, [int(amount) for amount in owed.values()])
        for category, share in zip(owed, shares, strict=True):
            self._taxes[category] += share


def _sum(amounts: list[Fraction]) -> Fraction:
    """The sum, computed in pairs: added in sequence, a thousand denominators would grow too long."""
    while len(amounts) > 1:
        pairs = zip(amounts[::2], amounts[1::2], strict=False)
        amounts = [one + other for one, other in pairs] + amounts[len(amounts) // 2 * 2 :]
    return amounts[0]
