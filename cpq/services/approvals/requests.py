"""Commands that request or preview approval: each required role is asked, or its earlier approval is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from typing_extensions import TypedDict

from cpq.app import recorded_state
from cpq.app.access import Role
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.domain.approvals import reapproval
from cpq.domain.approvals.approval_request import ApprovalRequest, Reason, RequestStatus
from cpq.domain.approvals.eligibility import Facts, RequestFacts
from cpq.domain.approvals.reapproval import Earlier, Grounds
from cpq.domain.approvals.rounds import Round, Step, roles_to_ask, votes_needed
from cpq.domain.policy.business_hours import local
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.quotes.lifecycle import Move, QuoteStatus
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.approvals import deciders, events, repository
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes import transitions
from cpq.services.quotes.answer_fields import Number
from cpq.services.quotes.deal_facts import hold_deal
from cpq.services.quotes.policy_check import PolicyViolation, redacted, violations_view


class AlsoRequested(TypedDict):
    """Another role that the policies require; a kept one does not decide again."""

    approval_id: str
    approver_role: str
    status: str
    reason: str | None
    reasons: list[str]


class ApprovalRequested(TypedDict):
    approval_id: str
    quote_id: str
    number: Number
    version: int
    status: str
    approver_role: str
    requested_by: str
    justification: str
    created_at: datetime
    expires_at: datetime
    reason: str | None
    """Why an earlier approval was kept, or is requested again."""
    reasons: list[str]
    """Everything for which the policies require this role; empty when it was asked besides them."""
    waits_for: str | None
    """The role that must decide first."""
    also_requested: list[AlsoRequested]
    required_roles: list[str]
    """The roles that the policies require, in the order in which they decide."""
    warnings: list[str]
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
    number: Number
    version: int
    status: str
    approval_required: bool
    is_blocked: bool
    required_roles: list[str]
    steps: list[PreviewedStep]
    policy_violations: list[PolicyViolation]
    warnings: list[str]


@dataclass(frozen=True)
class Demand:
    """The roles that the policies require for a version; fixed by the first request, so later policies do not apply."""

    chains: tuple[tuple[str, ...], ...]
    policy_hash: str
    grounds: Mapping[str, Grounds]
    reasons: Mapping[str, tuple[Reason, ...]]
    """Why each role is required, in words."""


@dataclass(frozen=True)
class Planned:
    """A request to be made."""

    role: str
    earlier: Earlier | None = None
    """The approval that is kept."""
    reason: str | None = None


def request(tx: Tx, quote_id: str, *, justification: str, role: str | None = None) -> ApprovalRequested:
    """Ask every role that the policies require for the current version and that nobody has asked, and `role` besides.

    Where the policies require nobody and no role is given, the lowest role that approves is asked.
    """
    if role is not None:
        require_role(tx, role, "/approver_role")
    quote = quote_rows.load(tx, quote_id, for_update=True)
    recorded_state.require(tx, quote.id, also=recorded_state.APPROVALS)
    transitions.require(quote, Move.SUBMIT)
    hold_deal(tx, quote)
    requests = _requests(tx, quote)
    demand = _demand(tx, quote, requests)
    round_ = _round(tx, quote, demand, requests)
    besides = role if role or round_.required or round_.missing else _lowest_role(tx)
    wanted = roles_to_ask(round_, besides)
    _require_open(quote, round_, besides, wanted)
    close_expired(tx, quote, requests)
    planned = [_plan(tx, quote, demand, one, is_first=not round_.is_begun) for one in wanted]
    added = [_add(tx, quote, demand, one, justification) for one in planned]
    for one in added:
        round_ = round_.with_step(Step.of(one))
    moves = [Move.SUBMIT, Move.APPROVE] if round_.is_approved else [Move.SUBMIT]
    granted = [one for one in requests if one.status.is_granted]
    warnings = deciders.unheld(tx, wanted)
    if not round_.required:
        asked = " and ".join(wanted)
        warnings.insert(0, f"No policy requires an approval of this version; {asked} was asked anyway.")
    # The role that the caller named comes first.
    added.sort(key=lambda one: one.role != role)
    quote = transitions.apply(tx, quote, *moves, lapses_at=round_.lapses_at)
    return _answer(tx, quote, round_, added or granted, warnings)


def preview(tx: Tx, quote_id: str) -> ApprovalPreview:
    """Who would have to approve the current version, and why, without asking anybody."""
    quote = quote_rows.load(tx, quote_id)
    requests = _requests(tx, quote)
    decision = quotes.judge(tx, quote)
    demand = _of_requests(requests) if requests and not quote.status.is_draft else _of_decision(decision)
    round_ = _round(tx, quote, demand, requests)
    shown = {*round_.required, *round_.missing, *(step.role for step in round_.pending)}
    roles = [role for role in round_.roles.known if role in shown]
    return {
        "quote_id": quote.id,
        "number": quote.number,
        "version": quote.current_version,
        "status": quote.status,
        "approval_required": bool(demand.chains),
        "is_blocked": decision.is_blocked,
        "required_roles": list(round_.required),
        "steps": _preview_steps(tx, quote, demand, round_, roles),
        "policy_violations": violations_view(tx, decision),
        "warnings": deciders.unheld(tx, roles),
    }


def reasons_view(tx: Tx, role: str, reasons: Sequence[Reason]) -> list[str]:
    """Why the policies require a role, without margins and costs if the caller may not see them."""
    return list(dict.fromkeys(redacted(role) if one.is_secret and not tx.sees_margin else one.text for one in reasons))


def require_role(tx: Tx, role: str, field: str) -> None:
    """Raise VALIDATION_ERROR with the nearest role when the policies have no such role."""
    known = tx.policies.roles.known
    if role not in known:
        raise bad_field(
            field, f"{role!r} is not a role that approves.", allowed=list(known), nearest=nearest(role, known) or None
        )


def _requests(tx: Tx, quote: Quote) -> list[ApprovalRequest]:
    """The requests about the current version; none if it is a draft that was never submitted, or was rejected."""
    is_asked = not quote.status.is_draft or quote.has_lapsed
    return repository.of_quote(tx, quote.id, quote.current_version) if is_asked else []


def _round(tx: Tx, quote: Quote, demand: Demand, requests: Sequence[ApprovalRequest]) -> Round:
    if quote.status.is_draft:
        return repository.next_round(tx, quote, demand.chains, demand.policy_hash, requests)
    return repository.round_of(tx, quote, requests)


def _demand(tx: Tx, quote: Quote, requests: Sequence[ApprovalRequest]) -> Demand:
    """The demand fixed by the first request of this round; for a draft, that of the current policies."""
    if quote.status.awaits_approval and requests:
        if quote.expires_at <= tx.now:
            raise CpqError(
                Code.CONFLICT,
                f"The price of version {quote.current_version} was valid until {quote.valid_until}.",
                field="/quote_id",
                next_call=next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version),
            )
        return _of_requests(requests)
    quotes.require_current_price(tx, quote)
    decision = quotes.judge(tx, quote)
    quotes.require_unblocked(tx, quote, decision)
    return _of_decision(decision)


def _of_requests(requests: Sequence[ApprovalRequest]) -> Demand:
    last = requests[-1]
    grounds = {one.role: reapproval.load(one.grounds) for one in requests}
    return Demand(last.chains, last.policy_hash, grounds, {one.role: one.reasons for one in requests})


def _of_decision(decision: PolicyDecision) -> Demand:
    found = {role: decision.reasons(role) for role in decision.required_roles}
    grounds = {role: reapproval.grounds_of(violations) for role, violations in found.items()}
    reasons = {
        role: tuple(Reason(one.policy_id, one.description, one.is_secret) for one in violations)
        for role, violations in found.items()
    }
    return Demand(decision.chains, decision.policy_hash, grounds, reasons)


def _lowest_role(tx: Tx) -> str:
    """The role that is asked where no policy requires one and the caller names none."""
    roles = tx.policies.roles
    return Role.SALES_MANAGER.value if Role.SALES_MANAGER in roles.known else roles.commercial[0]


def _require_open(quote: Quote, round_: Round, role: str | None, wanted: Sequence[str]) -> None:
    """CONFLICT when the role was asked already or, without a role, when every required one was."""
    if role is None and (wanted or quote.status.is_draft):
        return
    asked = round_.active_step(role) if role else next(iter(round_.pending), round_.steps[-1])
    if asked is None:
        return
    done = "is asked about this version already" if asked.status.is_open else "has approved this version already"
    raise CpqError(
        Code.CONFLICT,
        f"{asked.role} {done}.",
        field="/approver_role",
        approval_id=asked.id,
        status=asked.status.value,
        next_call=next_call("approval_status", quote_id=quote.id),
    )


def close_expired(tx: Tx, quote: Quote, requests: Sequence[ApprovalRequest]) -> list[str]:
    """Store expired requests as expired, so that the same role can be asked again, and publish a note to the asker."""
    steps = repository.steps(tx, quote, requests)
    expired = [
        request
        for request, step in zip(requests, steps, strict=True)
        if request.status.is_open and step.status is RequestStatus.EXPIRED
    ]
    for request in expired:
        note = expiry_note(tx, request)
        repository.close(tx, request, RequestStatus.EXPIRED, reason=note)
        events.expired(tx, request, note)
    return [request.id for request in expired]


def expiry_note(tx: Tx, request: ApprovalRequest) -> str:
    """The note to the asker of a request that nobody decided in time, in the time zone of the role's calendar."""
    if request.expires_at > tx.now:
        return f"Another role did not decide in time, so {request.role} need not decide, either."
    until = local(request.expires_at, tx.policies.roles.calendar(request.role))
    return f"Nobody with the role {request.role} decided by {until}; nothing was approved."


