"""Two policy sets side by side: what a set says, which rules changed, and which quotes would be decided otherwise."""

from decimal import Decimal

import pytest
from hypothesis import given

from cpq.policy.building import build
from cpq.policy.comparing import Change, ChangeKind, decision_change, differences
from cpq.policy.deciding import evaluate
from cpq.policy.facts import LineFacts, QuoteFacts
from cpq.policy.loading import load
from cpq.policy.telling import overview
from tests.rules.policies import SHIPPED, quotes
from tests.rules.test_policy_loading import SHIPPED_TEXTS

POLICIES = load(SHIPPED)


def changed(file: str, old: str, new: str) -> dict[str, str]:
    assert old in SHIPPED_TEXTS[file]
    return SHIPPED_TEXTS | {file: SHIPPED_TEXTS[file].replace(old, new, 1)}


def test_the_overview_is_the_matrix():
    assert overview(POLICIES) == [
        ["policy", "speaks when", "severity", "role"],
        ["discount_cap_sales_manager", "line.discount above 5 up to 20", "approval_required", "sales_manager"],
        ["discount_cap_vp_sales", "line.discount above 20", "approval_required", "vp_sales"],
        ["discount_review_finance", "line.discount above 30", "approval_required", "finance"],
        ["deal_size_deal_desk", "net_value above 100000 up to 500000", "approval_required", "deal_desk"],
        ["deal_size_vp_sales", "net_value above 500000", "approval_required", "vp_sales"],
        [
            "export_control_legal",
            "any(line.attributes.export_controlled for line in lines)",
            "approval_required",
            "legal",
        ],
        ["margin_floor_finance", "margin < 10", "approval_required", "finance"],
        ["non_standard_terms_legal", "not is_standard_terms", "approval_required", "legal"],
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "what", "field", "before", "after"),
    [
        ("discounts.yaml", "above: 5\n", "above: 7.5\n", "step discount_cap_sales_manager", "above", "5", "7.5"),
        ("discounts.yaml", "role: finance", "role: legal", "step discount_review_finance", "role", "finance", "legal"),
        ("discounts.yaml", "line.discount\n", "discount\n", "ladder discount_cap", "over", "line.discount", "discount"),
        ("approvals.yaml", "ask: highest", "ask: each", "roles", "asks_each", "False", "True"),
        ("approvals.yaml", "name: export control", "name: exports", "rule export_control_legal", "name",
         "export control", "exports"),
        ("terms.yaml", "validity_days: 30", "validity_days: 45", "terms", "validity_days", "30", "45"),
        ("terms.yaml", "EUR: 1.08", "EUR: 1.1", "rates", "EUR", "1.08", "1.1"),
        ("pricing.yaml", "markup: 6", "markup: 8", "pricing rule apac_field_service", "value", "6", "8"),
        ("tax.yaml", "saas: 5} #", "saas: 6} #", "tax US-TX", "saas", "5", "6"),
    ],
)  # fmt: skip
def test_a_changed_field_is_one_change(file, old, new, what, field, before, after):
    found = differences(POLICIES, build(changed(file, old, new)))
    assert found == [Change(ChangeKind.CHANGED, what, field, before, after)]


def test_a_rule_that_comes_or_goes_is_one_change():
    without = SHIPPED_TEXTS | {"pricing.yaml": ""}
    assert [(change.kind, change.what) for change in differences(POLICIES, build(without))] == [
        (ChangeKind.REMOVED, "pricing rule apac_field_service"),
        (ChangeKind.REMOVED, "pricing rule public_sector_services"),
    ]
    assert {change.kind for change in differences(build(without), POLICIES)} == {ChangeKind.ADDED}
    assert differences(POLICIES, load(SHIPPED)) == []


@given(facts=quotes)
def test_a_set_never_decides_otherwise_than_itself(facts: QuoteFacts):
    assert decision_change(POLICIES, POLICIES, facts) is None


def test_a_quote_whose_approvers_change_is_found_with_both_decisions():
    stricter = build(changed("discounts.yaml", "above: 20\n", "above: 8\n"))
    line = LineFacts(line_id="1", discount=Decimal(10))
    facts = QuoteFacts(margin=Decimal(40), lines=(line,))
    change = decision_change(POLICIES, stricter, facts)
    assert change is not None
    assert (change.before, change.after) == (evaluate(POLICIES, facts), evaluate(stricter, facts))
    assert (change.removed_roles, change.added_roles) == (("sales_manager",), ("vp_sales",))
