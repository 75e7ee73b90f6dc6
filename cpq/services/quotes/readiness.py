"""Conditions for submitting or sending a version: a price that is true, no policy against it, nothing incomplete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.late_modules import LateModule
from cpq.base.money import amount
from cpq.base.rounding import written
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.pricing.period_prices import period_prices
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.draft import Draft
from cpq.domain.quotes.draft_changes import about_lines
from cpq.domain.quotes.lifecycle import VersionStatus, local_day
from cpq.domain.quotes.quote import Pricing, Quote, line_id
from cpq.services.catalog import repository as catalog
from cpq.services.catalog.repository import AccountFacts, ProductFacts
from cpq.services.quotes import repository
from cpq.services.quotes.answer_fields import discount_argument
from cpq.services.quotes.composition import Composition, PricedSet, compose, gather
from cpq.services.quotes.draft_check import text_problems
from cpq.services.quotes.policy_check import decide, headline, stored_results, violations_view
from cpq.services.quotes.views import totals_view

if TYPE_CHECKING:
    from cpq.services.quotes import cross_lines, owned_products
else:
    cross_lines = LateModule("cpq.services.quotes.cross_lines")
    owned_products = LateModule("cpq.services.quotes.owned_products")

DIFFERENCES_MAX = 20


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
    """CpqError with the next call unless the version can be sent now.

    It is judged again, and priced again unless this process knows that catalogue, costs, policies and day are the same.
    An approved version stays approved under later policies, and must only have the same price and need nobody else
    because of its costs.
    """
    is_approved = quote.version.status is VersionStatus.APPROVED
    if not is_approved:
        require_current_price(tx, quote)
    require_reviewed(quote)
    draft = quote.as_draft()
    buyer, products, rules = gather(tx, draft)
    assert buyer is not None, "a quote's account is never deleted"
    missing = (
        owned_products.broken_by_change(tx, draft) if draft.agreement else cross_lines.broken(draft, products, rules)
    )
    _require_complete(quote, draft, buyer, products, missing)
    _require_own_texts(tx, quote, draft, buyer, products)
    composed = None if _is_known_price(tx, quote) else _priced_again(tx, quote, draft)
    if composed:
        _require_same_price(tx, quote, composed)
    is_changed = composed is not None and any(
        composed.hashes[name] != quote.version.hashes.get(name) for name in _FACTS
    )
    if is_approved and not is_changed:
        return
    if composed is None:
        decision = decide(tx, quote, draft, buyer, products, stored_results(tx, quote))
    else:
        priced = [(one.request, one.priced) for one in sorted(composed.sets, key=lambda one: one.name)]
        decision = decide(tx, quote, composed.draft, composed.buyer, composed.products, priced)
        if is_approved:
            _require_nobody_else(tx, quote, composed, decision)
            return
    require_unblocked(tx, quote, decision)
    _require_no_approval(tx, quote, decision, is_changed=is_changed)
    _require_answered(quote)


_FACTS = ("catalog", "policies", "result")
"""The hashes that differ when the catalogue, the policies, or prices and costs have changed; a new day alone changes
none of them."""


KEPT_MAX = 10_000
"""Number of versions for which a process knows what their price was made of."""


def keep_price(tx: Tx, quote: Quote, composed: Composition, revision: str) -> None:
    """Keep in this process what the price of a version was made of, so that sending it need not price it again.

    `revision` is the catalogue's from before the price was made, so that a later one is priced again. A change of an
    agreement depends on other orders as well.
    """
    if composed.draft.agreement or not revision:
        return
    known: dict[tuple[str, str, int], object] = tx.kept.setdefault(_KEPT, {})
    if len(known) >= KEPT_MAX:
        known.clear()
    day = composed.sets[0].request.as_of
    key = tx.tenant_id, quote.id, quote.version.number
    known[key] = (composed.fingerprint, {**composed.hashes}, composed.hashes["policies"], revision, day)


def _is_known_price(tx: Tx, quote: Quote) -> bool:
    """Whether the price was made of what is in force now, by a call in this process."""
    known = tx.kept.get(_KEPT, {}).get((tx.tenant_id, quote.id, quote.version.number))
    if known is None:
        return False
    version, today = quote.version, local_day(tx.now, quote.time_zone).isoformat()
    made_of = (version.fingerprint, version.hashes, tx.policies.content_hash, catalog.revision_of(tx), today)
    return bool(known == made_of)


_KEPT = "quotes.prices"


def require_current_price(tx: Tx, quote: Quote) -> None:
    """CONFLICT with the call that prices it, when a draft is rejected, unpriced or out of date."""
    if quote.is_rejected:
        message = f"Version {quote.current_version} was rejected; a new price opens the next one."
    elif quote.version.priced_at is None or quote.expires_at <= tx.now:
        message = "The quote has no current price."
    else:
        return
    raise CpqError(Code.CONFLICT, message, field="/quote_id", next_call=_price_call(quote))


def require_reviewed(quote: Quote) -> None:
    """CONFLICT while somebody must look at the quote before the customer gets it; needs the quote with its lines."""
    marks = quote.open_marks
    if not marks:
        return
    found = [
        {**({} if number is None else {"line_id": line_id(quote.id, number)}), "text": text} for number, text in marks
    ]
    count = "1 mark for review is" if len(marks) == 1 else f"{len(marks)} marks for review are"
    raise CpqError(
        Code.CONFLICT,
        f"{count} open: a person must look at this before it goes to the customer.",
        field="/quote_id",
        review=found[:DIFFERENCES_MAX],
        review_total=len(found),
        hint="A person closes them: on the quote's page in the console, with quote_review, or with "
        f"`cpq quote review {quote.id} --as NAME`.",
        next_call=next_call("quote_get", quote_id=quote.id),
    )


def require_unblocked(tx: Tx, quote: Quote, decision: PolicyDecision) -> None:
    """POLICY_BLOCKED when a policy blocks the quote."""
    if decision.is_blocked:
        first = decision.blocking[0]
        raise CpqError(
            Code.POLICY_BLOCKED,
            headline(tx, first),
            policy_violations=[dict(violation) for violation in violations_view(tx, decision)],
            next_call=next_call("quote_price", quote_id=quote.id),
        )


def _priced_again(tx: Tx, quote: Quote, draft: Draft) -> Composition:
    try:
        return compose(tx, draft)
    except CpqError as error:
        raise about_lines(error, draft, quote.id, {}) from None


def _require_same_price(tx: Tx, quote: Quote, composed: Composition) -> None:
    """CONFLICT with the differences when the customer would get another price today."""
    if composed.fingerprint == quote.version.fingerprint:
        return
    stored = {one.option_set: one for one in repository.pricings(tx, quote)}
    found = [
        {**({"option_set": one.name} if one.name else {}), **difference}
        for one in composed.sets
        for difference in _differences(quote.id, stored[one.name], one)
    ]
    if not found:
        return  # Only the way to the same price is another one.
    before, after = (amount(total) for total in (quote.version.total, composed.priced.total))
    how = f"{before} {quote.version.currency} became {after}" if before != after else f"{found[0]['field']} differs"
    raise _outdated(
        quote,
        f"The price is not that of today: {how}. Nothing was sent.",
        differences=found[:DIFFERENCES_MAX],
        differences_total=len(found),
    )


def _differences(quote_id: str, stored: Pricing, composed: PricedSet) -> Iterator[dict[str, object]]:
    """What of a price the customer sees: the totals, the tax groups, and the amounts and periods of each line."""
    before, after = stored.result, composed.priced
    yield from _differing(totals_view(before), totals_view(after))
    if _tax(before) != _tax(after):
        yield {"field": "tax_groups"}
    lines = (_shown(stored.request, before.lines), _shown(composed.request, after.lines))
    for line, old, new in zip(after.lines, *lines, strict=True):
        for difference in _differing(old, new):
            yield {"line_id": line_id(quote_id, int(line.id)), **difference}


def _tax(priced: PricedQuote) -> list[object]:
    """How it is taxed, without the amounts, which follow from those of the lines."""
    return [priced.tax_note, *((group.name, group.code, group.rate, group.reason) for group in priced.tax_groups)]


def _shown(request: Request, lines: Sequence[PricedLine]) -> Iterator[dict[str, object]]:
    prices = period_prices(request, lines)
    for line in lines:
        price = prices.get(line.id)
        yield {
            "subtotal_before_discount": amount(line.regular),
            "line_total": amount(line.net),
            "billing_period": line.billing_period,
            "unit_price_per_period": None if price is None else amount(price.net_unit_price),
            "periods": None if price is None else written(price.periods),
        }


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[dict[str, object]]:
    for name, value in before.items():
        if value != after[name]:
            yield {"field": name, "before": value, "after": after[name]}


def _require_nobody_else(tx: Tx, quote: Quote, composed: Composition, decision: PolicyDecision) -> None:
    """CONFLICT when an approved version now needs somebody who did not approve it."""
    roles, approved = tx.policies.roles, repository.approving_roles(tx, quote)
    is_blocked, hashes = decision.is_blocked, quote.version.hashes
    if hashes.get("policies") != decision.policy_hash and hashes.get("catalog") == composed.hashes["catalog"]:
        # Later policies do not undo an approval, so only what they make of changed costs counts. `then` judges the
        # products of today: what a changed one requires, nobody approved.
        then = decide(tx, quote, composed.draft, composed.buyer, composed.products, stored_results(tx, quote))
        approved |= {*then.required_roles}
        is_blocked = is_blocked and not then.is_blocked
    if is_blocked:
        require_unblocked(tx, quote, decision)
    lacking = [
        role
        for role in decision.required_roles
        if role not in approved
        and not (role in roles.commercial and any(roles.stands_for(other, role) for other in approved))
    ]
    if lacking:
        raise _outdated(
            quote,
            f"Catalogue or costs have changed since it was approved, and {' and '.join(lacking)} did not approve it.",
            differences=[
                {"field": "required_roles", "before": sorted(approved), "after": list(decision.required_roles)}
            ],
        )


def _outdated(quote: Quote, message: str, **details: object) -> CpqError:
    """A draft is priced again; what was approved stays as it is, and the next version gets the price of today."""
    advice = (
        _price_call(quote)
        if quote.status.is_draft
        else next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version)
    )
    return CpqError(Code.CONFLICT, message, field="/quote_id", **details, next_call=advice)


def _price_call(quote: Quote) -> dict[str, object]:
    """With the discount that was requested last, so that following the advice does not remove it."""
    asked = quote.version.requested_discount, quote.version.requested_amount
    return next_call("quote_price", quote_id=quote.id, **(discount_argument(*asked) if any(asked) else {}))


def _require_no_approval(tx: Tx, quote: Quote, decision: PolicyDecision, *, is_changed: bool) -> None:
    if not decision.approval_required:
        return
    violations = [dict(violation) for violation in violations_view(tx, decision)]
    if is_changed:
        # When it was priced, fewer roles may have been required.
        roles = list(decision.required_roles)
        raise _outdated(
            quote,
            f"Catalogue, costs or policies have changed since it was priced: {' and '.join(roles)} must approve now.",
            differences=[{"field": "required_roles", "after": roles}],
            policy_violations=violations,
        )
    raise CpqError(
        Code.CONFLICT,
        "A policy requires an approval of this version before it is sent.",
        field="/quote_id",
        policy_violations=violations,
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


def _require_own_texts(
    tx: Tx, quote: Quote, draft: Draft, buyer: AccountFacts, products: Mapping[str, ProductFacts]
) -> None:
    """CONFLICT when a text has what is not for this customer; it may have become so since it was written."""
    problems = text_problems(tx, draft, buyer, products)
    if problems:
        way = next_call("quote_revise", quote_id=quote.id, expected_version=quote.current_version)
        raise CpqError(
            Code.CONFLICT,
            problems[0].message,
            field="/quote_id",
            problems=[{"code": one.code.value, "message": one.message, **one.details} for one in problems],
            hint="Change the text with quote_update, after quote_revise where the quote is no draft.",
            next_call=next_call("quote_get", quote_id=quote.id) if quote.status.is_draft else way,
        )


def _require_complete(
    quote: Quote, draft: Draft, buyer: AccountFacts, products: Mapping[str, ProductFacts], missing: Sequence[str]
) -> None:
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
    if missing:
        raise CpqError(
            Code.CONFIGURATION_INVALID,
            missing[0],
            field="/quote_id",
            problems=[{"code": Code.CONFIGURATION_INVALID.value, "message": message} for message in missing],
            next_call=next_call("quote_check", quote_id=quote.id),
        )
