"""Connections to PostgreSQL: how many, how long they wait, and what a pooler in front allows."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from cpq.base.clock import Effects
from cpq.base.settings import Settings

READS_SHARE = 3
"""One connection in three is for reads, so that commits that hang leave room for those who only look."""

KEPT_OPEN_MAX = 10


class AnsweredConnection(psycopg.Connection[Any]):
    """A connection that is given up when the database is silent for too long.

    A server that is stopped, or whose commits wait for a standby that is gone, still acknowledges every packet. No
    setting of TCP and no timeout of the server itself ends that wait.
    """

    effects: Effects
    answer_seconds: float | None = None
    """How long one statement may take; None for work that is long by its nature."""
    waiting_since: float | None = None

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        limit = timeout or self.answer_seconds
        if limit is None:
            return super().wait(gen, interval)
        self.waiting_since = self.effects.monotonic()
        try:
            return super().wait(gen, interval, limit)
        except _WaitTimeout:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the connection is given up: the database did not answer for {limit:g} s"
            ) from None
        finally:
            self.waiting_since = None


class Postgres:
    """The engines of one process for one PostgreSQL database: one for changes, one for reads."""

    def __init__(self, settings: Settings, effects: Effects) -> None:
        self._effects = effects
        self._open: weakref.WeakSet[AnsweredConnection] = weakref.WeakSet()
        for_reads = max(1, settings.database_connections_max // READS_SHARE)
        self.writer = self._engine(settings, max(1, settings.database_connections_max - for_reads))
        self.reader = self._engine(settings, for_reads)

    def waits(self) -> list[float]:
        """For how many seconds each call has waited for an answer so far."""
        now = self._effects.monotonic()
        began = [connection.waiting_since for connection in list(self._open)]
        return [now - since for since in began if since is not None]

    def _engine(self, settings: Settings, size: int) -> Engine:
        kept_open = min(size, KEPT_OPEN_MAX)
        engine = create_engine(
            settings, pool_pre_ping=True, pool_size=kept_open, max_overflow=size - kept_open, pool_timeout=5
        )

        @event.listens_for(engine, "do_connect")
        def _connect(_dialect: object, _record: object, arguments: Any, options: Any) -> AnsweredConnection:
            connection = AnsweredConnection.connect(*arguments, **options)
            connection.effects, connection.answer_seconds = self._effects, settings.database_answer_seconds
            self._open.add(connection)
            return connection

        return engine


@contextmanager
def unhurried(connection: Connection) -> Iterator[None]:
    """For work whose statements are long by their nature, such as the import of a million rows."""
    driver: Any = connection.connection.driver_connection
    before, driver.answer_seconds = driver.answer_seconds, None
    try:
        yield
    finally:
        driver.answer_seconds = before


def create_engine(settings: Settings, **pool: Any) -> Engine:
    """An engine for one database; `pool` says how many connections it has."""
    timeout_ms = int(settings.tool_timeout_seconds * 1000)
    session = {
        "lock_timeout": "5000",
        "statement_timeout": str(timeout_ms),
        "idle_in_transaction_session_timeout": str(timeout_ms),
        "timezone": "UTC",
        "datestyle": "ISO",
    }
    address = sa.make_url(settings.database_url).query
    options: dict[str, Any] = {
        **({} if "connect_timeout" in address else {"connect_timeout": 3}),
        "keepalives_idle": 1,
        "keepalives_interval": 1,
        "keepalives_count": 2,
        "tcp_user_timeout": 3000,
        "prepare_threshold": settings.database_prepare_threshold or None,
    }
    if settings.database_pooler == "none":
        options["options"] = " ".join(f"-c {name}={value}" for name, value in session.items())
    engine = sa.create_engine(settings.database_url, isolation_level="READ COMMITTED", connect_args=options, **pool)
    if settings.database_pooler == "transaction":
        _set_in_each_transaction(engine, session)

    @event.listens_for(engine, "connect")
    def _watch(connection: Any, record: Any) -> None:
        # A cancelled wait for a synchronous standby still answers COMMIT with success, plus this warning.
        warnings: list[str] = []
        record.info["commit_warnings"] = warnings
        connection.add_notice_handler(
            lambda notice: warnings.append(notice.message_primary or "") if notice.sqlstate == "01000" else None
        )

    return engine


def _set_in_each_transaction(engine: Engine, session: dict[str, str]) -> None:
    """A pooler gives each transaction another session, and knows no start-up options: the settings come with BEGIN."""
    statement = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in session.items())

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(statement, prepare=False)
