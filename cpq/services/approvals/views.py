"""How approvals look from outside: the state of a quote, what is open, one request in full, and the whole history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.money import Amount, amount
from cpq.domain.approvals.rounds import Round, Step
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.approvals import people, repository
from cpq.services.quotes import repository as quote_rows
from cpq.storage.schema import approval
from cpq.storage.statements import AnyRow

HELD = ("pending_approval", "expired", "cancelled", "declined")
"""Quotes that cannot go anywhere, whoever has approved them: one that could is no longer pending."""


class PendingRequest(TypedDict):
    approval_id: str
    status: str
    approver_role: str
    waits_for: str | None
    requested_at: datetime
    expires_at: datetime


class ApprovalStatus(TypedDict):
    quote_id: str
    version: int
    current_status: str
    pending_requests: list[PendingRequest]
    can_proceed: bool
    required_roles: list[str]
    missing_roles: list[str]
    """Those the policies ask for and that are neither asked nor have approved."""
    reason: str | None
    """What the one who rejected it said."""


class PendingApproval(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    account_name: str
    quote_total: Amount
    currency: str
    approver_role: str
    waits_for: str | None
    escalates_to: str | None
    is_escalated: bool
    requested_by: str
    justification: str
    requested_at: datetime
    expires_at: datetime
    fingerprint: str


class PendingApprovals(TypedDict):
    items: list[PendingApproval]
    total: int


class Vote(TypedDict):
    by: str
    acted_as: str
    decision: str
    comment: str | None
    at: datetime


class ApprovalRecord(TypedDict):
    """A request with all that is on record about it."""

    approval_id: str
    quote_id: str
    version: int
    approver_role: str
    status: str
    reason: str | None
    quorum: str
    quote_total: Amount
    fingerprint: str
    policy_hash: str
    justification: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    escalates_to: str | None
    escalates_at: datetime | None
    is_escalated: bool
    kept_from: str | None
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None
    votes: list[Vote]


class ApprovalHistory(TypedDict):
    quote_id: str
    version: int
    quote_status: str
    currency: str
    items: list[ApprovalRecord]


def status(tx: Tx, quote_id: str) -> ApprovalStatus:
    """Where the current version stands: derived from its requests and the time, not from what was swept."""
    found = quote_rows.load(tx, quote_id)
    rows = repository.of_quote(tx, quote_id, found.current_version)
    round_, is_blocked = _round(tx, found, rows)
    by_id = {row.id: row for row in rows}
    rejected = next((row for row in rows if row.status == "rejected"), None)
    return {
        "quote_id": quote_id,
        "version": found.current_version,
        "current_status": round_.status,
        "pending_requests": [_pending_request(round_, step, by_id[step.id]) for step in round_.pending],
        "can_proceed": round_.is_settled and not is_blocked and found.status not in HELD,
        "required_roles": list(round_.required),
        "missing_roles": list(round_.missing),
        "reason": rejected.comment if rejected else None,
    }


def pending(tx: Tx, *, role: str | None, limit: int) -> PendingApprovals:
    """Requests that wait for a decision, oldest first; those whose turn has not come are among them.

    Of a role: what it is asked, and what was escalated to it.
    """
    query = repository.live(tx)
    if role is not None:
        people.require_role(tx, role, "/approver_role")
        escalated = (approval.c.escalates_to == role) & (approval.c.escalates_at <= tx.now)
        query = query.where((approval.c.role == role) | escalated)
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(query.subquery())) or 0
    chosen = query.order_by(approval.c.requested_at, approval.c.id).limit(limit)
    rows = tx.connection.execute(chosen).all()
    rounds: dict[tuple[str, int], list[AnyRow]] = defaultdict(list)
    for row in repository.of_quotes(tx, {row.quote_id for row in rows}):
        rounds[row.quote_id, row.version].append(row)
    return {"items": [pending_item(tx, row, rounds[row.quote_id, row.version]) for row in rows], "total": total}


def history(tx: Tx, quote_id: str) -> ApprovalHistory:
    """Everything that was ever asked and said about a quote, version by version, oldest first."""
    found = quote_rows.load(tx, quote_id)
    rows = repository.of_quote(tx, quote_id)
    return {
        "quote_id": quote_id,
        "version": found.current_version,
        "quote_status": found.status,
        "currency": found.currency,
        "items": _records(tx, found, rows),
    }


def get(tx: Tx, approval_id: str) -> tuple[ApprovalRecord, Quote]:
    """One request with its quote; NOT_FOUND when there is none."""
    row = repository.find(tx, approval_id)
    if row is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no approval {approval_id!r}.",
            field="/approval_id",
            next_call=next_call("approval_pending"),
        )
    found = quote_rows.load(tx, row.quote_id)
    return _records(tx, found, [row])[0], found


def _round(tx: Tx, found: Quote, rows: Sequence[AnyRow]) -> tuple[Round, bool]:
    """The round, and whether a policy blocks the quote. A draft is judged now, what was submitted was judged then."""
    if found.status == "draft" and found.version.status != "rejected":
        decision = quotes.judge(tx, found)
        return Round(tx.policies.roles, decision.chains, ()), decision.is_blocked
    return repository.round_of(tx, found, rows), False


def _pending_request(round_: Round, step: Step, row: AnyRow) -> PendingRequest:
    return {
        "approval_id": row.id,
        "status": "pending",
        "approver_role": row.role,
        "waits_for": round_.waits_for(step.role),
        "requested_at": row.requested_at,
        "expires_at": row.expires_at,
    }


def pending_item(tx: Tx, row: AnyRow, rows: Sequence[AnyRow]) -> PendingApproval:
    """A request in a list of those that wait; `rows` are all that were made about its version."""
    steps = tuple(repository.step_of(one).at(tx.now, is_live=True) for one in rows)
    round_ = Round(tx.policies.roles, tuple(tuple(chain) for chain in row.chains), steps)
    return {
        "approval_id": row.id,
        "quote_id": row.quote_id,
        "version": row.version,
        "account_name": row.account_name,
        "quote_total": amount(row.total),
        "currency": row.currency,
        "approver_role": row.role,
        "waits_for": round_.waits_for(row.role),
        "escalates_to": row.escalates_to,
        "is_escalated": _is_escalated(tx, row),
        "requested_by": row.requested_by,
        "justification": row.justification,
        "requested_at": row.requested_at,
        "expires_at": row.expires_at,
        "fingerprint": row.fingerprint,
    }


def _records(tx: Tx, found: Quote, rows: Sequence[AnyRow]) -> list[ApprovalRecord]:
    votes = repository.votes(tx, [row.id for row in rows])
    return [_record(tx, found, row, votes[row.id]) for row in rows]


def _is_escalated(tx: Tx, row: AnyRow) -> bool:
    return row.escalates_at is not None and row.escalates_at <= tx.now


def _record(tx: Tx, found: Quote, row: AnyRow, votes: Sequence[AnyRow]) -> ApprovalRecord:
    is_live = found.status == "pending_approval" and found.current_version == row.version
    return {
        "approval_id": row.id,
        "quote_id": row.quote_id,
        "version": row.version,
        "approver_role": row.role,
        "status": repository.step_of(row).at(tx.now, is_live=is_live).status.value,
        "reason": row.reason,
        "quorum": row.quorum,
        "quote_total": amount(row.total),
        "fingerprint": row.fingerprint,
        "policy_hash": row.policy_hash,
        "justification": row.justification,
        "requested_by": row.requested_by,
        "requested_at": row.requested_at,
        "expires_at": row.expires_at,
        "escalates_to": row.escalates_to,
        "escalates_at": row.escalates_at,
        "is_escalated": _is_escalated(tx, row),
        "kept_from": row.kept_from,
        "decided_by": row.decided_by,
        "decided_at": row.decided_at,
        "comment": row.comment,
        "votes": [
            {
                "by": vote.caller,
                "acted_as": vote.acted_as,
                "decision": vote.decision,
                "comment": vote.comment,
                "at": vote.at,
            }
            for vote in votes
        ],
    }
