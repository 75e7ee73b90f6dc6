"""Imports files into the catalogue: all or nothing, every bad row is named, unchanged rows are left alone."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from cpq.app import corpus_changes, recorded_sets
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError, nearest
from cpq.base.row_problems import Problem, SourceRow, require_none
from cpq.base.text import canonical_json, digest, read_json
from cpq.domain import configuration
from cpq.domain.catalog.preparation import (
    PAYLOADS,
    PRODUCT_COLUMNS,
    SECTIONS,
    Declared,
    Prepared,
    PreparedBatch,
    columns,
    dump,
    id_of,
    prepare_products,
    validate,
)
from cpq.domain.catalog.prices import PriceBookRow, PriceRow, SellingModel
from cpq.domain.catalog.products import AttributeDefinition, CategoryRow, SpecDefinition
from cpq.domain.configuration.components import products_within, read_groups
from cpq.domain.configuration.declarations import QuoteRuleRow
from cpq.domain.configuration.model_compiler import compile_model
from cpq.services.catalog import word_index
from cpq.storage.columns import JsonText
from cpq.storage.engine import large_work
from cpq.storage.schema import tables
from cpq.storage.statements import insert_many, insert_written

BATCH = 5_000
AHEAD_MAX = 2
PROBLEMS_MAX = 10_000


@dataclass
class ImportReport:
    """The result of an import: counts by kind of row, things created because a row mentioned them, and warnings."""

    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    also_created: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def import_rows(tx: Tx, rows: Iterable[SourceRow]) -> ImportReport:
    """Import categories, products, price books, accounts and prices; each comes before the rows that refer to it.

    Raises VALIDATION_ERROR with every bad row in `details.problems`; the caller then rolls the transaction back.
    """
    with _without_garbage_collection(), large_work(tx.connection), _Import(tx) as work:
        for section, batch in _batches(rows):
            work.take(section, batch)
        work.finish()
    return work.report


def declared_by_categories(tx: Tx) -> dict[str, Declared]:
    return {row.id: _declared(row.specs, row.attributes) for row in tx.connection.execute(_mine(tx, tables.category))}


class _Import(ExitStack):
    """The import of one file."""

    def __init__(self, tx: Tx) -> None:
        super().__init__()
        self.tx = tx
        self.report = ImportReport()
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._seen: dict[str, set[str]] = {section: set() for section in SECTIONS}
        self._categories = declared_by_categories(tx)
        self._books = set(tx.connection.scalars(_mine(tx, tables.price_book).with_only_columns(tables.price_book.c.id)))
        self._had_products = (
            tx.connection.scalar(_mine(tx, tables.product).with_only_columns(tables.product.c.id).limit(1)) is not None
        )
        self._related: dict[str, tuple[int, str, str]] = {}
        self._refused_prices: list[SourceRow] = []
        self._vocabulary: set[str] = set()
        self._touched: set[str] = set()
        self._ahead: deque[Future[_PlainBatch]] = deque()
        self._helper: Executor | None = None

    def take(self, section: str, batch: Sequence[SourceRow]) -> None:
        if section == "products":
            self._prepare_products(batch)
            return
        self._settle()
        steps = {
            "categories": self._take_categories,
            "price_books": self._take_price_books,
            "accounts": self._take_accounts,
            "prices": self._take_prices,
            "rules": self._take_rules,
        }
        if section not in steps:
            reason = f"is not one of {', '.join(SECTIONS)}"
            self._refuse(Problem(batch[0].line, section, reason, nearest(section, SECTIONS)))
            return
        steps[section]([(source.line, row) for source in batch if (row := self._validate(source)) is not None])
        if self._refused_prices:
            self._check_refused_prices()

    def finish(self) -> None:
        self._settle()
        self._check_relations()
        require_none(self._problems, self._problem_count)
        word_index.learn(self.tx, self._vocabulary)
        is_redefined = self.report.updated["categories"] > 0  # Search covers the units and names of specs.
        corpus_changes.touch(
            self.tx, corpus_changes.EQUIPMENT, [corpus_changes.EVERYTHING] if is_redefined else self._touched
        )
        if self.report.updated["accounts"] or self.report.updated["products"] or is_redefined:
            # Our own quotes show names of accounts and products.
            corpus_changes.touch(self.tx, corpus_changes.PAST_QUOTES, [corpus_changes.EVERYTHING])
        if self.report.created.total() or self.report.updated.total():
            self._revise()
            recorded_sets.finish(self.tx)

    def _revise(self) -> None:
        """Give the catalogue a new revision, which makes everything that was read before out of date."""
        revision = {"revision": self.tx.new_id("rev-")}
        mine = self.tx.own(tables.catalog_revision)
        if self.tx.connection.execute(sa.update(tables.catalog_revision).where(mine).values(revision)).rowcount == 0:
            self.tx.connection.execute(
                sa.insert(tables.catalog_revision).values(tenant_id=self.tx.tenant_id, **revision)
            )

    def _prepare_products(self, batch: Sequence[SourceRow]) -> None:
        """A second process prepares the next batches of a large file while this one writes."""
        if len(batch) == BATCH and self._helper is None and self._seen["products"]:
            spawn = multiprocessing.get_context("spawn")
            self._helper = self.enter_context(ProcessPoolExecutor(1, spawn, _become_helper))
        if self._helper is None:
            self._take_products(prepare_products(batch, self._categories, self.tx.tenant_id))
            return
        plain = list(map(tuple, batch))
        self._ahead.append(self._helper.submit(_prepare_plain, plain, dict(self._categories), self.tx.tenant_id))
        self._settle(AHEAD_MAX)

    def _settle(self, ahead_max: int = 0) -> None:
        while len(self._ahead) > ahead_max:
            ready, problems, vocabulary, refused = self._ahead.popleft().result()
            self._take_products(PreparedBatch(list(map(Prepared._make, ready)), problems, vocabulary, refused))

    def _validate(self, source: SourceRow) -> Any:
        row, problems = validate(source)
        for problem in problems:
            self._refuse(problem)
        if row is None:
            self._is_new(source.section, source.line, id_of(source))
            if source.section == "prices":
                self._refused_prices.append(source)
            return None
        key = row.key() if isinstance(row, PriceRow) else str(getattr(row, "id", ""))
        return row if self._is_new(source.section, source.line, key) else None

    def _is_new(self, section: str, line: int, key: str) -> bool:
        if not key:
            return True
        if key in self._seen[section]:
            self._refuse(Problem(line, "id", f"{key!r} is in this file twice"))
            return False
        self._seen[section].add(key)
        return True

    def _refuse(self, problem: Problem) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)

    def _take_categories(self, valid: list[tuple[int, Any]]) -> None:
        rows = [columns(row, specs=dump(row.specs), attributes=dump(row.attributes)) for _, row in valid]
        self._store("categories", tables.category, rows)
        self._categories |= {row.id: Declared(row.specs, row.attributes) for _, row in valid}

    def _take_price_books(self, valid: list[tuple[int, Any]]) -> None:
        self._store("price_books", tables.price_book, [columns(row) for _, row in valid])
        self._books |= {row.id for _, row in valid}

    def _take_accounts(self, valid: list[tuple[int, Any]]) -> None:
        for _, row in valid:
            self._ensure_book(row.price_book)
        self._store(
            "accounts", tables.account, [columns(row, price_book_id=row.price_book) for _, row in valid], dated=True
        )

    def _take_prices(self, valid: list[tuple[int, Any]]) -> None:
        options = self._known(tables.product, (row.product_id for _, row in valid), tables.product.c.options)
        accounts = self._known(tables.account, (row.account_id for _, row in valid if row.account_id))
        rows = []
        for line, row in valid:
            surcharges = row.surcharges
            if row.product_id in options:
                surcharges = self._surcharges(line, row, options[row.product_id])
            if row.product_id not in options or (row.account_id and row.account_id not in accounts):
                self._check_references(line, row.product_id, row.account_id, stored=(options, accounts))
                continue
            if row.price_book:
                self._ensure_book(row.price_book)
            is_usual = row.sold_as is SellingModel.of(row.billing_period)
            values = columns(
                row,
                id=row.key(),
                price_book_id=row.price_book,
                tiers=dump(row.tiers),
                surcharges=surcharges,
                selling_model=None if is_usual else row.sold_as.value,
            )
            rows.append({**values, "selling_model": row.sold_as.value})
        self._store("prices", tables.price, rows, dated=True)

    def _take_rules(self, valid: list[tuple[int, QuoteRuleRow]]) -> None:
        """Rules over the lines of a quote. The products that they name must exist, here or further down the file."""
        rows = []
        for line, row in valid:
            named = {id_ for one in row.sets.values() for id_ in one.products} | ({row.add} if row.add else set())
            self._related |= dict.fromkeys(named, (line, row.id, "sets"))
            declared = row.model_dump(mode="python", exclude_defaults=True)
            rows.append(
                {
                    "id": row.id,
                    "active": row.active,
                    "declared": declared,
                    "content_hash": digest([canonical_json(declared)]),
                }
            )
        self._store("rules", tables.quote_rule, rows)

    def _check_refused_prices(self) -> None:
        """Also name what does not exist in prices that cannot be read."""
        refused, self._refused_prices = self._refused_prices, []
        asked = [
            (source.line, str(source.values.get("product_id") or ""), str(source.values.get("account_id") or ""))
            for source in refused
        ]
        stored = (
            self._known(tables.product, (product_id for _, product_id, _ in asked)),
            self._known(tables.account, (account_id for _, _, account_id in asked)),
        )
        for line, product_id, account_id in asked:
            self._check_references(line, product_id, account_id, stored=stored)

    def _check_references(
        self, line: int, product_id: str, account_id: str | None, stored: tuple[Collection[str], Collection[str]]
    ) -> None:
        """Refuse a price whose product or account is neither stored nor in this file, even if refused there."""
        asked = (("product", product_id, stored[0]), ("account", account_id, stored[1]))
        for kind, id_, known in asked:
            if id_ and id_ not in known and id_ not in self._seen[f"{kind}s"]:
                self._refuse(Problem(line, f"{kind}_id", f"there is no {kind} {id_!r}"))

    def _surcharges(self, line: int, row: PriceRow, options: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Surcharges must name values that can be chosen, spelled like a choice; another would never be charged."""
        if not row.surcharges:
            return row.surcharges
        try:
            known = compile_model(options, {}).options
        except CpqError:
            return row.surcharges  # The product is in this file, and its options are refused there.
        spelled: dict[str, dict[str, Any]] = {}
        for name, amounts in row.surcharges.items():
            if name not in known:
                self._refuse(Problem(line, "surcharges", f"{name!r} is not an option of {row.product_id}"))
                continue
            spelled[name] = {}
            for value, amount in amounts.items():
                try:
                    spelled[name][configuration.spelled(known[name].read(value))] = amount
                except ValueError as error:
                    self._refuse(Problem(line, f"surcharges.{name}", str(error).removesuffix(".")))
        return spelled

    def _take_products(self, batch: PreparedBatch) -> None:
        for problem in batch.problems:
            self._refuse(problem)
        for line, id_ in batch.refused:
            self._is_new("products", line, id_)
        self._vocabulary |= batch.vocabulary
        by_id = {part.id: part for part in batch.ready if self._is_new("products", part.line, part.id)}
        owners = {key: owner for key, owner in self._sku_owners(by_id.values()).items() if owner not in by_id}
        for id_, part in list(by_id.items()):
            self._ensure_category(part.category_id)
            choosable = products_within(read_groups(read_json(part.bundle))) if part.bundle else ()
            for other_id in (*(relation["other_id"] for relation in part.relations), *choosable):
                self._related[other_id] = (part.line, id_, "relationships")
            if (owner := owners.setdefault(part.sku_key, id_)) != id_:
                self._refuse(Problem(part.line, "sku", f"{part.sku!r} belongs to product {owner!r}"))
                del by_id[id_]
        if by_id:
            self._store_products(by_id)

    def _store_products(self, by_id: dict[str, Prepared]) -> None:
        hashes = {id_: part.content_hash for id_, part in by_id.items()}
        known = self._known(tables.product, hashes, tables.product.c.content_hash) if self._had_products else {}
        new, changed = self._differing("products", hashes, known)
        same = {"tenant_id": self.tx.tenant_id, "created_at": self.tx.now, "updated_at": self.tx.now}
        written = [by_id[id_].columns() for id_ in new]
        with recorded_sets.changing(self.tx, tables.product, new=new, changed=changed):
            if changed:
                self._vacate_skus(changed)
            insert_written(self.tx.connection, tables.product, PRODUCT_COLUMNS, written, same)
            self._update(tables.product, [_named(by_id[id_]) for id_ in changed], dated=True)
        if len(self._touched) <= corpus_changes.LISTED_MAX:
            self._touched.update((*new, *changed))
        if new or changed:
            self._write_parts([by_id[id_] for id_ in (*new, *changed)])

    def _write_parts(self, changed: list[Prepared]) -> None:
        """Write the details of products: filterable specs, relationships, words in the index."""
        specs, relations = [], []
        for part in changed:
            mine = {"tenant_id": self.tx.tenant_id, "product_id": part.id}
            specs += [{**mine, "name": name, **_spec_columns(value)} for name, value in part.spec_values.items()]
            relations += [{**mine, **relation} for relation in part.relations]
        for table, new in ((tables.product_spec, specs), (tables.product_relation, relations)):
            if self.report.updated["products"]:
                ids = [part.id for part in changed]
                self.tx.connection.execute(sa.delete(table).where(self.tx.own_among(table.c.product_id, ids)))
            insert_many(self.tx.connection, table, new)
        # Products of one category share most of their terms, and SQLite indexes them quicker when they come together.
        together = sorted(changed, key=attrgetter("category_id"))
        word_index.index(self.tx, [(part.id, part.terms) for part in together])

    def _store(self, section: str, table: sa.Table, rows: list[dict[str, Any]], *, dated: bool = False) -> None:
        """Insert new rows and update rows that differ, also after a problem: later rows are checked against them."""
        if not rows:
            return
        by_id = {row["id"]: row for row in rows}
        hashes = {id_: row["content_hash"] for id_, row in by_id.items()}
        new, changed = self._differing(section, hashes, self._known(table, hashes, table.c.content_hash))
        times = {"created_at": self.tx.now, "updated_at": self.tx.now} if dated else {}
        mine = {"tenant_id": self.tx.tenant_id}
        with recorded_sets.changing(self.tx, table, new=new, changed=changed):
            insert_many(self.tx.connection, table, [{**mine, **by_id[id_], **times} for id_ in new])
            self._update(table, [by_id[id_] for id_ in changed], dated=dated)

    def _differing(
        self, section: str, hashes: Mapping[str, str], known: Mapping[str, str]
    ) -> tuple[list[str], list[str]]:
        """The new ids, and the ids whose content differs from the stored one; the report counts both."""
        new = [id_ for id_ in hashes if id_ not in known]
        changed = [id_ for id_, stored in known.items() if hashes[id_] != stored]
        self.report.created[section] += len(new)
        self.report.updated[section] += len(changed)
        self.report.unchanged[section] += len(known) - len(changed)
        return new, changed

    def _vacate_skus(self, ids: list[str]) -> None:
        """Products may exchange SKUs, so all changed products first give up theirs."""
        nobody = sa.literal("\x01") + tables.product.c.id  # No SKU contains a control character.
        mine = self.tx.own_among(tables.product.c.id, ids)
        self.tx.connection.execute(sa.update(tables.product).where(mine).values(sku_key=nobody))

    def _update(self, table: sa.Table, rows: list[dict[str, Any]], *, dated: bool) -> None:
        if rows:
            key = self.tx.own(table) & (table.c.id == sa.bindparam("the_id"))
            times = {"updated_at": self.tx.now} if dated else {}
            for row in rows:
                row |= {"the_id": row.pop("id"), **times}
            self.tx.connection.execute(sa.update(table).where(key), rows)

    def _known(self, table: sa.Table, ids: Iterable[str], column: sa.Column[Any] | None = None) -> dict[str, Any]:
        query = sa.select(table.c.id, table.c.id if column is None else column)
        found = self.tx.connection.execute(query.where(self.tx.own_among(table.c.id, sorted(set(ids)))))
        return dict(found.all())

    def _sku_owners(self, parts: Iterable[Prepared]) -> dict[str, str]:
        keys = sorted({part.sku_key for part in parts})
        query = sa.select(tables.product.c.sku_key, tables.product.c.id).where(
            self.tx.own_among(tables.product.c.sku_key, keys)
        )
        return dict(self.tx.connection.execute(query).all())

    def _ensure_category(self, category_id: str) -> None:
        if category_id not in self._categories:
            row = CategoryRow(id=category_id, name=category_id.replace("_", " ").capitalize())
            self._take_categories([(0, row)])
            self.report.also_created.append(f"category {category_id}")

    def _ensure_book(self, book_id: str) -> None:
        if book_id not in self._books:
            self._take_price_books([(0, PriceBookRow(id=book_id, name=book_id.replace("_", " ").capitalize()))])
            self.report.also_created.append(f"price book {book_id}")

    def _check_relations(self) -> None:
        """A relationship may name a product that comes later in the file, so its target is checked at the end."""
        targets = [id_ for id_ in self._related if id_ not in self._seen["products"]]
        for start in range(0, len(targets), BATCH):
            part = targets[start : start + BATCH]
            known = self._known(tables.product, part)
            for other_id in part:
                if other_id not in known:
                    line, id_, field = self._related[other_id]
                    self._refuse(Problem(line, field, f"{id_} names {other_id!r}, which does not exist"))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Garbage collection would take a third of the time, among millions of rows without cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_PlainBatch = tuple[list[tuple[Any, ...]], list[Problem], set[str], list[tuple[int, str]]]


