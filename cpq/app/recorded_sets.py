"""Digests of the catalogue, as sums: an import takes a changed row out of the sum as it was, and adds it as it is.

Each row belongs to one of 256 groups by its id, and the record has the sum of the row digests of each group. So an
import reads only what it changes, and a forged row is found in its group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.recorded_state import CATALOG, Parts, latest
from cpq.app.transaction import Tx
from cpq.base.state_digest import row_number
from cpq.storage.columns import as_stored
from cpq.storage.schema import tables

TABLES = (tables.price_book, tables.account, tables.product, tables.price, tables.quote_rule)
IDS_MAX = 5_000


@contextmanager
def changing(tx: Tx, table: sa.Table, *, new: Collection[str], changed: Collection[str]) -> Iterator[None]:
    """Record a change of rows: those that change as they were before, and all of them as they are after."""
    if table not in TABLES:
        yield
        return
    if latest(tx, CATALOG, for_update=True) is None:
        _begin(tx)
        yield  # Nothing is on record: `finish` reads all rows.
        return
    _count(tx, table, changed, -1)
    yield
    _count(tx, table, [*new, *changed], 1)


def finish(tx: Tx) -> None:
    """Record the whole catalogue, if nothing is on record about it."""
    if latest(tx, CATALOG, for_update=True) is None:
        _begin(tx)
        tx.changes.setdefault(CATALOG, {}).update(sums(tx))


def _begin(tx: Tx) -> None:
    """Begin the record. With a key, rows from before are not signed together with what this transaction adds: somebody
    may have taken their record away, and `cpq audit baseline` is where a person looks at them."""
    if CATALOG not in tx.begun:
        tx.begun.add(CATALOG)
        queries = (sa.select(sa.literal(1)).select_from(table).where(tx.own(table)).limit(1) for table in TABLES)
        if tx.audit_key and any(tx.connection.scalar(query) for query in queries):
            tx.unsigned.add(CATALOG)


def sums(tx: Tx) -> Parts:
    """The sums of all groups, as the rows are stored now."""
    found: dict[str, int] = {}
    for table in TABLES:
        for row in rows(tx.connection, table, tx.own(table)):
            name = group(table, row)
            found[name] = found.get(name, 0) + row_number(row)
    return {name: _written(total) for name, total in found.items()}


def ids_of(tx: Tx, name: str) -> list[str]:
    """The ids of the rows of a group."""
    table = next(one for one in TABLES if one.name == name.partition("/")[0])
    return sorted(row.id for row in rows(tx.connection, table, tx.own(table)) if group(table, row) == name)


def _count(tx: Tx, table: sa.Table, ids: Collection[str], sign: int) -> None:
    known, listed = latest(tx, CATALOG), sorted(ids)
    changes = tx.changes.setdefault(CATALOG, {})
    for start in range(0, len(listed), IDS_MAX):
        mine = tx.own_among(table.c.id, listed[start : start + IDS_MAX])
        for row in rows(tx.connection, table, mine):
            name = group(table, row)
            before = changes.get(name) or (known.parts.get(name) if known else None) or "0"
            changes[name] = _written(int(before, 16) + sign * row_number(row))


def _written(total: int) -> str:
    return f"{total % 2**192:x}"


def rows(connection: Connection, table: sa.Table, mine: sa.ColumnElement[bool]) -> Iterator[Any]:
    columns = [as_stored(connection.dialect.name, column) for column in table.c]
    query = sa.select(*columns).where(mine).execution_options(yield_per=1000)
    with connection.execute(query) as found:
        yield from found


def group(table: sa.Table, row: Any) -> str:
    """The group of a row, by its id: `price/0a`."""
    return f"{table.name}/{hashlib.sha256(row.id.encode()).hexdigest()[:2]}"
