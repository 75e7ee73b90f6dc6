"""The word index of the catalogue with its dictionary: whether they are whole, and how the products give them again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import ENGINE
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.errors import Code, CpqError
from cpq.base.row_problems import SourceRow
from cpq.domain.catalog.preparation import prepare_products
from cpq.services.catalog import exporter, word_index
from cpq.services.catalog.importer import declared_by_categories
from cpq.storage.database_errors import storage_fault
from cpq.storage.engine import large_work
from cpq.storage.schema import tables

log = logging.getLogger("cpq.catalog")

LOOK_SECONDS = 60.0
BATCH = 1_000

Progress = Callable[[int, int], None]


def loop(app: App) -> Loop:
    """Looks at the index every minute, and writes it again when it lost a product or cannot be read."""

    def look() -> float:
        if not is_whole(app):
            log.warning("the word index of the catalogue is not whole and is written again")
            rebuild(app)
            if not is_whole(app):  # The loop reports this, and tries again less and less often.
                raise CpqError(Code.UNAVAILABLE, "The word index is not whole after it was written again.")
        return LOOK_SECONDS

    return Loop("word index", look)


def is_whole(app: App) -> bool:
    """Whether the index of every tenant can be read, has as many entries as products, and finds the first of them, and
    whether the dictionary for typing errors is there."""
    try:
        return app.read_unaudited(
            app.new_call(ENGINE), lambda tx: all(_is_whole(_within(tx, one)) for one in word_index.tenants(tx))
        )
    except CpqError as error:
        if error.__cause__ is not None and storage_fault(error.__cause__):
            return False  # It cannot be read.
        raise


def state(app: App) -> str:
    """`ok`, or what is wrong, by looking for one product of the server's own tenant; the loop counts those of all."""
    try:
        is_found = app.read_unaudited(app.new_call(ENGINE), lambda tx: _finds_first(tx) and _has_words(tx))
    except CpqError as error:
        if error.__cause__ is not None and not storage_fault(error.__cause__):
            return "unknown"
        is_found = False
    return "ok" if is_found else "lost products or cannot be read: it is written again within a minute"


def rebuild(app: App, progress: Progress = lambda _done, _total: None) -> int:
    """Write the index of all tenants again in one transaction; returns the number of products."""
    tenants = app.read_unaudited(app.new_call(ENGINE), word_index.tenants)

    def work(tx: Tx) -> int:
        with large_work(tx.connection):
            word_index.clear(tx)
            return sum(_index_all(_within(tx, one), progress) for one in tenants)

    return app.upkeep(app.new_call(ENGINE), work)


def _within(tx: Tx, tenant_id: str) -> Tx:
    """The same transaction in another tenant."""
    return replace(tx, principal=replace(ENGINE, tenant_id=tenant_id))


def _is_whole(tx: Tx) -> bool:
    if word_index.count(tx) != exporter.counts(tx)["products"]:
        return False
    return _finds_first(tx) and _has_words(tx)


def _has_words(tx: Tx) -> bool:
    """Whether the dictionary has words; it has none where the first products have none that can be misspelt."""
    if word_index.has_words(tx):
        return True
    rows = [SourceRow("products", number, values) for number, values in enumerate(islice(exporter.products(tx), BATCH))]
    return not prepare_products(rows, declared_by_categories(tx), tx.tenant_id).vocabulary


def _finds_first(tx: Tx) -> bool:
    first = tx.connection.scalar(sa.select(sa.func.min(tables.product.c.id)).where(tx.own(tables.product)))
    found = word_index.find(tx, first or "", category_id=None, active_only=False, limit=100, offset=0)
    return first is None or first in found.ids


def _index_all(tx: Tx, progress: Progress) -> int:
    total, done = exporter.counts(tx)["products"], 0
    declared = declared_by_categories(tx)
    rest = exporter.products(tx)
    while batch := list(islice(rest, BATCH)):
        rows = [SourceRow("products", number, values) for number, values in enumerate(batch)]
        prepared = prepare_products(rows, declared, tx.tenant_id)
        word_index.index(tx, [(product.id, product.terms) for product in prepared.ready])
        word_index.learn(tx, prepared.vocabulary)
        done += len(batch)
        progress(done, total)
    return total
