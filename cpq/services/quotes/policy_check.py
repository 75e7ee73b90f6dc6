"""The policies' decision on a priced quote, and its form for the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base import traces
from cpq.base.money import Amount, plain
from cpq.domain.policy.cost_grid import coarse_costs
from cpq.domain.policy.evaluation import PolicyDecision, Violation, evaluate_alternatives
from cpq.domain.policy.facts import SECRET, QuoteFacts
from cpq.domain.policy.free_text import NO_FREE_TEXT, FreeTextFacts
from cpq.domain.pricing import Costs
from cpq.domain.pricing.rate_cards import usage_lines
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.result import PricedQuote
from cpq.domain.quotes.draft import Draft
from cpq.domain.quotes.quote import Quote
from cpq.services.catalog.repository import AccountFacts, ProductFacts
from cpq.services.quotes import repository
from cpq.services.quotes.composition import gather
from cpq.services.quotes.deal_facts import other_quotes
from cpq.services.quotes.hidden_verdicts import draw
from cpq.services.quotes.policy_facts import change_facts, facts_of, free_text_facts, payment_terms_of, quote_inputs


class PolicyViolation(TypedDict):
    policy_id: str
    policy_name: str
    severity: str
    description: str
    threshold: Amount | None
    actual: Amount | None
    unit: str | None
    """Of threshold and actual: a currency code, `percent`, `months`, `days` or `pieces`."""
    required_approver_role: str | None
    """The role that is asked, as in `required_roles`."""


def decide(
    tx: Tx,
    quote: Quote,
    draft: Draft,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
    priced_sets: Sequence[Priced],
    *,
    editor: str | None = None,
    valid_until: date | None = None,
) -> PolicyDecision:
    """Evaluate the policies for every option set, and keep the worst violation of each rule.

    A rule that any set violates is violated, because each set could be accepted. What no policy reads is not looked up.
    Costs count as on the grid for every caller. `editor` is the caller who is about to change the version, which then
    is `valid_until` that day. Validity counts from the day of the prices.
    """
    asked = {str(line.number): line for line in draft.lines}
    inputs = quote_inputs(draft, buyer, payment_terms=payment_terms_of(tx, draft))
    days = ((valid_until or quote.version.valid_until) - date.fromisoformat(priced_sets[0][0].as_of)).days
    texts = NO_FREE_TEXT
    if not FREE_TEXT.isdisjoint(tx.policies.reads):
        makers = {*quote.version.makers, *([editor] if editor else [])}
        texts = free_text_facts(tx.policies.library, draft.notes, draft.deal_id, draft.lines, products, makers)
    others = other_quotes(tx, quote, draft.deal_id)
    grid = _EXACT if SECRET.isdisjoint(tx.policies.reads) else tx.policies.terms.cost_grid_percent

    def facts(request: Request, priced: PricedQuote, costs: Costs | None) -> QuoteFacts:
        return facts_of(
            inputs,
            asked,
            products,
            priced,
            validity_days=max(days, 0),
            texts=texts,
            others=others,
            costs=costs,
            change=change_facts(draft, request, priced, tx.policies.terms.renewal_uplift_percent),
            usage=usage_lines(request),
        )

    with traces.span("evaluate policies"):
        judged = [facts(*one, coarse_costs(one[0], grid) if grid else None) for one in priced_sets]
        if not grid:
            return evaluate_alternatives(tx.policies, judged)
        caution = f"Costs count as rounded up by up to {plain(grid):f} %, and so it is asked for."
        return evaluate_alternatives(tx.policies, judged, lambda place: facts(*priced_sets[place], None), caution)


Priced = tuple[Request, PricedQuote]

_EXACT = Decimal(0)

FREE_TEXT = frozenset(FreeTextFacts._fields)
"""Facts that need a look at texts."""


def judge(tx: Tx, quote: Quote, stored: Sequence[Priced] | None = None) -> PolicyDecision:
    """The decision of the current policies on a version at its stored prices."""
    decision = judge_at(tx, quote, quote.as_draft(), stored_results(tx, quote) if stored is None else stored)
    if quote.version.priced_at is None:  # A change stored it, and nobody has seen what the policies say of it yet.
        draw(tx, quote, decision)
    return decision


def judge_at(tx: Tx, quote: Quote, draft: Draft, priced: Sequence[Priced]) -> PolicyDecision:
    """The decision of the current policies on a quote, as in this draft, at these prices."""
    buyer, products, _ = gather(tx, draft)
    assert buyer is not None, "a quote's account is never deleted"
    return decide(tx, quote, draft, buyer, products, priced)


def stored_results(tx: Tx, quote: Quote) -> list[Priced]:
    """The stored prices of a version, by the name of their option set.

    If two sets violate a rule equally, the first is shown, whichever is selected.
    """
    by_name = sorted(repository.pricings(tx, quote), key=lambda pricing: pricing.option_set)
    changes = quote.version.agreement is not None  # Its facts have prices for one period, which need the steps.
    return [(pricing.request, pricing.result if changes else pricing.amounts) for pricing in by_name]


def violations_view(tx: Tx, decision: PolicyDecision) -> list[PolicyViolation]:
    """The violations for the caller. Of a policy about costs or margins, those who may not see them learn only that
    there is one, and the role; several for one role are one to them."""
    views = [_violation_view(tx, one, decision.asked_role(one)) for one in decision.violations]
    return [view for place, view in enumerate(views) if view["policy_id"] != HIDDEN or view not in views[:place]]


HIDDEN = "hidden"


def _violation_view(tx: Tx, violation: Violation, role: str | None) -> PolicyViolation:
    is_hidden = _is_hidden(tx, violation)
    return {
        "policy_id": HIDDEN if is_hidden else violation.policy_id,
        "policy_name": "hidden policy" if is_hidden else violation.policy_name,
        "severity": violation.severity,
        "description": described(tx, violation, role),
        "threshold": None if is_hidden else violation.threshold,
        "actual": None if is_hidden else violation.actual,
        "unit": None if is_hidden else violation.unit or None,
        "required_approver_role": role,
    }


def headline(tx: Tx, violation: Violation) -> str:
    """The violation in one sentence, for the message of a refusal."""
    text = described(tx, violation, None)
    return text if _is_hidden(tx, violation) else f"{violation.policy_name}: {text}"


def described(tx: Tx, violation: Violation, role: str | None) -> str:
    """The violation's description, redacted for callers who may not see margins; `role` is asked because of it."""
    return redacted(role) if _is_hidden(tx, violation) else violation.description


def redacted(role: str | None) -> str:
    """The description of a violation for those who may not see margins."""
    return "Cost or margin is outside its limit" + (f"; {role} has to approve." if role else ".")


def _is_hidden(tx: Tx, violation: Violation) -> bool:
    return not tx.sees_margin and violation.is_secret
