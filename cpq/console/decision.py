"""A decision in three steps: the confirmation, ten seconds in which it can be undone, and its result."""

from __future__ import annotations

from typing import Any

from starlette.responses import RedirectResponse, Response

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field
from cpq.console import quote
from cpq.console.forms import form_key, given, optional_text, whole
from cpq.console.template_files import link
from cpq.console.visit import Visit, quote_address
from cpq.domain.approvals.approval_request import CHANGE_REQUESTED, HeldDecision, HoldState, RequestStatus
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services import agreements, approvals, quotes

DECISIONS: dict[str, approvals.Decision] = {"approve": "approve", "reject": "reject", "change": "reject"}


def confirm(visit: Visit) -> Response:
    """The confirmation: what is decided, at which price, with room for a comment. Nothing is stored."""
    asked = visit.request.query_params
    return _confirmation(visit, {name: visit.query(name) for name in asked}, {})


def decide(visit: Visit) -> Response:
    """Store the confirmed decision of exactly the version that was shown; it takes effect in ten seconds."""
    quote_id, form = visit.named("quote_id"), visit.form
    word = _word(form)
    approval_id, fingerprint = given(form, "approval_id"), given(form, "fingerprint")
    comment = optional_text(form, "comment")
    reason = f"{CHANGE_REQUESTED if word == 'change' else ''}{comment}" if comment else None
    arguments = {"approval_id": approval_id, "decision": word, "fingerprint": fingerprint, "comment": reason}

    def work(tx: Tx) -> Answer:
        held = approvals.hold(tx, approval_id, DECISIONS[word], fingerprint=fingerprint, comment=reason)
        if held.quote_id != quote_id:
            raise bad_field("/approval_id", f"The request {approval_id} is not about quote {quote_id}.")
        return {"held_id": held.id}

    command = Command("approval_hold", Permission.DECIDE, arguments, form_key(form), subject=approval_id)
    try:
        answer = visit.write(command, work)
    except CpqError as error:
        if error.code is Code.CONFLICT:
            return _moved(visit, quote_id, error, form)
        # Checked last: a caller who saw another version must learn of that first.
        if error.details.get("field") != "/comment":
            raise
        problem = "Describe the change." if word == "change" else "Give a reason for the person who asked."
        return _confirmation(visit, form, {"comment": problem})
    return RedirectResponse(f"/console/decisions/{answer['held_id']}", 303)


def show(visit: Visit) -> Response:
    """The held decision with the time that is left; once its time is over, its result."""
    held = _take(visit, visit.named("held_id"))
    if held.state is HoldState.TAKEN:
        return RedirectResponse(link(quote_address(held.quote_id), done=_result(visit, held)), 303)
    if held.state is HoldState.UNDONE:
        return RedirectResponse(link(quote_address(held.quote_id), done="undone"), 303)

    def work(tx: Tx) -> Answer:
        review = quotes.review_version(tx, held.quote_id)
        return {"review": review, "change": agreements.change_of(tx, held.quote_id, review["quote"]["version"])}

    answer = visit.read("decision", work, subject=held.quote_id, held_id=held.id)
    seconds = max(1, round((held.due_at - visit.app.effects.now()).total_seconds()))
    word = "change" if (held.comment or "").startswith(CHANGE_REQUESTED) else held.decision
    return visit.page("decision.html", **answer, held=held, word=word, seconds=seconds)


def undo(visit: Visit) -> Response:
    """Drop a held decision: nothing was decided."""
    held_id = visit.named("held_id")

    def work(tx: Tx) -> Answer:
        return {"held_id": approvals.undo(tx, held_id).id}

    visit.write(Command("approval_undo", Permission.DECIDE, {"held_id": held_id}, subject=held_id), work)
    return RedirectResponse(f"/console/decisions/{held_id}", 303)


def _take(visit: Visit, held_id: str) -> HeldDecision:
    """The decision, after it took effect if its time is over. A page may come before the server's own look."""

    def find(tx: Tx) -> HeldDecision:
        return approvals.get_held(tx, held_id)

    held = visit.app.read_unaudited(visit.call, find)
    if held.is_held:
        approvals.take_if_due(visit.app, visit.principal, held)
        held = visit.app.read_unaudited(visit.call, find)
    return held


def _result(visit: Visit, held: HeldDecision) -> str:
    """The word for what the decision did; the page of the quote checks it."""
    if held.decision == "reject":
        return "change" if (held.comment or "").startswith(CHANGE_REQUESTED) else RequestStatus.REJECTED
    status = visit.app.read_unaudited(visit.call, lambda tx: quotes.get(tx, held.quote_id, include_pricing=False))
    is_pending = status["quote"]["status"] == QuoteStatus.PENDING_APPROVAL
    return "noted" if is_pending else RequestStatus.APPROVED


def _confirmation(visit: Visit, asked: Any, problems: dict[str, str]) -> Response:
    quote_id, word = visit.named("quote_id"), _word(asked)
    approval_id, fingerprint = given(asked, "approval_id"), given(asked, "fingerprint")

    def work(tx: Tx) -> Answer:
        approvals.require_decidable(tx, approval_id, DECISIONS[word], fingerprint=fingerprint)
        openings = approvals.openings(tx, quote_id)
        mine = next((one for one in openings if one["approval_id"] == approval_id), None)
        if mine is None:
            raise bad_field("/approval_id", f"The request {approval_id} is not about quote {quote_id}.")
        review = quotes.review_version(tx, quote_id)
        change = agreements.change_of(tx, quote_id, review["quote"]["version"])
        return {"review": review, "mine": mine, "change": change}

    try:
        answer = visit.read("confirmation", work, subject=quote_id, quote_id=quote_id, needs=Permission.DECIDE)
    except CpqError as error:
        if error.code is Code.CONFLICT:
            return _moved(visit, quote_id, error, asked)
        raise
    return visit.page(
        "confirmation_form.html" if visit.is_part else "confirmation.html",
        400 if problems else 200,
        **answer,
        word=word,
        problems=problems,
        comment=asked.get("comment", ""),
        form_key=asked.get("form_key") or visit.new_form_key(),
        sees_margin=visit.principal.may(Permission.SEE_MARGIN),
    )


def _moved(visit: Visit, quote_id: str, error: CpqError, asked: Any) -> Response:
    shown = whole(asked.get("version") or asked.get("shown"))
    return quote.page(visit, quote_id, moved=error, shown=shown, status=409)


def _word(asked: Any) -> str:
    word = str(asked.get("decision", ""))
    if word not in DECISIONS:
        raise bad_field("/decision", "Approve it, reject it, or ask for a change.", allowed=list(DECISIONS))
    return word
