"""Asking for approval: which roles the policies want, whose earlier word still stands, and one request for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.approvals import reapproval
from cpq.domain.approvals.reapproval import Earlier, Grounds
from cpq.domain.approvals.rounds import GRANTED, Round, Step, StepStatus, covers, roles_to_ask, votes_needed
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.quotes.lifecycle import Move
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.approvals import events, people, repository
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes import transitions
from cpq.services.quotes.policy_check import PolicyViolation, described, violations_view
from cpq.storage.statements import AnyRow


class AlsoRequested(TypedDict):
    """Another role that the policies ask for; a kept one need not decide again."""

    approval_id: str
    approver_role: str
    status: str
    reason: str | None


class ApprovalRequested(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    approver_role: str
    requested_by: str
    justification: str
    created_at: datetime
    expires_at: datetime
    reason: str | None
    """Why an earlier approval was kept, or is asked for again."""
    waits_for: str | None
    """The role whose turn comes first."""
    also_requested: list[AlsoRequested]
    quote_status: str
    fingerprint: str
    outcome: str
    message: str


class PreviewedStep(TypedDict):
    approver_role: str
    would_be: str
    """asked, kept, pending, approved or missing."""
    waits_for: str | None
    approvals_needed: int
    approvers: list[str]
    """The people of the role who could decide it now."""
    reasons: list[str]


class ApprovalPreview(TypedDict):
    quote_id: str
    version: int
    status: str
    approval_required: bool
    is_blocked: bool
    steps: list[PreviewedStep]
    policy_violations: list[PolicyViolation]


@dataclass(frozen=True)
class Demand:
    """What the policies want for a version: fixed with the first request, so that later policies do not change it."""

    chains: tuple[tuple[str, ...], ...]
    policy_hash: str
    grounds: dict[str, Grounds]
    violations: dict[str, tuple[str, ...]]
    """Why each role is asked, in words."""


@dataclass(frozen=True)
class Planned:
    """A request to be made."""

    role: str
    kept: Earlier | None = None
    reason: str | None = None


def request(tx: Tx, quote_id: str, *, justification: str, role: str) -> ApprovalRequested:
    """Ask a role about the current version, and with it every role that the policies want and nobody has asked."""
    people.require_role(tx, role, "/approver_role")
    found = quote_rows.load(tx, quote_id, for_update=True)
    transitions.require(found, Move.SUBMIT)
    rows = repository.of_quote(tx, quote_id, found.current_version) if found.status == "pending_approval" else []
    demand = _demand(tx, found, rows)
    round_ = Round(tx.policies.roles, demand.chains, repository.round_of(tx, found, rows).steps)
    _require_open(found, round_, role)
    _close_overdue(tx, rows, round_)
    planned = [_plan(tx, found, demand, wanted, is_first=not rows) for wanted in roles_to_ask(round_, role)]
    added = [_add(tx, found, demand, one, justification) for one in planned]
    for row in added:
        round_ = round_.with_step(Step(row["id"], row["role"], StepStatus(row["status"]), row["expires_at"]))
    moves = [Move.SUBMIT, Move.APPROVE] if round_.is_approved else [Move.SUBMIT]
    return _answer(transitions.apply(tx, found, *moves), round_, added)


def preview(tx: Tx, quote_id: str) -> ApprovalPreview:
    """Who would have to approve the current version, and why, without asking anybody."""
    found = quote_rows.load(tx, quote_id)
    rows = repository.of_quote(tx, quote_id, found.current_version) if found.status != "draft" else []
    decision = quotes.judge(tx, found)
    demand = _of_rows(rows) if rows else _of_decision(tx, decision)
    round_ = Round(tx.policies.roles, demand.chains, repository.round_of(tx, found, rows).steps)
    roles = dict.fromkeys((*round_.required, *round_.missing, *(step.role for step in round_.pending)))
    return {
        "quote_id": quote_id,
        "version": found.current_version,
        "status": found.status,
        "approval_required": bool(demand.chains),
        "is_blocked": decision.is_blocked,
        "steps": [_previewed(tx, found, demand, round_, role) for role in roles],
        "policy_violations": violations_view(tx, decision),
    }


def _demand(tx: Tx, found: Quote, rows: Sequence[AnyRow]) -> Demand:
    """What was fixed with the first request of this version; for a draft, what the policies say now."""
    if rows:
        if found.expires_at <= tx.now:
            raise CpqError(
                Code.CONFLICT,
                f"The price of version {found.current_version} was valid until {found.valid_until}.",
                field="/quote_id",
                next_call=next_call("quote_revise", quote_id=found.id, expected_version=found.current_version),
            )
        return _of_rows(rows)
    quotes.require_current_price(tx, found)
    decision = quotes.judge(tx, found)
    quotes.require_unblocked(tx, found, decision)
    return _of_decision(tx, decision)


def _of_rows(rows: Sequence[AnyRow]) -> Demand:
    chains = tuple(tuple(chain) for chain in rows[0].chains)
    return Demand(chains, rows[0].policy_hash, {row.role: reapproval.load(row.grounds) for row in rows}, {})


def _of_decision(tx: Tx, decision: PolicyDecision) -> Demand:
    chains = decision.chains
    covered = {role: covers(tx.policies.roles, chains, role) for chain in chains for role in chain}
    said = {
        role: tuple(described(tx, one) for one in decision.violations if one.required_approver_role in concerns)
        for role, concerns in covered.items()
    }
    grounds = {role: reapproval.grounds_of(decision.violations, concerns) for role, concerns in covered.items()}
    return Demand(chains, decision.policy_hash, grounds, said)


def _require_open(found: Quote, round_: Round, role: str) -> None:
    step = round_.standing(role)
    if step is None:
        return
    is_pending = step.status is StepStatus.PENDING
    told = "is asked about this version already" if is_pending else "has approved this version already"
    raise CpqError(
        Code.CONFLICT,
        f"{role} {told}.",
        field="/approver_role",
        approval_id=step.id,
        status=step.status.value,
        next_call=next_call("approval_status", quote_id=found.id),
    )


def _close_overdue(tx: Tx, rows: Sequence[AnyRow], round_: Round) -> None:
    """Write down what time has ended, so that the same role can be asked again."""
    for row, step in zip(rows, round_.steps, strict=True):
        if row.status == "pending" and step.status is StepStatus.EXPIRED:
            repository.close(tx, row, StepStatus.EXPIRED, reason="Nobody decided in time.")
            events.expired(tx, row)


def _plan(tx: Tx, found: Quote, demand: Demand, role: str, *, is_first: bool) -> Planned:
    """Ask the role, or keep what it said of the last version. Whom the policies do not ask for is always asked."""
    if not is_first or role not in demand.grounds:
        return Planned(role)
    earlier = _earlier(tx, found, role)
    if earlier is None:
        return Planned(role)
    if quote_rows.count_option_sets(tx, found) > 1:
        return Planned(role, reason="Asked again: a quote with alternatives is looked at as a whole.")
    answer = reapproval.still_stands(
        role,
        tx.policies.roles,
        earlier,
        demand.grounds[role],
        policy_hash=demand.policy_hash,
        now=tx.now,
        barred=people.barred_by(tx, people.makers_of(found, tx.caller), earlier.asked_at).people,
        gone=people.gone(tx, earlier.voters),
    )
    return Planned(role, earlier if answer.is_kept else None, answer.reason)


def _earlier(tx: Tx, found: Quote, role: str) -> Earlier | None:
    """What the role approved on the last version that was submitted before this one."""
    rows = [row for row in repository.of_quote(tx, found.id) if row.version < found.current_version]
    last = max((row.version for row in rows), default=None)
    row = next((one for one in rows if (one.version, one.role) == (last, role) and one.status in GRANTED), None)
    if row is None:
        return None
    given = row
    while given.kept_from is not None:
        given = next(one for one in rows if one.id == given.kept_from)
    voters = tuple(vote.caller for vote in repository.votes(tx, [given.id])[given.id])
    return Earlier(
        id=row.id,
        version=row.version,
        voters=voters or (row.decided_by,),
        asked_at=given.requested_at,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        policy_hash=row.policy_hash,
        holds_until=row.holds_until,
        grounds=reapproval.load(row.grounds),
    )


def _add(tx: Tx, found: Quote, demand: Demand, planned: Planned, justification: str) -> dict[str, Any]:
    roles, kept = tx.policies.roles, planned.kept
    escalation = roles.escalate_to.get(planned.role)
    row: dict[str, Any] = {
        "id": tx.new_id("APR-"),
        "quote_id": found.id,
        "version": found.current_version,
        "role": planned.role,
        "status": (StepStatus.KEPT if kept else StepStatus.PENDING).value,
        "reason": planned.reason,
        "fingerprint": found.version.fingerprint,
        "total": found.version.total,
        "policy_hash": demand.policy_hash,
        "chains": demand.chains,
        "grounds": reapproval.dump(demand.grounds.get(planned.role, {})),
        "quorum": str(roles.quorum.get(planned.role, "one")),
        "justification": justification,
        "requested_by": tx.caller,
        "requested_at": tx.now,
        "expires_at": tx.now + timedelta(hours=tx.policies.terms.approval_expiry_hours),
        "escalates_to": escalation.to if escalation else None,
        "escalates_at": tx.now + timedelta(hours=escalation.after_hours) if escalation else None,
        # What was approved is good for as long as the version it was said of; keeping it does not prolong it.
        "holds_until": kept.holds_until if kept else found.version.expires_at,
        "kept_from": kept.id if kept else None,
        "decided_by": kept.decided_by if kept else None,
        "decided_at": kept.decided_at if kept else None,
    }
    repository.add(tx, row)
    if kept:
        events.kept(tx, row["id"], found.id, planned.role)
    else:
        events.requested(tx, row["id"], found.id, planned.role)
    return row


def _answer(found: Quote, round_: Round, added: Sequence[dict[str, Any]]) -> ApprovalRequested:
    asked, *others = added
    is_approved = found.status == "approved"
    return {
        "approval_id": asked["id"],
        "quote_id": found.id,
        "version": asked["version"],
        "status": asked["status"],
        "approver_role": asked["role"],
        "requested_by": asked["requested_by"],
        "justification": asked["justification"],
        "created_at": asked["requested_at"],
        "expires_at": asked["expires_at"],
        "reason": asked["reason"],
        "waits_for": round_.waits_for(asked["role"]),
        "also_requested": [
            {"approval_id": row["id"], "approver_role": row["role"], "status": row["status"], "reason": row["reason"]}
            for row in others
        ],
        "quote_status": found.status,
        "fingerprint": asked["fingerprint"],
        "outcome": "created",
        "message": "Earlier approvals still stand; the quote is approved"
        if is_approved
        else "Approval request submitted and persisted",
    }


def _previewed(tx: Tx, found: Quote, demand: Demand, round_: Round, role: str) -> PreviewedStep:
    barred = people.barred_by(tx, people.makers_of(found, tx.caller), tx.now)
    counted = people.able(tx, role, barred.uncounted)
    reasons = list(demand.violations.get(role, ()))
    step = round_.standing(role)
    if step is not None:
        would_be = step.status.value
    elif round_.steps:
        would_be = "missing"
    else:
        planned = _plan(tx, found, demand, role, is_first=True)
        would_be = "kept" if planned.kept else "asked"
        reasons += [planned.reason] if planned.reason else []
    return {
        "approver_role": role,
        "would_be": would_be,
        "waits_for": round_.waits_for(role),
        "approvals_needed": votes_needed(tx.policies.roles.quorum.get(role, "one"), len(counted)),
        "approvers": people.able(tx, role, barred.people),
        "reasons": reasons,
    }
