"""Deciding and withdrawing a request. Everything locks the quote first, so that two people cannot pass each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.access import Role
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.base.money import amount
from cpq.domain.approvals.rounds import Round, StepStatus, read_quorum, votes_given, votes_needed
from cpq.domain.quotes.lifecycle import Move, after
from cpq.services import quotes
from cpq.services.approvals import events, people, repository
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes.repository import Quote
from cpq.storage.schema import quote_version
from cpq.storage.statements import AnyRow

Decision = Literal["approve", "reject"]


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


def decide(tx: Tx, approval_id: str, decision: Decision, *, fingerprint: str, comment: str | None) -> ApprovalDecided:
    """Approve or reject what the fingerprint shows. The first decision holds; a rejection ends the whole round."""
    row, found = _locked(tx, approval_id)
    votes = repository.votes(tx, [row.id])[row.id]
    barred = _barred(tx, row, found)
    rows = repository.of_quote(tx, row.quote_id, row.version)
    round_ = repository.round_of(tx, found, rows)
    acted = _require_decidable(tx, row, found, barred, votes, round_, fingerprint, decision)
    if decision == "reject" and not comment:
        raise bad_field("/comment", "Say why: a rejection needs a comment.")
    holders = [vote.holder for vote in votes]
    if acted.holder not in holders:
        repository.add_vote(tx, row, **acted._asdict(), decision=decision, comment=comment)
    if decision == "reject":
        _reject(tx, row, found, rows, comment or "")
        return _decided(tx, row, acted.acted_as, "rejected", *_tally(tx, row, barred, holders))
    given, needed = _tally(tx, row, barred, list({*holders, acted.holder}))
    if given < needed:
        return _decided(tx, row, acted.acted_as, "pending", given, needed)
    repository.close(tx, row, StepStatus.APPROVED, decided_by=tx.caller, decided_at=tx.now, comment=comment)
    events.decided(tx, row, "approved")
    settle(tx, found, _with(round_, row.id, StepStatus.APPROVED))
    return _decided(tx, row, acted.acted_as, "approved", given, needed)


def require_decidable(tx: Tx, approval_id: str, decision: Decision) -> None:
    """Raise what `decide` would say to the caller now, so that nobody is asked to confirm what cannot be done."""
    row = repository.find(tx, approval_id)
    if row is None:
        raise _denied()
    found = quote_rows.load(tx, row.quote_id)
    votes = repository.votes(tx, [row.id])[row.id]
    round_ = repository.round_of(tx, found, repository.of_quote(tx, row.quote_id, row.version))
    _require_decidable(tx, row, found, _barred(tx, row, found), votes, round_, row.fingerprint, decision)


def withdraw(tx: Tx, approval_id: str, *, reason: str | None) -> ApprovalWithdrawn:
    """Take a request back, also one that nobody answered in time: for whoever made it, and for administrators."""
    row, found = _locked(tx, approval_id)
    if tx.caller != row.requested_by and Role.ADMIN not in tx.roles:
        raise _denied()
    round_ = repository.round_of(tx, found, repository.of_quote(tx, row.quote_id, row.version))
    if not _is_unanswered(row, found, round_):
        _require_pending(row, found, round_)
    elif row.status == "pending":
        events.expired(tx, row)  # As a sweep would have told before.
    said = f"Withdrawn by {tx.caller}" + (f": {reason}" if reason else ".")
    repository.close(tx, row, StepStatus.WITHDRAWN, reason=said, decided_by=tx.caller, decided_at=tx.now)
    events.decided(tx, row, "withdrawn")
    settle(tx, found, _with(round_, row.id, StepStatus.WITHDRAWN))
    status = quote_rows.load(tx, row.quote_id, with_lines=False).status
    return {
        "approval_id": row.id,
        "quote_id": row.quote_id,
        "version": row.version,
        "status": "withdrawn",
        "approver_role": row.role,
        "quote_status": status,
        "outcome": "changed",
        "message": "The request is withdrawn. Nothing else holds the quote; it can be sent."
        if status == "approved"
        else "The request is withdrawn. Ask again, or revise the quote.",
    }


def settle(tx: Tx, found: Quote, round_: Round) -> None:
    """Approve the version once nothing is open and everybody whom the policies ask for has approved it.

    Where they ask for nobody and all was withdrawn, the policies of now decide, as they do for a draft. This is the
    only place, beside a request whose steps are all kept, where a quote becomes approved.
    """
    if found.status != "pending_approval":
        return
    if round_.is_approved or (round_.is_settled and quotes.may_be_sent(tx, found)):
        status = after(found.status, Move.APPROVE, found.id, found.root.version)
        quote_rows.move_version(tx, found.id, found.root.version, status=status)
        quote_rows.move(tx, found, status=status)
    else:
        quote_rows.move(tx, found)


def _locked(tx: Tx, approval_id: str) -> tuple[AnyRow, Quote]:
    """The request, and its quote with the version it is about; read again once the quote is ours."""
    known = repository.find(tx, approval_id)
    if known is None:
        raise _denied()
    current = quote_rows.load(tx, known.quote_id, for_update=True)
    row = repository.find(tx, approval_id)
    assert row is not None, "requests are never deleted"
    return row, current


def _denied() -> CpqError:
    """The same for a request that is not there and for one that is not the caller's, so that neither can be told."""
    return CpqError(
        Code.FORBIDDEN,
        "There is no such request that you may decide or withdraw.",
        hint="approval_pending lists what is open; only a person of the role that is asked can decide.",
    )


