"""PURE. Prices in another currency: converted at a dated rate, and rounded by the rule of their price book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from cpq.base.money import MINOR_DIGITS, UNIT_PRICE_DIGITS
from cpq.base.rounding import PriceRounding, nearest
from cpq.domain.pricing.price_selection import is_valid
from cpq.domain.pricing.request import Derived, PriceRow, Product, Tier

UNIT: int = 10**UNIT_PRICE_DIGITS


class Conversion(NamedTuple):
    """How a price book converts its prices into the currency of a quote."""

    base: str
    currency: str
    rate: Fraction
    """Units of `currency` for one unit of `base`."""
    rates_as_of: str
    rounding: PriceRounding


def completed(
    product: Product, base_rows: Iterable[PriceRow], conversions: Mapping[str, Conversion], as_of: str
) -> Product:
    """The product with the prices that its price books derive, each by the conversion of its book."""
    found = [derive(row, conversions[row.price_book_id or ""]) for row in lacking(product, base_rows, as_of)]
    if not found:
        return product
    return product._replace(rows=tuple(sorted((*product.rows, *found), key=lambda row: row.id)))


def lacking(product: Product, base_rows: Iterable[PriceRow], as_of: str) -> list[PriceRow]:
    """The prices to derive: those valid on the day whose book has no such price, of the same selling model, itself."""
    known = {(row.price_book_id, row.selling_model) for row in product.rows if is_valid(row, as_of)}
    return [row for row in base_rows if (row.price_book_id, row.selling_model) not in known and is_valid(row, as_of)]


def derive(row: PriceRow, conversion: Conversion) -> PriceRow:
    """A price in the currency of the quote. It keeps its id, which names the price it comes from.

    Unit prices follow the rule of the book; fees and surcharges are to the minor unit, and the cost has six decimals.
    So have the rates of a rate card: many are less than a minor unit.
    """
    currency, rate = conversion.currency, conversion.rate
    rounding = PriceRounding.EXACT if row.is_usage else conversion.rounding

    def price(amount: int) -> int:
        return rounded(amount * rate, rounding, currency)

    def fee(amount: int) -> int:
        return rounded(amount * rate, PriceRounding.MINOR_UNIT, currency)

    return row._replace(
        unit_price=price(row.unit_price),
        tiers=tuple(Tier(tier.up_to, price(tier.unit_price), fee(tier.flat_fee)) for tier in row.tiers),
        cost=None if row.cost is None else rounded(row.cost * rate, PriceRounding.EXACT, currency),
        minimum_spend=None if row.minimum_spend is None else fee(row.minimum_spend),
        maximum_spend=None if row.maximum_spend is None else fee(row.maximum_spend),
        surcharges={
            option: {value: fee(amount) for value, amount in amounts.items()}
            for option, amounts in row.surcharges.items()
        },
        derived=Derived(
            conversion.base,
            row.unit_price,
            rate.numerator,
            rate.denominator,
            conversion.rates_as_of,
            rounding.value,
            row.cost,
        ),
    )


def rounded(amount: Fraction, rule: PriceRounding, currency: str) -> int:
    """In millionths. A price that the rule would make free keeps six decimals: it is small, not nothing."""
    if amount <= 0:
        return -rounded(-amount, rule, currency) if amount else 0
    minor = 10 ** (UNIT_PRICE_DIGITS - MINOR_DIGITS[currency])
    step, below = minor, 0
    if rule is PriceRounding.JUST_BELOW:
        step, below = (UNIT, minor) if minor < UNIT else (100 * UNIT, UNIT)
    elif rule is not PriceRounding.MINOR_UNIT:
        step = _STEPS[rule]
    shifted = amount + below
    found = nearest(shifted.numerator, shifted.denominator * step) * step - below
    return found if found > 0 else max(1, nearest(amount.numerator, amount.denominator))


_STEPS: dict[PriceRounding, int] = {
    PriceRounding.EXACT: 1,
    PriceRounding.WHOLE: UNIT,
    PriceRounding.FIVE: 5 * UNIT,
    PriceRounding.TEN: 10 * UNIT,
}
