"""What the policies say of a priced quote: the facts they read, and one decision over all its option sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from cpq.catalog.facts import AccountFacts, ProductFacts
from cpq.db import Tx
from cpq.money import from_micro
from cpq.policy.deciding import Violation, evaluate
from cpq.policy.facts import LineFacts, QuoteFacts
from cpq.pricing.result import PricedLine, PricedQuote
from cpq.quotes.composing import Draft, DraftLine, line_inputs, quote_inputs
from cpq.views import PolicyViolation


class Verdict:
    """The decision on a quote. With option sets, whatever any of them breaks is broken: each could be accepted."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = violations
        self.approval_required = any(violation.required_approver_role for violation in violations)
        self.blocking = [violation for violation in violations if violation.severity == "block"]

    def view(self) -> list[PolicyViolation]:
        return [
            {
                "policy_id": violation.policy_id,
                "policy_name": violation.policy_name,
                "severity": violation.severity,
                "description": violation.description,
                "threshold": violation.threshold,
                "actual": violation.actual,
                "required_approver_role": violation.required_approver_role,
            }
            for violation in self.violations
        ]


def decide(
    tx: Tx,
    draft: Draft,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
    priced_sets: Sequence[PricedQuote],
) -> Verdict:
    """Ask the policies about every option set, and keep the worst of what they say about each rule."""
    asked = {str(line.number): line for line in draft.lines}
    worst: dict[str, Violation] = {}
    for priced in priced_sets:
        facts = _facts(tx, draft, buyer, products, asked, priced)
        for violation in evaluate(tx.policies, facts).violations:
            known = worst.get(violation.policy_id)
            if known is None or _excess(violation) > _excess(known):
                worst[violation.policy_id] = violation
    return Verdict(list(worst.values()))


def _excess(violation: Violation) -> Decimal:
    """How far it is past its threshold, whichever side is the wrong one; what is not known may be anywhere."""
    if violation.actual is None:
        return Decimal("Infinity")
    return abs(violation.actual - (violation.threshold or 0))


def _facts(
    tx: Tx,
    draft: Draft,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
    asked: Mapping[str, DraftLine],
    priced: PricedQuote,
) -> QuoteFacts:
    return QuoteFacts(
        **vars(quote_inputs(tx, draft, buyer)),
        gross=from_micro(priced.subtotal),
        net=from_micro(priced.net),
        total=from_micro(priced.total),
        discount=from_micro(priced.discount),
        discount_off_list=from_micro(priced.discount_off_list),
        margin=_known(priced.margin),
        validity_days=Decimal(tx.policies.terms.validity_days),
        lines=tuple(_line_facts(line, asked[line.id], products[line.product_id]) for line in priced.lines),
    )


def _line_facts(line: PricedLine, asked: DraftLine, product: ProductFacts) -> LineFacts:
    return LineFacts(
        **line_inputs(asked, product, line.billing_period),
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
