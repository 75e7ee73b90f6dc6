"""Conditions for submitting or sending a version: a current price, no policy against it, nothing incomplete."""

from __future__ import annotations

from collections.abc import Mapping

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.money import amount
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.quotes.draft import Draft
from cpq.domain.quotes.lifecycle import VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.services.catalog.repository import AccountFacts, ProductFacts
from cpq.services.quotes.composition import broken_relations, gather
from cpq.services.quotes.policy_check import decide, described, stored_results, violations_view


def may_be_sent(tx: Tx, quote: Quote) -> bool:
    """Whether a draft or approved version could be sent now: current, complete, and not stopped by a policy."""
    if not quote.is_current:
        return False
    try:
        require_sendable(tx, quote)
    except CpqError:
        return False
    return True


def require_sendable(tx: Tx, quote: Quote) -> None:
    """CpqError with the next call unless the version can be sent now. An approved one is not checked by policies."""
    is_approved = quote.version.status is VersionStatus.APPROVED
    if not is_approved:
        require_current_price(tx, quote)
    draft = quote.as_draft()
    buyer, products = gather(tx, draft)
    assert buyer is not None, "a quote's account is never deleted"
    if not is_approved:
        decision = decide(tx, draft, buyer, products, stored_results(tx, quote))
        require_unblocked(tx, quote, decision)
        _require_no_approval(tx, quote, decision)
        _require_answered(quote)
    _require_complete(quote, draft, buyer, products)


def require_current_price(tx: Tx, quote: Quote) -> None:
    """CONFLICT with the call that prices it, when a draft is rejected, unpriced or out of date."""
    if quote.is_rejected:
        message = f"Version {quote.current_version} was rejected; a new price opens the next one."
    elif quote.version.priced_at is None or quote.expires_at <= tx.now:
        message = "The quote has no current price."
    else:
        return
    # With the discount that was requested last, so that following the advice does not remove it.
    asked = quote.version.requested_discount
    discount = {"requested_discount_pct": amount(asked)} if asked else {}
    advice = next_call("quote_price", quote_id=quote.id, **discount)
    raise CpqError(Code.CONFLICT, message, field="/quote_id", next_call=advice)


def require_unblocked(tx: Tx, quote: Quote, decision: PolicyDecision) -> None:
    """POLICY_BLOCKED when a policy blocks the quote."""
    if decision.is_blocked:
        first = decision.blocking[0]
        raise CpqError(
            Code.POLICY_BLOCKED,
            f"{first.policy_name}: {described(tx, first, None)}",
            policy_violations=[dict(violation) for violation in violations_view(tx, decision)],
            next_call=next_call("quote_price", quote_id=quote.id),
        )


def _require_no_approval(tx: Tx, quote: Quote, decision: PolicyDecision) -> None:
    if decision.approval_required:
        raise CpqError(
            Code.CONFLICT,
            "A policy requires an approval of this version before it is sent.",
            field="/quote_id",
            policy_violations=[dict(violation) for violation in violations_view(tx, decision)],
            next_call=next_call("approval_request", quote_id=quote.id, justification="Say why this deal deserves it."),
        )


def _require_answered(quote: Quote) -> None:
    """CONFLICT when people were asked about the draft and did not answer, though no policy requires them."""
    if quote.has_lapsed:
        raise CpqError(
            Code.CONFLICT,
            "Somebody was asked to approve this version and did not decide in time: ask again, or withdraw it.",
            field="/quote_id",
            next_call=next_call("approval_status", quote_id=quote.id),
        )


def _require_complete(quote: Quote, draft: Draft, buyer: AccountFacts, products: Mapping[str, ProductFacts]) -> None:
    if not buyer.active:
        raise CpqError(
            Code.CONFLICT,
            f"The account {draft.account_id} is not active.",
            field="/quote_id",
            next_call=next_call("quote_clone", quote_id=quote.id, account_id="an active account"),
        )
    for product in products.values():
        if not product.active:
            raise CpqError(
                Code.CONFLICT,
                f"{product.name} ({product.id}) is no longer sold.",
                field="/quote_id",
                next_call=next_call("quote_get", quote_id=quote.id)
                if quote.status.is_draft
                else next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version),
            )
    missing = broken_relations(draft, products)
    if missing:
        raise CpqError(
            Code.CONFIGURATION_INVALID,
            missing[0],
            field="/quote_id",
            problems=[{"code": Code.CONFIGURATION_INVALID.value, "message": message} for message in missing],
            next_call=next_call("quote_get", quote_id=quote.id),
        )
