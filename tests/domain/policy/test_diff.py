"""Two policy sets side by side: what a set says, which rules changed, and which quotes would be decided otherwise."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.app.policy_files import load
from cpq.domain.policy.diff import Change, ChangeKind, DecisionChange, Turn, decision_change, differences
from cpq.domain.policy.evaluation import PolicyDecision, evaluate, evaluate_alternatives
from cpq.domain.policy.facts import LineFacts, QuoteFacts
from cpq.domain.policy.files.builder import build
from cpq.domain.policy.overview import overview, tables
from cpq.domain.policy.policy_kinds import Severity
from tests.app.test_policy_files import SHIPPED_TEXTS
from tests.support.policies import SHIPPED, quotes, rules

POLICIES = load(SHIPPED)


def changed(file: str, old: str, new: str) -> dict[str, str]:
    assert old in SHIPPED_TEXTS[file]
    return SHIPPED_TEXTS | {file: SHIPPED_TEXTS[file].replace(old, new, 1)}


def test_the_overview_is_the_matrix():
    assert overview(POLICIES) == [
        ["policy", "applies when", "severity", "role"],
        ["discount_cap_sales_manager", "line.discount above 5 up to 20", "approval_required", "sales_manager"],
        ["discount_cap_vp_sales", "line.discount above 20", "approval_required", "vp_sales"],
        ["discount_money_vp_sales", "discount_value above 100000", "approval_required", "vp_sales"],
        ["discount_money_finance", "discount_value above 250000", "approval_required", "finance"],
        ["discount_review_finance", "line.discount above 30", "approval_required", "finance"],
        [
            "account_discount_vp_sales",
            (
                "discount > 0 and account_others_net > deal_others_net and account_net_value > 250000 and "
                "account_discount_90_days > 15"
            ),
            "approval_required",
            "vp_sales",
        ],
        [
            "account_discount_sales_manager",
            "discount > 0 and account_others_net > 0 and account_net_value > 100000 and account_discount_90_days > 3",
            "approval_required",
            "sales_manager",
        ],
        [
            "whole_account_deal_desk",
            "account_net_value above 500000, where account_others_net > deal_others_net",
            "approval_required",
            "deal_desk",
        ],
        [
            "whole_deal_discount_vp_sales",
            "deal_others_net > 0 and deal_net_value > 250000 and deal_discount > 15",
            "approval_required",
            "vp_sales",
        ],
        [
            "account_credit_vp_sales",
            "account_credit_value above 50000, where credit_value > 0 and account_credit_value > credit_value",
            "approval_required",
            "vp_sales",
        ],
        [
            "account_credit_finance",
            "credit_value > 0 and account_credit_value > credit_value and account_credit_value > 10000",
            "approval_required",
            "finance",
        ],
        [
            "backdated_change_finance",
            'backdated_days above 31, where kind != "new"',
            "approval_required",
            "finance",
        ],
        [
            "credit_sales_manager",
            'credit_value above 0 up to 50000, where kind != "new"',
            "approval_required",
            "sales_manager",
        ],
        ["credit_vp_sales", 'credit_value above 50000, where kind != "new"', "approval_required", "vp_sales"],
        ["credit_finance", 'kind != "new" and credit_value > 10000', "approval_required", "finance"],
        [
            "smaller_renewal_sales_manager",
            'kind == "renewal" and arr_change < 0',
            "approval_required",
            "sales_manager",
        ],
        [
            "whole_deal_deal_desk",
            "deal_net_value above 100000 up to 500000, where deal_others_net > 0",
            "approval_required",
            "deal_desk",
        ],
        [
            "whole_deal_vp_sales",
            "deal_net_value above 500000, where deal_others_net > 0",
            "approval_required",
            "vp_sales",
        ],
        ["credit_beyond_terms_finance", "credit_beyond_terms > 0", "approval_required", "finance"],
        ["custom_line_deal_desk", "any(line.is_custom for line in lines)", "approval_required", "deal_desk"],
        ["deal_size_deal_desk", "net_value above 100000 up to 500000", "approval_required", "deal_desk"],
        ["deal_size_vp_sales", "net_value above 500000", "approval_required", "vp_sales"],
        [
            "export_control_legal",
            "any(line.attributes.export_controlled for line in lines)",
            "approval_required",
            "legal",
        ],
        ["free_text_legal", "free_text_has_terms", "approval_required", "legal"],
        ["margin_floor_finance", "margin < 10", "approval_required", "finance"],
        ["missing_uplift_sales_manager", "missing_uplift_pct above 0", "approval_required", "sales_manager"],
        ["non_standard_terms_legal", "not is_standard_terms", "approval_required", "legal"],
        ["validity_sales_manager", "validity_days above 30 up to 90", "approval_required", "sales_manager"],
        ["validity_deal_desk", "validity_days above 90", "approval_required", "deal_desk"],
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


def test_a_rule_that_comes_or_goes_is_one_change_told_whole():
    without = SHIPPED_TEXTS | {"pricing.yaml": "{}"}
    gone = differences(POLICIES, build(without))
    assert [(change.kind, change.what, change.field, change.after) for change in gone] == [
        (ChangeKind.REMOVED, "pricing rule apac_field_service", "", ""),
        (ChangeKind.REMOVED, "pricing rule public_sector_services", "", ""),
    ]
    assert gone[0].before.startswith(
        'when: region == "apac" and line.category == "services"; priority: 0; name: travel'
    )
    come = differences(build(without), POLICIES)
    assert [(change.kind, change.before, change.after) for change in come] == [
        (ChangeKind.ADDED, "", change.before) for change in gone
    ]
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


STOP = "\nrules: [{id: stop, when: total > 900000000 or region == 'smb', then: {severity: block}}]\n"
STRICTER = build(
    changed("discounts.yaml", "above: 20\n", "above: 8\n") | {"terms.yaml": SHIPPED_TEXTS["terms.yaml"] + STOP}
)
OPPOSITE = {
    Turn.BLOCKED: Turn.UNBLOCKED,
    Turn.UNBLOCKED: Turn.BLOCKED,
    Turn.ASKS: Turn.FREE,
    Turn.FREE: Turn.ASKS,
    Turn.MORE: Turn.FEWER,
    Turn.FEWER: Turn.MORE,
    Turn.OTHERS: Turn.OTHERS,
    Turn.REASONS: Turn.REASONS,
}


@pytest.mark.parametrize(
    ("before", "after", "blocks", "turn"),
    [
        ((), (), (False, True), Turn.BLOCKED),
        ((("legal",),), (), (True, False), Turn.UNBLOCKED),
        ((), (("legal",),), (False, False), Turn.ASKS),
        ((("legal",),), (), (False, False), Turn.FREE),
        ((("vp_sales",),), (("vp_sales",), ("legal",)), (False, False), Turn.MORE),
        ((("vp_sales",), ("legal",)), (("legal",),), (False, False), Turn.FEWER),
        ((("sales_manager",),), (("vp_sales",),), (False, False), Turn.OTHERS),
        ((("deal_desk", "vp_sales"),), (("vp_sales",), ("deal_desk",)), (False, False), Turn.OTHERS),
        ((("legal",),), (("legal",),), (False, False), Turn.REASONS),
        ((("legal",),), (("legal",),), (True, True), Turn.REASONS),
    ],
)
def test_a_change_has_a_kind(before, after, blocks: tuple[bool, bool], turn: Turn):
    stop = evaluate(STRICTER, QuoteFacts(margin=Decimal(40), region="smb")).violations[-1]
    assert stop.severity is Severity.BLOCK
    decisions = [
        PolicyDecision((stop,) if is_blocked else (), chains, "hash")
        for chains, is_blocked in zip((before, after), blocks, strict=True)
    ]
    assert DecisionChange(*decisions).turn is turn


@given(facts=quotes)
def test_a_change_seen_from_the_other_side_is_its_opposite(facts: QuoteFacts):
    there, back = (decision_change(*sets, facts) for sets in ((POLICIES, STRICTER), (STRICTER, POLICIES)))
    assert (there is None) is (back is None)
    if there is not None and back is not None:
        assert (there.before, there.after) == (back.after, back.before)
        assert there.turn is OPPOSITE[back.turn]


@given(alternatives=st.lists(quotes, min_size=1, max_size=3))
def test_of_alternatives_whatever_any_of_them_breaks_is_broken(alternatives: list[QuoteFacts]):
    each = [evaluate(STRICTER, facts) for facts in alternatives]
    whole = evaluate_alternatives(STRICTER, alternatives)
    said = {(v.policy_id, v.required_approver_role) for decision in each for v in decision.violations}
    assert {violation.policy_id for violation in whole.violations} == {id_ for id_, _ in said}
    assert whole.chains == STRICTER.roles.chains(frozenset(role for _, role in said if role))
    assert whole.is_blocked is any(decision.is_blocked for decision in each)
    assert all(any(violation in decision.violations for decision in each) for violation in whole.violations)


def test_of_alternatives_the_worst_speaks_and_the_unknown_is_worse_than_any():
    def quote(margin: Decimal | None) -> QuoteFacts:
        return QuoteFacts(margin=margin, lines=(LineFacts(line_id="1"),))

    margins = [Decimal(9), Decimal(3), Decimal(8)]
    worst = evaluate_alternatives(POLICIES, [quote(margin) for margin in margins])
    assert [(v.policy_id, v.actual) for v in worst.violations] == [("margin_floor_finance", Decimal(3))]
    unknown = evaluate_alternatives(POLICIES, [quote(margin) for margin in (*margins, None, Decimal(1))])
    assert [violation.actual for violation in unknown.violations] == [None]


def test_each_set_decides_by_the_validity_it_gives():
    longer = build(
        changed("terms.yaml", "validity_days: 30", "validity_days: 45")
        | {"discounts.yaml": rules("validity_days > 40")}
    )
    shorter = build(SHIPPED_TEXTS | {"discounts.yaml": rules("validity_days > 40")})
    facts = QuoteFacts(margin=Decimal(40))
    assert decision_change(shorter, shorter, facts) is None
    change = decision_change(shorter, longer, facts)
    assert change is not None
    assert change.turn is Turn.ASKS


def test_a_set_is_told_by_subject():
    told = tables(POLICIES)
    assert list(told) == ["roles", "policies", "pricing", "terms", "rates", "tax"]
    assert told["policies"] == overview(POLICIES)
    assert told["roles"][1] == ["sales_manager", "commercial, 1 of 3", "only the highest that is needed", "4 hours"]
    assert told["pricing"][2][:4] == [
        "public_sector_services",
        'segment == "public" and line.category == "services"',
        "percentage",
        "-3",
    ]
    assert ["standard_payment_terms", "net_30"] in told["terms"]
    assert ["EUR", "1.08"] in told["rates"]
    assert ["US-TX", "5", "0", "6.25"] in told["tax"]
    assert all(len(row) == len(rows[0]) for rows in told.values() for row in rows)
