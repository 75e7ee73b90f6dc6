"""Translates a Salesforce export to rows of our catalogue, and accounts for every row of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from cpq.base.row_problems import SourceRow
from cpq.domain.catalog.salesforce import counterparts
from cpq.domain.catalog.salesforce.attribute_options import AttributeOptions, ProductAttributes
from cpq.domain.catalog.salesforce.book_prices import MODEL, BookPrices, SurchargeEffect
from cpq.domain.catalog.salesforce.card_entries import RateCards
from cpq.domain.catalog.salesforce.component_groups import SENTENCE_LENGTH_MAX, BundleParts, ComponentGroups
from cpq.domain.catalog.salesforce.constraint_models import LISTED_AS, ConstraintModels, PartCount
from cpq.domain.catalog.salesforce.counterparts import Sold
from cpq.domain.catalog.salesforce.exported import KEYS, Export, ExportedFile, ExportedRow, ExportProblem, Record
from cpq.domain.catalog.salesforce.identifiers import identifier
from cpq.domain.catalog.salesforce.losses import FileCount, Losses, ReasonCount
from cpq.domain.configuration.options import spelled
from cpq.domain.field_types import QUANTITY_DECIMALS_MAX

UNCATEGORIZED = "uncategorized"


class Translation(NamedTuple):
    """Rows for the importer with the places they come from, and the account of the export's rows."""

    rows: list[SourceRow]
    """The line of a row is its place in `origins`, from 1."""
    origins: list[ExportedRow]
    problems: list[ExportProblem]
    files: list[FileCount]
    reasons: list[ReasonCount]
    model_parts: list[PartCount]
    """What became of the parts of constraint models."""


def translate(files: Sequence[ExportedFile], *, with_inactive_schedules: bool = False) -> Translation:
    """Translate an export as a whole. With problems nothing of it is to be imported, and nothing is accounted for."""
    export = Export(files)
    work = _Work(export, Losses(), with_inactive_schedules)
    rows, origins = work.rows() if not export.problems else ([], [])
    if export.problems:
        problems = sorted(export.problems, key=lambda problem: (problem.file, problem.line))
        return Translation([], [], problems, [], [], [])
    work.account(files)
    counts = work.losses.by_file(files, counterparts.USED_COLUMNS)
    return Translation(rows, origins, [], counts, work.losses.by_reason(files), work.models.parts())


