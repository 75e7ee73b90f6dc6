"""The commands of a quote: create, change, price, revise, send, accept. Each gathers, decides, then records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from typing_extensions import TypedDict

from cpq.app import corpus_changes, recorded_state
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.base.text import to_wire
from cpq.domain import pricing
from cpq.domain.pricing import discount_for_total
from cpq.domain.quotes.draft import Draft
from cpq.domain.quotes.draft_changes import (
    Changes,
    about_lines,
    changed_arguments,
    changed_draft,
    given_money,
    require_few_lines,
    require_little_text,
    require_money_of_currency,
)
from cpq.domain.quotes.lifecycle import Move, QuoteStatus, VersionStatus, can
from cpq.domain.quotes.quote import Quote, QuoteVersion
from cpq.domain.quotes.quote import line_id as quote_line_id
from cpq.services import orders
from cpq.services.catalog import repository as catalog
from cpq.services.events import EventName
from cpq.services.quotes import events, repository, transitions, views
from cpq.services.quotes.answer_fields import discount_argument
from cpq.services.quotes.composition import Composition, compose, fingerprint_of, in_order
from cpq.services.quotes.deal_facts import hold_deal
from cpq.services.quotes.hidden_verdicts import draw
from cpq.services.quotes.policy_check import decide, judge_at
from cpq.services.quotes.readiness import keep_price, require_sendable
from cpq.services.quotes.views import CreatedQuote, PricedQuoteView, QuoteMoved, Shown


def create(tx: Tx, draft: Draft, *, idempotency_key: str | None = None) -> CreatedQuote:
    """Create a quote: version 1, a draft with list prices and line discounts; `price` makes them final."""
    require_little_text(draft, tx.settings.quote_text_max)
    return _add(tx, compose(tx, draft, is_written=True), idempotency_key)


def price(
    tx: Tx,
    quote_id: str,
    *,
    requested_discount: int | None = None,
    requested_amount: int | None = None,
    target_total: int | None = None,
    dry_run: bool = False,
) -> PricedQuoteView:
    """Price a draft and store it; any other quote is only evaluated, because a submitted version never changes.

    The discount on the whole quote is a percentage, an amount, or the smallest one that reaches a total. Without any,
    that of the current version is kept. A dry run stores nothing.
    """
    quote = repository.load(tx, quote_id, for_update=True)
    discount = _Discount(requested_discount=requested_discount or 0, requested_amount=requested_amount or 0)
    if requested_discount is None and requested_amount is None and target_total is None:
        version = quote.version
        discount = _Discount(
            requested_discount=version.requested_discount, requested_amount=version.requested_amount or 0
        )
    if not quote.status.is_draft:
        return _evaluate(tx, quote, discount, target_total)
    revision = catalog.revision_of(tx)
    composed = _recompose(tx, quote, quote.as_draft(**discount), is_price=True)
    if target_total is not None:
        discount["requested_amount"] = discount_for_total(composed.sets[0].request, target_total)
        composed = _recompose(tx, quote, quote.as_draft(**discount), is_price=True)
    priced = [(one.request, one.priced) for one in composed.sets]
    day = composed.valid_until
    decision = decide(
        tx, quote, composed.draft, composed.buyer, composed.products, priced, editor=tx.caller, valid_until=day
    )
    draw(tx, quote, decision)
    if dry_run:
        shown = Shown.of(composed)
        return views.evaluated(tx, quote, shown, decision, **_way_to_store(quote, discount))
    if not quote.is_rejected and quote.version.priced_at is not None and _is_same(quote, composed):
        return views.priced(tx, quote, composed, decision, priced_at=quote.version.priced_at, outcome="no_change")
    write = transitions.open_version if quote.is_fixed else transitions.rewrite_draft
    quote = write(tx, quote, composed, priced_at=tx.now)
    keep_price(tx, quote, composed, revision)
    return views.priced(tx, quote, composed, decision, priced_at=tx.now, outcome="changed")


def update(
    tx: Tx, quote_id: str, changes: Changes, *, expected_version: int, expected_edit: int | None = None
) -> QuoteMoved:
    """Change lines, terms or notes of a draft. It is priced again, and needs `price` before it can be sent.

    A draft that was submitted stays as it is; the change opens the next version.
    """
    quote = _open(tx, quote_id, expected_version, expected_edit)
    transitions.require(quote, Move.EDIT)
    _require_own_lines(quote, changes)
    if quote.is_rejected:
        raise CpqError(
            Code.CONFLICT,
            f"Version {quote.current_version} was rejected and cannot be changed; a revision opens the next version.",
            field="/quote_id",
            next_call=next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version),
        )
    before = quote.as_draft()
    draft = changed_draft(before, changes, quote.id)
    require_money_of_currency(before, draft, quote.id, given_money(changes))
    if changes.add_lines:
        require_few_lines(draft.lines, tx.settings.quote_lines_max, "/add_lines")
    if draft.is_same(before):
        return views.moved(quote, "Nothing to change.", outcome="no_change")
    arguments = changed_arguments(before, changes, quote.id)
    if draft.text_length > before.text_length:  # An imported quote may have more already.
        _require_little_text(tx, draft, quote, arguments)
    if draft.for_customer.is_same(before.for_customer) and not quote.is_fixed:
        repository.store_internal(tx, quote, draft)
        quote = repository.load(tx, quote.id, with_lines=False)
        return views.moved(quote, "Internal notes changed. The price stays as it is.")
    composed = _recompose(tx, quote, draft, arguments, has_currency="currency" in changes.terms, is_written=True)
    write = transitions.open_version if quote.is_fixed else transitions.rewrite_draft
    quote = write(tx, quote, composed, priced_at=None)
    return views.moved(quote, "Quote changed; price it again.", warnings=composed.warnings)


def _require_own_lines(quote: Quote, changes: Changes) -> None:
    """CONFLICT when a quote that changes an agreement would get other lines or days than that change has."""
    change = quote.version.agreement
    fixed = {"currency", "start_date", "term_months", "end_date"}
    is_other = changes.add_lines or changes.change_lines or changes.remove_lines
    if change is None or not (is_other or fixed & {*changes.terms, *changes.clear}):
        return
    raise CpqError(
        Code.CONFLICT,
        f"The lines and days of this quote are those of its {change.kind} of agreement {change.agreement_id}.",
        field="/quote_id",
        hint=f"Cancel this quote and make the {change.kind} again. Notes, payment terms and validity can be changed.",
        next_call=next_call("agreement_get", agreement_id=change.agreement_id),
    )


def revise(tx: Tx, quote_id: str, *, expected_version: int, expected_edit: int | None = None) -> QuoteMoved:
    """Open the next version as a draft. A version that was sent stays valid until the new one is sent."""
    quote = _open(tx, quote_id, expected_version, expected_edit)
    transitions.require(quote, Move.REVISE)
    composed = _recompose(tx, quote, quote.as_draft())
    quote = transitions.open_version(tx, quote, composed, priced_at=None)
    message = f"Version {quote.current_version} is open as a draft."
    return views.moved(quote, message, outcome="created", warnings=composed.warnings)


def clone(
    tx: Tx,
    quote_id: str,
    *,
    account_id: str | None = None,
    currency: str | None = None,
    idempotency_key: str | None = None,
) -> CreatedQuote:
    """A new draft with the same lines and terms, for the same or another account. Approvals are not copied.

    Its last valid day is by the policies. It belongs to the caller who clones it, but the text that an agent wrote
    stays an agent's, and what a person had to look at is to be looked at again.
    """
    quote = repository.load(tx, quote_id, for_update=True)
    if quote.version.agreement:
        change = quote.version.agreement
        raise CpqError(
            Code.CONFLICT,
            f"This quote is a {change.kind} of agreement {change.agreement_id}, which cannot be made twice.",
            field="/quote_id",
            next_call=next_call("agreement_get", agreement_id=change.agreement_id),
        )
    draft = quote.as_draft(requested_discount=0, requested_amount=0)
    draft = replace(
        draft, account_id=account_id or draft.account_id, currency=currency or draft.currency, valid_until=None
    )
    require_money_of_currency(quote.as_draft(), draft, quote.id)
    _require_little_text(tx, draft, quote, {})
    lines = tuple(
        line._replace(number=number, internal=line.internal and line.internal.reopened())
        for number, line in enumerate(draft.lines, 1)
    )
    noted = draft.internal and draft.internal.reopened()
    try:
        composed = compose(tx, replace(draft, lines=lines, internal=noted))
    except CpqError as error:
        raise about_lines(error, draft, quote.id, {}, has_currency=currency is not None) from None
    return _add(tx, composed, idempotency_key, source=quote.version)


def cancel(
    tx: Tx, quote_id: str, *, expected_version: int, expected_edit: int | None = None, reason: str | None = None
) -> QuoteMoved:
    """End the current version. If an earlier one was sent, it becomes current again; else the quote is cancelled."""
    quote = _open(tx, quote_id, expected_version, expected_edit)
    cancelled = transitions.apply(tx, quote, Move.CANCEL, reason=reason)
    if not cancelled.is_current:
        return views.moved(cancelled, f"Version {cancelled.current_version}, which was sent, is current again.")
    corpus_changes.touch(tx, corpus_changes.PAST_QUOTES, [quote.id] if quote.status is QuoteStatus.SENT else [])
    events.publish(tx, EventName.QUOTE_CANCELLED, cancelled)
    return views.moved(cancelled, "Quote cancelled.")


def close_review(
    tx: Tx, quote_id: str, *, expected_version: int, expected_edit: int | None = None, line_id: str | None = None
) -> QuoteMoved:
    """A person has looked at what was marked for review, on the whole quote or on one line."""
    quote = _open(tx, quote_id, expected_version, expected_edit)
    if not tx.principal.is_person:
        raise CpqError(
            Code.FORBIDDEN,
            f"A person closes a mark for review, and {tx.caller} is a program. Nothing was changed.",
            field="/quote_id",
            hint="Ask a seller, who closes it on the quote's page in the console or with "
            f"`cpq quote review {quote.id} --as NAME`.",
            next_call=next_call("quote_get", quote_id=quote.id),
        )
    if not (quote.status.is_draft or quote.status in (QuoteStatus.PENDING_APPROVAL, QuoteStatus.APPROVED)):
        raise CpqError(
            Code.CONFLICT,
            f"The quote is {quote.status}: nothing of it is still to be looked at.",
            field="/quote_id",
            status=quote.status,
            next_call=next_call("quote_get", quote_id=quote.id),
        )
    draft = quote.as_draft()
    known = {quote_line_id(quote.id, line.number): line for line in draft.lines}
    if line_id is not None and line_id not in known:
        raise bad_field("/line_id", f"The quote has no line {line_id!r}.", allowed=list(known)[:20])
    now = {"by": tx.caller, "at": to_wire(tx.now)}
    lines = tuple(
        line._replace(internal=line.internal.closed(**now)) if line.internal and line_id in (None, id_) else line
        for id_, line in known.items()
    )
    noted = draft.internal.closed(**now) if draft.internal and line_id is None else draft.internal
    reviewed = replace(draft, internal=noted, lines=lines)
    if reviewed == draft:
        return views.moved(quote, "No mark for review is open there.", outcome="no_change")
    repository.store_internal(tx, quote, reviewed)
    quote = repository.load(tx, quote.id)
    left = len(quote.open_marks)
    return views.moved(quote, f"Reviewed. {left} marks are open." if left else "Reviewed. No mark is open.")


def send(tx: Tx, quote_id: str, *, expected_version: int, expected_edit: int | None = None) -> QuoteMoved:
    """Mark the current version as sent to the customer; the version sent before it is superseded.

    A draft can be sent if it is priced and complete and no policy requires an approval; else it must be approved.
    """
    quote = _open(tx, quote_id, expected_version, expected_edit)
    transitions.require(quote, Move.SEND)
    recorded_state.require(tx, quote.id, quote.version.number, also=recorded_state.RELIED_ON)
    hold_deal(tx, quote)
    require_sendable(tx, quote)
    sent = transitions.apply(tx, quote, Move.SEND)
    corpus_changes.touch(tx, corpus_changes.PAST_QUOTES, [quote.id])
    events.publish(tx, EventName.QUOTE_SENT, sent)
    return views.moved(sent, "Quote sent.")


def accept(
    tx: Tx, quote_id: str, *, expected_version: int, option_set: str | None = None, evidence: str | None = None
) -> QuoteMoved:
    """The customer accepts the sent version and one of its option sets. The others and an open revision become void.

    The customer does it by a link, or a person records it: a program that also prices and sends could otherwise close
    a deal that nobody made.
    """
    quote = customer_decides(tx, quote_id, expected_version, Move.ACCEPT)
    names = quote.as_draft().option_sets
    chosen = _chosen_set(names, option_set)
    _require_person(tx, quote)
    if chosen is not None and chosen != quote.version.option_set:
        selected = next(one for one in repository.pricings(tx, quote) if one.option_set == chosen)
        quote = repository.choose_option_set(tx, quote, selected)
    void = ", ".join(name for name in names if name != chosen)
    reasons = (f"option set {chosen} was accepted; {void} void" if void else None, evidence)
    accepted = transitions.apply(tx, quote, Move.ACCEPT, reason="; ".join(filter(None, reasons)) or None)
    events.publish(tx, EventName.QUOTE_ACCEPTED, accepted)
    accepted = repository.load(tx, quote.id, version=quote.version.number)
    order = orders.record_order(tx, accepted, repository.pricings(tx, accepted)[0], evidence=evidence)
    moved = views.moved(accepted, f"Quote accepted. Order {order.number} was made.")
    return {**moved, "order_id": order.id, "order_number": order.number, "agreement_id": order.agreement_id}


def decline(tx: Tx, quote_id: str, *, expected_version: int, reason: str | None = None) -> QuoteMoved:
    """The customer declines the sent version. An open revision stays open."""
    quote = customer_decides(tx, quote_id, expected_version, Move.DECLINE)
    declined = transitions.apply(tx, quote, Move.DECLINE, reason=reason)
    events.publish(tx, EventName.QUOTE_DECLINED, declined)
    message = "Quote declined." if declined.is_current else f"Version {declined.version.number} declined."
    return views.moved(declined, message)


def _require_person(tx: Tx, quote: Quote) -> None:
    if tx.principal.is_person or tx.principal.kind == "customer" or tx.policies.terms.agents_may_accept:
        return
    raise CpqError(
        Code.FORBIDDEN,
        f"A person records that a customer accepted, and {tx.caller} is a program. Nothing was changed.",
        field="/quote_id",
        status=quote.status,
        hint="Ask a seller, who sends the customer a link or records the answer: in the console on the quote's page, "
        f"or with `cpq quote link {quote.id} --as NAME` or `cpq quote accept {quote.id} --as NAME`. "
        "The policies can allow it to agents (`agents_may_accept`).",
        next_call=next_call("quote_get", quote_id=quote.id),
    )


def _add(
    tx: Tx, composed: Composition, idempotency_key: str | None, *, source: QuoteVersion | None = None
) -> CreatedQuote:
    quote_id = tx.new_id("Q-")
    number = repository.add_quote(tx, quote_id, composed, source=source)
    return views.created(tx, quote_id, number, composed, idempotency_key)


def _require_little_text(tx: Tx, draft: Draft, quote: Quote, arguments: Mapping[int, str]) -> None:
    try:
        require_little_text(draft, tx.settings.quote_text_max)
    except CpqError as error:
        raise about_lines(error, draft, quote.id, arguments) from None


def _recompose(
    tx: Tx,
    quote: Quote,
    draft: Draft,
    arguments: Mapping[int, str] | None = None,
    *,
    has_currency: bool = False,
    is_written: bool = False,
    is_price: bool = False,
) -> Composition:
    """Compose a stored quote; a problem of a line names the argument that changed it, and the line's id."""
    try:
        return compose(tx, draft, is_written=is_written, stored_day=quote.version.requested_valid_until)
    except CpqError as error:
        refused = about_lines(error, draft, quote.id, arguments or {}, has_currency=has_currency)
        if refused.details.get("field") == "/requested_discount_amount" and not is_price:
            hint = "Ask for a smaller requested_discount_amount with quote_price first, or for 0."
            refused.details |= {"field": "/quote_id", "hint": hint}
        if quote.status.is_draft and not quote.is_rejected:
            _offer_updates(refused, quote)
        raise refused from None


