"""Whole tables in one spelling for both databases: read, counted, digested, locked and inserted."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.base.state_digest import iso_text
from cpq.storage.columns import Amount, Day, Flag, Timestamp
from cpq.storage.schema import metadata
from cpq.storage.statements import driver_cursor, insert_into_sqlite
from cpq.storage.tenants import of_tenant

Line = bytes
"""One row as a JSON array, its values in the order of the columns."""

BATCH_BYTES = 1_000_000
BATCH_ROWS = 500
_MODULUS = 2**256


@dataclass(frozen=True)
class TableShape:
    """A table with its columns and the kind of each; a backup keeps it, so that a later version can still load it."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]


@dataclass
class Digest:
    """The number of rows and the sum of their SHA-256: the same in whatever order they are read."""

    rows: int = 0
    total: int = 0

    def add(self, line: Line) -> None:
        self.rows += 1
        self.total = (self.total + int.from_bytes(hashlib.sha256(line).digest())) % _MODULUS

    @property
    def text(self) -> str:
        return f"{self.total:064x}"


@dataclass
class Digested:
    """Passes lines on and keeps their digest."""

    lines: Iterable[Line]
    digest: Digest = field(default_factory=Digest)

    def __iter__(self) -> Iterator[Line]:
        for line in self.lines:
            self.digest.add(line)
            yield line


def shapes() -> list[TableShape]:
    """Every table of the schema, parents before their children."""
    return [
        TableShape(table.name, tuple((column.name, _kind(column)) for column in table.c))
        for table in metadata.sorted_tables
    ]


def count(connection: Connection, shape: TableShape, tenant_id: str | None = None) -> int:
    return connection.scalar(_of(sa.select(sa.func.count()), shape, tenant_id)) or 0


def _of(query: sa.Select[Any], shape: TableShape, tenant_id: str | None) -> sa.Select[Any]:
    """The query over the rows of one tenant, or of all."""
    table = sa.table(shape.name, sa.column("tenant_id", sa.Text))
    found = query.select_from(table)
    return found if tenant_id is None else found.where(of_tenant(table, tenant_id))


def read(connection: Connection, shape: TableShape, tenant_id: str | None = None) -> Iterator[Line]:
    """The rows of one tenant or of all; only as many as one batch are in memory."""
    writers = [_WRITERS.get(kind) for _, kind in shape.columns]
    plan = [(place, write) for place, write in enumerate(writers) if write]
    columns: list[sa.ColumnElement[Any]] = [sa.column(name) for name in shape.names]
    query = _of(sa.select(*columns), shape, tenant_id)
    with connection.execute(query, execution_options={"yield_per": BATCH_ROWS}) as rows:
        for row in rows:
            values = list(row)
            for place, write in plan:
                if values[place] is not None:
                    values[place] = write(values[place])
            yield _ENCODER.encode(values)


def digest(connection: Connection, shape: TableShape) -> Digest:
    digested = Digested(read(connection, shape))
    for _ in digested:
        pass
    return digested.digest


def delete_tenant(connection: Connection, tenant_id: str) -> dict[str, int]:
    """Delete every row of one tenant, children before their parents; returns how many of each table."""
    gone = {}
    for table in reversed(metadata.sorted_tables):
        gone[table.name] = connection.execute(sa.delete(table).where(of_tenant(table, tenant_id))).rowcount
    return {name: rows for name, rows in gone.items() if rows}


def lock(connection: Connection, found: Sequence[TableShape]) -> None:
    """Keep others from writing until the end of the transaction; on SQLite there is one writer anyway."""
    if connection.dialect.name == "postgresql":
        names = ", ".join(shape.name for shape in found)
        connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def unlimited(connection: Connection) -> None:
    """Let the statements of this transaction take as long as a large database needs."""
    if connection.dialect.name == "postgresql":
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")


def insert(connection: Connection, shape: TableShape, lines: Iterable[Line]) -> None:
    """Insert rows that `read` gave, from either database."""
    is_sqlite = connection.dialect.name == "sqlite"
    readers = [(_SQLITE_READERS if is_sqlite else _POSTGRES_READERS).get(kind) for _, kind in shape.columns]
    plan = [(place, one) for place, one in enumerate(readers) if one]
    if is_sqlite:
        for batch in _batches(lines):
            insert_into_sqlite(connection, shape.name, shape.names, [_values(line, plan) for line in batch])
        return
    text = f"COPY {shape.name} ({', '.join(shape.names)}) FROM STDIN"
    with driver_cursor(connection, text) as cursor, cursor.copy(text) as copy:
        for line in lines:
            copy.write_row(_values(line, plan))


def _values(line: Line, plan: Sequence[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    values = _DECODER.decode(line)
    for place, one in plan:
        if values[place] is not None:
            values[place] = one(values[place])
    return values


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _kind(column: sa.Column[Any]) -> str:
    kinds = {Timestamp: "moment", Day: "day", Flag: "flag", Amount: "whole"}
    if (kind := kinds.get(type(column.type))) is not None:
        return kind
    return "bytes" if isinstance(column.type, sa.LargeBinary) else "plain"


def _moment(value: Any) -> str:
    return value if isinstance(value, str) else iso_text(value)


def _day(value: Any) -> str:
    return value if isinstance(value, str) else str(value.isoformat())


_WRITERS: dict[str, Callable[[Any], Any]] = {
    "moment": _moment,
    "day": _day,
    "flag": int,
    "bytes": lambda value: b64encode(value).decode(),
}
_SQLITE_READERS: dict[str, Callable[[Any], Any]] = {"bytes": b64decode}
_POSTGRES_READERS: dict[str, Callable[[Any], Any]] = {"bytes": b64decode, "flag": bool}

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[Any])
