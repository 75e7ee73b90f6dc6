"""Price book entries with what changes them by date: tiers, attribute prices, prices of components, costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

from cpq.base.money import UNIT_PRICE_DIGITS
from cpq.domain.catalog.salesforce.counterparts import Sold, sold_as
from cpq.domain.catalog.salesforce.exported import Export, Record
from cpq.domain.catalog.salesforce.identifiers import identifier
from cpq.domain.catalog.salesforce.losses import Losses

STANDARD_BOOK = "list"
MODEL = "ProductSellingModel.$$Name$SellingModelType"
BOOK = "Pricebook2.$$Name$IsStandard"
METHODS = {"Range": "volume", "Slab": "graduated"}
_MICRO = Decimal(1).scaleb(-UNIT_PRICE_DIGITS)


class Span(NamedTuple):
    """The days on which something counts."""

    first: date = date.min
    last: date = date.max

    def within(self, other: Span) -> Span:
        return Span(max(self.first, other.first), min(self.last, other.last))

    def covers(self, other: Span) -> bool:
        return self.first <= other.first and other.last <= self.last


class TierEffect(NamedTuple):
    span: Span
    tier_mode: str
    low: int
    high: int | None
    unit_price: Decimal


class SurchargeEffect(NamedTuple):
    """What an option adds; of several for one value the last counts."""

    span: Span
    option: str
    value: str
    amount: Decimal


@dataclass
class BookPrice:
    """A price book entry that is taken."""

    record: Record
    sku: str
    book: Record
    currency: str
    sold: Sold
    unit_price: Decimal
    span: Span
    tiers: list[TierEffect] = field(default_factory=list)
    surcharges: list[SurchargeEffect] = field(default_factory=list)
    cost: Decimal | None = None

    @property
    def offer(self) -> tuple[Sold, str, str]:
        """What another price must share to be added to it."""
        return self.sold, self.currency, self.book.key

    @property
    def is_plain(self) -> bool:
        return not self.tiers and not self.surcharges

    def rows(self, product_id: str) -> Iterator[dict[str, Any]]:
        """One row, or one for each time between two changes."""
        effects = [*(tier.span for tier in self.tiers), *(surcharge.span for surcharge in self.surcharges)]
        starts = {span.first for span in effects if span.first > date.min}
        starts |= {span.last + timedelta(days=1) for span in effects if span.last < date.max}
        ordered = [date.min, *sorted(starts)]
        for first, following in zip(ordered, [*ordered[1:], None], strict=True):
            between = Span(first, following - timedelta(days=1) if following else date.max)
            shown = between.within(self.span)
            if shown.first <= shown.last:
                yield self._row(product_id, between, shown)

    def _row(self, product_id: str, between: Span, shown: Span) -> dict[str, Any]:
        surcharges: dict[str, dict[str, Decimal]] = {}
        for one in self.surcharges:
            if one.span.covers(between):
                surcharges.setdefault(one.option, {})[one.value] = one.amount
        tiers = [tier for tier in self.tiers if tier.span.covers(between)]
        values: dict[str, Any] = {
            "product_id": product_id,
            "price_book": book_id(self.book),
            "currency": self.currency,
            "unit_price": self.unit_price,
            "billing_period": self.sold.billing_period,
            "selling_model": self.sold.selling_model,
            "cost": self.cost,
            "valid_from": shown.first.isoformat() if shown.first > date.min else None,
            "valid_to": shown.last.isoformat() if shown.last < date.max else None,
            "surcharges": surcharges or None,
        }
        if tiers:
            values |= {"tier_mode": tiers[0].tier_mode, "tiers": _tiling(tiers, self.unit_price)}
        return {name: value for name, value in values.items() if value is not None}


class BookPrices:
    """All price book entries of an export."""

    def __init__(self, export: Export, losses: Losses, described: Mapping[str, Record], *, with_inactive: bool) -> None:
        self._export = export
        self._losses = losses
        self._described = described
        self._with_inactive = with_inactive
        self.sold = {one.key: self._sold(one) for one in export.records("ProductSellingModel")}
        self.prices: dict[str, list[BookPrice]] = {}
        for one in export.records("PricebookEntry"):
            self._take(one)

    def of(self, sku: str) -> list[BookPrice]:
        return self.prices.get(sku, [])

    def matching(self, record: Record, product_column: str, schedule: Record | None) -> list[BookPrice]:
        """The prices that an adjustment is about: of its product, selling model, currency and schedule's book."""
        self._export.named(record, product_column, "Product2")
        self._export.named(record, MODEL, "ProductSellingModel")
        sold = self.sold.get(record.text(MODEL).partition(";")[0])
        book = schedule.text(BOOK).partition(";")[0] if schedule else ""
        wanted = (sold, record.text("CurrencyIsoCode"))
        prices = self.of(record.text(product_column))
        return [one for one in prices if (one.sold, one.currency) == wanted and book in ("", one.book.key)]

    def schedule(self, record: Record) -> tuple[Record | None, str]:
        """The schedule of an adjustment, and why the adjustment does not count, if it does not."""
        found = self._export.named(record, "PriceAdjustmentSchedule.Name", "PriceAdjustmentSchedule")
        if found is not None and found.text("IsActive").casefold() == "false" and not self._with_inactive:
            return found, "its schedule is not active; --inactive-schedules takes it"
        return found, ""

    def span(self, *records: Record | None) -> Span:
        """The days on which all of these count, from the cells EffectiveFrom and EffectiveTo."""
        span = Span()
        for one in records:
            if one is not None:
                first, last = self._day(one, "EffectiveFrom"), self._day(one, "EffectiveTo")
                span = span.within(Span(first or date.min, last or date.max))
        return span

    def adjusted(self, record: Record, value_column: str, base: Decimal) -> Decimal | None:
        """The price after an adjustment; None when its type is unknown or its value makes no sense."""
        value = self._export.number(record, value_column)
        kind = record.text("AdjustmentType")
        if value is None or kind not in ("Percentage", "Amount", "Override"):
            return None
        price = {"Percentage": base - base * value / 100, "Amount": base - value, "Override": value}[kind]
        if price < 0:
            self._export.refuse(record, value_column, f"takes a price of {base:f} below zero")
            return None
        return price.quantize(_MICRO, ROUND_HALF_UP).normalize() + 0

    def take_tiers(self) -> None:
        """Price adjustment tiers: the whole quantity, or each unit, at the price of its tier."""
        for one in self._export.records("PriceAdjustmentTier"):
            schedule, why = self.schedule(one)
            low, high = self._export.whole(one, "LowerBound"), self._export.whole(one, "UpperBound")
            prices = self.matching(one, "Product2.StockKeepingUnit", schedule)
            mode = METHODS.get(schedule.text("AdjustmentMethod")) if schedule else None
            if why or not prices or low is None or mode is None:
                self._losses.lose(one, why or ("no price that is here has it" if mode else "its method is unknown"))
                continue
            span = self.span(schedule, one)
            for price in prices:
                if (unit_price := self.adjusted(one, "TierValue", price.unit_price)) is not None:
                    price.tiers.append(TierEffect(span, mode, low, high, unit_price))
            self._losses.translate(one, "a tier of its price, from its first day on")
        for price in (price for prices in self.prices.values() for price in prices if price.tiers):
            self.check_tiers(price)

    def take_costs(self, default: Mapping[str, Sold]) -> None:
        """The cost of a product is that of its default selling model: the export does not say for which period."""
        books = {one.key: one for one in self._export.records("CostBook")}
        usual = next((name for name, one in books.items() if one.is_true("IsDefault")), "")
        used: set[str] = set()
        newest: dict[tuple[str, str, str], Record] = {}
        for one in sorted(self._export.records("CostBookEntry"), key=lambda one: one.text("EffectiveFrom")):
            self._export.named(one, "CostBook.Name", "CostBook")
            if self._export.named(one, "Product.StockKeepingUnit", "Product2") and not one.text("EffectiveTo"):
                newest[one.key, one.text("Product.StockKeepingUnit"), one.text("CurrencyIsoCode")] = one
        reached: dict[int, bool] = {}
        for price in (price for prices in self.prices.values() for price in prices):
            book = price.book.text("CostBook.Name") or usual
            entry = newest.get((book, price.sku, price.currency))
            if entry is not None and default.get(price.sku, price.sold) == price.sold:
                price.cost = self._export.number(entry, "Cost")
                reached[id(entry)] = len({one.sold for one in self.of(price.sku)}) > 1
                used.add(book)
        counted = {id(one) for one in newest.values()}
        for one in self._export.records("CostBookEntry"):
            self._settle_cost(one, reached.get(id(one)), is_newest=id(one) in counted)
        for name, one in books.items():
            if name in used:
                self._losses.translate(one, "its costs stand with the prices")
            else:
                self._losses.lose(one, "no price book uses it")

    def settle(self) -> None:
        for prices in self.prices.values():
            for price in prices:
                is_dated = not price.is_plain and len(list(price.rows(""))) > 1
                if is_dated:
                    self._losses.translate(price.record, "a price for each time between two changes")
                else:
                    self._losses.take(price.record, "a price")
        for one in self._export.records("ProductSellingModel"):
            self._settle_model(one)
        for one in self._export.records("Pricebook2"):
            if not one.text("IsActive"):
                self._losses.lose(one, "the export only names it")
            elif one.is_true("IsStandard"):
                self._losses.translate(one, f"the standard price book is {STANDARD_BOOK!r} here")
            else:
                self._losses.take(one, "a price book")

    def book_rows(self) -> Iterable[tuple[Record, dict[str, Any]]]:
        used = {price.book.key for prices in self.prices.values() for price in prices}
        for one in self._export.records("Pricebook2"):
            if one.key in used:
                is_default = one.is_true("IsStandard")
                yield one, {"id": book_id(one), "name": one.key, "is_default": is_default}

    def _settle_model(self, one: Record) -> None:
        sold = self.sold[one.key]
        if sold is None:
            term = f"{one.text('PricingTerm') or '?'} {one.text('PricingTermUnit') or '?'}"
            self._losses.lose(one, f"no billing period here is {term}")
        else:
            self._losses.translate(one, f"{sold.selling_model} by {sold.billing_period} prices")

    def _settle_cost(self, one: Record, is_of_default: bool | None, *, is_newest: bool) -> None:
        if is_of_default is not None:
            how = "the cost of its default selling model; the others have none" if is_of_default else ""
            if how:
                self._losses.translate(one, how)
            else:
                self._losses.take(one, "the cost of its price")
        elif one.text("EffectiveTo"):
            self._losses.lose(one, "a cost ends only with its price")
        elif not is_newest:
            self._losses.lose(one, "a later cost replaces it")
        else:
            self._losses.lose(one, "no price that is here has it")

    def _take(self, one: Record) -> None:
        product = self._export.named(one, "Product2.StockKeepingUnit", "Product2")
        model = self._export.named(one, MODEL, "ProductSellingModel")
        book = self._export.named(one, BOOK, "Pricebook2")
        unit_price = self._export.number(one, "UnitPrice")
        if product is None or model is None or book is None:
            return
        sold = self.sold[model.key]
        why = self._why_not(one, product, sold)
        if why:
            self._losses.lose(one, why)
        elif unit_price is None:
            self._export.refuse(one, "UnitPrice", "is empty")
        elif sold is not None:
            first, last = self._day(book, "ValidFrom"), self._day(book, "ValidTo")
            price = BookPrice(
                one,
                product.key,
                book,
                one.text("CurrencyIsoCode"),
                sold,
                unit_price,
                Span(first or date.min, last or date.max),
            )
            self.prices.setdefault(product.key, []).append(price)

    def _why_not(self, one: Record, product: Record, sold: Sold | None) -> str:
        if product.key not in self._described:
            return "its product is not described"
        if one.text("IsActive").casefold() == "false":
            return "it is not active"
        if one.is_true("IsDerived"):
            return "it is worked out from other lines, and the amount in the file is not a price"
        return "" if sold else "its billing period has no counterpart"

    def _sold(self, model: Record) -> Sold | None:
        count = self._export.whole(model, "PricingTerm", least=1)
        return sold_as(model.text("SellingModelType"), model.text("PricingTermUnit"), count or 1)

    def _day(self, record: Record, column: str) -> date | None:
        written = record.text(column)
        if not written:
            return None
        try:
            return date.fromisoformat(written[:10])
        except ValueError:
            self._export.refuse(record, column, f"{written[:40]!r} does not begin with a date such as 2026-01-31")
            return None

    def check_tiers(self, price: BookPrice) -> None:
        """Refuse tiers that count for the same units on the same day."""
        price.tiers.sort(key=lambda tier: tier.low)
        for before, after in zip(price.tiers, price.tiers[1:], strict=False):
            meet = before.span.first <= after.span.last and after.span.first <= before.span.last
            if meet and (before.low == after.low or (before.high or after.low) > after.low):
                column = "Product2" if price.record.table == "PricebookEntry" else "Product"
                message = f"{price.sku} has two tiers for {after.low} units in {price.currency}"
                self._export.refuse(price.record, f"{column}.StockKeepingUnit", message)
            elif meet and before.tier_mode != after.tier_mode:
                self._export.refuse(price.record, MODEL, "has tiers of two methods")


def book_id(book: Record) -> str:
    return STANDARD_BOOK if book.is_true("IsStandard") else identifier(book.key).lower()


def _tiling(tiers: list[TierEffect], unit_price: Decimal) -> list[dict[str, Any]]:
    """Tiers without a gap, for whole quantities: between those of the export the plain price counts."""
    found: list[dict[str, Any]] = []
    start = 1
    for tier, following in zip(tiers, [*tiers[1:], None], strict=True):
        if tier.low > start:
            found.append({"up_to": tier.low - 1, "unit_price": unit_price})
        ends = [end for end in (tier.high, following and following.low - 1) if end is not None]
        found.append({"up_to": min(ends, default=None), "unit_price": tier.unit_price})
        start = min(ends, default=0) + 1
    if found[-1]["up_to"] is not None:
        found.append({"up_to": None, "unit_price": unit_price})
    return [{name: value for name, value in tier.items() if value is not None} for tier in found]
