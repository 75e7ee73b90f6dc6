"""The audit log: who called what, when, with which outcome; append-only, and sealed into a chain of hashes."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.call import Retrieval
from cpq.base.errors import Code, CpqError
from cpq.base.text import canonical_json
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant
from cpq.storage.upsert import insert_if_absent

log = logging.getLogger("cpq.audit")

GENESIS = "0" * 64
QUEUE_MAX = 20_000
SEAL_BATCH = 5_000
FLUSH_SECONDS = 0.1
PAUSE_SECONDS_MAX = 5.0
CLOSING_TRIES_MAX = 4
"""Attempts of a closing process; each waits as long as any write, together a minute beside a busy writer."""


@dataclass(frozen=True)
class Entry:
    """One invocation, allowed or denied. Sealed once `seq` and `hash` are filled."""

    tenant_id: str
    id: str
    at: datetime
    caller: str
    operation: str
    arguments_hash: str
    outcome: str
    subject: str | None
    trace_id: str
    seq: int | None = None
    hash: str | None = None
    state: str | None = None
    """What the call led to: digests of the rows of its subject, as `recorded_state` wrote them."""
    answer: str | None = None
    """The digest of the answer that is stored under the key of the call."""


@dataclass(frozen=True)
class ChainReport:
    """The result of `verify`. `broken_at` is the number of the first entry that differs from its seal."""

    sealed: int
    unsealed: int
    head: str
    broken_at: int | None = None
    reason: str | None = None


def record(connection: Connection, entry: Entry) -> None:
    """Write one entry in the caller's transaction. It is sealed later, so that writers do not queue for the chain."""
    _RECORD.run(connection, **vars(entry))


def seal(connection: Connection, tenant_id: str, fresh: Sequence[Entry] = ()) -> int:
    """Seal the committed entries that have no seal, then insert the `fresh` ones sealed."""
    seq, previous = _lock_head(connection, tenant_id)
    # An entry is already stored when the acknowledgement of its commit was lost and it is sent again.
    ids = sa.select(tables.audit_entry.c.id).where(
        of_tenant(tables.audit_entry, tenant_id), tables.audit_entry.c.id.in_([entry.id for entry in fresh])
    )
    known = set(connection.scalars(ids)) if fresh else set()
    fresh = [entry for entry in fresh if entry.id not in known]
    waiting = connection.execute(
        sa.select(tables.audit_entry)
        .where(of_tenant(tables.audit_entry, tenant_id), tables.audit_entry.c.seq.is_(None))
        .order_by(tables.audit_entry.c.at, tables.audit_entry.c.id)
        .limit(SEAL_BATCH)
    )
    updates, inserts = [], []
    queue = [*((Entry(**row._mapping), False) for row in waiting), *((entry, True) for entry in fresh)]
    # A change is written with its own transaction and a read a moment later; the chain has them in the order of time.
    queue.sort(key=lambda one: (one[0].at, one[0].id))
    for entry, is_fresh in queue:
        seq, previous = seq + 1, _link(previous, seq + 1, entry)
        if is_fresh:
            inserts.append({**vars(entry), "seq": seq, "hash": previous})
        else:
            updates.append({"the_id": entry.id, "the_tenant": tenant_id, "seq": seq, "hash": previous})
    if updates:
        key = of_tenant(tables.audit_entry, sa.bindparam("the_tenant")) & (
            tables.audit_entry.c.id == sa.bindparam("the_id")
        )
        connection.execute(sa.update(tables.audit_entry).where(key), updates)
    if inserts:
        connection.execute(_INSERT, inserts)
    if updates or inserts:
        connection.execute(
            sa.update(tables.audit_head).where(of_tenant(tables.audit_head, tenant_id)).values(seq=seq, hash=previous)
        )
    return len(updates) + len(inserts)


