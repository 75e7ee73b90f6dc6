"""Rate cards as usage prices of their products: base rates, and the tiers that change them, each use by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cpq.domain.catalog.salesforce.book_prices import BookPrice, BookPrices, TierEffect
from cpq.domain.catalog.salesforce.counterparts import Sold
from cpq.domain.catalog.salesforce.exported import Export, Record
from cpq.domain.catalog.salesforce.losses import Losses

BILLED = Sold("usage", "monthly")
"""The export does not say how often use is billed."""

CARD = "RateCard.$$Name$Type"
UNIT = "RateUnitOfMeasure.UnitCode"
ENTRY = "RateCardEntry.$$Product.StockKeepingUnit$RateCard.Name$UsageResource.Code$RateUnitOfMeasure.UnitCode"

Use = tuple[str, str, str]
"""Product, what is used, and the currency."""


@dataclass
class Rate:
    """The price of one use of a product in one currency."""

    base: Record
    price: BookPrice
    tiers: list[Record] = field(default_factory=list)


class RateCards:
    """The entries of all rate cards that a price book has."""

    def __init__(self, export: Export, losses: Losses, prices: BookPrices, described: set[str]) -> None:
        self._export = export
        self._losses = losses
        self._prices = prices
        self._described = described
        self._books = self._books_of_cards()
        self._here: set[tuple[str, str]] = set()
        """What of other tables the rates name: table and key."""
        self._rates: dict[Use, Rate] = {}
        for one in export.records("RateCardEntry"):
            if not self._is_tier(one):
                self._take_base(one)
        self._take_tiers()

    def rows(self, sku: str, product_id: str) -> Iterator[tuple[Record, dict[str, Any]]]:
        """The usage prices of a product, each by the name of what is used."""
        for (owner, _, _), rate in self._rates.items():
            if owner == sku:
                own = {
                    "name": rate.base.text("UsageResource.Name"),
                    "unit": rate.base.text("DefaultUnitOfMeasure.Name"),
                }
                for values in rate.price.rows(product_id):
                    yield rate.base, {**values, **own}

    def sells(self, sku: str) -> bool:
        return any(owner == sku for owner, _, _ in self._rates)

    def has_unit(self, name: str) -> bool:
        return ("UnitOfMeasure", name) in self._here

    def settle(self) -> None:
        """Account for cards and for what is used, after all entries."""
        for one in self._export.records("RateCard"):
            if ("RateCard", one.key) in self._here:
                self._losses.translate(one, "its entries are usage prices")
            else:
                self._losses.lose(one, "no entry of it is here")
        for one in self._export.records("PriceBookRateCard"):
            if ("RateCard", _first(one.text(CARD))) in self._here:
                self._losses.translate(one, "the price book of the usage prices")
            else:
                self._losses.lose(one, "no entry of its rate card is here")
        for one in self._export.records("UsageResource"):
            if ("UsageResource", one.key) in self._here:
                self._losses.translate(one, "the name of usage prices")
            else:
                self._losses.lose(one, "no rate of it is here")

    def _books_of_cards(self) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for one in self._export.records("PriceBookRateCard"):
            card = self._export.named(one, CARD, "RateCard")
            book = self._export.named(one, "PriceBook.Name", "Pricebook2")
            if card is not None and book is not None:
                found.setdefault(card.key, book)
        return found

    def _is_tier(self, entry: Record) -> bool:
        card = self._export.named(entry, CARD, "RateCard")
        return card is not None and card.text("Type") == "Tier"

    def _take_base(self, one: Record) -> None:
        product = self._export.named(one, "Product.StockKeepingUnit", "Product2")
        rate = self._export.number(one, "Rate")
        card = _first(one.text(CARD))
        why = self._why_not(one)
        if product is None or why:
            self._losses.lose(one, why or "its product is not in the export")
        elif rate is None:
            self._export.refuse(one, "Rate", "is empty")
        elif (use := _use(one)) in self._rates:
            self._export.refuse(one, UNIT, f"{product.key} has two rates for {one.text('UsageResource.Name')}")
        else:
            currency, span = use[2], self._prices.span(self._export.find("RateCard", card), one)
            price = BookPrice(one, product.key, self._books[card], currency, BILLED, rate, span)
            self._rates[use] = Rate(one, price)
            self._note(one)
            self._losses.translate(one, "a usage price by the month: the export does not say when use is billed")

    def _take_tiers(self) -> None:
        """Tiers change the rate of the units inside them; beyond the last one the base rate counts again."""
        entries = {_place(one): one for one in self._export.records("RateCardEntry") if self._is_tier(one)}
        outcomes = {place: self._why_no_tiers(one) for place, one in entries.items()}
        for one in self._export.records("RateAdjustmentByTier"):
            place = one.text(ENTRY)
            if place not in entries:
                self._export.refuse(one, ENTRY, f"the export has no RateCardEntry {place!r}")
            elif outcomes[place] or one.text("RateCardEntryStatus") == "Inactive":
                self._losses.lose(one, outcomes[place] or "it is not active")
            else:
                self._rates[_use(entries[place])].tiers.append(one)
                self._losses.translate(one, "a tier of the usage price")
        for place, entry in entries.items():
            if outcomes[place]:
                self._losses.lose(entry, outcomes[place])
            else:
                self._note(entry)
                self._losses.translate(entry, "its tiers are those of the usage price")
        for rate in self._rates.values():
            self._tile(rate)

    def _tile(self, rate: Rate) -> None:
        highs = {self._export.whole(one, "UpperBound") for one in rate.tiers}
        for one in rate.tiers:
            low, high = self._export.whole(one, "LowerBound") or 0, self._export.whole(one, "UpperBound")
            adjusted = self._prices.adjusted(one, "AdjustmentValue", rate.price.unit_price)
            if adjusted is None:
                self._export.refuse(
                    one, "AdjustmentType", "Percentage, Amount and Override with a value are taken; this is another"
                )
                return
            # The unit at a bound that two tiers share is in the lower one.
            start = low + 1 if low in highs else max(low, 1)
            rate.price.tiers.append(TierEffect(self._prices.span(one), "graduated", start, high, adjusted))
        self._prices.check_tiers(rate.price)

    def _why_not(self, entry: Record) -> str:
        """Why an entry is no price here; empty if it is one."""
        if entry.text("Product.StockKeepingUnit") not in self._described:
            return "its product is not described"
        if entry.text("Status") == "Inactive":
            return "it is not active"
        if entry.text("RateUnitOfMeasureClass.Name") not in ("", "Currency"):
            return "its rate is in units that are no money"
        if _first(entry.text(CARD)) not in self._books:
            return "its rate card is in no price book"
        missing = {"UsageResource.Name": "what is used", "DefaultUnitOfMeasure.Name": "its unit"}
        return next((f"it does not say {what}" for column, what in missing.items() if not entry.text(column)), "")

    def _why_no_tiers(self, entry: Record) -> str:
        if why := self._why_not(entry):
            return why
        base = self._rates.get(_use(entry))
        if base is None:
            return "the product has no base rate that it changes"
        is_same = base.price.book is self._books[_first(entry.text(CARD))]
        return "" if is_same else "its price book has no base rate that it changes"

    def _note(self, entry: Record) -> None:
        self._here |= {
            ("RateCard", _first(entry.text(CARD))),
            ("UsageResource", entry.text("UsageResource.Name")),
            ("UnitOfMeasure", entry.text("DefaultUnitOfMeasure.Name")),
            ("UnitOfMeasure", entry.text("RateUnitOfMeasure.Name")),
        }


def _use(entry: Record) -> Use:
    return entry.text("Product.StockKeepingUnit"), entry.text("UsageResource.Name"), entry.text(UNIT)


def _place(entry: Record) -> str:
    """The entry as a tier names it."""
    return ";".join(
        (
            entry.text("Product.StockKeepingUnit"),
            _first(entry.text(CARD)),
            entry.text("UsageResource.Code"),
            entry.text(UNIT),
        )
    )


def _first(composite: str) -> str:
    return composite.partition(";")[0]
