"""The tables of a Salesforce export: rows of several files that name one record are merged; problems have a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from cpq.base.errors import nearest

PROBLEMS_MAX = 1_000
NUMBER_LENGTH_MAX = 40
SUGGESTED_MAX = 20


class ExportedRow(NamedTuple):
    """One row of a file: its cells without the empty ones."""

    file: str
    line: int
    cells: Mapping[str, str]


class ExportedFile(NamedTuple):
    """A file of the export, named by its path below the folder."""

    name: str
    table: str
    """The Salesforce object of its rows."""
    rows: Sequence[ExportedRow]
    is_constraint_model: bool = False
    items: Sequence[object] = ()
    """What each row of a JSON file is."""


class ExportProblem(NamedTuple):
    """Why an export is refused."""

    file: str
    line: int
    field: str
    message: str
    nearest: list[str] | None = None


KEYS: dict[str, tuple[str, ...]] = {
    "AttributeAdjustmentCondition": ("AttributeBasedAdjRule.Name", "AttributeDefinition.Code"),
    "AttributeBasedAdjRule": ("Name",),
    "AttributeBasedAdjustment": (
        "AttributeBasedAdjRule.Name",
        "PriceAdjustmentSchedule.Name",
        "Product.StockKeepingUnit",
        "ProductSellingModel.$$Name$SellingModelType",
        "CurrencyIsoCode",
        "EffectiveFrom",
    ),
    "AttributeDefinition": ("Code",),
    "AttributePicklist": ("Name",),
    "AttributePicklistValue": ("Picklist.Name", "Value"),
    "BundleBasedAdjustment": (
        "PriceAdjustmentSchedule.Name",
        "Product.StockKeepingUnit",
        "ParentProduct.StockKeepingUnit",
        "RootBundle.StockKeepingUnit",
        "ProductSellingModel.$$Name$SellingModelType",
        "ParentProductSellingModel.$$Name$SellingModelType",
        "RootProductSellingModel.$$Name$SellingModelType",
        "CurrencyIsoCode",
        "EffectiveFrom",
    ),
    "CostBook": ("Name",),
    "CostBookEntry": ("CostBook.Name", "Product.StockKeepingUnit", "CurrencyIsoCode", "EffectiveFrom"),
    "PriceAdjustmentSchedule": ("Name",),
    "PriceBookRateCard": ("RateCard.$$Name$Type", "PriceBook.Name"),
    "RateAdjustmentByTier": (
        "RateCardEntry.$$Product.StockKeepingUnit$RateCard.Name$UsageResource.Code$RateUnitOfMeasure.UnitCode",
        "LowerBound",
        "EffectiveFrom",
    ),
    "RateCard": ("Name",),
    "RateCardEntry": (
        "Product.StockKeepingUnit",
        "RateCard.$$Name$Type",
        "UsageResource.Code",
        "RateUnitOfMeasure.UnitCode",
        "EffectiveFrom",
    ),
    "PriceAdjustmentTier": (
        "PriceAdjustmentSchedule.Name",
        "Product2.StockKeepingUnit",
        "ProductSellingModel.$$Name$SellingModelType",
        "CurrencyIsoCode",
        "LowerBound",
        "EffectiveFrom",
    ),
    "Pricebook2": ("Name",),
    "PricebookEntry": (
        "Pricebook2.$$Name$IsStandard",
        "Product2.StockKeepingUnit",
        "ProductSellingModel.$$Name$SellingModelType",
        "CurrencyIsoCode",
    ),
    "Product2": ("StockKeepingUnit",),
    "ProductAttributeDefinition": ("AttributeDefinition.Code", "Product2.StockKeepingUnit"),
    "ProductCategory": ("Code",),
    "ProductCategoryProduct": ("ProductCategory.Code", "Product.StockKeepingUnit"),
    "ProductClassification": ("Code",),
    "ProductClassificationAttr": ("ProductClassification.Code", "AttributeDefinition.Code"),
    "ProductComponentGroup": ("Code",),
    "ProductRelatedComponent": (
        "ParentProduct.StockKeepingUnit",
        "ChildProduct.StockKeepingUnit",
        "ChildProductClassification.Code",
        "ProductComponentGroup.Code",
    ),
    "ProductRelationshipType": ("Name",),
    "ProductSellingModel": ("Name",),
    "ProductSellingModelOption": ("Product2.StockKeepingUnit", "ProductSellingModel.$$Name$SellingModelType"),
    "UnitOfMeasure": ("Name",),
    "UsageResource": ("Name",),
}
"""The columns that name a record of each table that has a counterpart here; the first one is never empty."""


@dataclass
class Record:
    """One record of the export: the rows that name it, the fullest one first, and their cells together."""

    table: str
    rows: list[ExportedRow]
    cells: dict[str, str]

    @property
    def key(self) -> str:
        return self.cells[KEYS[self.table][0]]

    def text(self, column: str) -> str:
        return self.cells.get(column, "")

    def is_true(self, column: str) -> bool:
        return self.text(column).casefold() == "true"


@dataclass
class Export:
    """All tables of an export; reading a cell that makes no sense adds a problem with its file and line."""

    files: Sequence[ExportedFile]
    problems: list[ExportProblem] = field(default_factory=list)
    _tables: dict[str, dict[tuple[str, ...], Record]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in KEYS:
            self._tables[table] = {}
            for file in self._fullest_first(table):
                self._merge(table, file)

    def records(self, table: str) -> list[Record]:
        return list(self._tables[table].values())

    def find(self, table: str, key: str) -> Record | None:
        """The record with this key, of a table that one column names."""
        return self._tables[table].get((key,))

    def named(self, record: Record, column: str, table: str) -> Record | None:
        """The record that a cell names; another is a problem. A composite cell names it by its first part."""
        written = record.text(column)
        key = written.partition(";")[0] if "$$" in column else written
        if not written:
            self.refuse(record, column, "is empty")
            return None
        found = self.find(table, key)
        if found is None:
            self.refuse(record, column, f"the export has no {table} {key!r}", self._nearest(table, key))
        return found

    def number(self, record: Record, column: str) -> Decimal | None:
        """The number of a cell; None when it is empty, or no number, which is a problem."""
        written = record.text(column)
        if not written:
            return None
        try:
            value = Decimal(written) if len(written) <= NUMBER_LENGTH_MAX else Decimal("NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if value.is_finite():
            return value
        self.refuse(record, column, f"{written[:NUMBER_LENGTH_MAX]!r} is not a number")
        return None

    def whole(self, record: Record, column: str, *, least: int = 0) -> int | None:
        value = self.number(record, column)
        if value is None:
            return None
        if value != value.to_integral_value() or not least <= value <= 10**9:
            self.refuse(record, column, f"{record.text(column)!r} is not a whole number from {least} to {10**9:,}")
            return None
        return int(value)

    def refuse(self, record: Record, column: str, message: str, near: list[str] | None = None) -> None:
        place = next((row for row in record.rows if column in row.cells), record.rows[0])
        self._add(ExportProblem(place.file, place.line, column, message, near))

    def _nearest(self, table: str, key: str) -> list[str] | None:
        """Names like this one, for the first problems only: looking for them takes long in a large table."""
        if len(self.problems) >= SUGGESTED_MAX:
            return None
        return nearest(key, [one.key for one in self.records(table)]) or None

    def _add(self, problem: ExportProblem) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)

    def _fullest_first(self, table: str) -> Iterator[ExportedFile]:
        """A table may be exported in several folders; some list only names for what refers to them."""
        files = [file for file in self.files if file.table == table and not file.is_constraint_model]
        widths = {file.name: len({name for row in file.rows for name in row.cells}) for file in files}
        return iter(sorted(files, key=lambda file: (-widths[file.name], file.name)))

    def _merge(self, table: str, file: ExportedFile) -> None:
        known, mine = self._tables[table], dict[tuple[str, ...], int]()
        for row in file.rows:
            key = tuple(row.cells.get(name, "") for name in KEYS[table])
            if not key[0]:
                self._add(ExportProblem(row.file, row.line, KEYS[table][0], "is empty, and it names the record"))
            elif key in mine:
                named = ", ".join(part for part in key if part)
                message = f"{named} is in this file twice, first in line {mine[key]}"
                self._add(ExportProblem(row.file, row.line, KEYS[table][0], message))
            elif key in known:
                self._join(known[key], row)
            else:
                known[key] = Record(table, [row], dict(row.cells))
            mine.setdefault(key, row.line)

    def _join(self, record: Record, row: ExportedRow) -> None:
        for name, cell in row.cells.items():
            if record.cells.setdefault(name, cell) != cell:
                first = record.rows[0]
                message = f"is {cell!r} here and {record.cells[name]!r} in {first.file}, line {first.line}"
                self._add(ExportProblem(row.file, row.line, name, message))
        record.rows.append(row)
