"""The page of one quote: the offer, why it needs approval, its price, its changes, and the ways to decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from urllib.parse import quote as urlquote

from starlette.responses import RedirectResponse, Response

from cpq.app import Answer, Call, Command, tokens
from cpq.app.access import Caller, Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field
from cpq.console import charts, deal_step, notices, quote_summary
from cpq.console.forms import given, whole
from cpq.console.template_files import link
from cpq.console.visit import Visit, quote_address
from cpq.domain.approvals.approval_request import CHANGE_REQUESTED, HoldState, RequestStatus
from cpq.domain.policy.overview import units
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus
from cpq.services import agreements, approvals, quotes
from cpq.services.quotes.listed_quotes import ListState

DocumentBytes = Callable[[Call, str, int], bytes | None]
"""The customer's PDF of a version as this caller may see it, or None without one."""

PERIODS = {
    "4h": timedelta(hours=4),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
SCOPES = ("quote", "account", "all")
STEPS_DONE: dict[str, str] = {
    "created": "The draft is created. Price it next.",
    "changed": "The draft is changed. Price it again before it goes on.",
    "unchanged": "Nothing to change: the draft is as it was.",
    "price": "The draft is priced.",
    "request": "Approval is requested.",
    "withdraw": "The request is withdrawn.",
    "send": "The version is marked as sent.",
    "accept": "The customer has accepted.",
    "decline": "The customer has declined.",
    "revise": "The next version is open as a draft. Price it next.",
    "cancel": "The version is cancelled.",
}
_STATUS_AFTER: dict[str, tuple[str, ...]] = {
    "request": (QuoteStatus.PENDING_APPROVAL, QuoteStatus.APPROVED),
    "withdraw": (QuoteStatus.PENDING_APPROVAL, QuoteStatus.APPROVED, QuoteStatus.DRAFT),
    "send": (QuoteStatus.SENT,),
    "accept": (QuoteStatus.ACCEPTED,),
    "decline": (QuoteStatus.DECLINED, QuoteStatus.DRAFT),
    "cancel": (QuoteStatus.CANCELLED, QuoteStatus.SENT),
}
"""The statuses in which the words about a step can be true; the other steps leave a draft."""

DONE: dict[str, str] = {
    RequestStatus.APPROVED: "You approved it. No further approval is needed: the quote can be sent.",
    "noted": "Your approval is on record. Others still have to decide.",
    RequestStatus.REJECTED: "You rejected it. The quote is a draft again, with your reason.",
    "change": "You asked for a change. The quote is a draft again, with what you wrote.",
    "asked": "Approval is requested again.",
    **STEPS_DONE,
    "undone": "Undone: nothing was decided.",
    "delegated": "The role is delegated. Until it ends, either of you may decide, except on quotes the other made.",
}


def show(visit: Visit) -> Response:
    quote_id = visit.named("quote_id")
    response = page(visit, quote_id, done=visit.query("done"))
    notices.forget(visit, response, quote_id)
    return response


def ask_again(visit: Visit) -> Response:
    """Ask again those who did not decide in time, about the version that the person saw, in the words used before."""
    quote_id = visit.named("quote_id")
    seen = deal_step.Seen.of(visit.form)

    def work(tx: Tx) -> Answer:
        deal_step.require_seen(tx, quote_id, seen)
        expired = [one["approval_id"] for one in approvals.status(tx, quote_id)["expired_requests"]]
        if not expired:
            raise CpqError(Code.CONFLICT, "No request of this quote has expired.", field="/quote_id")
        record, _ = approvals.get(tx, expired[-1])
        return dict(approvals.request(tx, quote_id, justification=record["justification"]))

    arguments = {"quote_id": quote_id, "version": seen.version, "edit": seen.edit}
    command = Command("approval_request", Permission.REQUEST_APPROVAL, arguments, subject=quote_id)
    return notices.to_quote(visit, quote_id, "asked", visit.write(command, work))


def delegate(visit: Visit) -> Response:
    """Delegate the role to another person: for this quote, for its account, or for everything."""
    quote_id, form = visit.named("quote_id"), visit.form
    role, to = given(form, "role"), given(form, "to")
    duration = PERIODS.get(form.get("for", ""))
    if duration is None:
        raise bad_field("/for", "Choose how long.", allowed=list(PERIODS))
    scope = form.get("scope", "")
    if scope not in SCOPES:
        raise bad_field("/scope", "Choose what for: this quote, its account, or everything.", allowed=list(SCOPES))

    def work(tx: Tx) -> Answer:
        account_id = quotes.get(tx, quote_id, include_pricing=False)["quote"]["account_id"]
        return dict(
            approvals.delegate(
                tx,
                role,
                to=to,
                starts_at=tx.now,
                ends_at=tx.now + duration,
                account_id=account_id if scope == "account" else None,
                quote_id=quote_id if scope == "quote" else None,
            )
        )

    arguments = {"role": role, "to": to, "for": form["for"], "scope": scope, "quote_id": quote_id}
    visit.write(Command("approval_delegate", Permission.DECIDE, arguments, subject=quote_id), work)
    return RedirectResponse(link(quote_address(quote_id), done="delegated"), 303)


def document(visit: Visit, find: DocumentBytes) -> Response:
    """The customer's document of the version that the page shows."""
    quote_id, version = visit.named("quote_id"), whole(visit.query("version"))

    def work(tx: Tx) -> Answer:
        return dict(quotes.get(tx, quote_id, version=version, include_pricing=False))

    found = visit.read("document", work, subject=quote_id, quote_id=quote_id, version=version)
    content = find(visit.call, quote_id, found["quote"]["version"])
    if content is None:
        raise CpqError(Code.NOT_FOUND, "There is no document of this version yet.")
    # Only a console page may show it in a frame.
    headers = {
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
        "Content-Disposition": f"inline; filename*=UTF-8''{urlquote(quote_id, safe='')}.pdf",
    }
    return Response(content, media_type="application/pdf", headers=headers)


def page(
    visit: Visit,
    quote_id: str,
    *,
    done: str | None = None,
    moved: CpqError | None = None,
    shown: int | None = None,
    status: int = 200,
) -> Response:
    """The page of a quote; with `moved`, why nothing was decided, and what is different from the version shown."""
    version = whole(visit.query("version"))

    def work(tx: Tx) -> Answer:
        review = quotes.review_version(tx, quote_id, version=version)
        openings = approvals.openings(tx, quote_id) if is_current(review) else []
        may_withdraw = is_current(review) and visit.principal.may(Permission.WITHDRAW)
        history = approvals.history(tx, quote_id)
        earlier = _earlier(review, history, shown)
        able = [name for name in tokens.people(tx, Permission.DECIDE) if str(Caller.person(name)) != tx.caller]
        own_roles = [role for role in tx.policies.roles.known if role in tx.roles]
        return {
            "review": review,
            "change": agreements.change_of(tx, quote_id, review["quote"]["version"]),
            "openings": openings,
            "withdrawable": approvals.withdrawable(tx, quote_id) if may_withdraw else [],
            "chain": approvals.chain_of(tx, quote_id, review["quote"]["version"]),
            "history": history["items"][::-1],
            "comparison": earlier and quotes.compare(tx, quote_id, before=earlier, after=review["quote"]["version"]),
            "held": [asdict(one) for one in approvals.my_held(tx) if one.quote_id == quote_id and one.is_held],
            "people": able,
            "own_roles": own_roles,
            "expired": approvals.status(tx, quote_id)["expired_requests"] if is_current(review) else [],
            "last_held": approvals.last_held(tx, quote_id),
            "has_delegated": done == "delegated" and bool(approvals.given_delegations(tx)),
            "units": units(tx.policies),
            "policy_currency": tx.policies.terms.currency,
            "summary": [quote_summary.offer(review), quote_summary.state(review, openings, history["items"], tx.now)],
        }

    answer = visit.read("quote", work, subject=quote_id, quote_id=quote_id, version=version)
    review = answer["review"]
    mine = next((one for one in answer["openings"] if one["rejects_as"] and not one["waits_for"]), None)
    return visit.page(
        "quote.html",
        status,
        **answer,
        mine=mine,
        state=_state(review),
        done=DONE.get(done or "") if _is_true(done, visit.principal.caller, answer) else None,
        notices=notices.take(visit, quote_id),
        moved=moved,
        shown=shown,
        decides=visit.principal.may(Permission.DECIDE),
        sees_margin=visit.principal.may(Permission.SEE_MARGIN),
        may_ask=visit.principal.may(Permission.REQUEST_APPROVAL),
        has_document=visit.request.app.state.document is not None,
        waterfalls=[charts.waterfall(review["waterfall"], frame) for frame in charts.FRAMES],
        reasons=_reasons(answer),
        sent_version=deal_step.sent_version(review),
        steps=deal_step.possible(review, answer["openings"], answer["withdrawable"], visit.principal)
        if is_current(review)
        else [],
        may_edit=visit.principal.may(Permission.QUOTE) and is_current(review) and _is_open_draft(review),
    )


def is_current(review: Any) -> bool:
    return bool(review["quote"]["version"] == review["latest_version"])


def _state(review: Any) -> str:
    """The status, or for a draft what sent it back, as in lists."""
    quote = review["quote"]
    if quote["status"] != QuoteStatus.DRAFT or review["versions"][quote["version"]] != VersionStatus.REJECTED:
        return str(quote["status"])
    asks_change = (quote["reason"] or "").startswith(CHANGE_REQUESTED)
    return (ListState.CHANGE_REQUESTED if asks_change else ListState.REJECTED).value


def _is_open_draft(review: Any) -> bool:
    is_rejected = review["versions"][review["latest_version"]] == VersionStatus.REJECTED
    return review["quote"]["status"] == QuoteStatus.DRAFT and not is_rejected


def _is_true(done: str | None, caller: str, answer: Answer) -> bool:
    """Whether the caller really did what the address claims: an address can be bookmarked or made up."""
    if done in STEPS_DONE:
        return answer["review"]["quote"]["status"] in _STATUS_AFTER.get(done, (QuoteStatus.DRAFT,))
    if done == "delegated":
        return bool(answer["has_delegated"])
    if done == "asked":
        return any(one["requested_by"] == caller for one in answer["openings"])
    if done == "undone":
        return answer["last_held"] is not None and answer["last_held"].state is HoldState.UNDONE
    decisions = {vote["decision"] for one in answer["history"] for vote in one["votes"] if vote["by"] == caller}
    if done == RequestStatus.APPROVED:
        return "approve" in decisions and answer["review"]["quote"]["status"] != QuoteStatus.PENDING_APPROVAL
    return ("approve" if done == "noted" else "reject") in decisions


def _earlier(review: Any, history: Any, shown: int | None) -> int | None:
    """The version to compare with: the one that was shown, else the last approved one, else the one before."""
    current = review["quote"]["version"]
    if shown is not None and shown in review["versions"] and shown != current:
        return shown
    approved = [
        one["version"]
        for one in history["items"]
        if one["status"] == RequestStatus.APPROVED and one["version"] < current
    ]
    before = [version for version in review["versions"] if version < current]
    return max(approved or before, default=None)


def _reasons(answer: Answer) -> dict[str, bool]:
    """Whether the policies changed since approval was requested; then the reasons are those of today."""
    asked = {one["policy_hash"] for one in answer["history"] if one["version"] == answer["review"]["quote"]["version"]}
    return {"are_todays": bool(asked) and asked != {answer["review"]["policy_hash"]}}
