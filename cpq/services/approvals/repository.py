"""The rows of approvals: requests, votes and delegations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.approvals.rounds import Round, Step, StepStatus
from cpq.services.quotes.repository import Quote
from cpq.storage.schema import account, approval, approval_vote, quote
from cpq.storage.statements import AnyRow
from cpq.storage.tenants import of_tenant


def find(tx: Tx, approval_id: str) -> AnyRow | None:
    return tx.connection.execute(_all(tx).where(approval.c.id == approval_id)).one_or_none()


def of_quote(tx: Tx, quote_id: str, version: int | None = None) -> Sequence[AnyRow]:
    """The requests about a quote, or about one version of it, oldest first."""
    query = _all(tx).where(approval.c.quote_id == quote_id)
    if version is not None:
        query = query.where(approval.c.version == version)
    return tx.connection.execute(query.order_by(approval.c.version, approval.c.requested_at, approval.c.id)).all()


def of_quotes(tx: Tx, quote_ids: Collection[str]) -> Sequence[AnyRow]:
    """The requests about many quotes."""
    query = sa.select(approval).where(tx.own_among(approval.c.quote_id, quote_ids))
    return tx.connection.execute(query.order_by(approval.c.requested_at, approval.c.id)).all()


def live(tx: Tx) -> sa.Select[*tuple[Any, ...]]:
    """Requests that can still be answered: in time, about the current version of a quote that waits for approval."""
    query = sa.select(approval, quote.c.currency, account.c.name.label("account_name"))
    query = query.join(quote, of_tenant(quote, approval.c.tenant_id) & (quote.c.id == approval.c.quote_id))
    query = query.join(account, of_tenant(account, quote.c.tenant_id) & (account.c.id == quote.c.account_id))
    return query.where(
        tx.own(approval),
        approval.c.status == "pending",
        approval.c.expires_at > tx.now,
        quote.c.version == approval.c.version,
        quote.c.status == "pending_approval",
    )


def overdue(tx: Tx, limit: int) -> list[str]:
    """Quotes with a request that is stored as pending and is not any more, or that has to be passed on."""
    query = _overdue(tx, approval.c.quote_id).where(tx.own(approval))
    return list(tx.connection.scalars(query.order_by(approval.c.quote_id).limit(limit)))


def tenants_overdue(tx: Tx) -> list[str]:
    """The tenants that have such quotes."""
    return sorted(tx.connection.scalars(_overdue(tx, approval.c.tenant_id)))


def add(tx: Tx, row: Mapping[str, Any]) -> None:
    tx.connection.execute(sa.insert(approval).values(tenant_id=tx.tenant_id, **row))


def close(tx: Tx, row: AnyRow, status: StepStatus, **changes: Any) -> None:
    """End a request that is open, or that ended without an answer; CONFLICT when somebody has ended it meanwhile."""
    assert row.status in ("pending", "expired"), "what was answered stays as it is"
    mine = tx.own(approval) & (approval.c.id == row.id) & (approval.c.status == row.status)
    done = tx.connection.execute(sa.update(approval).where(mine).values(status=status.value, **changes))
    if done.rowcount != 1:
        raise CpqError(
            Code.CONFLICT,
            "Somebody else has just ended this request.",
            field="/approval_id",
            next_call=next_call("approval_status", quote_id=row.quote_id),
        )


def mark_escalated(tx: Tx, row: AnyRow) -> None:
    mine = tx.own(approval) & (approval.c.id == row.id)
    tx.connection.execute(sa.update(approval).where(mine).values(escalated_at=tx.now))


def votes(tx: Tx, approval_ids: Collection[str]) -> dict[str, list[AnyRow]]:
    """Who said what, by request, in the order it was said."""
    query = sa.select(approval_vote).where(tx.own_among(approval_vote.c.approval_id, approval_ids))
    found: dict[str, list[AnyRow]] = {id_: [] for id_ in approval_ids}
    for row in tx.connection.execute(query.order_by(approval_vote.c.at, approval_vote.c.caller)):
        found[row.approval_id].append(row)
    return found


def add_vote(tx: Tx, row: AnyRow, *, acted_as: str, holder: str, decision: str, comment: str | None) -> None:
    values = {
        "approval_id": row.id,
        "caller": tx.caller,
        "acted_as": acted_as,
        "holder": holder,
        "decision": decision,
    }
    tx.connection.execute(sa.insert(approval_vote).values(tenant_id=tx.tenant_id, **values, comment=comment, at=tx.now))


def round_of(tx: Tx, found: Quote, rows: Sequence[AnyRow]) -> Round:
    """The round of one version as it is now, made of all its requests; that of an old version is over."""
    is_open = found.status == "pending_approval"
    steps = [step_of(row).at(tx.now, is_live=is_open and row.version == found.root.version) for row in rows]
    chains = tuple(tuple(chain) for chain in rows[0].chains) if rows else ()
    return Round(tx.policies.roles, chains, tuple(steps))


def step_of(row: AnyRow) -> Step:
    return Step(row.id, row.role, StepStatus(row.status), row.expires_at)


def _overdue(tx: Tx, column: sa.Column[str]) -> sa.Select[str]:
    joined = of_tenant(quote, approval.c.tenant_id) & (quote.c.id == approval.c.quote_id)
    is_due = (
        (approval.c.expires_at <= tx.now)
        | (quote.c.version != approval.c.version)
        | (quote.c.status != "pending_approval")
        | (approval.c.escalated_at.is_(None) & (approval.c.escalates_at <= tx.now))
    )
    return sa.select(column).join_from(approval, quote, joined).where(approval.c.status == "pending", is_due).distinct()


def _all(tx: Tx) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(approval).where(tx.own(approval))