def _plan(tx: Tx, quote: Quote, demand: Demand, role: str, *, is_first: bool) -> Planned:
    """Ask the role, or keep its approval of the last version. A role that is not required is always asked."""
    if not is_first or role not in demand.grounds:
        return Planned(role)
    earlier = _earlier(tx, quote, role)
    if earlier is None:
        return Planned(role)
    if quote_rows.count_option_sets(tx, quote) > 1:
        return Planned(role, reason="Asked again: a quote with alternatives is reviewed as a whole.")
    conflicts = deciders.conflicts(tx, deciders.makers_of(tx, quote, tx.caller), since=earlier.asked_at)
    answer = reapproval.is_kept(
        role,
        tx.policies.roles,
        earlier,
        quote,
        demand.grounds[role],
        policy_hash=demand.policy_hash,
        now=tx.now,
        barred=[voter for voter in earlier.voters if conflicts.of(voter, earlier.asked_at)],
        gone=deciders.without_permission(tx, earlier.voters),
    )
    return Planned(role, earlier if answer.is_kept else None, answer.reason)


def _earlier(tx: Tx, quote: Quote, role: str) -> Earlier | None:
    """The approval that holds on the last version submitted before this one, as people gave it on that or an earlier
    one: what is kept is measured by what they saw, not by what was kept since."""
    requests = [one for one in repository.of_quote(tx, quote.id) if one.version < quote.current_version]
    last = max((one.version for one in requests), default=None)
    of_role = (one for one in requests if (one.version, one.role) == (last, role))
    granted = next((one for one in of_role if one.status.is_granted), None)
    if granted is None:
        return None
    given = granted
    while given.kept_from is not None:
        given = next(one for one in requests if one.id == given.kept_from)
    assert given.decided_by is not None, "somebody granted it"
    assert given.decided_at is not None, "and at some time"
    voters = tuple(vote.caller for vote in repository.votes(tx, [given.id])[given.id])
    return Earlier(
        id=given.id,
        version=given.version,
        voters=voters or (given.decided_by,),
        asked_at=given.requested_at,
        decided_by=given.decided_by,
        decided_at=given.decided_at,
        policy_hash=given.policy_hash,
        holds_until=given.holds_until,
        grounds=reapproval.load(given.grounds),
        offer=quote_rows.load(tx, quote.id, version=given.version),
    )


