"""The chain of approvals of a version as people see it: who decided, who is asked now, who comes next, by name."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.domain.approvals.rounds import Round
from cpq.domain.quotes.quote import Quote
from cpq.services.approvals import deciders, repository
from cpq.services.quotes import repository as quote_rows


class ChainStep(TypedDict):
    """One role of the chain."""

    approver_role: str
    state: str
    """approved, kept, rejected, withdrawn or expired; asked: it is their turn; next: another role decides first;
    missing: the policies require the role, and nobody has asked it."""
    waits_for: str | None
    decided_by: list[str]
    """The callers who decided, in the order of their votes."""
    decided_at: datetime | None
    people: list[str]
    """The names of the people of the role who can decide, while it is open."""


def chain_of(tx: Tx, quote_id: str, version: int) -> list[ChainStep]:
    """The roles of a version in the order in which they decide; empty when nobody was asked."""
    quote = quote_rows.load(tx, quote_id, version=version, with_lines=False)
    requests = repository.of_quote(tx, quote_id, version)
    if not requests:
        return []
    round_ = repository.round_of(tx, quote, requests)
    last = {one.role: one for one in requests}
    order = [
        role for role in (*tx.policies.roles.commercial, *round_.required, *last) if role in {*round_.required, *last}
    ]
    roles = list(dict.fromkeys(order))
    return [_step(tx, quote, round_, role, last.get(role)) for role in roles]


def _step(tx: Tx, quote: Quote, round_: Round, role: str, request: ApprovalRequest | None) -> ChainStep:
    waits_for = round_.waits_for(role)
    if request is None:
        return {
            "approver_role": role,
            "state": "missing",
            "waits_for": waits_for,
            "decided_by": [],
            "decided_at": None,
            "people": [],
        }
    status = next(step.status for step in reversed(round_.steps) if step.role == role)
    votes = repository.votes(tx, [request.id])[request.id]
    facts = deciders.request_facts(tx, request, quote) if status.is_open else None
    free = deciders.load(tx, [facts], {request.id: votes}).free_holders(facts) if facts else ()
    voted = {vote.caller for vote in votes}
    names = {RequestStatus.PENDING: "next" if waits_for else "asked"}
    return {
        "approver_role": role,
        "state": names.get(status, status.value),
        "waits_for": waits_for if status.is_open else None,
        "decided_by": [vote.caller for vote in votes] or ([request.decided_by] if request.decided_by else []),
        "decided_at": request.decided_at,
        "people": [repository.name_of(one) for one in free if one not in voted],
    }
