"""Views of approvals: the state of a quote, pending requests, one request in full, the history; and their wording."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import chain

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.money import Amount, amount
from cpq.domain.approvals import approval_request as stored
from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.domain.approvals.eligibility import Allowed, Basis
from cpq.domain.approvals.rounds import Round, RoundStatus, Step
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.approvals import repository, requests
from cpq.services.approvals.repository import WaitingRequest
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes.answer_fields import Number

HELD = (QuoteStatus.PENDING_APPROVAL, QuoteStatus.EXPIRED, QuoteStatus.CANCELLED, QuoteStatus.DECLINED)
"""Statuses in which a quote cannot proceed, even when all have approved: one that can is no longer pending."""


class PendingRequest(TypedDict):
    approval_id: str
    status: str
    approver_role: str
    reasons: list[str]
    waits_for: str | None
    requested_at: datetime
    expires_at: datetime


class ApprovalStatus(TypedDict):
    quote_id: str
    number: Number
    version: int
    current_status: str
    pending_requests: list[PendingRequest]
    expired_requests: list[PendingRequest]
    """Requests that nobody decided in time, of roles that were not asked again."""
    can_proceed: bool
    required_roles: list[str]
    missing_roles: list[str]
    """Roles that the policies require and that are neither asked nor have approved."""
    reason: str | None
    """The comment of the rejection, or which requests expired."""


class PendingApproval(TypedDict):
    approval_id: str
    quote_id: str
    number: Number
    version: int
    owner: str | None
    account_name: str
    quote_total: Amount
    currency: str
    approver_role: str
    reasons: list[str]
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


# Its name, and a docstring if it had one, appear in the schema of approval_history.
class Vote(TypedDict):
    by: str
    acted_as: str
    decision: str
    comment: str | None
    at: datetime


class ApprovalRecord(TypedDict):
    """A request with its full record."""

    approval_id: str
    quote_id: str
    number: Number
    version: int
    approver_role: str
    status: str
    reason: str | None
    reasons: list[str]
    quorum: str
    quote_total: Amount
    currency: str
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
    number: Number
    version: int
    quote_status: str
    currency: str
    items: list[ApprovalRecord]


def acted_as(allowed: Allowed, acted_by: str | None = None) -> str:
    """The basis of a vote, in words, and who acted in the voter's name; stored with the vote."""
    asked = allowed.asked_role
    basis = {
        Basis.OWN_ROLE: allowed.role,
        Basis.ESCALATED: f"{allowed.role}, escalated from {asked}",
        Basis.STAND_IN: f"{allowed.role}, in place of {asked}",
        Basis.DELEGATED: f"{asked}, delegated by {allowed.holder}",
    }[allowed.basis]
    return f"{basis}, done by {acted_by}" if acted_by else basis


def acts_as(allowed: Allowed) -> str:
    """The basis on which the caller may decide, as the queue shows it."""
    return {
        Basis.OWN_ROLE: allowed.role,
        Basis.ESCALATED: f"{allowed.role}, escalated",
        Basis.STAND_IN: "stand-in",
        Basis.DELEGATED: f"delegated by {repository.name_of(allowed.holder)}",
    }[allowed.basis]


def status(tx: Tx, quote_id: str) -> ApprovalStatus:
    """The approval status of the current version, derived from its requests and the time, not from sweeps."""
    quote = quote_rows.load(tx, quote_id)
    found = repository.of_quote(tx, quote.id, quote.current_version)
    is_draft = quote.status.is_draft and not quote.is_rejected
    # A draft is judged now; a submitted version was judged then.
    decision = quotes.judge(tx, quote) if is_draft else None
    round_ = repository.round_of(tx, quote, found)
    if decision is not None:
        round_ = repository.next_round(tx, quote, decision.chains, decision.policy_hash, found)
        can_proceed = not (decision.approval_required or decision.is_blocked or quote.has_lapsed)
    else:
        can_proceed = round_.is_settled and quote.status not in HELD
    by_id = {one.id: one for one in found}
    return {
        "quote_id": quote.id,
        "number": quote.number,
        "version": quote.current_version,
        "current_status": RoundStatus.NONE.value if is_draft else round_.status.value,
        "pending_requests": [_pending_request(tx, round_, step, by_id[step.id]) for step in round_.pending],
        "expired_requests": [_pending_request(tx, round_, step, by_id[step.id]) for step in round_.expired],
        "can_proceed": can_proceed and not quote.open_marks,
        "required_roles": list(round_.required),
        "missing_roles": list(round_.missing),
        "reason": _reason(tx, found, [by_id[step.id] for step in round_.expired], round_.required)
        or ("A person must close the marks for review first." if quote.open_marks else None),
    }


def pending(tx: Tx, *, role: str | None, limit: int) -> PendingApprovals:
    """Requests that wait for a decision, oldest first, including those that another role must decide before.

    For a role: its own requests, and those escalated to it.
    """
    if role is not None:
        requests.require_role(tx, role, "/approver_role")
    waiting, total = repository.waiting(tx, role=role, limit=limit)
    return {"items": pending_items(tx, waiting), "total": total}


def history(tx: Tx, quote_id: str) -> ApprovalHistory:
    """All requests and decisions about a quote, version by version, oldest first."""
    quote = quote_rows.load(tx, quote_id)
    return {
        "quote_id": quote.id,
        "number": quote.number,
        "version": quote.current_version,
        "quote_status": quote.status,
        "currency": quote.currency,
        "items": _records(tx, quote, repository.of_quote(tx, quote.id)),
    }


