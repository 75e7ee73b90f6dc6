"""Compares tokens, callers and delegations with the audit record, before a call gets its rights from them.

Every request does it, so each process keeps the last state of the rights and asks only whether there is a newer one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_state
from cpq.app.recorded_state import RIGHTS, Part, Parts, StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.errors import Code
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant

log = logging.getLogger("cpq.rights")

Rows = Mapping[Part, Sequence[object]]
"""Rows with all columns in the order of their table."""


def require(tx: Tx, tenant_id: str, rows: Rows) -> None:
    """CONFLICT when a row that gives rights differs from the record.

    Without a key, tokens from before states were recorded pass.
    """
    if names := differing(tx, tenant_id, rows):
        raise StateDiffersError(
            Code.CONFLICT,
            f"Rights are not as the audit record has them; somebody changed them in the database: {', '.join(names)}. "
            "Nothing was done.",
            differing=names,
            hint="The operator runs `cpq audit verify --state`, and mends the rows or accepts them with "
            "`cpq audit baseline --accept rights`.",
        )


def differing(tx: Tx, tenant_id: str, rows: Rows) -> list[str]:
    """The names of the rows that differ from the record or are not on it."""
    recorded = _recorded(tx, tenant_id) if rows else None
    if recorded is None:
        return []
    changes = tx.changes.get(RIGHTS, {})
    found = {name: one for part, row in rows.items() for name, one in recorded_state.written(part, [row]).items()}
    names = [name for name, digest in found.items() if recorded.get(name) != digest]
    names = sorted(name for name in names if not any(recorded_state.is_of(name, one) for one in changes))
    if names:
        log.error("rights are not as the audit record has them", extra={"tenant": tenant_id, "differing": names})
    return names


def _recorded(tx: Tx, tenant_id: str) -> Parts | None:
    """The digests on record; None for rights from before states were recorded."""
    rows = _LAST.rows(tx.connection, tenant_id=tenant_id)
    last = rows[0][0] if rows else None
    kept: tuple[str | None, Parts | None] | None = tx.kept.get((RIGHTS, tenant_id))
    if kept is None or kept[0] != last:
        theirs = replace(tx, principal=replace(tx.principal, tenant_id=tenant_id), records={})
        known = recorded_state.on_record(theirs, RIGHTS)
        is_missing = known is None and tx.audit_key is not None and RIGHTS not in tx.changes
        if is_missing or (known is not None and not recorded_state.may_rely_on(theirs, known)):
            error = recorded_state.unsigned(theirs, RIGHTS, known)
            log.error("rights cannot be compared", extra={"tenant": tenant_id, "reason": error.message})
            raise error
        kept = (last, known.parts if known else None)
        is_settled = known.entry.id == last if known else tx.audit_key is None
        if is_settled:  # Not when another process has recorded a newer one in between.
            tx.kept[RIGHTS, tenant_id] = kept
    return kept[1]


def _last(_dialect: str) -> sa.Select[Any]:
    entry = tables.audit_entry
    mine = of_tenant(entry, sa.bindparam("tenant_id")) & (entry.c.subject == sa.literal_column(f"'{RIGHTS}'"))
    query = sa.select(entry.c.id).where(mine, entry.c.state.is_not(None))
    return query.order_by(entry.c.at.desc(), entry.c.id.desc()).limit(sa.literal_column("1"))


_LAST = Statement(_last)