def capacity(tx: Tx, row: AnyRow, found: Quote, votes: Sequence[AnyRow], decision: Decision) -> people.Capacity:
    """As what the caller may decide a request so; CpqError with the reason when not, or not once more."""
    barred = _barred(tx, row, found)
    acted = _capacity(tx, row, found, barred, votes, decision)
    _require_first_vote(tx, row, barred, votes, acted.holder, decision)
    return acted


def _require_decidable(
    tx: Tx,
    row: AnyRow,
    found: Quote,
    barred: people.Barred,
    votes: Sequence[AnyRow],
    round_: Round,
    fingerprint: str,
    decision: Decision,
) -> people.Capacity:
    acted = _capacity(tx, row, found, barred, votes, decision)
    _require_pending(row, found, round_)
    _require_same(tx, row, found, fingerprint)
    _require_turn(row, round_)
    _require_first_vote(tx, row, barred, votes, acted.holder, decision)
    return acted


def _barred(tx: Tx, row: AnyRow, found: Quote) -> people.Barred:
    of_version = found
    if found.root.version != row.version:
        of_version = quote_rows.load(tx, row.quote_id, version=row.version)
    return people.barred_by(tx, people.makers_of(of_version, row.requested_by), row.requested_at)


def _capacity(
    tx: Tx, row: AnyRow, found: Quote, barred: people.Barred, votes: Sequence[AnyRow], decision: Decision
) -> people.Capacity:
    acted = people.capacity(tx, row, found, barred, {vote.holder for vote in votes})
    if acted is None:
        raise _denied()
    # Whom a maker has lent a role may still say no, or a maker could silence by lending whoever would.
    may_reject = tx.caller not in barred.uncounted
    if tx.caller in barred.people and not (may_reject and decision == "reject"):
        raise CpqError(
            Code.FORBIDDEN,
            "Nobody decides what they asked for, made or changed themselves, nor for somebody they share a role with.",
            hint="You may reject it; another person of the role has to approve."
            if may_reject
            else "Another person of the role has to decide.",
        )
    return acted


def _require_pending(row: AnyRow, found: Quote, round_: Round) -> None:
    status = next(step.status for step in round_.steps if step.id == row.id)
    if status is StepStatus.PENDING:
        return
    said = {
        StepStatus.EXPIRED: f"The request expired at {row.expires_at:%Y-%m-%d %H:%M} UTC.",
        StepStatus.WITHDRAWN: row.reason or "The quote has moved on since it was asked.",
        StepStatus.KEPT: "An earlier approval still stands for this version; there is nothing to decide.",
    }
    is_open = found.status == "pending_approval" and found.root.version == row.version
    advice = {"quote_id": found.id, "justification": row.justification, "approver_role": row.role}
    can_be_asked = is_open and status in (StepStatus.EXPIRED, StepStatus.WITHDRAWN)
    raise CpqError(
        Code.CONFLICT,
        said.get(status, f"{row.decided_by} has {status} it already."),
        field="/approval_id",
        status=status.value,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        comment=row.comment,
        **_moved_to(row, found),
        next_call=next_call("approval_request", **advice)
        if can_be_asked
        else next_call("approval_status", quote_id=found.id),
    )


def _is_unanswered(row: AnyRow, found: Quote, round_: Round) -> bool:
    """Whether the round waits for this request although its time is over. Rounds of older versions wait for nothing."""
    is_open = found.status == "pending_approval" and found.root.version == row.version
    status = next(step.status for step in round_.steps if step.id == row.id)
    return is_open and status is StepStatus.EXPIRED and row.role in round_.unanswered


def _moved_to(row: AnyRow, found: Quote) -> dict[str, object]:
    """Where the quote is now, when that is not where it was asked about."""
    if found.root.version == row.version and found.version.fingerprint == row.fingerprint:
        return {}
    return {"then": _told(row.version, row.fingerprint, row.total), "now": _now(found)}


