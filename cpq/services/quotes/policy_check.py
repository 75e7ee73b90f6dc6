"""What the policies say of a priced quote: the facts they read, and one decision over all its option sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, from_micro
from cpq.domain.policy.evaluation import Violation, evaluate_alternatives
from cpq.domain.policy.facts import LineFacts, QuoteFacts, QuoteInputs
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.services.catalog import repository
from cpq.services.catalog.repository import AccountFacts, ProductFacts
from cpq.services.quotes.composition import line_inputs, payment_terms_of, quote_inputs


class PolicyViolation(TypedDict):
    policy_id: str
    policy_name: str
    severity: str
    description: str
    threshold: Amount | None
    actual: Amount | None
    required_approver_role: str | None


class Verdict:
    """The decision on a quote. With option sets, whatever any of them breaks is broken: each could be accepted."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = violations
        self.approval_required = any(violation.required_approver_role for violation in violations)
        self.blocking = [violation for violation in violations if violation.severity == "block"]

    def view(self, tx: Tx) -> list[PolicyViolation]:
        """For the caller: whoever may not see margins is not told one, nor what a cost can be reckoned from."""
        return [
            {
                "policy_id": violation.policy_id,
                "policy_name": violation.policy_name,
                "severity": violation.severity,
                "description": described(tx, violation),
                "threshold": violation.threshold,
                "actual": None if _is_hidden(tx, violation) else violation.actual,
                "required_approver_role": violation.required_approver_role,
            }
            for violation in self.violations
        ]


def described(tx: Tx, violation: Violation) -> str:
    """Why a policy speaks, in as much as the caller may know."""
    if not _is_hidden(tx, violation):
        return violation.description
    role = violation.required_approver_role
    return "Cost or margin is not within its limit" + (f"; {role} has to approve." if role else ".")


def _is_hidden(tx: Tx, violation: Violation) -> bool:
    return not tx.sees_margin and violation.is_secret


def decide(
    tx: Tx,
    draft: Draft,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
    priced_sets: Sequence[PricedQuote],
) -> Verdict:
    """Ask the policies about every option set, and keep the worst of what they say about each rule."""
    asked = {str(line.number): line for line in draft.lines}
    inputs = quote_inputs(draft, buyer, payment_terms=payment_terms_of(tx, draft))
    days = tx.policies.terms.validity_days
    alternatives = [facts_of(inputs, asked, products, priced, validity_days=days) for priced in priced_sets]
    return Verdict(evaluate_alternatives(tx.policies, alternatives).violations)


def verdict_on(tx: Tx, draft: Draft, priced: Sequence[PricedQuote]) -> Verdict:
    """What the policies, as they are now, say of a stored draft at these prices."""
    ids = {line.product_id for line in draft.lines}
    buyer, products = repository.gather(tx, ids, account_id=draft.account_id, currency=draft.currency)
    assert buyer is not None, "a quote's account is never deleted"
    return decide(tx, draft, buyer, products, priced)


def facts_of(
    inputs: QuoteInputs,
    asked: Mapping[str, DraftLine],
    products: Mapping[str, ProductFacts],
    priced: PricedQuote,
    *,
    validity_days: int,
) -> QuoteFacts:
    """What the policies read of a priced quote; `asked` are its lines by their number as text."""
    return QuoteFacts(
        **vars(inputs),
        gross=from_micro(priced.subtotal),
        net=from_micro(priced.net),
        total=from_micro(priced.total),
        discount=from_micro(priced.discount),
        discount_off_list=from_micro(priced.discount_off_list),
        margin=_known(priced.margin),
        validity_days=Decimal(validity_days),
        lines=tuple(_line_facts(line, asked[line.id], products) for line in priced.lines),
    )


def _line_facts(line: PricedLine, asked: DraftLine, products: Mapping[str, ProductFacts]) -> LineFacts:
    return LineFacts(
        **line_inputs(asked, products, line.billing_period),
        unit_price=from_micro(line.unit_price),
        regular=from_micro(line.regular),
        net=from_micro(line.net),
        discount=from_micro(line.discount),
        discount_off_list=from_micro(line.discount_off_list),
        margin=_known(line.margin),
        cost=_known(line.cost),
    )


def _known(micro: int | None) -> Decimal | None:
    return None if micro is None else from_micro(micro)