def _offer_updates(refused: CpqError, quote: Quote) -> None:
    """Where a line that the call does not change must choose a selling model, the way to choose it."""
    problems = cast("list[dict[str, Any]]", [refused.details, *refused.details.get("problems", [])])  # type: ignore[misc] # A list.
    for problem in problems:
        for choice in problem.get("choices", ()) if problem.get("field") == "/quote_id" else ():
            change = {"line_id": problem["line_id"], "selling_model": choice["selling_model"]}
            choice["next_call"] = next_call(
                "quote_update", quote_id=quote.id, expected_version=quote.current_version, change_lines=[change]
            )


def _evaluate(tx: Tx, quote: Quote, discount: _Discount, target_total: int | None) -> PricedQuoteView:
    """Price the stored lines with this discount, from the facts that were stored with them."""
    stored = repository.pricings(tx, quote)
    if target_total is not None:
        discount["requested_amount"] = discount_for_total(stored[0].request, target_total)
    priced = [pricing.price(one.request._replace(**discount)) for one in stored]
    draft = quote.as_draft(**discount)
    by_name = dict(zip((one.option_set for one in stored), priced, strict=True))
    is_stored = all(one.result == result for one, result in zip(stored, priced, strict=True))
    shown = Shown(
        draft,
        names={line.product_id: line.product_name for line in quote.lines},
        selling_models={line.number: line.sold_as for line in quote.lines},
        sets=[(one.option_set, one.request, by_name[one.option_set]) for one in stored],
        warnings=quote.version.warnings,
        # The stored one was made in the order of the lines at that time, with the set selected then first.
        fingerprint=quote.version.fingerprint
        if is_stored
        else fingerprint_of(by_name[name] for name in in_order(draft)),
    )
    decision = judge_at(tx, quote, draft, [(one.request, result) for one, result in zip(stored, priced, strict=True)])
    draw(tx, quote, decision)
    return views.evaluated(tx, quote, shown, decision, **_way_to_store(quote, discount))


