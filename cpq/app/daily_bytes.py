"""What each caller stores in a day: counted in the database, so that the limit holds for all processes and restarts."""

from __future__ import annotations

import math
import threading
from collections import Counter
from datetime import UTC, datetime, time, timedelta

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.upsert import upsert

MEGABYTE = 1_000_000
CHUNK_BYTES = 256 * 1024
"""A process adds to the count in the database when it has this much: a statement for each small write would slow all of
them. A restart forgets less than this of a caller."""

WRITE_BYTES = 2_000
"""The rows of any write, with its audit entry, its key and their places in the indexes."""


class DailyBytes:
    """The share of a caller: a number of megabytes for each day of UTC; 0 is no limit."""

    def __init__(self, megabytes_max: int, effects: Effects) -> None:
        self._most = megabytes_max * MEGABYTE
        self._effects = effects
        self._lock = threading.Lock()
        self._uncounted: Counter[tuple[str, str]] = Counter()
        self._full_until: dict[tuple[str, str], datetime] = {}

    def require_share(self, tenant_id: str, caller: str) -> None:
        """RATE_LIMITED for a caller whose share of today is known to be used up."""
        until = self._full_until.get((tenant_id, caller))
        if until is None:
            return
        if until <= self._effects.now():
            self._full_until.pop((tenant_id, caller), None)
            return
        raise self._used_up(caller, until)

    def count(self, tx: Tx) -> int:
        """Count what the transaction stores, or raise RATE_LIMITED; returns what `settle` gets after the commit."""
        size = WRITE_BYTES + sum(tx.sizes)
        key = (tx.tenant_id, tx.caller)
        waiting = self._uncounted[key]
        if not self._most or waiting + size < CHUNK_BYTES:
            return size
        today = tx.now.astimezone(UTC).date()
        values = {"tenant_id": tx.tenant_id, "caller": tx.caller, "day": today, "bytes": waiting + size}
        ((stored,),) = _ADD.rows(tx.connection, **values)
        if stored > self._most:
            until = datetime.combine(today + timedelta(days=1), time(), UTC)
            self._full_until[key] = until
            raise self._used_up(tx.caller, until)
        return -waiting  # Two at once may both add it; then the second makes the count negative, which evens out.

    def settle(self, tenant_id: str, caller: str, size: int) -> None:
        with self._lock:
            self._uncounted[tenant_id, caller] += size

    def _used_up(self, caller: str, until: datetime) -> CpqError:
        wait = math.ceil((until - self._effects.now()).total_seconds())
        return CpqError(
            Code.RATE_LIMITED,
            f"{caller} has stored {self._most // MEGABYTE:,} MB today, its share of a day. Nothing was changed.",
            maximum_megabytes=self._most // MEGABYTE,
            retry_after_seconds=wait,
            hint="Store less: copies of large quotes and long notes count most. The share is free again at 00:00 UTC; "
            "the operator sets it with CPQ_CALLER_MB_PER_DAY.",
        )


def _statement(dialect: str) -> sa.Executable:
    kept = tables.caller_bytes.c
    made = upsert(dialect, tables.caller_bytes)
    new = made.excluded
    is_today = kept.day == new.day
    return upsert(
        dialect,
        tables.caller_bytes,
        {"day": new.day, "bytes": sa.case((is_today, kept.bytes + new.bytes), else_=new.bytes)},
    ).returning(kept.bytes)


_ADD = Statement(_statement)