def _require_same(tx: Tx, row: AnyRow, found: Quote, fingerprint: str) -> None:
    """The approver sends back what was shown; what moved in between is decided by nobody."""
    if fingerprint == row.fingerprint == found.version.fingerprint:
        if found.root.expires_at > tx.now:
            return
        raise CpqError(
            Code.CONFLICT,
            f"The price was valid until {found.root.valid_until}; a revision gives it a new date.",
            field="/approval_id",
            next_call=next_call("quote_revise", quote_id=found.id, expected_version=found.root.version),
        )
    mine = tx.own(quote_version) & (quote_version.c.quote_id == found.id)
    shown = tx.connection.execute(
        sa.select(quote_version).where(mine, quote_version.c.fingerprint == fingerprint).limit(1)
    ).one_or_none()
    then = None
    if shown is not None:
        then = _told(shown.version, shown.fingerprint, shown.total, shown.discount_total)
    raise CpqError(
        Code.CONFLICT,
        "The fingerprint is not that of the version that is asked about: look at it again.",
        field="/fingerprint",
        then=then,
        now=_now(found),
        next_call=next_call("quote_get", quote_id=found.id),
    )


def _now(found: Quote) -> dict[str, object]:
    version = found.version
    return _told(version.version, version.fingerprint, version.total, version.discount_total)


def _told(version: int, fingerprint: str, total: int, discount_total: int | None = None) -> dict[str, object]:
    told: dict[str, object] = {"version": version, "fingerprint": fingerprint, "total": amount(total)}
    return told if discount_total is None else {**told, "discount_total": amount(discount_total)}


def _require_turn(row: AnyRow, round_: Round) -> None:
    waits_for = round_.waits_for(row.role)
    if waits_for is not None:
        raise CpqError(
            Code.CONFLICT,
            f"It is the turn of {waits_for} first.",
            field="/approval_id",
            waits_for=waits_for,
            next_call=next_call("approval_status", quote_id=row.quote_id),
        )


def _require_first_vote(
    tx: Tx, row: AnyRow, barred: people.Barred, votes: Sequence[AnyRow], holder: str, decision: Decision
) -> None:
    """One word for each holder of the role, whether they say it themselves or lent the role to somebody who does.

    They may say it again when it is enough by now, because whoever was still to approve has left the role.
    """
    own = next((vote for vote in votes if tx.caller == vote.caller or holder == vote.holder), None)
    given, needed = _tally(tx, row, barred, [vote.holder for vote in votes]) if own is not None else (0, 1)
    if own is not None and (given < needed or decision == "reject"):
        who = "You have" if own.caller == tx.caller else f"{own.caller} has"
        whom = "" if own.caller in (tx.caller, holder) else f" for {holder}"
        raise CpqError(
            Code.CONFLICT,
            f"{who} approved it{whom} already; others of the role have to approve, too.",
            field="/approval_id",
            decided_by=own.caller,
            decided_at=own.at,
            next_call=next_call("approval_status", quote_id=row.quote_id),
        )


def _tally(tx: Tx, row: AnyRow, barred: people.Barred, holders: Sequence[str]) -> tuple[int, int]:
    """How many approvals there are, and how many it takes."""
    quorum, counted = read_quorum(row.quorum), people.able(tx, row.role, barred.uncounted)
    names = [f"{people.HUMAN}{name}" for name in counted]
    return votes_given(quorum, holders, names), votes_needed(quorum, len(names))


def _reject(tx: Tx, row: AnyRow, found: Quote, rows: Sequence[AnyRow], comment: str) -> None:
    repository.close(tx, row, StepStatus.REJECTED, decided_by=tx.caller, decided_at=tx.now, comment=comment)
    events.decided(tx, row, "rejected")
    for other in rows:
        if other.id != row.id and other.status == "pending":
            repository.close(tx, other, StepStatus.WITHDRAWN, reason=f"{row.role} rejected this version.")
            events.decided(tx, other, "withdrawn")
    status = after(found.status, Move.REJECT, found.id, found.root.version)
    quote_rows.move_version(tx, found.id, found.root.version, status="rejected", reason=comment)
    quote_rows.move(tx, found, status=status)


def _with(round_: Round, step_id: str, status: StepStatus) -> Round:
    step = next(step for step in round_.steps if step.id == step_id)
    return round_.with_step(replace(step, status=status))


def _decided(tx: Tx, row: AnyRow, acted_as: str, status: str, given: int, needed: int) -> ApprovalDecided:
    quote_status = quote_rows.load(tx, row.quote_id, with_lines=False).status
    return {
        "approval_id": row.id,
        "quote_id": row.quote_id,
        "version": row.version,
        "status": status,
        "approver_role": row.role,
        "decided_by": tx.caller,
        "acted_as": acted_as,
        "decided_at": tx.now,
        "approvals": given,
        "approvals_needed": needed,
        "quote_status": quote_status,
        "outcome": "changed",
        "message": _message(status, quote_status, needed - given),
    }


def _message(status: str, quote_status: str, left: int) -> str:
    if status == "rejected":
        return "Rejected. The quote is a draft again; a new price or a revision opens the next version."
    if status == "pending":
        return f"Noted. {left} more of the role must approve."
    return (
        "Approved. The quote can be sent." if quote_status == "approved" else "Approved. Others still have to decide."
    )