class _Discount(TypedDict):
    """On the whole quote: one of both, or none."""

    requested_discount: int
    requested_amount: int


class _Way(TypedDict):
    message: str
    next_call: dict[str, Any]


def _way_to_store(quote: Quote, discount: _Discount) -> _Way:
    """What to say of a price that was not stored, and the call that leads to storing it."""
    if quote.status.is_draft:
        message = "Nothing was stored: this was a dry run. The same call without dry_run stores this price."
        call = next_call("quote_price", quote_id=quote.id, **discount_argument(**discount))
    elif can(quote.status, Move.REVISE):
        message = (
            f"Nothing was stored: the quote is {quote.status}, and only a draft stores a price. "
            "quote_revise opens its next version as a draft; then price that."
        )
        call = next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version)
    else:
        message = (
            f"Nothing was stored: the quote is {quote.status} and cannot change. "
            "quote_clone makes a new draft of it; then price that."
        )
        call = next_call("quote_clone", quote_id=quote.id)
    return {"message": message, "next_call": call}


def _open(tx: Tx, quote_id: str, expected_version: int, expected_edit: int | None = None) -> Quote:
    """Lock the quote; CONFLICT when it changed since the caller read it."""
    quote = repository.load(tx, quote_id, for_update=True)
    if quote.current_version != expected_version or (expected_edit is not None and quote.edit != expected_edit):
        raise _stale(quote, expected_version)
    return quote