def verify(
    connection: Connection,
    tenant_id: str,
    *,
    expect: tuple[int, str] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ChainReport:
    """Recompute the whole chain and report the first changed, missing, reordered or cut-off entry.

    `expect` is a head that was kept elsewhere: the entry with that number must still have that hash.
    """
    head = connection.execute(sa.select(tables.audit_head).where(of_tenant(tables.audit_head, tenant_id))).one_or_none()
    total = head.seq if head else 0
    unsealed = connection.scalar(_count(tenant_id).where(tables.audit_entry.c.seq.is_(None))) or 0
    seq, previous = 0, GENESIS
    with closing(entries(connection, tenant_id, sealed_only=True)) as sealed:
        for entry in sealed:
            if entry.seq != seq + 1:
                return ChainReport(seq, unsealed, previous, seq + 1, "the entry is missing")
            expected = _link(previous, seq + 1, entry)
            if entry.hash != expected:
                return ChainReport(seq, unsealed, previous, entry.seq, "the entry is not as it was sealed")
            seq, previous = entry.seq, expected
            progress(seq, total)
            if expect and seq == expect[0] and previous != expect[1]:
                return ChainReport(seq, unsealed, previous, seq, "it is not the one you kept")
    if expect and expect[0] > seq:
        return ChainReport(seq, unsealed, previous, expect[0], "it is not the one you kept")
    if head is None and seq:
        return ChainReport(seq, unsealed, previous, seq + 1, "the head of the chain is gone, so it may be cut off")
    if head is not None and (head.seq, head.hash) != (seq, previous):
        return ChainReport(seq, unsealed, previous, seq + 1, f"the chain ended at {head.seq} and was cut off")
    return ChainReport(seq, unsealed, previous)


def entries(
    connection: Connection, tenant_id: str, *, sealed_only: bool = False, newest: int | None = None
) -> Generator[Entry, None, None]:
    """Entries in sealed order; or the `newest` ones, latest first, sealed or not."""
    query = sa.select(tables.audit_entry).where(of_tenant(tables.audit_entry, tenant_id))
    if sealed_only:
        query = query.where(tables.audit_entry.c.seq.is_not(None)).order_by(tables.audit_entry.c.seq)
    else:
        query = query.order_by(tables.audit_entry.c.at.desc(), tables.audit_entry.c.id.desc()).limit(newest)
    with connection.execute(query.execution_options(yield_per=1000)) as rows:
        for row in rows:
            yield Entry(**row._mapping)


@dataclass(frozen=True)
class Sealed:
    """An entry, and whether it matches its seal; None while it waits for its seal."""

    entry: Entry
    is_whole: bool | None


def about(connection: Connection, tenant_id: str, subjects: Collection[str], *, newest: int) -> list[Sealed]:
    """The newest entries about the subjects, latest first, each checked against its seal and the one before it."""
    mine = of_tenant(tables.audit_entry, tenant_id)
    query = sa.select(tables.audit_entry).where(mine, tables.audit_entry.c.subject.in_(subjects))
    query = query.order_by(tables.audit_entry.c.at.desc(), tables.audit_entry.c.id.desc()).limit(newest)
    found = [Entry(**row._mapping) for row in connection.execute(query)]
    before = [entry.seq - 1 for entry in found if entry.seq is not None]
    hashes = sa.select(tables.audit_entry.c.seq, tables.audit_entry.c.hash).where(
        mine, tables.audit_entry.c.seq.in_(before)
    )
    seals = {0: GENESIS, **{row.seq: row.hash for row in connection.execute(hashes)}}
    return [Sealed(entry, _is_whole(entry, seals)) for entry in found]


def _is_whole(entry: Entry, seals: Mapping[int, str]) -> bool | None:
    if entry.seq is None:
        return None
    previous = seals.get(entry.seq - 1)
    return previous is not None and entry.hash == _link(previous, entry.seq, entry)


def recent(connection: Connection, tenant_id: str, *, among: int) -> list[Entry]:
    """The failed calls among the newest `among` sealed entries, latest first."""
    last = connection.scalar(sa.select(tables.audit_head.c.seq).where(of_tenant(tables.audit_head, tenant_id))) or 0
    query = sa.select(tables.audit_entry).where(
        of_tenant(tables.audit_entry, tenant_id),
        tables.audit_entry.c.seq > last - among,
        tables.audit_entry.c.outcome != "OK",
    )
    return [Entry(**row._mapping) for row in connection.execute(query.order_by(tables.audit_entry.c.seq.desc()))]


class Noted(NamedTuple):
    """The entry of a call that changed nothing, and the search of that call."""

    entry: Entry
    retrieval: Retrieval | None


class Recorder:
    """Writes the entries of calls that change nothing, in batches, a tenth of a second later.

    A read must not wait for a durable commit. When the queue is full the call waits; when it stays full, the call
    fails: no answer is given without a record.
    """

    def __init__(self, write: Callable[[str, list[Noted]], None]) -> None:
        self._write = write
        self._queue: list[Noted] = []
        self._changed = threading.Condition()
        self._unsealed: set[str] = set()
        self._closing = False
        self._busy = False
        self._pause = FLUSH_SECONDS
        self._closing_tries = CLOSING_TRIES_MAX
        self._thread: threading.Thread | None = None

    def add(self, entry: Entry, retrieval: Retrieval | None = None) -> None:
        with self._changed:
            if len(self._queue) >= QUEUE_MAX and not self._changed.wait_for(lambda: len(self._queue) < QUEUE_MAX, 10):
                raise CpqError(Code.UNAVAILABLE, "The audit record cannot be written.", hint="Try again in a minute.")
            self._queue.append(Noted(entry, retrieval))
            self._wake()

    def note_unsealed(self, tenant_id: str) -> None:
        """Note that a write has committed its own entry, which waits for its seal."""
        with self._changed:
            self._unsealed.add(tenant_id)
            self._wake()

    def flush(self) -> None:
        """Return when everything added so far is written and sealed, or has failed."""
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._queue or self._unsealed or self._busy), 30)

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                # Closing waits only for a database that is down, and only for a few attempts.
                self._changed.wait_for(lambda: self._closing and self._pause == FLUSH_SECONDS, self._pause)
                queue, self._queue = self._queue, []
                tenants = self._unsealed | {noted.entry.tenant_id for noted in queue}
                self._unsealed = set()
                if self._closing and not tenants:
                    return
                self._busy = bool(tenants)
            for tenant_id in sorted(tenants):
                self._store(tenant_id, [noted for noted in queue if noted.entry.tenant_id == tenant_id])
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _store(self, tenant_id: str, batch: list[Noted]) -> None:
        try:
            self._write(tenant_id, batch)
            self._pause = FLUSH_SECONDS
        except Exception as error:
            # The database is down or busy, or a fault of ours: keep the entries and try again with the next batch.
            is_ours = not isinstance(error, CpqError | sa.exc.SQLAlchemyError | OSError)
            reason = {"waiting": len(batch), "reason": str(error)}
            log.warning("audit entries wait for the database", extra=reason, exc_info=is_ours)
            with self._changed:
                self._pause = min(self._pause * 2, PAUSE_SECONDS_MAX)
                self._closing_tries -= self._closing
                if self._closing_tries <= 0:
                    log.error("audit entries are lost: the database is down", extra={"lost": len(batch)})
                    return
                self._queue = batch + self._queue
                self._unsealed.add(tenant_id)


