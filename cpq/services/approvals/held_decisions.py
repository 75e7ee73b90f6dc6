"""Decisions that people can undo: confirmed and stored at once, taken ten seconds later, bound to the price shown.

A held decision is in the database and not in a page, so that a closed page neither loses nor hides it.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

from cpq.app import Answer, App, Command, recorded_state, sessions
from cpq.app.access import ENGINE, Caller, Permission, Principal
from cpq.app.recorded_state import StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.domain.approvals.approval_request import ApprovalRequest, Decision, HeldDecision, HoldState
from cpq.services.approvals import decisions, repository
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes import transitions

log = logging.getLogger("cpq.approvals")

UNDO_SECONDS = 10
KEPT_OPEN = timedelta(minutes=1)
"""How long a request stays open from a confirmed decision on, so that a slow server still takes it in time."""

FAILURE_SHOWN = timedelta(days=1)
"""How long the person who decided is shown that their decision failed."""

_DUE_MAX = 200
_PASSING = (Code.UNAVAILABLE, Code.TIMEOUT, Code.RATE_LIMITED)
"""Errors that another attempt may not have."""

_NO_RIGHT = "You no longer have a role that decides."


def hold(tx: Tx, approval_id: str, decision: Decision, *, fingerprint: str, comment: str | None) -> HeldDecision:
    """Store a confirmed decision that takes effect in ten seconds. Refused when it could not take effect now.

    It counts as of now: a request that would expire meanwhile stays open until the decision is taken.
    """
    decisions.require_complete(tx, approval_id, decision, fingerprint=fingerprint, comment=comment)
    if any(one.approval_id == approval_id and one.is_held for one in my_held(tx)):
        raise CpqError(
            Code.CONFLICT,
            "You have already decided; that decision takes effect in a moment.",
            field="/approval_id",
            hint="Undo it first to decide otherwise.",
        )
    request = repository.find(tx, approval_id)
    assert request is not None, "it was decidable"
    _keep_open(tx, request, decision)
    held = HeldDecision(
        id=tx.new_id("HD-"),
        approval_id=approval_id,
        quote_id=request.quote_id,
        caller=tx.caller,
        decision=decision,
        fingerprint=fingerprint,
        comment=comment,
        made_at=tx.now,
        due_at=tx.now + timedelta(seconds=UNDO_SECONDS),
        state=HoldState.HELD,
        reason=None,
        ended_at=None,
    )
    repository.add_held(tx, held)
    return held


def undo(tx: Tx, held_id: str) -> HeldDecision:
    """Drop the caller's decision before it takes effect; CONFLICT when it has. Undoing twice changes nothing."""
    held = get_held(tx, held_id)
    if held.state is not HoldState.UNDONE and not repository.end_held(tx, held, HoldState.UNDONE):
        now = get_held(tx, held_id)
        if now.state is not HoldState.UNDONE:
            raise CpqError(
                Code.CONFLICT,
                "It is too late to undo: the decision has taken effect."
                if now.state is HoldState.TAKEN
                else f"There is nothing to undo: the decision had no effect. {now.reason}",
            )
    return get_held(tx, held_id)


def get_held(tx: Tx, held_id: str) -> HeldDecision:
    """A decision of the caller; NOT_FOUND for those of others."""
    held = repository.find_held(tx, held_id)
    if held is None or held.caller != tx.caller:
        raise CpqError(Code.NOT_FOUND, f"There is no decision {held_id!r} of yours.")
    return held


def my_held(tx: Tx) -> list[HeldDecision]:
    """The caller's decisions that can still be undone, and those that failed during the last day; newest first."""
    found = repository.held_by(tx, tx.caller, since=tx.now - FAILURE_SHOWN)
    return [one for one in found if one.state in (HoldState.HELD, HoldState.FAILED)]


def last_held(tx: Tx, quote_id: str) -> HeldDecision | None:
    """The last decision of the caller about a quote during the last day."""
    made = repository.held_by(tx, tx.caller, since=tx.now - FAILURE_SHOWN)
    return next((one for one in made if one.quote_id == quote_id), None)


