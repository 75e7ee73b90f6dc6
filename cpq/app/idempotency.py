"""Idempotency keys: claimed before the work, stored with its answer, replayed when the request is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import itemgetter

import sqlalchemy as sa

from cpq.app.call import Answer, Command
from cpq.app.recorded_state import CATALOG, RIGHTS, StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.audit_key import AuditKey
from cpq.base.errors import Code, CpqError
from cpq.base.state_digest import row_digest
from cpq.base.text import digest, plain_json
from cpq.storage.columns import JsonText, as_stored
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.upsert import insert_if_absent

SIGNED = "audit answer"
"""What the signature of an answer is for."""

_BETWEEN = "."
"""Between digest and signature; neither has one."""


@dataclass(frozen=True)
class Stored:
    """What is stored under a key: the request it was used for, its answer if it is done, and the call that did it."""

    request_hashes: Mapping[str, str]
    answer: Answer | None
    trace_id: str
    expires_at: datetime


class Claim:
    """A key, taken before the work, so that a second call with it waits here and then finds the answer."""

    def __init__(self, tx: Tx, command: Command, key: str, trace_id: str, days: int) -> None:
        self._tx = tx
        self._command = command
        self._hashes = {name: digest([text])[:16] for name, text in command.written.items()}
        self._key = {"tenant_id": tx.tenant_id, "caller": tx.caller, "operation": command.name, "key": key}
        self._values = {
            "created_at": tx.now,
            "expires_at": tx.now + timedelta(days=days),
            "request_hashes": JsonText(plain_json(self._hashes)),
            "answer": None,
            "trace_id": trace_id,
        }
        self.recorded: str | None = None
        """The digest of the stored row, once the answer is in it, for the audit entry; signed where there is a key."""

    def take(self) -> Stored | None:
        """None when the key is now ours; the stored entry when the same request was done before."""
        connection = self._tx.connection
        if _CLAIM.run(connection, **self._key, **self._values) == 1:
            return None
        known = self._find(for_update=True)
        if known is None:
            return self.take()  # The expired key was deleted in between.
        if known.expires_at <= self._tx.now:
            connection.execute(sa.update(tables.idempotency).where(self._mine).values(self._values))
            return None
        if known.request_hashes != self._hashes:
            raise self._reused(known.request_hashes)
        if known.trace_id != self._values["trace_id"]:  # Our own first attempt was a moment ago.
            self._require_recorded(known)
        return known

    def recall(self) -> Answer | None:
        """The answer that is stored under the key, if any; the key is not taken."""
        known = self._find()
        if known is None or known.expires_at <= self._tx.now:
            return None
        if known.request_hashes != self._hashes:
            raise self._reused(known.request_hashes)
        self._require_recorded(known)
        return known.answer

    def _find(self, *, for_update: bool = False) -> Stored | None:
        query = sa.select(*(tables.idempotency.c[field.name] for field in fields(Stored))).where(self._mine)
        row = self._tx.connection.execute(query.with_for_update() if for_update else query).one_or_none()
        return Stored(*row) if row else None

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        return sa.and_(*(tables.idempotency.c[name] == value for name, value in self._key.items()))

    def keep(self, answer: Answer) -> None:
        # The wire form has no decimals; a float may be spelled differently and is still the same number.
        written = JsonText(plain_json(answer))
        self._tx.sizes.append(len(written))
        _KEEP.run(self._tx.connection, **{f"of_{name}": value for name, value in self._key.items()}, answer=written)
        row = {**self._key, **self._values, "answer": written}
        self.recorded = recorded_answer(self._tx.audit_key, row_digest(_IN_ORDER(row)))

    def _require_recorded(self, known: Stored) -> None:
        """CONFLICT when the entry of the first call does not have this row: somebody changed it in the database."""
        columns = [as_stored(self._tx.connection.dialect.name, column) for column in tables.idempotency.c]
        row = self._tx.connection.execute(sa.select(*columns).where(self._mine)).one()
        if not _is_on_record(self._tx, self._command.subject_of(known.answer or {}), row_digest(row)):
            raise StateDiffersError(
                Code.CONFLICT,
                "The answer that is stored under this idempotency_key is not on record; somebody changed it in the "
                "database, or it is from before answers were recorded. Nothing was done.",
                field="/idempotency_key",
                differing=["idempotency"],
                hint="Read what the first call made, for example with quote_get. The operator runs "
                "`cpq audit verify --state`.",
            )

    def _reused(self, before: Mapping[str, str]) -> CpqError:
        names = before.keys() | self._hashes.keys()
        differing = sorted(name for name in names if before.get(name) != self._hashes.get(name))
        return CpqError(
            Code.CONFLICT,
            f"This idempotency_key was used for another request; {', '.join(differing)} differ.",
            field="/idempotency_key",
            differing=[f"/{name}" for name in differing],
            hint="Send the first request unchanged to get its answer again, or use a new key for a new request.",
        )


def recorded_answer(key: AuditKey | None, digest: str) -> str:
    """The digest of a row as its entry has it, signed where there is a key."""
    return f"{digest}{_BETWEEN}{key.sign(SIGNED, digest)}" if key else digest


def parse_answer(key: AuditKey | None, recorded: str) -> tuple[str, bool]:
    """The digest in an entry, and whether it may be relied on: with a key, when the key has signed it."""
    digest, _, signature = recorded.partition(_BETWEEN)
    return digest, key is None or key.has_signed(SIGNED, digest, signature)


def _is_on_record(tx: Tx, subject: str | None, digest: str) -> bool:
    """Whether an entry about the subject has this digest. A call without one may be about rights or prices."""
    entry = tables.audit_entry
    about = entry.c.subject == subject if subject else entry.c.subject.in_([RIGHTS, CATALOG])
    about = about if subject else about | entry.c.subject.is_(None)
    is_same = sa.func.substr(entry.c.answer, 1, len(digest)) == digest
    found = tx.connection.scalars(sa.select(entry.c.answer).where(tx.own(entry), about, is_same))
    return any(parse_answer(tx.audit_key, one) == (digest, True) for one in found)


_IN_ORDER = itemgetter(*(column.name for column in tables.idempotency.c))
_CLAIM = Statement(lambda dialect: insert_if_absent(dialect, tables.idempotency))
_KEEP = Statement(
    lambda _dialect: (
        sa.update(tables.idempotency)
        .where(*(column == sa.bindparam(f"of_{column.name}") for column in tables.idempotency.primary_key))
        .values(answer=sa.bindparam("answer"))
    )
)