_INSERT = sa.insert(tables.audit_entry)
_RECORD = Statement(lambda _dialect: _INSERT)


def arguments_hash(arguments: Mapping[str, str]) -> str:
    """The hash of arguments that are already canonical JSON, as if they had been written as one object."""
    written = ",".join(f"{canonical_json(name)}:{arguments[name]}" for name in sorted(arguments))
    return hashlib.sha256(f"{{{written}}}".encode(errors="surrogatepass")).hexdigest()


def contents(entry: Entry) -> list[str | None]:
    """What an entry says, without the place and the hash that it gets with its seal."""
    content = [
        entry.tenant_id,
        entry.id,
        entry.at.isoformat(timespec="microseconds"),
        entry.caller,
        entry.operation,
        entry.arguments_hash,
        entry.outcome,
        entry.subject,
        entry.trace_id,
    ]
    if entry.state is not None or entry.answer is not None:
        content += [entry.state, entry.answer]  # Entries from before these were recorded keep their hashes.
    return content


def _link(previous: str, seq: int, entry: Entry) -> str:
    return hashlib.sha256(json.dumps([previous, seq, *contents(entry)]).encode()).hexdigest()


def _lock_head(connection: Connection, tenant_id: str) -> tuple[int, str]:
    start = {"tenant_id": tenant_id, "seq": 0, "hash": GENESIS}
    begin = insert_if_absent(connection.dialect.name, tables.audit_head).values(start)
    begin = begin.execution_options(preserve_rowcount=True)
    if connection.execute(begin).rowcount == 1 and connection.scalar(
        _count(tenant_id).where(tables.audit_entry.c.seq.is_not(None))
    ):
        raise CpqError(Code.CONFLICT, "The head of the audit chain is gone: somebody has removed it.")
    head = connection.execute(
        sa.select(tables.audit_head).where(of_tenant(tables.audit_head, tenant_id)).with_for_update()
    ).one()
    return head.seq, head.hash


def _count(tenant_id: str) -> sa.Select[int]:
    return sa.select(sa.func.count()).select_from(tables.audit_entry).where(of_tenant(tables.audit_entry, tenant_id))
