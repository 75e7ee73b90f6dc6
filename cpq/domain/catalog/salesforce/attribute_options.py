"""Attributes of Salesforce products as options that a buyer chooses, and fixed ones as facts of the product."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from cpq.domain.catalog.salesforce.exported import Export, Record
from cpq.domain.catalog.salesforce.losses import Losses

TYPES = {"Picklist": "enum", "Number": "number", "Percent": "number", "Currency": "number"}
TYPES |= {"Checkbox": "boolean", "Text": "text"}
LAST = Decimal(10**9)


@dataclass
class ProductAttributes:
    """What a product gets from its attributes."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """The name of the option of each attribute's code."""


class AttributeOptions:
    """The attributes of all products: those of the classification, changed by those of the product itself."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._of_class = self._grouped("ProductClassificationAttr", "ProductClassification.Code")
        self._of_product = self._grouped("ProductAttributeDefinition", "Product2.StockKeepingUnit")
        self._values = self._active_values()
        self._uses: dict[tuple[str, str, str], str] = {}
        self._classes: set[str] = set()
        self._definitions: set[str] = set()
        self._picklists: set[str] = set()

    def of(self, product: Record) -> ProductAttributes:
        """The options and facts of a product, in the order of the export."""
        found = ProductAttributes()
        class_code = product.text("BasedOn.Code")
        if class_code and self._export.named(product, "BasedOn.Code", "ProductClassification") is None:
            return found
        own = {one.key: one for one in self._of_product.get(product.key, ())}
        inherited = {one.text("AttributeDefinition.Code"): one for one in self._of_class.get(class_code, ())}
        for code in dict.fromkeys([*inherited, *own]):
            sources = [one for one in (own.get(code), inherited.get(code)) if one is not None]
            if definition := self._export.find("AttributeDefinition", code):
                self._add(found, definition, sources, class_code)
        return found

    def settle(self, losses: Losses) -> None:
        """Account for the rows of all attributes, after every product has got its own."""
        for table in ("ProductClassificationAttr", "ProductAttributeDefinition"):
            for one in self._export.records(table):
                if how := self._uses.get(_place(one)):
                    losses.translate(one, how)
                else:
                    losses.lose(one, self._why_unused(one))
        for one in self._export.records("AttributeDefinition"):
            if one.key in self._definitions:
                losses.translate(one, "the type of options of products")
            else:
                losses.lose(one, "no product has an option or a fact of it")
        for one in self._export.records("ProductClassification"):
            if one.key in self._classes:
                losses.translate(one, "its attributes are options and facts of its products")
            else:
                losses.lose(one, "no product gets an attribute from it")
        self._settle_picklists(losses)

    def _settle_picklists(self, losses: Losses) -> None:
        for one in self._export.records("AttributePicklist"):
            if one.key in self._picklists:
                losses.translate(one, "the values of an option")
            else:
                losses.lose(one, "no option has its values")
        for one in self._export.records("AttributePicklistValue"):
            if one.key not in self._picklists:
                losses.lose(one, "no option has its picklist")
            elif _is_active(one):
                losses.take(one, "a value of an option")
            else:
                losses.lose(one, "it is not active")

    def _grouped(self, table: str, column: str) -> dict[str, list[Record]]:
        owners = "ProductClassification" if column.startswith("ProductClassification.") else "Product2"
        groups: dict[str, list[Record]] = defaultdict(list)
        for one in self._export.records(table):
            owner = self._export.named(one, column, owners)
            if self._export.named(one, "AttributeDefinition.Code", "AttributeDefinition") and owner:
                groups[owner.key].append(one)
        for members in groups.values():
            members.sort(key=self._place_in_order)
        return groups

    def _active_values(self) -> dict[str, list[str]]:
        groups: dict[str, list[Record]] = defaultdict(list)
        for one in self._export.records("AttributePicklistValue"):
            picklist = self._export.named(one, "Picklist.Name", "AttributePicklist")
            if not one.text("Value"):
                self._export.refuse(one, "Value", "is empty")
            elif picklist and _is_active(one):
                groups[picklist.key].append(one)
        return {
            name: [one.text("Value") for one in sorted(members, key=self._place_in_order)]
            for name, members in groups.items()
        }

    def _place_in_order(self, one: Record) -> Decimal:
        sequence = self._export.number(one, "Sequence")
        return LAST if sequence is None else sequence

    def _add(self, found: ProductAttributes, definition: Record, sources: list[Record], class_code: str) -> None:
        sources = [one for one in sources if _is_active(one)]
        if not sources or _first("IsHidden", sources).casefold() == "true":
            return
        code, name = definition.key, _first("AttributeNameOverride", sources) or definition.text("Name")
        option = self._option(definition, sources)
        if option is None or not name or name in found.options or name in found.facts:
            return
        default = option.get("default")
        if _first("IsReadOnly", sources).casefold() == "true":
            if default is None:
                return
            found.facts[name] = default
            how = "a fact of its products, which no buyer changes"
        else:
            found.options[name] = option
            found.names[code] = name
            how = "an option of its products"
            if default is None and _first("DefaultValue", sources):
                how += "; its default is not one of its values"
        for one in sources:
            self._uses[_place(one)] = how
            if one.table == "ProductClassificationAttr":
                self._classes.add(class_code)
        self._definitions.add(code)
        self._picklists.add(definition.text("Picklist.Name"))

    def _option(self, definition: Record, sources: list[Record]) -> dict[str, Any] | None:
        """The option of an attribute; None for a type without a counterpart or a picklist without values."""
        kind = TYPES.get(definition.text("DataType"))
        is_off = definition.text("IsActive").casefold() == "false"
        if kind is None or is_off:
            return None
        option: dict[str, Any] = {"type": kind}
        written = _first("DefaultValue", sources) or definition.text("DefaultValue")
        default: Any = written or None
        if kind == "enum":
            option["values"] = values = self._typed_values(definition)
            if not values:
                return None
            default = next((value for value in values if str(value) == written), None)
        elif kind == "number":
            default = _decimal(written)
            for column, name in (("MinimumValue", "min"), ("MaximumValue", "max"), ("StepValue", "step")):
                limits = [value for one in sources if (value := self._export.number(one, column)) is not None]
                option |= {name: limits[0]} if limits else {}
        elif kind == "boolean":
            default = {"true": True, "false": False}.get(written.casefold())
        if default is not None:
            option["default"] = default
        if "true" in (_first("IsRequired", sources).casefold(), definition.text("IsRequired").casefold()):
            option["required"] = True
        return option

    def _typed_values(self, definition: Record) -> list[Any]:
        """The values of a picklist, as numbers where its type says so and all of them are."""
        picklist = self._export.named(definition, "Picklist.Name", "AttributePicklist")
        if picklist is None or not _is_active(picklist):
            return []
        written = self._values.get(picklist.key, [])
        numbers = [_decimal(value) for value in written]
        is_numeric = picklist.text("DataType") == "Number" and None not in numbers
        return list(numbers) if is_numeric and len(set(numbers)) == len(numbers) else list(written)

    def _why_unused(self, one: Record) -> str:
        if not _is_active(one):
            return "it is not active"
        if one.is_true("IsHidden"):
            return "it is hidden from buyers, and only a constraint model uses it"
        definition = self._export.find("AttributeDefinition", one.text("AttributeDefinition.Code"))
        if definition is not None and definition.text("DataType") not in TYPES:
            return f"no option has the type {definition.text('DataType')}"
        if one.is_true("IsReadOnly"):
            return "it is read-only and has no value"
        return "no product has it"


def _first(column: str, sources: list[Record]) -> str:
    """The cell of the nearest source that has one."""
    return next((cell for one in sources if (cell := one.text(column))), "")


def _is_active(one: Record) -> bool:
    return one.text("Status").casefold() in ("", "active")


def _place(one: Record) -> tuple[str, str, str]:
    return one.table, one.rows[0].file, str(one.rows[0].line)


def _decimal(written: str) -> Decimal | None:
    try:
        value = Decimal(written)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
