"""Statements that every call runs, compiled once for each database, and inserts of many rows at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

SQLITE_VARIABLES_MAX = 30_000
"""Values in one statement; SQLite since 3.32 allows 32,766."""

POSTGRESQL_ROWS_MAX = 10_000
"""Rows in one statement."""

AnyRow = sa.Row[*tuple[Any, ...]]
"""A row of a query; the query names its columns."""


class Statement:
    """A statement that is built and compiled once for each database, then only filled in and passed to the driver.

    For statements of every call: SQLAlchemy's preparation, cursor and rows cost more time than many of them take to
    run. Its pool, transactions and errors are still used.
    """

    def __init__(self, make: Callable[[str], sa.Executable]) -> None:
        self._make = make
        self._ready: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """The rows of a query, as tuples in the order of its columns."""
        ready = self._compiled(connection)
        with driver_cursor(connection, ready.text) as cursor:
            cursor.execute(ready.text, ready.filled(values))
            found: list[Any] = cursor.fetchall()
        return [ready.read(row) for row in found] if ready.readers else found

    def run(self, connection: Connection, **values: Any) -> int:
        """Run a change; returns the number of rows it touched."""
        ready = self._compiled(connection)
        with driver_cursor(connection, ready.text) as cursor:
            cursor.execute(ready.text, ready.filled(values))
            return int(cursor.rowcount)

    def run_many(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Run a change once for each row. Rows hold stored values, in the order of the columns.

        Text must be plain `str`: SQLite's driver is slower with subclasses.
        """
        ready = self._compiled(connection)
        with driver_cursor(connection, ready.text) as cursor:
            cursor.executemany(ready.text, rows if ready.is_positional else map(ready.named, rows))

    def _compiled(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        ready = self._ready.get(name)
        if ready is None:
            ready = self._ready[name] = _Compiled(self._make(name), connection.dialect)
        return ready


class Reader:
    """Reads rows of a table that a statement gave as they are stored, so that each is fetched once for its digest and
    for its values."""

    def __init__(self, table: sa.Table) -> None:
        self._names = [column.name for column in table.c]
        self._types = {column.name: column.type for column in table.c}
        self._ready: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}

    def values(self, connection: Connection, row: Sequence[Any]) -> dict[str, Any]:
        """The values by the names of the columns; the row may have more after them."""
        found = dict(zip(self._names, row, strict=False))
        for name, read in self._readers(connection.dialect):
            if found[name] is not None:
                found[name] = read(found[name])
        return found

    def _readers(self, dialect: Dialect) -> list[tuple[str, Callable[[Any], Any]]]:
        if (ready := self._ready.get(dialect.name)) is None:
            readers = {
                name: kind.dialect_impl(dialect).result_processor(dialect, None) for name, kind in self._types.items()
            }
            ready = self._ready[dialect.name] = [(name, read) for name, read in readers.items() if read]
        return ready


class driver_cursor:  # noqa: N801 - used like a function
    """A cursor of the driver inside SQLAlchemy's transaction; its errors become SQLAlchemy's."""

    __slots__ = ("_connection", "_cursor", "_text")

    def __init__(self, connection: Connection, text: str) -> None:
        self._connection = connection
        self._text = text

    def __enter__(self) -> Any:
        dialect: Any = self._connection.dialect
        try:
            self._cursor = self._connection.connection.cursor()
        except dialect.loaded_dbapi.Error as error:
            self._raise(error, None)
        return self._cursor

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self._raise(error, self._cursor)
        self._cursor.close()

    def _raise(self, error: BaseException, cursor: Any) -> None:
        dialect: Any = self._connection.dialect
        driver_error = dialect.loaded_dbapi.Error
        if isinstance(error, driver_error):
            is_lost = dialect.is_disconnect(error, self._connection.connection.dbapi_connection, cursor)
            if is_lost:
                self._connection.invalidate(error)
            raise sa.exc.DBAPIError.instance(
                self._text, None, error, driver_error, connection_invalidated=is_lost, dialect=dialect
            ) from error


class _Compiled:
    def __init__(self, statement: sa.Executable, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined] # Every real one has it.
        self.text = str(compiled)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        self._order: Sequence[str] | None = compiled.positiontup
        self.is_positional = self._order is not None
        self._names = list(compiled.params)
        writers = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()
        }
        self._writers = {name: writer for name, writer in writers.items() if writer and name not in self._fixed}
        columns = getattr(statement, "selected_columns", ())
        readers = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        self.readers = [(place, reader) for place, reader in enumerate(readers) if reader]

    def filled(self, values: dict[str, Any]) -> Any:
        for name, write in self._writers.items():
            if (value := values[name]) is not None:
                values[name] = write(value)
        values.update(self._fixed)
        return values if self._order is None else tuple([values[name] for name in self._order])

    def named(self, row: tuple[object, ...]) -> dict[str, object]:
        return dict(zip(self._names, row, strict=True))

    def read(self, row: Sequence[Any]) -> list[Any]:
        cells = list(row)
        for place, reader in self.readers:
            cells[place] = reader(cells[place])
        return cells