def _stale(quote: Quote, expected_version: int) -> CpqError:
    return CpqError(
        Code.CONFLICT,
        f"The quote has changed: it is at version {quote.current_version}, edit {quote.edit}, {quote.status}.",
        field="/expected_version" if quote.current_version != expected_version else "/expected_edit",
        expected_version=expected_version,
        version=quote.current_version,
        edit=quote.edit,
        status=quote.status,
        next_call=next_call("quote_get", quote_id=quote.id),
    )


def _is_same(quote: Quote, composed: Composition) -> bool:
    return bool(
        quote.version.hashes == dict(composed.hashes)
        and quote.version.valid_until == composed.valid_until
        and quote.version.requested_discount == composed.draft.requested_discount
        and (quote.version.requested_amount or 0) == composed.draft.requested_amount
    )


def customer_decides(tx: Tx, quote_id: str, expected_version: int, move: Move) -> Quote:
    """The version that was sent last. It need not be the current one: a revision may be open."""
    quote = repository.load(tx, quote_id, for_update=True, with_lines=False)
    sent = repository.sent_version(tx, quote.id)
    if sent is None:
        _require_open(tx, quote, move)
        raise _stale(quote, expected_version)
    recorded_state.require(tx, quote.id, sent.number, also=recorded_state.RELIED_ON)
    quote = replace(quote, version=sent, lines=repository.lines(tx, quote.id, sent.number))
    if sent.expires_at <= tx.now:
        raise _too_late(quote, move)
    if sent.number != expected_version:
        raise CpqError(
            Code.CONFLICT,
            f"Version {expected_version} is not the one that was sent last; version {sent.number} is.",
            field="/expected_version",
            version=sent.number,
            next_call=next_call("quote_get", quote_id=quote.id),
        )
    return quote


def _require_open(tx: Tx, quote: Quote, move: Move) -> None:
    """CONFLICT when the customer has answered; a repeated acceptance names the order."""
    try:
        transitions.require(quote, move)
    except CpqError as error:
        if move is Move.ACCEPT and (order_id := orders.of_quote(tx, quote.id)):
            error.details |= {"order_id": order_id, "next_call": next_call("order_get", order_id=order_id)}
        raise


def _too_late(quote: Quote, move: Move) -> CpqError:
    """The next step is a revision: the open one, or a new one."""
    if quote.is_current:
        transitions.require(quote, move)
    sent, current = quote.version, quote.current_version
    return CpqError(
        Code.CONFLICT,
        f"Version {sent.number} was valid until {sent.valid_until}; version {current} is its open revision.",
        field="/expected_version",
        status=VersionStatus.EXPIRED,
        version=current,
        next_call=next_call("quote_get", quote_id=quote.id),
    )


def _chosen_set(names: list[str], option_set: str | None) -> str | None:
    if option_set is None and len(names) <= 1:
        return names[0] if names else None
    if option_set not in names:
        raise bad_field(
            "/option_set",
            "Name the option set that the customer accepts." if names else "The quote has no option sets.",
            allowed=names,
        )
    return option_set
