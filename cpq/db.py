"""SQLite and PostgreSQL behind one `Database`: safe settings, statements compiled once, and what a retry can cure."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Dialect, Engine

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.metrics import WRITE_WAIT_SECONDS
from cpq.base.settings import Settings
from cpq.policy.model import PolicySet

try:
    import pysqlite3 as sqlite_driver
except ImportError:  # Platforms without its wheel use Python's own SQLite.
    import sqlite3 as sqlite_driver

SQLITE_SAFE_VERSION = (3, 51, 3)
"""Older ones have the WAL-reset bug; the writer gate avoids the overlap it needs, `cpq doctor` still says so."""

SQLITE_VARIABLES_MAX = 30_000
"""Values in one statement; every SQLite since 3.32 takes 32,766."""

WRITE_DEADLINE_SECONDS = 15.0
"""How long a write may wait for its turn and retry before it answers UNAVAILABLE."""


MIGRATION_DEADLINE_SECONDS = 300.0
"""How long a migration waits for its turn: an import of a million rows may be before it."""

AnyRow = sa.Row[*tuple[Any, ...]]
"""A row of a query whose columns are named where it is made."""


@dataclass(frozen=True)
class Tx:
    """What a use case works in: one transaction, one tenant, one moment, one caller."""

    connection: Connection
    tenant_id: str
    now: datetime
    caller: str
    effects: Effects
    settings: Settings
    policies: PolicySet
    sees_margin: bool = False
    roles: frozenset[str] = frozenset()
    """What the caller is here: the roles of the token that was presented, not of others that the same person holds."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """What this process keeps in memory between transactions, search indexes for one; never the truth."""

    def new_id(self, prefix: str) -> str:
        return self.effects.new_id(prefix)


class Database:
    """One store. Reads never wait for writers; writes take turns in a fair order on SQLite."""

    def __init__(self, settings: Settings, effects: Effects) -> None:
        self.is_sqlite = settings.is_sqlite
        if self.is_sqlite:
            path = settings.sqlite_path.absolute()
            self._file: Path | None = path
            self._connection: Connection | None = None
            self._gate: _WriterGate | None = _gate_of(path, effects)
            self._writer = _sqlite_engine(path, begin="BEGIN IMMEDIATE", query_only=False)
            self._reader = _sqlite_engine(path, begin="BEGIN", query_only=True)
        else:
            self._file = self._gate = self._connection = None
            self._writer = self._reader = _postgres_engine(settings)

    def exists(self) -> bool:
        """False when opening it would only create an empty file; a server is always worth asking."""
        return self._file is None or self._file.is_file()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent snapshot that cannot write."""
        with self._reader.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self, deadline: float) -> Iterator[Connection]:
        """One transaction that commits on leaving. `deadline` is on the effects' monotonic clock."""
        if self._gate is None:
            with self._writer.connect() as connection:
                with connection.begin():
                    yield connection
                    connection.info["commit_warnings"].clear()
                _refuse_doubtful_commit(connection)
        else:
            # There is one writer at a time, so there is one connection; fetching it anew costs more than a statement.
            with self._gate.held(deadline):
                if self._connection is None or self._connection.invalidated:
                    self._connection = self._writer.connect()
                try:
                    with self._connection.begin():
                        yield self._connection
                except BaseException:
                    # The pool rolls back what a failed commit may have left open.
                    kept, self._connection = self._connection, None
                    kept.close()
                    raise

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()  # Once whoever is writing has finished.
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._reader.dispose()
        self._writer.dispose()