def get(tx: Tx, approval_id: str) -> tuple[ApprovalRecord, Quote]:
    """One request with its quote; NOT_FOUND when it does not exist."""
    request = repository.find(tx, approval_id)
    if request is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no approval {approval_id!r}.",
            field="/approval_id",
            next_call=next_call("approval_pending"),
        )
    quote = quote_rows.load(tx, request.quote_id)
    return _records(tx, quote, [request])[0], quote


def votes_about(tx: Tx, quote_ids: Collection[str]) -> dict[str, list[stored.Vote]]:
    """The decisions about each of the quotes, in the order in which they were made."""
    quote_of = {
        request.id: quote_id
        for (quote_id, _), requests_ in repository.rounds(tx, quote_ids).items()
        for request in requests_
    }
    votes = sorted(chain.from_iterable(repository.votes(tx, quote_of).values()), key=lambda vote: vote.at)
    found: dict[str, list[stored.Vote]] = {quote_id: [] for quote_id in quote_ids}
    for vote in votes:
        found[quote_of[vote.approval_id]].append(vote)
    return found


def pending_items(tx: Tx, waiting: Sequence[WaitingRequest]) -> list[PendingApproval]:
    """Waiting requests as list items."""
    rounds = repository.rounds(tx, {one.request.quote_id for one in waiting})
    return [_pending_item(tx, one, rounds[one.request.quote_id, one.request.version]) for one in waiting]


def _reason(
    tx: Tx, found: Sequence[ApprovalRequest], expired: Sequence[ApprovalRequest], required: Collection[str]
) -> str | None:
    rejected = next((one for one in found if one.status is RequestStatus.REJECTED), None)
    if rejected is not None or not expired:
        return rejected.comment if rejected else None
    notes = dict.fromkeys(one.reason or requests.expiry_note(tx, one) for one in expired)
    ways = "The quote is a draft again, at the same price; approval_request asks again."
    extra = [one.role for one in expired if one.role not in required]
    if extra:
        ways += f" No policy requires {' or '.join(extra)}: approval_withdraw ends that request."
    return " ".join((*notes, ways))


def _pending_request(tx: Tx, round_: Round, step: Step, request: ApprovalRequest) -> PendingRequest:
    return {
        "approval_id": request.id,
        "status": step.status.value,
        "approver_role": request.role,
        "reasons": requests.reasons_view(tx, request.role, request.reasons),
        "waits_for": round_.waits_for(step.role),
        "requested_at": request.requested_at,
        "expires_at": request.expires_at,
    }


def _pending_item(tx: Tx, waiting: WaitingRequest, of_version: Sequence[ApprovalRequest]) -> PendingApproval:
    """`of_version` are all requests about its version."""
    request = waiting.request
    steps = tuple(Step.of(one).at(tx.now, is_live=True) for one in of_version)
    round_ = Round(tx.policies.roles, request.chains, steps)
    return {
        "approval_id": request.id,
        "quote_id": request.quote_id,
        "number": waiting.number,
        "version": request.version,
        "owner": waiting.owner,
        "account_name": waiting.account_name,
        "quote_total": amount(request.total),
        "currency": waiting.currency,
        "approver_role": request.role,
        "reasons": requests.reasons_view(tx, request.role, request.reasons),
        "waits_for": round_.waits_for(request.role),
        "escalates_to": request.escalates_to,
        "is_escalated": request.is_escalated(tx.now),
        "requested_by": request.requested_by,
        "justification": request.justification,
        "requested_at": request.requested_at,
        "expires_at": request.expires_at,
        "fingerprint": request.fingerprint,
    }


def _records(tx: Tx, quote: Quote, found: Sequence[ApprovalRequest]) -> list[ApprovalRecord]:
    votes = repository.votes(tx, [one.id for one in found])
    steps = repository.steps(tx, quote, found)
    currencies = quote_rows.currencies(tx, quote.id)
    return [
        _record(tx, one, quote.number, currencies[one.version], step.status, votes[one.id])
        for one, step in zip(found, steps, strict=True)
    ]


def _record(
    tx: Tx,
    request: ApprovalRequest,
    number: str,
    currency: str,
    status: RequestStatus,
    votes: Sequence[stored.Vote],
) -> ApprovalRecord:
    note = requests.expiry_note(tx, request) if status is RequestStatus.EXPIRED else None
    return {
        "approval_id": request.id,
        "quote_id": request.quote_id,
        "number": number,
        "version": request.version,
        "approver_role": request.role,
        "status": status.value,
        "reason": request.reason or note,
        "reasons": requests.reasons_view(tx, request.role, request.reasons),
        "quorum": request.quorum,
        "quote_total": amount(request.total),
        "currency": currency,
        "fingerprint": request.fingerprint,
        "policy_hash": request.policy_hash,
        "justification": request.justification,
        "requested_by": request.requested_by,
        "requested_at": request.requested_at,
        "expires_at": request.expires_at,
        "escalates_to": request.escalates_to,
        "escalates_at": request.escalates_at,
        "is_escalated": request.is_escalated(tx.now),
        "kept_from": request.kept_from,
        "decided_by": request.decided_by,
        "decided_at": request.decided_at,
        "comment": request.comment,
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
