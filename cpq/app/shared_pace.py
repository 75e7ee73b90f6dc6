"""The rate limit of a caller over all servers of one database: each adds its calls to one row, some at a time."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cpq.app.access import Principal
from cpq.base.errors import CpqError
from cpq.base.rate_limit import CALLERS_MAX, too_many
from cpq.storage.engine import WRITE_DEADLINE_SECONDS
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.upsert import upsert

if TYPE_CHECKING:
    from cpq.app.app import App

log = logging.getLogger("cpq.app")

PARTS = 20
"""A server adds its calls when they are this part of the limit: a write for each would cost more than many calls."""

NEAR_END = 4
"""Near its end a limit is counted in smaller parts: at most this part of what is left."""


class SharedPace:
    """At most `per_minute` calls of a caller by all servers together, and one call more for each server.

    The row holds the moment until which the calls so far fill the limit. It moves on by a minute's share for each call,
    so that reading, refilling and taking are one statement. Without the database each server has its own limit alone.
    """

    def __init__(self, app: App, kind: str, per_minute: int) -> None:
        self._app, self._kind, self._per_minute = app, kind, per_minute
        self._part = max(1, per_minute // PARTS)
        self._lock = threading.Lock()
        self._uncounted: Counter[tuple[str, str]] = Counter()
        self._parts: dict[tuple[str, str], int] = {}
        self._full_until: dict[tuple[str, str], float] = {}

    def take(self, principal: Principal) -> None:
        """Let one call pass, or raise RATE_LIMITED with the seconds to wait."""
        if not self._per_minute:
            return
        key = (principal.tenant_id, principal.caller)
        with self._lock:
            wait = self._full_until.get(key, 0) - self._app.effects.monotonic()
            if wait > 0:
                raise too_many(self._per_minute, wait)
            if len(self._parts) >= CALLERS_MAX:
                self._parts, self._full_until, self._uncounted = {}, {}, Counter()
            self._uncounted[key] += 1
            is_due = self._uncounted[key] >= self._parts.get(key, self._part)
            calls = self._uncounted.pop(key) if is_due else 0
        if calls:
            self._add(key, calls)

    def _add(self, key: tuple[str, str], calls: int) -> None:
        tenant_id, caller = key
        now = round(self._app.effects.now().timestamp() * 1e6)
        one = 60_000_000 // self._per_minute
        names = {"tenant_id": tenant_id, "caller": caller, "kind": self._kind}
        deadline = self._app.effects.monotonic() + WRITE_DEADLINE_SECONDS
        try:
            with self._app.database.writing(deadline) as connection:
                if not self._app.database.is_sqlite:  # A count that a crash may lose waits for no disk.
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                ((filled,),) = _ADD.rows(connection, **names, full_until=now + calls * one, now=now, taken=calls * one)
        except (sa.exc.SQLAlchemyError, CpqError) as error:
            log.warning("calls are not counted for all servers", extra={"reason": type(error).__name__})
            return
        left = math.floor((60_000_000 - (filled - now)) / one)
        with self._lock:
            self._parts[key] = max(1, min(self._part, left // NEAR_END))
            if left < 0:
                self._full_until[key] = self._app.effects.monotonic() - left * one / 1e6


def _statement(dialect: str) -> sa.Executable:
    kept = tables.call_pace.c
    now = sa.bindparam("now", type_=kept.full_until.type)
    begins = sa.case((kept.full_until > now, kept.full_until), else_=now)
    taken = sa.bindparam("taken", type_=kept.full_until.type)
    return upsert(dialect, tables.call_pace, {"full_until": begins + taken}).returning(kept.full_until)


_ADD = Statement(_statement)
