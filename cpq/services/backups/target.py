"""The database that is filled: it must be empty, and is filled in one transaction, so that it is whole or empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app import App
from cpq.base.errors import Code, CpqError
from cpq.storage import portable_rows
from cpq.storage.engine import WRITE_DEADLINE_SECONDS, large_work
from cpq.storage.portable_rows import Digest, Digested, Line, TableShape
from cpq.storage.schema import tables

NAMED_MAX = 5

Progress = Callable[[int, int], None]


@contextmanager
def filling(app: App, shapes: Sequence[TableShape]) -> Iterator[Connection]:
    """One transaction in which nobody else writes, however long it takes."""
    deadline = app.effects.monotonic() + WRITE_DEADLINE_SECONDS
    with app.database.writing(deadline) as connection, large_work(connection):
        portable_rows.unlimited(connection)
        portable_rows.lock(connection, shapes)
        yield connection


def filled(connection: Connection, shapes: Iterable[TableShape]) -> dict[str, int]:
    """The rows of each table that has some."""
    counts = {shape.name: portable_rows.count(connection, shape) for shape in shapes}
    return {name: rows for name, rows in counts.items() if rows}


def not_empty(app: App, found: dict[str, int], *, hint: str) -> CpqError:
    named = [f"{name} has {rows:,}" for name, rows in list(found.items())[:NAMED_MAX]]
    more = f" and {len(found) - NAMED_MAX} more tables have some" if len(found) > NAMED_MAX else ""
    return CpqError(
        Code.CONFLICT,
        f"The database {app.settings.database_name} is not empty: {', '.join(named)} rows{more}. Nothing was changed.",
        tables=found,
        hint=hint,
    )


def load(connection: Connection, shape: TableShape, lines: Iterable[Line]) -> Digest:
    """Insert the lines, read the table again and compare."""
    given = Digested(lines)
    portable_rows.insert(connection, shape, given)
    if portable_rows.digest(connection, shape) != given.digest:
        raise CpqError(Code.CONFLICT, f"The table {shape.name} is not the same after it was written.")
    return given.digest


def tenants(connection: Connection) -> list[str]:
    """Every tenant that has audit entries: nobody can store anything without one."""
    return sorted(connection.scalars(sa.select(tables.audit_entry.c.tenant_id).distinct()))