def _prepare_plain(rows: list[tuple[Any, ...]], declared: Mapping[str, Declared], tenant_id: str) -> _PlainBatch:
    """`prepare_products` for another process: plain tuples are sent in a third of the time of named ones."""
    batch = prepare_products(list(map(SourceRow._make, rows)), declared, tenant_id)
    return list(map(tuple, batch.ready)), batch.problems, batch.vocabulary, batch.refused


def _become_helper() -> None:
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent process ends this one.


def _batches(rows: Iterable[SourceRow]) -> Iterator[tuple[str, list[SourceRow]]]:
    batch: list[SourceRow] = []
    for row in rows:
        if batch and (row.section != batch[0].section or len(batch) == BATCH):
            yield batch[0].section, batch
            batch = []
        batch.append(row)
    if batch:
        yield batch[0].section, batch


def _named(part: Prepared) -> dict[str, Any]:
    values = dict(zip(PRODUCT_COLUMNS, part.columns(), strict=True))
    return values | {name: JsonText(values[name]) for name in PAYLOADS if values[name] is not None}


def _spec_columns(value: Decimal | str) -> dict[str, Any]:
    is_number = isinstance(value, Decimal)
    return {"number": value if is_number else None, "word": None if is_number else value}


def _declared(specs: Mapping[str, Any], attributes: Mapping[str, Any]) -> Declared:
    return Declared(
        {name: SpecDefinition.model_validate(spec) for name, spec in specs.items()},
        {name: AttributeDefinition.model_validate(attribute) for name, attribute in attributes.items()},
    )


def _mine(tx: Tx, table: sa.Table) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(table).where(tx.own(table))
