"""Scopes, facts and folders that the policy tests share."""

import json
from decimal import Decimal

from hypothesis import strategies as st

from cpq.base.settings import shipped
from cpq.domain.policy.facts import LINE_FACTS, QUOTE_FACTS, LineFacts, QuoteFacts
from cpq.domain.policy.files.builder import build
from cpq.domain.policy.language.nodes import Declared, Kind
from cpq.domain.policy.language.parser import Scope
from cpq.domain.policy.policy_set import PolicySet

SHIPPED = shipped("policies")

ATTRIBUTES = {
    "export_controlled": Declared(Kind.BOOLEAN, absent=False),
    "hp": Declared(Kind.NUMBER),
    "model": Declared(Kind.TEXT),
}
AFTER = Scope(
    {name: Declared(fact.kind, words=fact.words) for name, fact in QUOTE_FACTS.items()},
    {name: Declared(fact.kind, words=fact.words) for name, fact in LINE_FACTS.items()},
    ATTRIBUTES,
)
BEFORE = Scope(
    {name: Declared(fact.kind, words=fact.words) for name, fact in QUOTE_FACTS.items() if fact.is_before_pricing},
    {name: Declared(fact.kind, words=fact.words) for name, fact in LINE_FACTS.items() if fact.is_before_pricing},
    ATTRIBUTES,
    has_line=True,
    has_lines=False,
)

amounts = st.decimals(0, 10**9, places=2)
percents = st.decimals(0, 100, places=2) | st.sampled_from([Decimal(5), Decimal(20), Decimal(30), Decimal("5.01")])
margins = st.none() | st.decimals(-200, 100, places=2)
words = st.sampled_from(["saas", "compressors", "smb", "emea", ""])
lines = st.builds(
    LineFacts,
    category=words,
    quantity=st.integers(1, 1000).map(Decimal),
    regular=amounts,
    net=amounts,
    discount=percents,
    margin=margins,
    cost=st.none() | amounts,
    attributes=st.dictionaries(
        st.sampled_from(list(ATTRIBUTES)),
        st.booleans() | st.text(max_size=3) | st.decimals(0, 99, places=1),
        max_size=3,
    ),
)
quotes = st.builds(
    QuoteFacts,
    currency=st.sampled_from(["USD", "EUR", "JPY", "XPF"]),
    term_months=st.none() | st.integers(1, 120).map(Decimal),
    payment_terms=st.sampled_from(["net_30", "net_90", ""]),
    segment=words,
    region=words,
    country=st.sampled_from(["US", "DE"]),
    gross=amounts,
    net=amounts,
    total=amounts,
    discount=percents,
    discount_off_list=percents,
    margin=margins,
    lines=st.lists(lines, max_size=5).map(
        lambda found: tuple(
            LineFacts(**{**vars(line), "line_id": f"Q-1-ql-{number}"}) for number, line in enumerate(found, 1)
        )
    ),
)

MINIMAL = {
    "discounts.yaml": "{}",
    "approvals.yaml": "roles: {commercial: [sales_manager, deal_desk, vp_sales], orthogonal: [finance, legal]}\n",
    "terms.yaml": (
        "validity_days: 30\nstandard_payment_terms: [net_30]\napproval_expiry_hours: 4\ncurrency: USD\n"
        "rates: {EUR: 1.10}\nattributes: {export_controlled: {type: boolean, absent: false}, hp: {type: number}}\n"
    ),
    "pricing.yaml": "{}",
    "tax.yaml": "categories: [standard]\nzones: {DE: 19}\n",
}


def policies(**files: str) -> PolicySet:
    """A policy set of the smallest files, with some replaced: `policies(discounts="rules: …")`."""
    return build(MINIMAL | {f"{name}.yaml": text for name, text in files.items()})


def rules(*conditions: str, then: str = "{severity: approval_required, role: sales_manager}") -> str:
    """A file of rules r0, r1, … with these conditions."""
    return "rules:\n" + "".join(
        f"  - id: r{number}\n    when: {json.dumps(condition)}\n    then: {then}\n"
        for number, condition in enumerate(conditions)
    )