def _add(tx: Tx, quote: Quote, demand: Demand, planned: Planned, justification: str) -> ApprovalRequest:
    roles, earlier = tx.policies.roles, planned.earlier
    escalation = roles.escalate_to.get(planned.role)
    added = ApprovalRequest(
        id=tx.new_id("APR-"),
        quote_id=quote.id,
        version=quote.current_version,
        role=planned.role,
        status=RequestStatus.KEPT if earlier else RequestStatus.PENDING,
        reason=planned.reason,
        fingerprint=quote.version.fingerprint,
        total=quote.version.total,
        policy_hash=demand.policy_hash,
        chains=demand.chains,
        grounds=reapproval.dump(demand.grounds.get(planned.role, {})),
        reasons=demand.reasons.get(planned.role, ()),
        quorum=str(roles.quorum.get(planned.role, "one")),
        justification=justification,
        requested_by=tx.caller,
        requested_at=tx.now,
        expires_at=roles.expires_at(planned.role, tx.now, tx.policies.terms.approval_expiry_hours),
        escalates_to=escalation.to if escalation else None,
        escalates_at=roles.deadline(planned.role, tx.now, escalation.after_hours) if escalation else None,
        escalated_at=None,
        # An approval is valid as long as the version it was given for; keeping it does not extend it.
        holds_until=earlier.holds_until if earlier else quote.version.expires_at,
        kept_from=earlier.id if earlier else None,
        decided_by=earlier.decided_by if earlier else None,
        decided_at=earlier.decided_at if earlier else None,
        comment=None,
    )
    repository.add(tx, added)
    if earlier:
        events.decided(tx, added, added.status)
    else:
        events.requested(tx, added)
    return added