def take_if_due(app: App, principal: Principal, held: HeldDecision) -> Answer | None:
    """Take one decision as its maker, if its time is over: the answer of `decide`, or None.

    Earlier decisions about the same request are taken first, whichever page is opened first.
    """
    if not held.is_held or held.due_at > app.effects.now():
        return None
    call = app.new_call(replace(ENGINE, tenant_id=principal.tenant_id))
    for earlier, maker, lacking in reversed(app.read_unaudited(call, _due_with_makers)):
        if earlier.approval_id == held.approval_id and earlier.made_at < held.made_at:
            _take(app, maker, earlier, lacking)
    return _take(app, principal, held)


def take_due(app: App) -> bool:
    """Take every decision whose time is over, of all tenants; whether there was one. It may be called at any time.

    A decision that fails does not stop the others: what is not expected is raised after all of them.
    """
    tenants = app.read_unaudited(app.new_call(ENGINE), repository.tenants_with_held_due)
    with ExitStack() as each:
        for tenant_id in tenants:
            call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
            # The stack runs them from the last to the first, and they are read with the newest first.
            for held, maker, lacking in app.read_unaudited(call, _due_with_makers):
                each.callback(_take, app, maker, held, lacking)
    return bool(tenants)


def _take(app: App, principal: Principal, held: HeldDecision, lacking: str = _NO_RIGHT) -> Answer | None:
    """The key belongs to the decision, so that several servers take it once. What another attempt would not change is
    stored as the reason of the failure."""
    arguments = {
        "approval_id": held.approval_id,
        "decision": held.decision,
        "fingerprint": held.fingerprint,
        "comment": held.comment,
    }
    command = Command("approval_decide", Permission.DECIDE, arguments, f"held:{held.id}", subject=held.approval_id)

    def work(tx: Tx) -> Answer:
        recorded_state.require(tx, held.quote_id, also=["held_decision"], for_update=True)
        if not repository.end_held(tx, held, HoldState.TAKEN):
            raise CpqError(Code.CONFLICT, "The decision was undone.")
        decision = held.decision
        return dict(
            decisions.decide(tx, held.approval_id, decision, fingerprint=held.fingerprint, comment=held.comment)
        )

    try:
        return app.write(app.new_call(principal), command, work).answer
    except CpqError as error:
        if error.code in _PASSING:
            raise
        has_right = principal.may(Permission.DECIDE)
        _fail(app, principal.tenant_id, held, error.message if has_right else lacking)
        return None


def _due_with_makers(tx: Tx) -> list[tuple[HeldDecision, Principal, str]]:
    """The decisions that are due, each with its maker as they are now: without rights, if they lost every role or the
    record of it, and why."""
    found: list[tuple[HeldDecision, Principal, str]] = []
    for held in repository.held_due(tx, _DUE_MAX):
        name = Caller.parse(held.caller).name
        try:
            found.append((held, sessions.person(tx, name), _NO_RIGHT))
        except CpqError as error:
            lacking = error.message if isinstance(error, StateDiffersError) else _NO_RIGHT
            found.append((held, Principal(name, "human", frozenset(), tenant_id=tx.tenant_id), lacking))
    return found


def _keep_open(tx: Tx, request: ApprovalRequest, decision: Decision) -> None:
    until = tx.now + KEPT_OPEN
    quote = quote_rows.load(tx, request.quote_id, with_lines=False)
    if quote.version.lapses_at is None or quote.version.lapses_at >= until:
        return
    # Expiry may be stored meanwhile: look again once the quote is locked.
    quote = quote_rows.load(tx, request.quote_id, for_update=True, with_lines=False)
    recorded_state.require(tx, quote.id, also=recorded_state.APPROVALS)
    decisions.require_decidable(tx, request.id, decision)
    repository.keep_open(tx, request, until)
    transitions.wait_until(tx, quote, until)


def _fail(app: App, tenant_id: str, held: HeldDecision, reason: str) -> None:
    call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
    command = Command("approvals_sweep", Permission.ADMINISTER, subject=held.quote_id)
    ended = app.write(call, command, lambda tx: {"ended": repository.end_held(tx, held, HoldState.FAILED, reason)})
    if ended.answer["ended"]:
        log.info("decision failed", extra={"held_id": held.id, "approval_id": held.approval_id})
