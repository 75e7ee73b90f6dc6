"""SQLite and PostgreSQL behind one `Database`: how each is opened, read and written safely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.late_modules import LateModule
from cpq.base.private_folder import make_private
from cpq.base.settings import Settings
from cpq.storage.database_errors import storage_fault
from cpq.storage.statements import driver_cursor
from cpq.storage.writer_gate import WriterGate, gate_of

try:
    import pysqlite3 as sqlite_driver
except ImportError:  # Platforms without its wheel use Python's own SQLite.
    import sqlite3 as sqlite_driver

if TYPE_CHECKING:
    from cpq.storage import postgres
    from cpq.storage.postgres import Postgres
else:
    postgres = LateModule("cpq.storage.postgres")  # A store on SQLite has no use for its driver.

SQLITE_SAFE_VERSION = (3, 51, 3)
"""Older versions have the WAL-reset bug. The writer gate avoids the overlap it needs; `cpq doctor` still warns."""

CODE_FROM = "code from "
"""The note in a PostgreSQL database before the migration whose code may use it, in the comment of `alembic_version`."""

WRITE_DEADLINE_SECONDS = 15.0
"""How long a write may wait for its turn and retry before it answers UNAVAILABLE."""

CACHE_KILOBYTES = 4_096
"""SQLite's page cache of one connection. Pages are not mapped from the file: each connection that
has read a page would count it as memory, and a server would grow with its store. The system caches the file anyway."""

MIGRATION_DEADLINE_SECONDS = 300.0
"""How long a migration waits for its turn, for example behind an import of a million rows."""


class Database:
    """One database. Reads never wait for writers; on SQLite writers take turns in a fair order."""

    def __init__(self, settings: Settings, effects: Effects) -> None:
        self.is_sqlite = settings.is_sqlite
        self.kind = "sqlite" if self.is_sqlite else "postgresql"
        self.is_suspect = False
        """A call met a damaged page."""
        self.page_problem: str | None = None
        """What the last check of the pages found."""
        self._postgres: Postgres | None = None
        if self.is_sqlite:
            path = settings.sqlite_path.absolute()
            self._file: Path | None = path
            self._connection: Connection | None = None
            self._gate: WriterGate | None = gate_of(path, effects)
            self._writer = _sqlite_engine(path, begin="BEGIN IMMEDIATE", query_only=False)
            self._reader = _sqlite_engine(path, begin="BEGIN", query_only=True)
        else:
            self._file = self._gate = self._connection = None
            server: Postgres = postgres.Postgres(settings, effects)
            self._postgres, self._writer, self._reader = server, server.writer, server.reader

    def exists(self) -> bool:
        """False when opening it would only create an empty file; always true for a server."""
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
                try:
                    with connection.begin():
                        yield connection
                        connection.info["commit_warnings"].clear()
                except sa.exc.DBAPIError as error:
                    if storage_fault(error):
                        connection.invalidate()  # A session that began as read-only stays so.
                    raise
                _refuse_doubtful_commit(connection)
        else:
            # One writer at a time needs one connection; fetching it from the pool costs more than a statement.
            with self._gate.held(deadline):
                if self._connection is None or self._connection.invalidated:
                    self._connection = self._writer.connect()
                try:
                    with self._connection.begin():
                        yield self._connection
                except BaseException as error:
                    # The pool rolls back what a failed commit may have left open.
                    kept, self._connection = self._connection, None
                    if storage_fault(error):
                        kept.invalidate()  # One that was opened on a read-only file stays read-only.
                    kept.close()
                    raise

    def oldest_code(self) -> str | None:
        """The migration whose code, and newer, may use this database; None where nobody wrote that down."""
        if self.is_sqlite:
            return None
        with self._reader.connect() as connection:
            noted = connection.exec_driver_sql("SELECT obj_description('alembic_version'::regclass)").scalar()
        return str(noted).removeprefix(CODE_FROM) if str(noted).startswith(CODE_FROM) else None

    def try_write(self, deadline: float) -> None:
        """Write one row as it is, and commit: what a full disk or a read-only file refuses, this refuses too."""
        with self.writing(deadline) as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))

    def check_pages(self) -> str | None:
        """Read every page, and remember what is damaged; PostgreSQL checks its own pages when it reads them."""
        self.is_suspect = False
        if self.is_sqlite:
            try:
                with self._reader.connect() as connection:
                    found = connection.exec_driver_sql("PRAGMA quick_check(3)").scalars().all()
            except sa.exc.DBAPIError as error:
                found = [str(error.orig)]
            self.page_problem = None if found == ["ok"] else "; ".join(" ".join(line.split()) for line in found)
        return self.page_problem

    def waits(self) -> list[float]:
        """For how many seconds each call has waited for an answer of a PostgreSQL server so far."""
        return self._postgres.waits() if self._postgres else []

    def watch_waits(self, on_wait: Callable[[float], None]) -> None:
        """Give `on_wait` the seconds that each write waits for its turn; PostgreSQL has no such queue."""
        if self._gate is not None:
            self._gate.on_wait = on_wait

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()  # Waits for the current writer.
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._reader.dispose()
        self._writer.dispose()


@contextmanager
def large_work(connection: Connection) -> Iterator[None]:
    """For one large write. On PostgreSQL its statements may take long.

    On SQLite it has room for its pages, so that they are not spilled and read again; the room is given back afterwards.
    """
    if connection.dialect.name != "sqlite":
        with postgres.unhurried(connection):
            yield
        return
    connection.exec_driver_sql(f"PRAGMA cache_size={-32 * CACHE_KILOBYTES}")
    try:
        yield
    finally:
        connection.exec_driver_sql(f"PRAGMA cache_size={-CACHE_KILOBYTES}")


def sqlite_version() -> tuple[int, ...]:
    return tuple(sqlite_driver.sqlite_version_info)


def migration_engine(settings: Settings) -> Engine:
    """The engine for Alembic. Foreign keys are off before BEGIN, or a batch migration on SQLite deletes child rows."""
    if settings.is_sqlite:
        path = settings.sqlite_path.absolute()
        # Customers, prices and costs are for the operator alone; SQLite gives its other files the rights of this one.
        make_private(path.parent)
        path.touch(mode=0o600)
        return _sqlite_engine(path, begin="BEGIN IMMEDIATE", query_only=False, foreign_keys=False)
    engine: Engine = postgres.create_engine(settings)
    return engine


@contextmanager
def migrating_alone(settings: Settings, effects: Effects) -> Iterator[None]:
    """On SQLite, take a turn among the writers of all processes: without it a migration starves, or blocks them."""
    if not settings.is_sqlite:
        yield
        return
    gate = gate_of(settings.sqlite_path.absolute(), effects)
    try:
        with gate.held(effects.monotonic() + MIGRATION_DEADLINE_SECONDS):
            yield
    finally:
        gate.close()


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
        # Writers wait at the gate; programs that bypass it (a backup) must not use up their deadline.
        f"busy_timeout={30_000 if query_only else 10_000}",
        "journal_mode=WAL",
        "synchronous=FULL",
        f"foreign_keys={'ON' if foreign_keys else 'OFF'}",
        "trusted_schema=OFF",
        f"cache_size={-CACHE_KILOBYTES}",
        "mmap_size=0",
        "temp_store=MEMORY",
        f"query_only={'ON' if query_only else 'OFF'}",
    ]

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # We issue BEGIN; the driver's own is deferred and fails when upgraded.
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        with driver_cursor(connection, begin) as cursor:
            cursor.execute(begin)

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
