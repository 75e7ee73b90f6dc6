"""Commands that decide or withdraw a request. Each locks the quote first, so that decisions cannot cross."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import recorded_state
from cpq.app.access import Role
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.base.money import amount
from cpq.domain.approvals.approval_request import ApprovalRequest, Decision, RequestStatus, Vote
from cpq.domain.approvals.eligibility import Allowed, Facts, Refusal, Refused, RequestFacts, eligibility
from cpq.domain.approvals.rounds import Round, read_quorum, votes_given, votes_needed
from cpq.domain.policy.policy_set import Quorum
from cpq.domain.quotes.lifecycle import Move, QuoteStatus
from cpq.domain.quotes.quote import Quote
from cpq.services import quotes
from cpq.services.approvals import deciders, events, repository, views
from cpq.services.approvals.refusals import denied, refusal
from cpq.services.approvals.requests import close_expired, expiry_note
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes import transitions
from cpq.storage.schema import tables


class ApprovalDecided(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    """Of the request: approved, rejected, or pending while others of the role have to approve too."""
    approver_role: str
    decided_by: str
    acted_as: str
    decided_at: datetime
    approvals: int
    approvals_needed: int
    quote_status: str
    outcome: str
    message: str


class ApprovalWithdrawn(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    approver_role: str
    quote_status: str
    outcome: str
    message: str


@dataclass(frozen=True)
class Case:
    """A request with its quote, and all requests about the version."""

    request: ApprovalRequest
    quote: Quote
    requests: Sequence[ApprovalRequest]
    round: Round

    status: RequestStatus
    """Of the request as of now."""


@dataclass(frozen=True)
class Ballot:
    """Who may vote on a request, and the existing votes."""

    quorum: Quorum
    request: RequestFacts
    facts: Facts

    @property
    def voted(self) -> set[str]:
        """The holders of the role who have voted."""
        return {vote.holder for vote in self.facts.votes[self.request.id]}

    def tally(self, voted: Collection[str]) -> Tally:
        """The number of approvals when these holders have approved, and the number needed."""
        counted = list(self.facts.counted_holders(self.request))
        return Tally(votes_given(self.quorum, voted, counted), votes_needed(self.quorum, len(counted)))


class Tally(NamedTuple):
    given: int
    needed: int

    @property
    def is_enough(self) -> bool:
        return self.given >= self.needed


def decide(tx: Tx, approval_id: str, decision: Decision, *, fingerprint: str, comment: str | None) -> ApprovalDecided:
    """Approve or reject the price of the fingerprint. The first decision is final; a rejection ends the whole round."""
    case = _gather(tx, *_locked(tx, approval_id))
    ballot = _gather_ballot(tx, case)
    allowed = _require_decidable(tx, case, ballot, fingerprint, decision)
    _require_comment(decision, comment)
    request, acted_as = case.request, views.acted_as(allowed, tx.principal.acted_by)
    if allowed.holder not in ballot.voted:
        vote = Vote(request.id, tx.caller, acted_as, allowed.holder, decision, comment, tx.now)
        repository.add_vote(tx, request, vote)
    if decision == "reject":
        _reject(tx, case, comment or "")
        return _decided(tx, request, acted_as, RequestStatus.REJECTED, ballot.tally(ballot.voted))
    tally = ballot.tally(ballot.voted | {allowed.holder})
    if not tally.is_enough:
        return _decided(tx, request, acted_as, RequestStatus.PENDING, tally)
    repository.close(tx, request, RequestStatus.APPROVED, decided_by=tx.caller, decided_at=tx.now, comment=comment)
    events.decided(tx, request, RequestStatus.APPROVED)
    settle(tx, case.quote, _with(case.round, request.id, RequestStatus.APPROVED))
    return _decided(tx, request, acted_as, RequestStatus.APPROVED, tally)


def require_decidable(tx: Tx, approval_id: str, decision: Decision, *, fingerprint: str | None = None) -> None:
    """Raise the error that `decide` would raise now, to check before asking for confirmation.

    Without a fingerprint, that of the request counts as the one shown.
    """
    request = repository.find(tx, approval_id)
    if request is None:
        raise denied()
    case = _gather(tx, request, quote_rows.load(tx, request.quote_id))
    _require_decidable(tx, case, _gather_ballot(tx, case), fingerprint or request.fingerprint, decision)


def require_complete(tx: Tx, approval_id: str, decision: Decision, *, fingerprint: str, comment: str | None) -> None:
    """As `require_decidable`, and with everything else that `decide` requires."""
    require_decidable(tx, approval_id, decision, fingerprint=fingerprint)
    _require_comment(decision, comment)


def withdraw(tx: Tx, approval_id: str, *, reason: str | None) -> ApprovalWithdrawn:
    """Withdraw a request that nobody has decided: for the caller who made it, and for administrators.

    One that expired is withdrawn only where no policy requires its role; the others are asked again.
    """
    request, quote = _locked(tx, approval_id)
    if not _is_own(tx, request):
        raise denied()
    case = _gather(tx, request, quote)
    if request.id in _unanswered(tx, quote):
        close_expired(tx, quote, case.requests)
        request = repository.find(tx, approval_id) or request
    else:
        _require_pending(tx, case)
    message = f"Withdrawn by {tx.caller}" + (f": {reason}" if reason else ".")
    repository.close(tx, request, RequestStatus.WITHDRAWN, reason=message, decided_by=tx.caller, decided_at=tx.now)
    events.decided(tx, request, RequestStatus.WITHDRAWN)
    if quote.has_lapsed:
        _settle_lapsed(tx, quote)
    else:
        settle(tx, quote, _with(case.round, request.id, RequestStatus.WITHDRAWN))
    status = quote_rows.load(tx, request.quote_id, with_lines=False).status
    return {
        "approval_id": request.id,
        "quote_id": request.quote_id,
        "version": request.version,
        "status": RequestStatus.WITHDRAWN.value,
        "approver_role": request.role,
        "quote_status": status,
        "outcome": "changed",
        "message": "The request is withdrawn. Nothing else holds the quote; it can be sent."
        if status is QuoteStatus.APPROVED
        else "The request is withdrawn. Ask again, or revise the quote.",
    }


def withdrawable(tx: Tx, quote_id: str) -> list[str]:
    """The requests about the current version that `withdraw` would take from the caller now."""
    quote = quote_rows.load(tx, quote_id, with_lines=False)
    own = [one for one in repository.of_quote(tx, quote.id, quote.current_version) if _is_own(tx, one)]
    if not own:
        return []
    is_open = {step.id for step in repository.steps(tx, quote, own) if step.status.is_open}
    unanswered = _unanswered(tx, quote_rows.load(tx, quote_id)) if quote.has_lapsed else set()
    return [one.id for one in own if one.id in is_open | unanswered]


def settle(tx: Tx, quote: Quote, round_: Round) -> None:
    """Approve the version once nothing is open and every required role has approved it.

    Where no role is required and all requests were withdrawn, the current policies decide, as for a draft. A quote
    becomes approved only here, and by a request whose steps are all kept.
    """
    if not quote.status.awaits_approval:
        return
    if round_.is_approved or (round_.is_settled and quotes.may_be_sent(tx, quote)):
        transitions.apply(tx, quote, Move.APPROVE)
    else:
        transitions.wait_until(tx, quote, round_.lapses_at)


def _is_own(tx: Tx, request: ApprovalRequest) -> bool:
    return tx.caller == request.requested_by or Role.ADMIN in tx.roles


def _unanswered(tx: Tx, quote: Quote) -> set[str]:
    """The requests that hold the draft though they expired and no policy requires them."""
    if not quote.has_lapsed or not quote.status.is_draft:
        return set()
    round_ = _next_round(tx, quote)
    return {step.id for step in round_.expired if step.role not in round_.required}


def _settle_lapsed(tx: Tx, quote: Quote) -> None:
    """Approve a version that lapsed once nothing holds it by the current policies; else it stays a draft."""
    is_valid = quote.expires_at > tx.now and not quotes.judge(tx, quote).is_blocked
    if is_valid and _next_round(tx, quote).is_settled:
        transitions.apply(tx, quote, Move.SUBMIT, Move.APPROVE)
    else:
        transitions.lapse(tx, quote)


def _next_round(tx: Tx, quote: Quote) -> Round:
    decision = quotes.judge(tx, quote)
    requests = repository.of_quote(tx, quote.id, quote.current_version)
    return repository.next_round(tx, quote, decision.chains, decision.policy_hash, requests)


def _require_comment(decision: Decision, comment: str | None) -> None:
    if decision == "reject" and not comment:
        raise bad_field("/comment", "Say why: a rejection needs a comment.")


def _locked(tx: Tx, approval_id: str) -> tuple[ApprovalRequest, Quote]:
    """The request, and its quote with the current version; the request is read again after the quote is locked."""
    known = repository.find(tx, approval_id)
    if known is None:
        raise denied()
    quote = quote_rows.load(tx, known.quote_id, for_update=True)
    recorded_state.require(tx, quote.id, also=recorded_state.APPROVALS)
    request = repository.find(tx, approval_id)
    assert request is not None, "requests are never deleted"
    return request, quote


def _gather(tx: Tx, request: ApprovalRequest, quote: Quote) -> Case:
    requests = repository.of_quote(tx, request.quote_id, request.version)
    [step] = repository.steps(tx, quote, [request])
    return Case(request, quote, requests, repository.round_of(tx, quote, requests), step.status)


def _gather_ballot(tx: Tx, case: Case) -> Ballot:
    request = deciders.request_facts(tx, case.request, case.quote)
    facts = deciders.load(tx, [request], repository.votes(tx, [request.id]))
    return Ballot(read_quorum(case.request.quorum), request, facts)


def _require_decidable(tx: Tx, case: Case, ballot: Ballot, fingerprint: str, decision: Decision) -> Allowed:
    """How the caller may decide; raises the reason when they may not."""
    answer = eligibility(ballot.facts, ballot.request, decision)
    if isinstance(answer, Refused) and answer.reason is not Refusal.HAS_VOTED:
        raise refusal(answer, caller=tx.caller, quote_id=case.quote.id)
    _require_pending(tx, case)
    _require_same(tx, case, fingerprint)
    _require_turn(case)
    if isinstance(answer, Allowed):
        return answer
    # An approval may be repeated when it is now enough, because others have left the role.
    may_repeat = decision == "approve" and ballot.tally(ballot.voted).is_enough
    if answer.otherwise is None or not may_repeat:
        raise refusal(answer, caller=tx.caller, quote_id=case.quote.id)
    return answer.otherwise


def _require_pending(tx: Tx, case: Case) -> None:
    request, quote, status = case.request, case.quote, case.status
    if status.is_open:
        return
    messages = {
        RequestStatus.EXPIRED: f"The request has expired. {request.reason or expiry_note(tx, request)}",
        RequestStatus.WITHDRAWN: request.reason or "The quote has changed since the request.",
        RequestStatus.KEPT: "An earlier approval is kept for this version; there is nothing to decide.",
    }
    advice = {"quote_id": quote.id, "justification": request.justification}
    if request.role not in case.round.required:
        advice["approver_role"] = request.role
    has_ended = status in (RequestStatus.EXPIRED, RequestStatus.WITHDRAWN)
    is_waiting = quote.status.awaits_approval or quote.has_lapsed
    can_be_asked = has_ended and is_waiting and quote.current_version == request.version
    raise CpqError(
        Code.CONFLICT,
        messages.get(status, f"{request.decided_by} has {status} it already."),
        field="/approval_id",
        status=status.value,
        decided_by=request.decided_by,
        decided_at=request.decided_at,
        comment=request.comment,
        **_moved_to(request, quote),
        next_call=next_call("approval_request", **advice)
        if can_be_asked
        else next_call("approval_status", quote_id=quote.id),
    )


def _moved_to(request: ApprovalRequest, quote: Quote) -> dict[str, object]:
    """The current version of the quote, when the request is about another one."""
    if quote.current_version == request.version and quote.version.fingerprint == request.fingerprint:
        return {}
    return {"then": _price(request.version, request.fingerprint, request.total), "now": _now(quote)}


def _require_same(tx: Tx, case: Case, fingerprint: str) -> None:
    """Refuse a decision on a price that changed after it was shown: the approver sends the fingerprint back."""
    quote = case.quote
    if fingerprint == case.request.fingerprint == quote.version.fingerprint:
        if quote.expires_at > tx.now:
            return
        raise CpqError(
            Code.CONFLICT,
            f"The price was valid until {quote.valid_until}; a revision gives it a new date.",
            field="/approval_id",
            next_call=next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version),
        )
    version = tables.quote_version
    mine = tx.own(version) & (version.c.quote_id == quote.id)
    shown = tx.connection.execute(
        sa.select(version).where(mine, version.c.fingerprint == fingerprint).limit(1)
    ).one_or_none()
    then = None
    if shown is not None:
        then = _price(shown.version, shown.fingerprint, shown.total, shown.discount_total)
    raise CpqError(
        Code.CONFLICT,
        "The fingerprint is not that of the requested version: read the version again.",
        field="/fingerprint",
        then=then,
        now=_now(quote),
        next_call=next_call("quote_get", quote_id=quote.id),
    )


def _now(quote: Quote) -> dict[str, object]:
    version = quote.version
    return _price(version.number, version.fingerprint, version.total, version.discount_total)


def _price(version: int, fingerprint: str, total: int, discount_total: int | None = None) -> dict[str, object]:
    price: dict[str, object] = {"version": version, "fingerprint": fingerprint, "total": amount(total)}
    return price if discount_total is None else {**price, "discount_total": amount(discount_total)}


def _require_turn(case: Case) -> None:
    waits_for = case.round.waits_for(case.request.role)
    if waits_for is not None:
        raise CpqError(
            Code.CONFLICT,
            f"It is the turn of {waits_for} first.",
            field="/approval_id",
            waits_for=waits_for,
            next_call=next_call("approval_status", quote_id=case.quote.id),
        )


def _reject(tx: Tx, case: Case, comment: str) -> None:
    request, quote = case.request, case.quote
    repository.close(tx, request, RequestStatus.REJECTED, decided_by=tx.caller, decided_at=tx.now, comment=comment)
    events.decided(tx, request, RequestStatus.REJECTED)
    for other in case.requests:
        if other.id != request.id and other.status.is_open:
            repository.close(tx, other, RequestStatus.WITHDRAWN, reason=f"{request.role} rejected this version.")
            events.decided(tx, other, RequestStatus.WITHDRAWN)
    transitions.apply(tx, quote, Move.REJECT, reason=comment)


def _with(round_: Round, step_id: str, status: RequestStatus) -> Round:
    step = next(step for step in round_.steps if step.id == step_id)
    return round_.with_step(replace(step, status=status))


def _decided(tx: Tx, request: ApprovalRequest, acted_as: str, status: RequestStatus, tally: Tally) -> ApprovalDecided:
    quote_status = quote_rows.load(tx, request.quote_id, with_lines=False).status
    return {
        "approval_id": request.id,
        "quote_id": request.quote_id,
        "version": request.version,
        "status": status.value,
        "approver_role": request.role,
        "decided_by": tx.caller,
        "acted_as": acted_as,
        "decided_at": tx.now,
        "approvals": tally.given,
        "approvals_needed": tally.needed,
        "quote_status": quote_status,
        "outcome": "changed",
        "message": _message(status, quote_status, tally.needed - tally.given),
    }


def _message(status: RequestStatus, quote_status: QuoteStatus, left: int) -> str:
    if status is RequestStatus.REJECTED:
        return "Rejected. The quote is a draft again; a new price or a revision opens the next version."
    if status.is_open:
        return f"Noted. {left} more of the role must approve."
    if quote_status is QuoteStatus.APPROVED:
        return "Approved. The quote can be sent."
    return "Approved. Others still have to decide."