def _answer(
    tx: Tx, quote: Quote, round_: Round, added: Sequence[ApprovalRequest], warnings: list[str]
) -> ApprovalRequested:
    asked, *others = added
    is_approved = quote.status is QuoteStatus.APPROVED
    return {
        "approval_id": asked.id,
        "quote_id": quote.id,
        "number": quote.number,
        "version": asked.version,
        "status": asked.status.value,
        "approver_role": asked.role,
        "requested_by": asked.requested_by,
        "justification": asked.justification,
        "created_at": asked.requested_at,
        "expires_at": asked.expires_at,
        "reason": asked.reason,
        "reasons": reasons_view(tx, asked.role, asked.reasons),
        "waits_for": round_.waits_for(asked.role),
        "also_requested": [
            {
                "approval_id": one.id,
                "approver_role": one.role,
                "status": one.status.value,
                "reason": one.reason,
                "reasons": reasons_view(tx, one.role, one.reasons),
            }
            for one in others
        ],
        "required_roles": list(round_.required),
        "warnings": warnings,
        "quote_status": quote.status,
        "fingerprint": asked.fingerprint,
        "outcome": "created",
        "message": "Earlier approvals are kept; the quote is approved"
        if is_approved
        else "Approval request submitted and persisted",
    }


def _preview_steps(tx: Tx, quote: Quote, demand: Demand, round_: Round, roles: Sequence[str]) -> list[PreviewedStep]:
    imagined = [deciders.imagined_facts(tx, quote, role) for role in roles]
    facts = deciders.load(tx, imagined, {})
    return [_preview_step(tx, quote, demand, round_, one, facts) for one in imagined]


def _preview_step(
    tx: Tx, quote: Quote, demand: Demand, round_: Round, request: RequestFacts, facts: Facts
) -> PreviewedStep:
    role = request.role
    reasons = reasons_view(tx, role, demand.reasons.get(role, ()))
    step = round_.active_step(role)
    if step is not None:
        would_be = step.status.value
    elif not quote.status.is_draft:
        would_be = "missing"
    else:
        planned = _plan(tx, quote, demand, role, is_first=not round_.is_begun)
        would_be = RequestStatus.KEPT.value if planned.earlier else "asked"
        reasons += [planned.reason] if planned.reason else []
    counted = list(facts.counted_holders(request))
    return {
        "approver_role": role,
        "would_be": would_be,
        "waits_for": round_.waits_for(role),
        "approvals_needed": votes_needed(tx.policies.roles.quorum.get(role, "one"), len(counted)),
        "approvers": [repository.name_of(one) for one in facts.free_holders(request)],
        "reasons": reasons,
    }