@dataclass
class _Work:
    """The translation of one export."""

    export: Export
    losses: Losses
    with_inactive: bool

    def __post_init__(self) -> None:
        products = self.export.records("Product2")
        self._described = {one.key: one for one in products if one.text("Name")}
        self._ids = self._identify()
        self._attributes = AttributeOptions(self.export)
        self._own = {sku: self._attributes.of(product) for sku, product in self._described.items()}
        self.models = ConstraintModels(self.export.files, self._described)
        self.models.narrow(self._own)
        self._prices = BookPrices(self.export, self.losses, self._described, with_inactive=self.with_inactive)
        self._rates = RateCards(self.export, self.losses, self._prices, set(self._described))
        self._pairs = {kind: self.models.pairs(kind) for kind in LISTED_AS}
        self._defaults = self._default_models()
        self._prices.take_tiers()
        self._take_attribute_prices()
        self._prices.take_costs(self._defaults)
        self._groups = ComponentGroups(self.export, self.losses, self._prices, self.models.bounds())
        self._categories = self._categorize()

    def rows(self) -> tuple[list[SourceRow], list[ExportedRow]]:
        """The rows of our catalogue, each kind before those that refer to it."""
        found: list[tuple[str, Record, dict[str, Any]]] = []
        found += [("categories", one, values) for one, values in self._category_rows()]
        products = [("products", one, self._product_row(one)) for one in self._described.values()]
        found += products
        found += [("price_books", one, values) for one, values in self._prices.book_rows()]
        for sku, prices in self._prices.prices.items():
            for price in prices:
                found += [("prices", price.record, values) for values in price.rows(self._ids[sku])]
        for sku in self._described:
            found += [("prices", record, values) for record, values in self._rates.rows(sku, self._ids[sku])]
        rows = [SourceRow(section, line, values) for line, (section, _, values) in enumerate(found, 1)]
        return rows, [record.rows[0] for _, record, _ in found]

    def account(self, files: Iterable[ExportedFile]) -> None:
        """Give every row of the export its outcome; those of prices, components and adjustments have theirs."""
        for one in self.export.records("Product2"):
            if one.key not in self._described:
                self.losses.lose(one, "the export does not describe this product")
            elif self._ids[one.key] == one.key:
                self.losses.take(one, "a product")
            else:
                self.losses.translate(one, "a product; its id has dashes where its SKU has other signs")
        self._attributes.settle(self.losses)
        self._prices.settle()
        self._rates.settle()
        self._groups.settle()
        self._account_for_names()
        self.models.settle(self.losses, self._groups.related)
        for file in files:
            if file.table not in KEYS and not file.is_constraint_model:
                why = counterparts.NO_COUNTERPARTS.get(file.table, counterparts.UNKNOWN_TABLE)
                self.losses.lose_rows(file.rows, why)

    def _identify(self) -> dict[str, str]:
        ids = {sku: identifier(sku) for sku in self._described}
        owners: dict[str, str] = {}
        for sku, id_ in ids.items():
            owner = owners.setdefault(id_, sku)
            if owner != sku:
                message = f"{sku!r} and {owner!r} would both have the id {id_!r}"
                self.export.refuse(self._described[sku], "StockKeepingUnit", message)
        return ids

    def _product_row(self, product: Record) -> dict[str, Any]:
        own = self._own[product.key]
        parts = self._groups.of(product, [*own.options, *own.facts])
        options = own.options | parts.options
        facts = {name: product.text(column) for name, column in _FACTS.items() if product.text(column)}
        if facts.get("product_code") == product.key:
            del facts["product_code"]
        values: dict[str, Any] = {
            "id": self._ids[product.key],
            "sku": product.key,
            "name": product.text("Name"),
            "description": product.text("Description"),
            "category": self._categories[product.key],
            "active": product.text("IsActive").casefold() != "false",
            "product_type": "bundle" if parts.parts else "configurable" if options else "simple",
            "attributes": facts | own.facts,
            "options": options,
            "rules": parts.rules + self._pair_rules(parts),
            "relationships": self._relationships(product, parts),
            "default_selling_model": self._default_word(product.key),
            **self._unit(product),
        }
        return {name: value for name, value in values.items() if value not in (None, "", {}, [])}

    def _relationships(self, product: Record, parts: BundleParts) -> list[dict[str, Any]]:
        required = self._with_pairs("requires", product, parts.required)
        recommended = self._with_pairs("recommends", product, parts.recommended)
        kinds = {
            "component": parts.parts,
            "requires": required,
            "excludes": self._with_pairs("excludes", product, {}),
            "recommends": {sku: quantity for sku, quantity in recommended.items() if sku not in required},
        }
        return [
            {"kind": kind, "product_id": self._ids[sku], "quantity": quantity}
            for kind, others in kinds.items()
            for sku, quantity in others.items()
            if sku in self._ids and sku != product.key
        ]

    def _with_pairs(self, kind: str, product: Record, known: dict[str, int]) -> dict[str, int]:
        return known | {sku: 1 for sku in self._pairs[kind].get(product.key, ()) if sku not in known}

    def _pair_rules(self, parts: BundleParts) -> list[dict[str, Any]]:
        """Pairs between options of one bundle are rules: a relationship counts between lines and parts."""
        rules: list[dict[str, Any]] = []
        for kind in ("requires", "excludes"):
            pairs = [(sku, other) for sku, others in self._pairs[kind].items() for other in others]
            for sku, other in pairs:
                (option, values), (second, wanted) = parts.taken.get(sku, ("", [])), parts.taken.get(other, ("", []))
                if not option or not second or option == second:
                    continue
                if kind == "requires":
                    construct: dict[str, Any] = {"when": {option: values}, "then": {second: wanted}}
                else:
                    construct = {"forbid": {option: values, second: wanted}}
                say = f"{self._described[sku].text('Name')} {kind} {self._described[other].text('Name')}"
                rules.append({"id": f"{kind}-{len(rules) + 1}", **construct, "say": say[:SENTENCE_LENGTH_MAX]})
        return rules

    def _unit(self, product: Record) -> dict[str, Any]:
        code = product.text("UnitOfMeasure.UnitCode")
        unit = self._units().get(code)
        if unit is None:
            return {"unit": product.text("QuantityUnitOfMeasure") or code or None}
        decimals = min(self.export.whole(unit, "Scale") or 0, QUANTITY_DECIMALS_MAX)
        return {"unit": unit.key, "quantity_decimals": decimals or None}

    def _units(self) -> dict[str, Record]:
        return {one.text("UnitCode"): one for one in self.export.records("UnitOfMeasure") if one.text("UnitCode")}

    def _categorize(self) -> dict[str, str]:
        """One category for each product: the primary one, else the first, else its family."""
        found: dict[str, str] = {}
        links = self.export.records("ProductCategoryProduct")
        for one in sorted(links, key=lambda one: not one.is_true("IsPrimaryCategory")):
            category = self.export.named(one, "ProductCategory.Code", "ProductCategory")
            product = self.export.named(one, "Product.StockKeepingUnit", "Product2")
            if category is None or product is None:
                continue
            if product.key not in self._described:
                self.losses.lose(one, "its product is not described")
            elif product.key in found:
                self.losses.lose(one, "a product has one category, and this one has another already")
            else:
                found[product.key] = identifier(category.key).lower()
                self.losses.translate(one, "the category of the product")
        for sku, product in self._described.items():
            found.setdefault(sku, identifier(product.text("Family") or UNCATEGORIZED).lower().replace("-", "_"))
        return found

    def _category_rows(self) -> list[tuple[Record, dict[str, Any]]]:
        """The categories of the export. That of a family is created where it is missing, and else left as it is."""
        rows: dict[str, tuple[Record, dict[str, Any]]] = {}
        for one in self.export.records("ProductCategory"):
            id_ = identifier(one.key).lower()
            if id_ in rows:
                self.export.refuse(one, "Code", f"{one.key!r} and {rows[id_][0].key!r} would both have the id {id_!r}")
            rows[id_] = (one, {"id": id_, "name": one.text("Name") or one.key})
        return list(rows.values())

    def _default_models(self) -> dict[str, Sold]:
        """The default selling model of each product that has a price in it."""
        found: dict[str, Sold] = {}
        for one in self.export.records("ProductSellingModelOption"):
            product = self.export.named(one, "Product2.StockKeepingUnit", "Product2")
            model = self.export.named(one, MODEL, "ProductSellingModel")
            if product is None or model is None:
                continue
            sold = self._prices.sold[model.key]
            if sold is None or all(price.sold != sold for price in self._prices.of(product.key)):
                self.losses.lose(one, "the product has no price of this selling model that is here")
            elif not one.is_true("IsDefault"):
                self.losses.translate(one, "the product has prices of this selling model")
            elif product.key in found:
                self.export.refuse(one, "IsDefault", f"{product.key} has two default selling models")
            else:
                found[product.key] = sold
                self.losses.translate(one, "the default selling model of the product")
        return found

    def _default_word(self, sku: str) -> str | None:
        """With usage prices beside it, the only other way to sell a product is its default."""
        if sku in self._defaults:
            return self._defaults[sku].model
        others = {price.sold.model for price in self._prices.of(sku)}
        return others.pop() if self._rates.sells(sku) and len(others) == 1 else None

    def _take_attribute_prices(self) -> None:
        """An attribute-based adjustment with one condition is the surcharge of a value of an option."""
        conditions: dict[str, list[Record]] = {}
        for one in self.export.records("AttributeAdjustmentCondition"):
            if self.export.named(one, "AttributeBasedAdjRule.Name", "AttributeBasedAdjRule"):
                conditions.setdefault(one.key, []).append(one)
        taken: set[str] = set()
        for one in self.export.records("AttributeBasedAdjustment"):
            rule = self.export.named(one, "AttributeBasedAdjRule.Name", "AttributeBasedAdjRule")
            schedule, why = self._prices.schedule(one)
            prices = self._prices.matching(one, "Product.StockKeepingUnit", schedule)
            if rule is None:
                continue
            why = why or self._take_attribute_price(one, conditions.get(rule.key, []), schedule, prices)
            if why:
                self.losses.lose(one, why)
            else:
                taken.add(rule.key)
                self.losses.translate(one, "the surcharge of a value of an option, from its first day on")
        for table in ("AttributeBasedAdjRule", "AttributeAdjustmentCondition"):
            for one in self.export.records(table):
                if one.key in taken:
                    self.losses.translate(one, "the value of an option that has a surcharge")
                else:
                    self.losses.lose(one, "no adjustment of it is here")

    def _take_attribute_price(
        self, one: Record, conditions: list[Record], schedule: Record | None, prices: list[Any]
    ) -> str:
        """Add the surcharge to the prices; why not, if it cannot be one."""
        if not prices:
            return "no price that is here has it"
        if len(conditions) != 1 or conditions[0].text("Operator") != "equals":
            return "it does not depend on one value of one attribute"
        own = self._own.get(one.text("Product.StockKeepingUnit"), ProductAttributes())
        option = own.names.get(conditions[0].text("AttributeDefinition.Code"), "")
        columns = ("StringValue", "BooleanValue", "IntegerValue", "DoubleValue")
        wanted = next((cell for column in columns if (cell := conditions[0].text(column))), "")
        values = [spelled(value) for value in own.options.get(option, {}).get("values", ())]
        if wanted not in values:
            return "its attribute has no such value here"
        if any(price.tiers for price in prices):
            return "the price has tiers, which it would replace"
        span = self._prices.span(schedule, one)
        for price in prices:
            adjusted = self._prices.adjusted(one, "AdjustmentValue", price.unit_price)
            if adjusted is None:
                return f"no price here is adjusted by {one.text('AdjustmentType') or 'nothing'}"
            if amount := adjusted - price.unit_price or Decimal(0):
                price.surcharges.append(SurchargeEffect(span, option, wanted, amount))
        return ""

    def _account_for_names(self) -> None:
        """Categories, schedules and units: they are here with the rows that name them."""
        for one in self.export.records("ProductCategory"):
            self.losses.translate(one, "a category; its id is in small letters")
        used = {one.text("PriceAdjustmentSchedule.Name") for table in _ADJUSTMENTS for one in self._taken(table)}
        for one in self.export.records("PriceAdjustmentSchedule"):
            if one.key in used:
                self.losses.translate(one, "its adjustments are tiers and surcharges of prices")
            else:
                self.losses.lose(one, "no adjustment of it is here")
        codes = {one.text("UnitOfMeasure.UnitCode") for one in self._described.values()}
        for one in self.export.records("UnitOfMeasure"):
            if self._rates.has_unit(one.key):
                self.losses.translate(one, "the unit of a usage price")
            elif one.text("UnitCode") in codes - {""}:
                self.losses.translate(one, "the unit of its products")
            else:
                self.losses.lose(one, "no product is sold by it")

    def _taken(self, table: str) -> Iterable[Record]:
        return (one for one in self.export.records(table) if self.losses.is_here(one))


_FACTS = {"family": "Family", "product_code": "ProductCode", "usage_model": "UsageModelType"}
_ADJUSTMENTS = ("AttributeBasedAdjustment", "BundleBasedAdjustment", "PriceAdjustmentTier")
