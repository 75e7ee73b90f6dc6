"""Writes files into the catalogue: all or nothing, every bad row named, and only what changed is touched."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from cpq.catalog import finding
from cpq.catalog.files import SourceRow
from cpq.catalog.rows import (
    AccountRow,
    AttributeDefinition,
    CategoryRow,
    PriceBookRow,
    PriceRow,
    ProductRow,
    Row,
    SpecDefinition,
)
from cpq.db import Tx, insert_many
from cpq.errors import Code, CpqError, nearest
from cpq.schema import account, category, price, price_book, product, product_relation, product_spec
from cpq.search.ranking import Indexed, compact, scope_code
from cpq.text import canonical_json

BATCH = 2_000
PROBLEMS_MAX = 10_000

Check = Callable[[], None]


@dataclass
class ImportReport:
    """What an import did, by kind of row, and which things it made because a row mentioned them first."""

    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    also_created: list[str] = field(default_factory=list)


def import_rows(tx: Tx, rows: Iterable[SourceRow], check: Check = lambda: None) -> ImportReport:
    """Import categories, products, price books, accounts and prices, in any mixture a file holds.

    Raises VALIDATION_ERROR with every bad row in `details.problems`; the transaction is then to be rolled back.
    `check` is called between batches and may raise to stop the import.
    """
    with ThreadPoolExecutor(1, "index") as indexer:
        work = _Import(tx, indexer)
        try:
            for section, batch in _batches(rows):
                check()
                work.take(section, batch)
        finally:
            work.settle()
        work.finish()
    return work.report


SECTIONS: dict[str, type[Row]] = {
    "categories": CategoryRow,
    "products": ProductRow,
    "price_books": PriceBookRow,
    "accounts": AccountRow,
    "prices": PriceRow,
}


class _Import:
    """One file on its way in.

    The database indexes the words of one batch on the indexer's thread while this one reads and checks the next;
    the connection is never used by both, because `settle` comes first.
    """

    def __init__(self, tx: Tx, indexer: Executor) -> None:
        self.tx = tx
        self._indexer = indexer
        self._indexing: Future[None] | None = None
        self.report = ImportReport()
        self._problems: list[dict[str, Any]] = []
        self._problem_count = 0
        self._seen: dict[str, set[str]] = {section: set() for section in SECTIONS}
        self._categories = {row.id: _definition(row) for row in tx.connection.execute(_mine(tx, category))}
        self._books = set(tx.connection.scalars(_mine(tx, price_book).with_only_columns(price_book.c.id)))
        self._related: dict[str, int] = {}
        self._vocabulary: set[str] = set()

    def take(self, section: str, batch: Sequence[SourceRow]) -> None:
        if section not in SECTIONS:
            hint = nearest(section, SECTIONS)
            self._refuse(batch[0].line, section, f"is not one of {', '.join(SECTIONS)}", nearest=hint)
            return
        valid = [(source.line, row) for source in batch if (row := self._validate(source)) is not None]
        self.settle()
        steps = {
            "categories": self._take_categories,
            "products": self._take_products,
            "price_books": self._take_price_books,
            "accounts": self._take_accounts,
            "prices": self._take_prices,
        }
        steps[section](valid)

    def settle(self) -> None:
        """Wait until the connection is ours again; a failure of the indexing is raised here."""
        if self._indexing is not None:
            indexing, self._indexing = self._indexing, None
            indexing.result()

    def finish(self) -> None:
        self._check_relations()
        if self._problems:
            count = self._problem_count
            first = f" (the first {PROBLEMS_MAX:,} are listed)" if count > PROBLEMS_MAX else ""
            raise CpqError(
                Code.VALIDATION_ERROR,
                f"{count:,} problem{'s' if count > 1 else ''} in the file{first}; nothing was imported.",
                problems=sorted(self._problems, key=lambda problem: problem["line"]),
            )
        finding.learn(self.tx, self._vocabulary)

    def _validate(self, source: SourceRow) -> Row | None:
        model = SECTIONS[source.section]
        try:
            row = model.model_validate(source.values)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                self._refuse(source.line, ".".join(map(str, fault["loc"])) or "row", _said(fault, model))
            return None
        key = row.key() if isinstance(row, PriceRow) else str(getattr(row, "id", ""))
        if key in self._seen[source.section]:
            self._refuse(source.line, "id", f"{key!r} stands in this file twice")
            return None
        self._seen[source.section].add(key)
        return row

    def _refuse(self, line: int, where: str, reason: str, **details: object) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append({"line": line, "field": where, "message": reason, **details})

    def _take_categories(self, valid: list[tuple[int, Any]]) -> None:
        rows = [_stored(row, specs=_dump(row.specs), attributes=_dump(row.attributes)) for _, row in valid]
        self._store("categories", category, rows)
        self._categories |= {row.id: (row.specs, row.attributes) for _, row in valid}

    def _take_price_books(self, valid: list[tuple[int, Any]]) -> None:
        self._store("price_books", price_book, [_stored(row) for _, row in valid])
        self._books |= {row.id for _, row in valid}

    def _take_accounts(self, valid: list[tuple[int, Any]]) -> None:
        for _, row in valid:
            self._ensure_book(row.price_book)
        self._store("accounts", account, [_stored(row, price_book_id=row.price_book) for _, row in valid], dated=True)

    def _take_prices(self, valid: list[tuple[int, Any]]) -> None:
        options = self._known(product, (row.product_id for _, row in valid), product.c.options)
        accounts = self._known(account, (row.account_id for _, row in valid if row.account_id))
        rows = []
        for line, row in valid:
            if row.product_id not in options:
                self._refuse(line, "product_id", f"there is no product {row.product_id!r}")
            elif unknown := sorted(row.surcharges.keys() - {option["name"] for option in options[row.product_id]}):
                self._refuse(line, "surcharges", f"{unknown[0]!r} is not an option of {row.product_id}")
            if row.account_id and row.account_id not in accounts:
                self._refuse(line, "account_id", f"there is no account {row.account_id!r}")
            if row.price_book:
                self._ensure_book(row.price_book)
            rows.append(_stored(row, id=row.key(), price_book_id=row.price_book, tiers=_dump(row.tiers)))
        self._store("prices", price, rows, dated=True)

    def _take_products(self, valid: list[tuple[int, Any]]) -> None:
        owners = self._sku_owners(valid)
        rows, specs_of, by_id = [], {}, {}
        for line, row in valid:
            self._ensure_category(row.category)
            sku_key = compact(row.sku)
            if owners.setdefault(sku_key, row.id) != row.id:
                self._refuse(line, "sku", f"{row.sku!r} belongs to product {owners[sku_key]!r}")
            specs_of[row.id] = self._check_specs(line, row)
            attributes = self._check_attributes(line, row)
            by_id[row.id] = row
            if row.relationships:
                self._related[row.id] = line
            rows.append(_product_values(row, sku_key, attributes, specs_of[row.id]))
        if changed := self._store("products", product, rows, dated=True):
            self._write_parts(changed, by_id, specs_of)

    def _write_parts(self, ids: list[str], by_id: Mapping[str, ProductRow], specs_of: Mapping[str, Any]) -> None:
        """What hangs on a product: its filterable specs, its relationships, its words in the index."""
        mine = {"tenant_id": self.tx.tenant_id}
        specs = [
            {**mine, "product_id": id_, "name": name, **_spec_columns(value)}
            for id_ in ids
            for name, value in specs_of[id_].items()
        ]
        relations = [
            {
                **mine,
                "product_id": id_,
                "kind": r.kind.value,
                "other_id": r.product_id,
                "quantity": r.quantity,
                "position": n,
            }
            for id_ in ids
            for n, r in enumerate(by_id[id_].relationships)
        ]
        for table, new in ((product_spec, specs), (product_relation, relations)):
            if self.report.updated["products"]:
                self.tx.connection.execute(sa.delete(table).where(_among(self.tx, table, table.c.product_id, ids)))
            insert_many(self.tx.connection, table, new)
        self._indexing = self._indexer.submit(self._index, [(by_id[id_], specs_of[id_]) for id_ in ids])

    def _index(self, products: list[tuple[ProductRow, Mapping[str, Decimal | str]]]) -> None:
        everywhere = scope_code(self.tx.tenant_id)
        scopes = {row.category: scope_code(self.tx.tenant_id, row.category) for row, _ in products}
        documents = []
        for row, specs in products:
            searched = _searched(row, specs)
            documents.append((row.id, searched.terms((everywhere, scopes[row.category]))))
            self._vocabulary |= searched.words
        finding.index(self.tx, documents)

    def _store(self, section: str, table: sa.Table, rows: list[dict[str, Any]], *, dated: bool = False) -> list[str]:
        """Insert what is new and update what differs; the ids of both. Nothing is written once there are problems."""
        if self._problems or not rows:
            return []
        known = self._known(table, (row["id"] for row in rows), table.c.content_hash)
        times = {"created_at": self.tx.now, "updated_at": self.tx.now} if dated else {}
        new = [{"tenant_id": self.tx.tenant_id, **row, **times} for row in rows if row["id"] not in known]
        changed = [row for row in rows if row["id"] in known and known[row["id"]] != row["content_hash"]]
        if new:
            insert_many(self.tx.connection, table, new)
        if changed:
            key = (table.c.tenant_id == self.tx.tenant_id) & (table.c.id == sa.bindparam("the_id"))
            times.pop("created_at", None)
            updates = [{"the_id": row["id"], **{k: v for k, v in row.items() if k != "id"}, **times} for row in changed]
            self.tx.connection.execute(sa.update(table).where(key), updates)
        self.report.created[section] += len(new)
        self.report.updated[section] += len(changed)
        self.report.unchanged[section] += len(rows) - len(new) - len(changed)
        return [row["id"] for row in (*new, *changed)]

    def _known(self, table: sa.Table, ids: Iterable[str], column: sa.Column[Any] | None = None) -> dict[str, Any]:
        wanted = sorted(set(ids))
        query = sa.select(table.c.id, table.c.id if column is None else column)
        return {
            row[0]: row[1]
            for row in self.tx.connection.execute(query.where(_among(self.tx, table, table.c.id, wanted)))
        }

    def _sku_owners(self, valid: list[tuple[int, Any]]) -> dict[str, str]:
        keys = sorted({compact(row.sku) for _, row in valid})
        query = sa.select(product.c.sku_key, product.c.id).where(_among(self.tx, product, product.c.sku_key, keys))
        return {row[0]: row[1] for row in self.tx.connection.execute(query)}

    def _ensure_category(self, category_id: str) -> None:
        if category_id not in self._categories:
            row = CategoryRow(id=category_id, name=category_id.replace("_", " ").capitalize())
            self._take_categories([(0, row)])
            self.report.also_created.append(f"category {category_id}")

    def _ensure_book(self, book_id: str) -> None:
        if book_id not in self._books:
            self._take_price_books([(0, PriceBookRow(id=book_id, name=book_id.replace("_", " ").capitalize()))])
            self.report.also_created.append(f"price book {book_id}")

    def _check_specs(self, line: int, row: ProductRow) -> dict[str, Decimal | str]:
        definitions: Mapping[str, SpecDefinition] = self._categories[row.category][0]
        checked: dict[str, Decimal | str] = {}
        for name, value in row.specs.items():
            try:
                checked[name] = _typed_spec(definitions.get(name), value)
            except ValueError as error:
                known = nearest(name, definitions) if name not in definitions else None
                self._refuse(line, f"specs.{name}", str(error), **({"nearest": known} if known else {}))
        return checked

    def _check_attributes(self, line: int, row: ProductRow) -> dict[str, Any]:
        definitions: Mapping[str, AttributeDefinition] = self._categories[row.category][1]
        checked: dict[str, Any] = {}
        for name, value in row.attributes.items():
            try:
                checked[name] = _typed_attribute(definitions.get(name), value)
            except ValueError as error:
                self._refuse(line, f"attributes.{name}", str(error))
        return checked

    def _check_relations(self) -> None:
        """A relationship may name a product that comes later in the file, so its target is looked for at the end."""
        if self._problems or not self._related:
            return
        target = product.alias()
        found = sa.exists().where(
            target.c.tenant_id == product_relation.c.tenant_id, target.c.id == product_relation.c.other_id
        )
        query = sa.select(product_relation.c.product_id, product_relation.c.other_id).where(
            product_relation.c.tenant_id == self.tx.tenant_id, ~found
        )
        for product_id, other_id in self.tx.connection.execute(query):
            line = self._related.get(product_id, 0)
            self._refuse(line, "relationships", f"{product_id} names {other_id!r}, which does not exist")


def _batches(rows: Iterable[SourceRow]) -> Iterator[tuple[str, list[SourceRow]]]:
    batch: list[SourceRow] = []
    for row in rows:
        if batch and (row.section != batch[0].section or len(batch) == BATCH):
            yield batch[0].section, batch
            batch = []
        batch.append(row)
    if batch:
        yield batch[0].section, batch


def _stored(row: Row, **columns: Any) -> dict[str, Any]:
    """The row as columns. Its hash tells a later import whether anything changed."""
    values = {name: value.value if isinstance(value, Enum) else value for name, value in row if name != "price_book"}
    values |= columns
    return {**values, "content_hash": _digest(values)}


def _product_values(
    row: ProductRow, sku_key: str, attributes: Mapping[str, Any], specs: Mapping[str, Any]
) -> dict[str, Any]:
    values = {
        "id": row.id,
        "sku": row.sku,
        "sku_key": sku_key,
        "name": row.name,
        "description": row.description,
        "product_type": row.product_type.value,
        "category_id": row.category,
        "active": row.active,
        "attributes": attributes,
        "specs": specs,
        # A list, because the order in which options are declared has a meaning for configuring.
        "options": [{"name": name, **option.model_dump(exclude_none=True)} for name, option in row.options.items()],
        "rules": {"rules": _dump(row.rules), "recommend": _dump(row.recommend)} if row.rules or row.recommend else {},
        "bundle": row.bundle.model_dump(mode="python", exclude_none=True) if row.bundle else None,
    }
    return {**values, "content_hash": _digest([values, _dump(row.relationships)])}


def _digest(stored: object) -> str:
    """Of what is stored, not of how the file spelt it: `1.50` and `1.5`, or names in another order, are no change."""
    return hashlib.blake2b(canonical_json(stored).encode(), digest_size=16).hexdigest()


def _dump(parts: Any) -> Any:
    """Nested rows as plain values, decimals kept."""
    if isinstance(parts, Mapping):
        return {name: part.model_dump(exclude_none=True) for name, part in parts.items()}
    return [part.model_dump(exclude_none=True) for part in parts]


def _typed_spec(definition: SpecDefinition | None, value: Decimal | str) -> Decimal | str:
    if definition is None:
        raise ValueError("is not a spec that the category declares")
    if definition.kind == "enum":
        if str(value) not in definition.values:
            raise ValueError(f"is not one of {', '.join(definition.values)}")
        return str(value)
    return _number(value)


def _typed_attribute(definition: AttributeDefinition | None, value: Any) -> Any:
    kind = definition.type if definition else "text" if isinstance(value, str) else "any"
    if kind in ("integer", "number"):
        number = _number(value)
        if kind == "integer" and number != number.to_integral_value():
            raise ValueError("is not a whole number")
        return number
    if kind == "boolean":
        if str(value).lower() not in ("true", "false"):
            raise ValueError("is neither true nor false")
        return str(value).lower() == "true"
    if definition and kind == "enum" and str(value) not in definition.values:
        raise ValueError(f"is not one of {', '.join(definition.values)}")
    return value if kind == "any" else str(value)


def _number(value: object) -> Decimal:
    try:
        number = Decimal(str(value)) if not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise ValueError("is not a number")
    return number


def _spec_columns(value: Decimal | str) -> dict[str, Any]:
    is_number = isinstance(value, Decimal)
    return {"number": value if is_number else None, "word": None if is_number else value}


def _searched(row: ProductRow, specs: Mapping[str, Decimal | str]) -> Indexed:
    facts = [str(value) for value in row.attributes.values() if isinstance(value, str)]
    words = [value for value in specs.values() if isinstance(value, str)]
    model = str(row.attributes.get("model", ""))
    return Indexed(
        codes=tuple(code for code in (row.id, row.sku, model) if code),
        titles=(row.name, row.sku, model),
        prose=(row.description, row.category, *facts, *words),
        is_active=row.active,
    )


def _said(fault: Mapping[str, Any], model: type[Row]) -> str:
    if fault["type"] == "extra_forbidden":
        hint = nearest(str(fault["loc"][-1]), model.model_fields)
        return "is not a known field" + (f"; did you mean {hint[0]}?" if hint else "")
    return str(fault["msg"]).removeprefix("Value error, ")


def _definition(row: sa.Row[Any]) -> tuple[Mapping[str, SpecDefinition], Mapping[str, AttributeDefinition]]:
    specs = {name: SpecDefinition.model_validate(spec) for name, spec in row.specs.items()}
    return specs, {name: AttributeDefinition.model_validate(a) for name, a in row.attributes.items()}


def _mine(tx: Tx, table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(table.c.tenant_id == tx.tenant_id)


def _among(tx: Tx, table: sa.Table, column: sa.Column[Any], values: Sequence[str]) -> sa.ColumnElement[bool]:
    return (table.c.tenant_id == tx.tenant_id) & column.in_(values)
