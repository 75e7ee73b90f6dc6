"""A quote in two sentences: what is offered, and what has to happen next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cpq.console.formats import a_role, fine, in_a_sentence, money, span, who, words
from cpq.domain.approvals.approval_request import RequestStatus
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services.approvals.queue import Opening
from cpq.services.approvals.views import ApprovalRecord
from cpq.services.quotes.review import QuoteReview


def offer(review: QuoteReview) -> str:
    """The offer: account, goods, price and discount."""
    quote, pricing = review["quote"], review["pricing"]
    lines = [line for line in review["line_items"] if line["option_set"] in (None, quote["option_set"])]
    largest = max(lines, key=lambda line: line["line_total"])
    more = len(lines) - 1
    goods = f"{largest['quantity']:,} × {largest['product_name']}"
    goods += f" and {more} more line{'s' if more > 1 else ''}" if more else ""
    term = f" for {quote['term_months']} months" if quote["term_months"] else ""
    price = f"{money(pricing['total'], quote['currency'])} {quote['currency']}"
    price += " with tax" if pricing["tax_total"] else ""
    discount = review["discount_pct"]
    below = f", {in_a_sentence(discount)} below the regular price" if discount else ", without a discount"
    margin = review["margin_pct"]
    kept = f", at a margin of {in_a_sentence(margin)}" if margin is not None else ""
    return f"{quote['account_name']} is offered {goods}{term} at {price}{below}{kept}{_alternatives(review)}."


def _alternatives(review: QuoteReview) -> str:
    """The number and price of alternatives."""
    others, currency = review["other_totals"], review["quote"]["currency"]
    if not others:
        return ""
    noun = "alternative, at" if len(others) == 1 else "alternatives, up to"
    return f"; {len(others)} {noun} {money(max(others), currency)} {currency}"


def state(review: QuoteReview, openings: Sequence[Opening], records: Sequence[ApprovalRecord], now: datetime) -> str:
    """The status, and what has to happen next."""
    status = review["quote"]["status"]
    if openings:
        return _waiting(openings, now)
    if status == QuoteStatus.PENDING_APPROVAL:
        return "No request is open: it was withdrawn. Approval has to be requested again."
    of_version = [record for record in records if record["version"] == review["quote"]["version"]]
    rejected = next((record for record in of_version if record["status"] == RequestStatus.REJECTED), None)
    if rejected:
        return f"{who(rejected['decided_by'])} rejected this version as {a_role(rejected['approver_role'])}."
    expired = [record for record in of_version if record["status"] == RequestStatus.EXPIRED]
    if status == QuoteStatus.DRAFT and expired:
        roles = " and ".join(dict.fromkeys(a_role(record["approver_role"]) for record in expired))
        return f"The request to {roles} has expired: nothing was approved, and the quote is a draft again."
    granted = [record for record in of_version if RequestStatus(record["status"]).is_granted]
    if status == QuoteStatus.APPROVED and granted:
        names = ", ".join(dict.fromkeys(who(record["decided_by"]) for record in granted))
        return f"It is approved by {names} and can be sent until {review['quote']['valid_until']}."
    return _STATES.get(status, f"It is {words(status).lower()}.").format(until=review["quote"]["valid_until"])


_STATES: dict[str, str] = {
    QuoteStatus.DRAFT: "It is a draft: approval has not been requested yet.",
    QuoteStatus.SENT: "It is with the customer, who can accept it until {until}.",
    QuoteStatus.ACCEPTED: "The customer has accepted it.",
    QuoteStatus.DECLINED: "The customer has declined it.",
    QuoteStatus.EXPIRED: "Its last valid day is over.",
    QuoteStatus.CANCELLED: "It was cancelled.",
}


def _waiting(openings: Sequence[Opening], now: datetime) -> str:
    roles = " and ".join(dict.fromkeys(a_role(one["approver_role"]) for one in openings))
    roles = roles[:1].upper() + roles[1:]
    verb = "has" if len({one["approver_role"] for one in openings}) == 1 else "have"
    reasons = list(dict.fromkeys(reason for one in openings for reason in one["reasons"])) or ["It was asked for."]
    clauses = [reason.partition(";")[0].rstrip(".") for reason in reasons]
    because = ", and because ".join(clause[:1].lower() + clause[1:] for clause in clauses)
    first = openings[0]
    left = span(first["expires_at"] - now)
    age = span(now - first["requested_at"])
    because = fine(because)
    return f"{roles} {verb} to approve, because {because}; {who(first['requested_by'])} asked {age} ago, {left} left."