def wait_in_turn(connection: Connection, key: int) -> None:
    """On PostgreSQL: wait until no other transaction holds this key, and hold it until the end of this one."""
    _IN_TURN.rows(connection, key=key)


_IN_TURN = Statement(lambda _: sa.select(sa.func.pg_advisory_xact_lock(sa.bindparam("key", type_=sa.BigInteger))))


def among(dialect: str, column: sa.Column[Any], values: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    """Whether a column is one of the values of `listed`, with one parameter for any number of values."""
    if dialect == "sqlite":
        each = sa.func.json_each(values).table_valued("value")
        return column.in_(sa.select(each.c.value))
    return column == sa.any_(sa.cast(values, sa.ARRAY(sa.Text)))


def listed(connection: Connection, values: Collection[str]) -> Any:
    return json.dumps(list(values)) if connection.dialect.name == "sqlite" else list(values)


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns, at a third of the cost of SQLAlchemy's own insert."""
    if rows:
        names = list(rows[0])
        binds = [_bind_processor(connection, table, name) for name in names]
        plan = list(zip(names, binds, strict=True))
        converted = ([bind(row[name]) if bind else row[name] for name, bind in plan] for row in rows)
        insert_written(connection, table, names, converted)


def insert_written(
    connection: Connection,
    table: sa.Table,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    same: Mapping[str, object] | None = None,
) -> None:
    """Insert rows of stored values; the columns in `same` have one value for all rows."""
    constants = dict(same or {})
    for name in constants:
        if bind := _bind_processor(connection, table, name):
            constants[name] = bind(constants[name])
    if connection.dialect.name == "sqlite":
        insert_into_sqlite(connection, table.name, names, rows, constants)
    else:
        _insert_into_postgresql(connection, table, names, rows, constants)


def _insert_into_postgresql(
    connection: Connection,
    table: sa.Table,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    constants: Mapping[str, object],
) -> None:
    """Insert many rows with one statement, a list for each column: it is planned once, and on Citus routed once."""
    kinds = {name: table.c[name].type.compile(dialect=connection.dialect) for name in (*constants, *names)}
    fixed = [f"%s::{kinds[name]}" for name in constants]
    lists = ", ".join(f"%s::{kinds[name]}[]" for name in names)
    into = f"INSERT INTO {table.name} ({', '.join(kinds)}) SELECT {', '.join([*fixed, 'each.*'])}"
    statement = f"{into} FROM unnest({lists}) AS each"
    waiting = iter(rows)
    while chunk := list(islice(waiting, POSTGRESQL_ROWS_MAX)):
        columns = [_of_one_type(column) for column in zip(*chunk, strict=True)]
        connection.exec_driver_sql(statement, (*constants.values(), *columns))


def _of_one_type(values: Sequence[Any]) -> list[Any]:
    """A list that the driver takes: its texts are of no subclass of `str`, and numbers with floats are floats."""
    kinds = {type(value) for value in values} - {type(None)}
    plain: type = str if any(issubclass(kind, str) for kind in kinds) else float
    if len(kinds) < 2 and kinds <= {str, int, float, bool}:
        return list(values)
    if plain is str or kinds == {int, float}:
        return [None if value is None else plain(value) for value in values]
    return list(values)


def insert_into_sqlite(
    connection: Connection,
    table: str,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    same: Mapping[str, object] | None = None,
) -> None:
    """Insert many rows with few statements: SQLite runs each without Python's lock, so other threads continue."""
    constants = same or {}
    into = f"INSERT INTO {table} ({', '.join([*constants, *names])}) VALUES "  # noqa: S608 - names of our own schema
    numbered = [f"?{number}" for number in range(1, len(constants) + 1)]
    group = f"({', '.join([*numbered, *'?' * len(names)])})"
    waiting = iter(rows)
    while chunk := list(islice(waiting, (SQLITE_VARIABLES_MAX - len(constants)) // len(names))):
        values = (*constants.values(), *chain.from_iterable(chunk))
        connection.exec_driver_sql(into + ", ".join([group] * len(chunk)), values)


def _bind_processor(connection: Connection, table: sa.Table, name: str) -> Callable[[Any], Any] | None:
    return table.c[name].type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
