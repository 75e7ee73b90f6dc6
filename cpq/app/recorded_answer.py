"""The digest of a stored answer in the audit entry of its call, signed where there is a key outside the database."""

from __future__ import annotations

import sqlalchemy as sa

from cpq.app.recorded_sets import CATALOG
from cpq.app.recorded_state import RIGHTS
from cpq.app.transaction import Tx
from cpq.base.audit_key import AuditKey
from cpq.storage.schema import tables

SIGNED = "audit answer"
"""What the signature is for."""

_BETWEEN = "."
"""Between digest and signature; neither has one."""


def written(key: AuditKey | None, digest: str) -> str:
    """The digest of a row as its entry has it."""
    return f"{digest}{_BETWEEN}{key.sign(SIGNED, digest)}" if key else digest


def parse(key: AuditKey | None, recorded: str) -> tuple[str, bool]:
    """The digest in an entry, and whether it may be relied on: with a key, when the key has signed it."""
    digest, _, signature = recorded.partition(_BETWEEN)
    return digest, key is None or key.has_signed(SIGNED, digest, signature)


def is_known(tx: Tx, subject: str | None, digest: str) -> bool:
    """Whether an entry about the subject has this digest. A call without one may be about rights or prices."""
    entry = tables.audit_entry
    about = entry.c.subject == subject if subject else _about_nothing(entry)
    is_same = sa.func.substr(entry.c.answer, 1, len(digest)) == digest
    found = tx.connection.scalars(sa.select(entry.c.answer).where(tx.own(entry), about, is_same))
    return any(parse(tx.audit_key, one) == (digest, True) for one in found)


def _about_nothing(entry: sa.Table) -> sa.ColumnElement[bool]:
    return entry.c.subject.is_(None) | entry.c.subject.in_([RIGHTS, CATALOG])
