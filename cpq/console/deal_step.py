"""The steps of a deal, each a form of its own: price, request, withdraw, review, send, accept, decline, and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from cpq.app import Answer, Command
from cpq.app.access import Permission, Principal
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.console import notices
from cpq.console.draft_form import DraftForm
from cpq.console.formats import money
from cpq.console.forms import form_key, typed, whole
from cpq.console.visit import Visit
from cpq.domain.quotes.lifecycle import TRANSITIONS, Move, QuoteStatus, VersionStatus
from cpq.services import approvals, quotes


@dataclass(frozen=True)
class Seen:
    """What the form was made for: the version and edit that the person saw."""

    version: int
    edit: int

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Seen:
        return cls(whole(form.get("version")) or 0, whole(form.get("edit")) or 0)


@dataclass(frozen=True)
class Step:
    """One step: its button, the question of its page, its right, and the command that does it."""

    label: str
    title: str
    explanation: str
    needs: Permission
    operation: str
    """As in the audit record; the same name as the tool's."""
    run: Callable[[Tx, str, Seen, Mapping[str, Any]], Mapping[str, Any]]
    read: Callable[[DraftForm], Mapping[str, Any]] = lambda _form: {}
    kind: str = ""


def _price(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    require_seen(tx, quote_id, seen)
    return quotes.price(tx, quote_id, **given)


def _request(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    require_seen(tx, quote_id, seen)
    return approvals.request(tx, quote_id, justification=given["justification"])


def _withdraw(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    require_seen(tx, quote_id, seen)
    mine = approvals.withdrawable(tx, quote_id)
    if not mine:
        raise CpqError(Code.CONFLICT, "No request of yours is open.")
    return [approvals.withdraw(tx, id_, reason=given["reason"]) for id_ in mine][-1]


def _review(tx: Tx, quote_id: str, seen: Seen, _given: Mapping[str, Any]) -> Mapping[str, Any]:
    return quotes.close_review(tx, quote_id, expected_version=seen.version, expected_edit=seen.edit)


def _send(tx: Tx, quote_id: str, seen: Seen, _given: Mapping[str, Any]) -> Mapping[str, Any]:
    return quotes.send(tx, quote_id, expected_version=seen.version, expected_edit=seen.edit)


def _accept(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return quotes.accept(tx, quote_id, expected_version=seen.version, **given)


def _decline(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return quotes.decline(tx, quote_id, expected_version=seen.version, reason=given["reason"])


def _cancel(tx: Tx, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Mapping[str, Any]:
    reason = given["reason"]
    return quotes.cancel(tx, quote_id, expected_version=seen.version, expected_edit=seen.edit, reason=reason)


def _revise(tx: Tx, quote_id: str, seen: Seen, _given: Mapping[str, Any]) -> Mapping[str, Any]:
    return quotes.revise(tx, quote_id, expected_version=seen.version, expected_edit=seen.edit)


def _justified(form: DraftForm) -> Mapping[str, Any]:
    return {"justification": form.required_text("justification", "Say why this deal deserves it.")}


STEPS: dict[str, Step] = {
    "price": Step(
        "Price it",
        "Price this draft",
        "The price is made from today's lists, contracts and rules, and stored with the draft.",
        Permission.QUOTE,
        "quote_price",
        _price,
        lambda form: form.discount(),
        "approve",
    ),
    "request": Step(
        "Ask for approval",
        "Ask for approval",
        "The people below are asked. The version cannot be changed while they decide.",
        Permission.REQUEST_APPROVAL,
        "approval_request",
        _request,
        _justified,
        "approve",
    ),
    "withdraw": Step(
        "Withdraw the request",
        "Withdraw the request for approval",
        "Nobody is asked any more. You can ask again, or revise the quote.",
        Permission.WITHDRAW,
        "approval_withdraw",
        _withdraw,
        lambda form: {"reason": form.text("reason", 2_000)},
    ),
    "review": Step(
        "Close the marks for review",
        "Close the marks for review",
        "Records that you looked at everything below. Only then the customer's document can be made and sent.",
        Permission.QUOTE,
        "quote_review",
        _review,
        kind="approve",
    ),
    "send": Step(
        "Mark as sent",
        "Mark this version as sent",
        "Records that the customer has this version. The document itself goes out by your own mail.",
        Permission.QUOTE,
        "quote_send",
        _send,
        kind="approve",
    ),
    "accept": Step(
        "The customer accepts",
        "The customer accepts this offer",
        "Records the acceptance. It is final.",
        Permission.QUOTE,
        "quote_accept",
        _accept,
        lambda form: {"option_set": form.text("option_set", 64), "evidence": form.text("evidence", 2_000)},
        "approve",
    ),
    "decline": Step(
        "The customer declines",
        "The customer declines this offer",
        "Records the answer. A revision can make another offer.",
        Permission.QUOTE,
        "quote_decline",
        _decline,
        lambda form: {"reason": form.text("reason", 2_000)},
    ),
    "revise": Step(
        "Revise it",
        "Open the next version",
        "A new draft with the same lines and terms, at today's prices. A version that was sent stays valid meanwhile.",
        Permission.QUOTE,
        "quote_revise",
        _revise,
    ),
    "cancel": Step(
        "Cancel it",
        "Cancel this version",
        "The version ends. If an earlier one was sent, that one is current again; else the quote is closed for good.",
        Permission.QUOTE,
        "quote_cancel",
        _cancel,
        lambda form: {"reason": form.text("reason", 2_000)},
        "reject",
    ),
}
"""Every step by its name in addresses, in the order of a deal."""

_MOVES = {
    "price": Move.EDIT,
    "request": Move.SUBMIT,
    "send": Move.SEND,
    "accept": Move.ACCEPT,
    "decline": Move.DECLINE,
    "revise": Move.REVISE,
    "cancel": Move.CANCEL,
}
_PRICING = ("price", "revise")
"""Steps that price the quote from today's lists."""

_ANSWERS = ("accept", "decline")
"""Answers of the customer; they are about the version that was sent, even while a revision is open."""


def possible(
    review: Any, openings: Sequence[Any], withdrawable: Sequence[str], principal: Principal
) -> list[tuple[str, Step]]:
    """The steps that the state of the quote and the person's rights allow now, the most likely one first."""
    fitting = [name for name, step in STEPS.items() if principal.may(step.needs)]
    fitting = [name for name in fitting if _fits(name, review, openings, withdrawable)]
    is_needed = bool(review["policy_violations"])
    later = {"price": review["has_current_price"], "request": not is_needed}
    return [(name, STEPS[name]) for name in sorted(fitting, key=lambda name: later.get(name, False))]


def show(visit: Visit) -> Response:
    """The form of a step. Nothing is done before it is sent."""
    return _form(visit, DraftForm({}))


def take(visit: Visit) -> Response:
    """Take the step for exactly the version and edit that the form was made for."""
    quote_id, name, step = visit.named("quote_id"), *_step(visit)
    form = DraftForm(visit.form)
    seen = Seen.of(visit.form)
    given = step.read(form)
    if form.problems:
        return _form(visit, form, status=400)
    arguments = {"quote_id": quote_id, **typed(visit.form)}
    command = Command(step.operation, step.needs, arguments, form_key(visit.form), subject=quote_id)
    try:
        answer = visit.write(command, lambda tx: _taken(tx, name, quote_id, seen, given))
    except CpqError as error:
        if error.code in (Code.FORBIDDEN, Code.NOT_FOUND, Code.UNAVAILABLE, Code.TIMEOUT):
            raise
        form.refused(error)
        return _form(visit, form, status=409 if error.code is Code.CONFLICT else 400)
    return notices.to_quote(visit, quote_id, name, answer)


def _taken(tx: Tx, name: str, quote_id: str, seen: Seen, given: Mapping[str, Any]) -> Answer:
    """Take the step; a step that prices warns when the total is another one than the form showed."""
    before = _total(tx, quote_id) if name in _PRICING else ""
    answer = dict(STEPS[name].run(tx, quote_id, seen, given))
    after = _total(tx, quote_id) if name in _PRICING else ""
    if after != before:
        answer["warnings"] = [f"The total is {after} now; it was {before}.", *answer.get("warnings", ())]
    return answer


def _total(tx: Tx, quote_id: str) -> str:
    found = quotes.get(tx, quote_id, include_pricing=True)
    currency = found["quote"]["currency"]
    return f"{money(found['pricing']['total'], currency)} {currency}"


def _form(visit: Visit, form: DraftForm, status: int = 200) -> Response:
    quote_id, name, step = visit.named("quote_id"), *_step(visit)

    def work(tx: Tx) -> Answer:
        review = quotes.review_version(tx, quote_id)
        openings, withdrawable = approvals.openings(tx, quote_id), approvals.withdrawable(tx, quote_id)
        is_possible = _fits(name, review, openings, withdrawable)
        preview = approvals.preview(tx, quote_id) if name == "request" and is_possible else None
        return {"review": review, "is_possible": is_possible, "preview": preview}

    answer = visit.read(f"step_{name}", work, subject=quote_id, quote_id=quote_id, needs=step.needs)
    if not answer["is_possible"] and status == 200:
        status = 409
    review = answer["review"]
    return visit.page(
        "deal_step.html",
        status,
        **answer,
        name=name,
        step=step,
        form=form,
        version=_version(name, review),
        form_key=visit.new_form_key(),
    )


def _step(visit: Visit) -> tuple[str, Step]:
    name = visit.request.path_params["step"]
    if name not in STEPS:
        raise CpqError(Code.NOT_FOUND, "There is no such page.")
    return name, STEPS[name]


def _fits(name: str, review: Any, openings: Sequence[Any], withdrawable: Sequence[str]) -> bool:
    """Whether the state of the quote allows the step; the command itself checks again."""
    status = QuoteStatus(review["quote"]["status"])
    is_rejected = review["versions"][review["latest_version"]] == VersionStatus.REJECTED
    if name == "withdraw":
        return bool(withdrawable)
    if name in _ANSWERS:
        return _version(name, review) is not None
    if name == "request" and status is QuoteStatus.PENDING_APPROVAL:
        return not openings
    if name == "review":
        return bool(review["open_marks"])
    if name == "send":
        return bool(review["may_be_sent"])
    if name == "request":
        return bool(review["may_be_submitted"])
    if name == "revise" and is_rejected and status is QuoteStatus.DRAFT:
        return True
    return (status, _MOVES[name]) in TRANSITIONS


def _version(name: str, review: Any) -> int | None:
    """The version that a step is about: for an answer of the customer the one that was sent, else the current one."""
    return sent_version(review) if name in _ANSWERS else int(review["latest_version"])


def sent_version(review: Any) -> int | None:
    """The version that the customer can answer now."""
    sent = [number for number, status in review["versions"].items() if status == VersionStatus.SENT]
    is_open = review["quote"]["status"] != QuoteStatus.EXPIRED
    return max(sent) if sent and is_open else None


def require_seen(tx: Tx, quote_id: str, seen: Seen) -> None:
    """CONFLICT when the quote has changed since the form was made; for commands that do not check it themselves."""
    found = quotes.get(tx, quote_id, include_pricing=False)["quote"]
    if (found["version"], found["edit"]) != (seen.version, seen.edit):
        raise CpqError(
            Code.CONFLICT,
            f"The quote has changed: it is at version {found['version']}, edit {found['edit']}, {found['status']}.",
        )