class Statement:
    """A statement that is built and compiled once for each database, then only filled in and handed to the driver.

    For what every call does. SQLAlchemy's own way to a compiled statement, its cursor and its rows costs more than many
    of ours take to run; its pool, transactions and errors stay.
    """

    def __init__(self, make: Callable[[str], sa.Executable]) -> None:
        self._make = make
        self._ready: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """What a query finds, as tuples in the order of its columns."""
        ready = self._compiled(connection)
        with _driver(connection, ready.text) as cursor:
            cursor.execute(ready.text, ready.filled(values))
            found: list[Any] = cursor.fetchall()
        return [ready.read(row) for row in found] if ready.readers else found

    def run(self, connection: Connection, **values: Any) -> int:
        """Carry out a change; how many rows it touched."""
        ready = self._compiled(connection)
        with _driver(connection, ready.text) as cursor:
            cursor.execute(ready.text, ready.filled(values))
            return int(cursor.rowcount)

    def run_many(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Carry out a change once for each row, which holds what the database is to hold, in the order of the columns.

        Text is plain `str`: SQLite's driver takes a detour for any other kind of it.
        """
        ready = self._compiled(connection)
        with _driver(connection, ready.text) as cursor:
            cursor.executemany(ready.text, rows if ready.is_positional else map(ready.named, rows))

    def _compiled(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        ready = self._ready.get(name)
        if ready is None:
            ready = self._ready[name] = _Compiled(self._make(name), connection.dialect)
        return ready


class _driver:  # noqa: N801 - used like a function
    """A cursor of the driver inside SQLAlchemy's transaction; its errors come out as SQLAlchemy's."""

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
            values[name] = write(values[name])
        values.update(self._fixed)
        return values if self._order is None else tuple([values[name] for name in self._order])

    def named(self, row: tuple[object, ...]) -> dict[str, object]:
        return dict(zip(self._names, row, strict=True))

    def read(self, row: Sequence[Any]) -> list[Any]:
        cells = list(row)
        for place, reader in self.readers:
            cells[place] = reader(cells[place])
        return cells


def among(dialect: str, column: sa.Column[Any], values: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    """Whether a column is one of the values that `listed` makes: one parameter however many there are."""
    if dialect == "sqlite":
        each = sa.func.json_each(values).table_valued("value")
        return column.in_(sa.select(each.c.value))
    return column == sa.any_(sa.cast(values, ARRAY(sa.Text)))


def listed(connection: Connection, values: Collection[str]) -> Any:
    return json.dumps(list(values)) if connection.dialect.name == "sqlite" else list(values)


def mine_among(tx: Tx, column: sa.Column[Any], values: Collection[str]) -> sa.ColumnElement[bool]:
    """Rows of the caller's tenant whose column is one of the values."""
    bound: sa.BindParameter[Any] = sa.bindparam(None, listed(tx.connection, values), unique=True)
    return (column.table.c.tenant_id == tx.tenant_id) & among(tx.connection.dialect.name, column, bound)


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all name the same columns, at a third of the cost of SQLAlchemy's way of preparing each."""
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
    """Insert rows that already hold what the database is to hold; the columns in `same` are the same in all rows."""
    constants = dict(same or {})
    for name in constants:
        if bind := _bind_processor(connection, table, name):
            constants[name] = bind(constants[name])
    if connection.dialect.name == "sqlite":
        insert_into_sqlite(connection, table.name, names, rows, constants)
    elif values := [{**constants, **dict(zip(names, row, strict=True))} for row in rows]:
        statement = str(sa.insert(table).compile(dialect=connection.dialect, column_keys=[*constants, *names]))
        connection.exec_driver_sql(statement, values)


def insert_into_sqlite(
    connection: Connection,
    table: str,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    same: Mapping[str, object] | None = None,
) -> None:
    """Insert many rows with few statements: the database works on each without Python's lock, so others can go on."""
    constants = same or {}
    into = f"INSERT INTO {table} ({', '.join([*constants, *names])}) VALUES "  # noqa: S608 - names of our own schema
    numbered = [f"?{number}" for number in range(1, len(constants) + 1)]
    group = f"({', '.join([*numbered, *'?' * len(names)])})"
    waiting = iter(rows)
    while chunk := list(islice(waiting, (SQLITE_VARIABLES_MAX - len(constants)) // len(names))):
        values = (*constants.values(), *chain.from_iterable(chunk))
        connection.exec_driver_sql(into + ", ".join([group] * len(chunk)), values)


def read_unmapped(connection: Connection) -> None:
    """From now on read through SQLite's bounded cache: on a walk over the file all mapped pages count as memory."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA mmap_size=0")


def is_transient(error: BaseException) -> bool:
    """True when the same transaction may succeed if it is run again as a whole."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate:
        return sqlstate in _RETRY_SQLSTATES or sqlstate.startswith("08")
    if "locked" in str(error.orig) or "busy" in str(error.orig):
        return isinstance(error, sa.exc.OperationalError)
    return error.connection_invalidated or "connection" in str(error.orig).lower()


def is_taken(error: sa.exc.DBAPIError) -> bool:
    """True when a rival has just stored something under the same key."""
    return getattr(error.orig, "sqlstate", None) == "23505" or "UNIQUE constraint failed" in str(error.orig)


def is_too_slow(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "57014"


def is_missing_table(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig)


def is_storage_full(error: BaseException) -> bool:
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    return getattr(error.orig, "sqlstate", None) == "53100" or "disk is full" in str(error.orig)


def sqlite_version() -> tuple[int, ...]:
    return tuple(sqlite_driver.sqlite_version_info)


def migration_engine(settings: Settings) -> Engine:
    """For Alembic: foreign keys are off before BEGIN, or a batch migration on SQLite would delete the children."""
    if settings.is_sqlite:
        path = settings.sqlite_path.absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        return _sqlite_engine(path, begin="BEGIN IMMEDIATE", query_only=False, foreign_keys=False)
    return _postgres_engine(settings)


@contextmanager
def migrating_alone(settings: Settings, effects: Effects) -> Iterator[None]:
    """On SQLite, a turn among the writers of all processes: past the gate a migration starves, or makes them wait."""
    if not settings.is_sqlite:
        yield
        return
    gate = _gate_of(settings.sqlite_path.absolute(), effects)
    try:
        with gate.held(effects.monotonic() + MIGRATION_DEADLINE_SECONDS):
            yield
    finally:
        gate.close()


def _bind_processor(connection: Connection, table: sa.Table, name: str) -> Callable[[Any], Any] | None:
    return table.c[name].type.dialect_impl(connection.dialect).bind_processor(connection.dialect)


_RETRY_SQLSTATES = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03"}


def _sqlite_engine(path: Path, *, begin: str, query_only: bool, foreign_keys: bool = True) -> Engine:
    engine = sa.create_engine(
        f"sqlite+pysqlite:///{path}",
        module=sqlite_driver,
        pool_size=8,
        max_overflow=64,
        pool_timeout=5,
        connect_args={"timeout": 30, "check_same_thread": False},
    )
    pragmas = [
        # Writers wait at the gate; what comes past it (a backup, another program) must not use up their deadline.
        f"busy_timeout={30_000 if query_only else 10_000}",
        "journal_mode=WAL",
        "synchronous=FULL",
        f"foreign_keys={'ON' if foreign_keys else 'OFF'}",
        "trusted_schema=OFF",
        f"cache_size={-32_768 if query_only else -131_072}",
        "mmap_size=2147483648",
        "temp_store=MEMORY",
        f"query_only={'ON' if query_only else 'OFF'}",
    ]

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # We own BEGIN; the driver's own one is deferred and fails when upgraded.
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        with _driver(connection, begin) as cursor:
            cursor.execute(begin)

    return engine


def _postgres_engine(settings: Settings) -> Engine:
    timeout_ms = int(settings.tool_timeout_seconds * 1000)
    engine = sa.create_engine(
        settings.database_url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=60,
        pool_timeout=5,
        connect_args={
            **({} if "connect_timeout" in sa.make_url(settings.database_url).query else {"connect_timeout": 3}),
            "keepalives_idle": 1,
            "keepalives_interval": 1,
            "keepalives_count": 2,
            "tcp_user_timeout": 3000,
            "options": f"-c lock_timeout=5000 -c statement_timeout={timeout_ms} "
            f"-c idle_in_transaction_session_timeout={timeout_ms} -c timezone=UTC -c datestyle=ISO",
        },
    )

    @event.listens_for(engine, "connect")
    def _watch(connection: Any, record: Any) -> None:
        # A cancelled wait for a synchronous standby still answers COMMIT with success, plus this warning.
        warnings: list[str] = []
        record.info["commit_warnings"] = warnings
        connection.add_notice_handler(
            lambda notice: warnings.append(notice.message_primary or "") if notice.sqlstate == "01000" else None
        )

    return engine


def _refuse_doubtful_commit(connection: Connection) -> None:
    warnings = connection.info.get("commit_warnings")
    if warnings:
        warnings.clear()
        raise CpqError(
            Code.UNAVAILABLE,
            "The database could not confirm that the change is safely stored.",
            hint="Repeat the call with the same idempotency_key; it will not be done twice.",
        )


def _gate_of(path: Path, effects: Effects) -> _WriterGate:
    return _WriterGate(path.with_name(path.name + ".writer"), effects)


class _WriterGate:
    """Writers of all processes queue here, because SQLite's own busy handler starves some of them for seconds.

    Two locks make the queue fair: who wants to write first becomes the next one, so that a writer that has just
    finished cannot be first again while others wait.
    """

    def __init__(self, path: Path, effects: Effects) -> None:
        self._paths = (path.with_suffix(".next"), path)
        self._effects = effects
        self._threads = threading.Lock()
        self._open: tuple[int, tuple[int, int]] | None = None

    @contextmanager
    def held(self, deadline: float) -> Iterator[None]:
        started = self._effects.monotonic()
        if not self._threads.acquire(timeout=max(0.0, deadline - started)):
            raise _busy()
        try:
            coming, writer = self._descriptors()
            self._lock(coming, deadline, pause_max=0.002)
            try:
                self._lock(writer, deadline, pause_max=0.0002)
            finally:
                fcntl.flock(coming, fcntl.LOCK_UN)
            try:
                WRITE_WAIT_SECONDS.observe(self._effects.monotonic() - started)
                yield
            finally:
                fcntl.flock(writer, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        with self._threads:
            known, self._open = self._open, None
            for descriptor in known[1] if known else ():
                os.close(descriptor)

    def _descriptors(self) -> tuple[int, int]:
        """Opened once for each process: a child that used its parent's would hold the parent's locks."""
        process = os.getpid()
        if self._open is None or self._open[0] != process:
            coming, writer = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for path in self._paths)
            self._open = process, (coming, writer)
        return self._open[1]

    def _lock(self, descriptor: int, deadline: float, *, pause_max: float) -> None:
        pause = pause_max / 8
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if self._effects.monotonic() > deadline:
                    raise _busy() from None
            self._effects.sleep(pause)
            pause = min(pause * 1.5, pause_max)


def _busy() -> CpqError:
    return CpqError(
        Code.UNAVAILABLE,
        "The database is busy with other writes.",
        hint="Try again in a few seconds; nothing was changed.",
        retry_after_seconds=2,
    )
