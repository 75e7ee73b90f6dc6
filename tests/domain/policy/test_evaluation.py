"""Decisions: never an exception, never fewer roles for more discount, and the same whatever the order of things."""

import random
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.app.policy_files import load
from cpq.base.errors import Code, CpqError
from cpq.domain.policy.evaluation import (
    FactRead,
    LinesPast,
    PolicyDecision,
    Safe,
    evaluate,
    evaluate_alternatives,
    is_no_worse,
)
from cpq.domain.policy.facts import LineFacts, LineInputs, Part, QuoteFacts, QuoteInputs
from cpq.domain.policy.files.builder import build
from cpq.domain.policy.language.compiler import KEPT_LINES_MAX
from cpq.domain.policy.policy_kinds import Severity
from cpq.domain.policy.policy_set import Adjustment, Roles
from tests.support.policies import MINIMAL, SHIPPED, policies, quotes, rules

SHIPPED_SET = load(SHIPPED)
EVERYTHING = policies(
    discounts="""
define: {large: net_value > 100000, larger: large and gross_value > 200000}
ladders:
  - id: saas_cap
    over: line.discount
    where: line.category == "saas" and (large or line.margin < 30)
    steps:
      - {id: saas_manager, above: 5, then: {severity: approval_required, role: sales_manager}}
      - {id: saas_vp, above: 20, then: {severity: approval_required, role: vp_sales}}
      - {id: saas_stop, above: 60, then: {severity: block}}
  - id: margin_ladder
    over: margin
    where: not larger
    steps:
      - {id: thin, under: 20, then: {severity: warning}}
      - {id: thinner, under: 10, down_to: 0, then: {severity: approval_required, role: finance}}
      - {id: negative, under: 0, then: {severity: approval_required, role: finance}}
  - id: ratio
    over: line.cost / line.net
    steps: [{id: costly, above: 0.9, then: {severity: warning}}]
"""
    + rules(
        "net / gross > 0.5",
        "any(line.net / line.quantity > 1000 for line in lines if line.attributes.hp > 30)",
        "sum(line.net for line in lines) > net + 1 or max(line.margin for line in lines) < 3",
        'larger and region in {"emea", "apac"}',
        "(term_months if has_term else 12) * 2 > 72",
        'count(line.attributes.export_controlled for line in lines if line.category != "saas") >= 2',
    )
)
SETS = [SHIPPED_SET, EVERYTHING]


def plain(**facts: object) -> QuoteFacts:
    return QuoteFacts(**{"margin": Decimal(40), "gross": Decimal(100), "net": Decimal(100), **facts})  # type: ignore[arg-type] # Any facts.


def ids(decision: PolicyDecision) -> list[str]:
    return [violation.policy_id for violation in decision.violations]


@pytest.mark.parametrize("policy_set", SETS, ids=["shipped", "everything"])
@given(facts=quotes)
def test_a_decision_is_always_reached_and_consistent(policy_set, facts: QuoteFacts):
    decision = evaluate(policy_set, facts)
    asked = {violation.required_approver_role for violation in decision.violations} - {None}
    assert set(decision.required_roles) <= asked
    assert decision.approval_required is bool(asked) is bool(decision.required_roles)
    assert decision.is_blocked is any(v.severity is Severity.BLOCK for v in decision.violations)
    for violation in decision.violations:
        needs_role = violation.severity is Severity.APPROVAL_REQUIRED
        assert (violation.required_approver_role is not None) is needs_role
        assert violation.description
        assert set(violation.line_ids) <= {line.line_id for line in facts.lines}


@pytest.mark.parametrize("policy_set", SETS, ids=["shipped", "everything"])
@given(facts=quotes, seed=st.integers(0, 1000))
def test_the_order_of_lines_changes_nothing(policy_set, facts: QuoteFacts, seed: int):
    lines = list(facts.lines)
    random.Random(seed).shuffle(lines)
    assert evaluate(policy_set, replace(facts, lines=tuple(lines))) == evaluate(policy_set, facts)


@given(facts=quotes, seed=st.integers(0, 1000))
def test_the_order_of_rules_changes_nothing(facts: QuoteFacts, seed: int):
    written = [f"  - {{id: r{n}, when: 'discount > {n}', then: {{severity: warning}}}}\n" for n in range(6)]
    shuffled = random.Random(seed).sample(written, len(written))
    one, other = (policies(discounts="rules:\n" + "".join(part)) for part in (written, shuffled))
    assert evaluate(one, facts) == evaluate(other, facts)
    assert one.content_hash == other.content_hash


@given(facts=quotes, more=st.lists(st.decimals(0, 40, places=2), min_size=5, max_size=5))
def test_more_discount_never_needs_fewer_roles(facts: QuoteFacts, more: list[Decimal]):
    deeper = tuple(
        replace(line, discount=min(line.discount + extra, Decimal(100)))
        for line, extra in zip(facts.lines, more, strict=False)
    )
    before, after = evaluate(SHIPPED_SET, facts), evaluate(SHIPPED_SET, replace(facts, lines=deeper))
    assert authority(after) >= authority(before)
    assert set(after.required_roles) - COMMERCIAL >= set(before.required_roles) - COMMERCIAL


COMMERCIAL = {"sales_manager", "deal_desk", "vp_sales"}


def authority(decision: PolicyDecision) -> int:
    ranks = SHIPPED_SET.roles.commercial
    return max((ranks.index(role) + 1 for role in decision.required_roles if role in ranks), default=0)


@given(facts=quotes)
def test_a_fact_that_moved_the_safe_way_never_makes_a_new_violation(facts: QuoteFacts):
    """What fact-minimal re-approval rests on: the recorded direction is the safe one."""
    # Gross falls with net: otherwise the discount in money would grow.
    less = facts.net / 2
    better = replace(facts, margin=facts.margin and facts.margin + 10, net=facts.net - less, gross=facts.gross - less)
    before, after = evaluate(SHIPPED_SET, facts), evaluate(SHIPPED_SET, better)
    for violation in before.violations:
        for read in violation.facts_read:
            if read.name == "margin":
                assert read.safe is Safe.HIGHER
            if read.name == "net_value":
                assert read.safe is Safe.LOWER
    assert set(after.required_roles) - COMMERCIAL <= set(before.required_roles) - COMMERCIAL
    assert authority(after) <= authority(before)


def test_an_unknown_condition_fires():
    policy_set = policies(discounts=rules("margin < 10", "margin < 10 and discount > 50", "not margin >= 11 or false"))
    assert ids(evaluate(policy_set, plain(margin=None))) == ["r0", "r2"]


def test_a_condition_that_cannot_be_worked_out_blocks_the_quote():
    policy_set = policies(discounts=rules("net / gross > 2"))
    [violation] = evaluate(policy_set, plain(gross=Decimal(0))).violations
    assert (violation.policy_id, violation.severity) == ("r0", Severity.BLOCK)
    assert violation.required_approver_role is None
    assert violation.description == "r0 cannot be worked out for this quote, so the quote is blocked"


@pytest.mark.parametrize("condition", ["net / gross > 2 or line_count > 5", "not is_standard_terms or net / gross > 2"])
def test_a_part_of_a_condition_that_cannot_be_worked_out_blocks_the_quote(condition: str):
    policy_set = policies(discounts=rules(condition, "discount >= 0", then="{severity: warning}"))
    nothing = plain(gross=Decimal(0))
    assert [(found.policy_id, found.severity) for found in evaluate(policy_set, nothing).violations] == [
        ("r0", Severity.BLOCK),
        ("r1", Severity.WARNING),
    ]
    for alternatives in ([nothing, plain()], [plain(), nothing]):
        assert evaluate_alternatives(policy_set, alternatives).is_blocked


def test_a_ladder_that_cannot_be_worked_out_blocks_the_quote():
    ladder = "{id: l, over: line.cost / line.net, steps: [{id: s, above: 1, then: {severity: warning}}]}"
    policy_set = policies(discounts=f"ladders: [{ladder}]")
    facts = plain(lines=(LineFacts(line_id="1", cost=Decimal(1)),))
    assert evaluate(policy_set, facts).is_blocked


@pytest.mark.parametrize(
    ("margin", "expected"),
    [
        ("20", []),
        ("19.99", ["thin"]),
        ("10", ["thin"]),
        ("9.99", ["thinner"]),
        ("0", ["thinner"]),
        ("-1", ["negative"]),
    ],
)
def test_a_falling_ladder_speaks_under_its_bounds(margin: str, expected: list[str]):
    found = ids(evaluate(EVERYTHING, plain(margin=Decimal(margin), gross=Decimal(300))))
    assert [id_ for id_ in found if id_ in ("thin", "thinner", "negative")] == expected


def test_an_unknown_number_climbs_a_ladder_to_its_end():
    assert "negative" in ids(evaluate(EVERYTHING, plain(margin=None)))


def test_a_line_whose_number_is_unknown_is_the_worst_and_is_blamed():
    steps = "[{id: thin, under: 20, then: {severity: warning}}, {id: thinner, under: 10, then: {severity: block}}]"
    policy_set = policies(discounts=f"ladders: [{{id: floor, over: line.margin, steps: {steps}}}]")
    known, unknown = LineFacts(line_id="1", product_id="a", margin=Decimal(15)), LineFacts(line_id="2", product_id="b")
    [violation] = evaluate(policy_set, plain(lines=(known,))).violations
    assert (violation.policy_id, violation.actual, violation.line_ids) == ("thin", Decimal(15), ("1",))
    [violation] = evaluate(policy_set, plain(lines=(known, unknown))).violations
    assert (violation.policy_id, violation.actual, violation.line_ids) == ("thinner", None, ("2",))
    past = LinesPast((("1 a", Decimal(15)), ("2 b", None)))
    assert violation.facts_read == (
        FactRead("line.margin", None, Safe.HIGHER, is_secret=True),
        FactRead("line.margin by line", past, Safe.HIGHER, is_secret=True),
    )
    assert violation.is_secret
    assert evaluate(policy_set, plain(lines=())).violations == ()


def test_a_ladder_counts_only_the_lines_it_is_about():
    saas = LineFacts(
        line_id="1", category="saas", discount=Decimal(10), margin=Decimal(20), cost=Decimal(0), net=Decimal(9)
    )
    other = replace(saas, line_id="2", category="tanks", discount=Decimal(99))
    rich = replace(saas, line_id="3", margin=Decimal(90), discount=Decimal(99))
    assert "saas_manager" in ids(evaluate(EVERYTHING, plain(lines=(saas, other, rich))))
    nothing = ids(evaluate(EVERYTHING, plain(lines=(other, rich))))
    assert not [id_ for id_ in nothing if id_.startswith("saas")]
    unknown = evaluate(EVERYTHING, plain(lines=(replace(rich, margin=None), other)))
    assert unknown.is_blocked
    assert "saas_stop" in ids(unknown)


def test_violations_are_listed_by_stage_priority_specificity_and_id():
    guard = "{{id: {}, when: {}, priority: {}, then: {{severity: warning}}}}"
    listed = ", ".join(
        [
            guard.format("b_plain", '"net > 1"', 0),
            guard.format("a_plain", '"net > 2"', 0),
            guard.format("z_specific", '"net > 3 and gross > 1"', 0),
            guard.format("y_first", '"net > 4"', 5),
            guard.format("x_last", '"net > 5"', -5),
        ]
    )
    approvals = MINIMAL["approvals.yaml"] + "rules: [" + guard.format("a_later", '"net > 6"', 1000) + "]\n"
    decision = evaluate(policies(discounts=f"rules: [{listed}]", approvals=approvals), plain())
    assert ids(decision) == ["y_first", "z_specific", "a_plain", "b_plain", "x_last", "a_later"]


@pytest.mark.parametrize(
    ("condition", "threshold", "actual", "lines"),
    [
        ("net > 50", 50, 100, ()),
        ("50 < net", 50, 100, ()),
        ("any(line.discount > 5 for line in lines)", 5, 9, ("1", "3")),
        ("any(6 > line.discount for line in lines)", 6, 2, ("2",)),
        ('any(line.discount > 5 for line in lines if line.category == "saas")', 5, 6, ("3",)),
        ("net > 50 and any(line.discount > 5 for line in lines)", None, None, ("1", "3")),
        ("all(line.discount < 50 for line in lines)", None, None, ()),
        ("net > gross - 1", None, None, ()),
    ],
)
def test_threshold_actual_and_lines_come_from_the_condition(
    condition: str, threshold: int | None, actual: int | None, lines: tuple[str, ...]
):
    facts = plain(
        lines=(
            LineFacts(line_id="1", discount=Decimal(9)),
            LineFacts(line_id="2", discount=Decimal(2)),
            LineFacts(line_id="3", discount=Decimal(6), category="saas"),
        ),
        discount=Decimal(9),
    )
    [violation] = evaluate(policies(discounts=rules(condition)), facts).violations
    assert (violation.threshold, violation.actual, violation.line_ids) == (threshold, actual, lines)


@pytest.mark.parametrize("count", [3, KEPT_LINES_MAX + 1], ids=["kept", "worked out again"])
def test_rules_that_share_a_condition_on_lines_blame_each_its_own(count: int):
    shared = 'any(line.category == "saas" and line.quantity > {} for line in lines)'
    several = policies(
        discounts=rules(shared.format(1), shared.format(2), 'any(line.category == "saas" for line in lines)')
    )
    lines = [
        LineFacts(line_id=f"{number:04}", category=("saas", "tanks")[number % 2], quantity=Decimal(number))
        for number in range(count)
    ]
    blamed = {v.policy_id: v.line_ids for v in evaluate(several, plain(lines=tuple(lines))).violations}
    even = [line.line_id for line in lines[::2]]
    expected = {"r0": even[1:], "r1": even[2:], "r2": even}
    assert blamed == {id_: tuple(found) for id_, found in expected.items() if found}


def test_a_rule_may_say_what_is_measured_and_how_to_put_it():
    text = """
rules:
  - id: thin
    name: thin deals
    when: margin < 50 and net > 1
    threshold: 50
    actual: margin + 0.123456
    then: {severity: warning, message: "{actual} is under {threshold}"}
"""
    [violation] = evaluate(policies(discounts=text), plain()).violations
    assert violation.description == "40.1235 is under 50"
    assert violation.actual == Decimal("40.123456")
    assert violation.policy_name == "thin deals"


def test_a_violation_keeps_the_facts_it_rests_on_and_their_safe_direction():
    condition = 'margin < 50 and any(line.discount > 5 for line in lines) and currency != "GBP" and net_value > 1'
    lines = (LineFacts(line_id="2", product_id="b", discount=Decimal(6)), LineFacts(line_id="1", product_id="a"))
    [violation] = evaluate(policies(discounts=rules(condition)), plain(currency="EUR", lines=lines)).violations
    assert violation.facts_read == (
        FactRead("currency", "EUR", Safe.SAME),
        FactRead("line.discount", (("1 a", Decimal(0)), ("2 b", Decimal(6))), Safe.LOWER),
        FactRead("margin", Decimal(40), Safe.HIGHER, is_secret=True),
        FactRead("net_value", Decimal(110), Safe.LOWER),
    )


@pytest.mark.parametrize(
    ("safe", "before", "after", "expected"),
    [
        (Safe.LOWER, Decimal(5), Decimal(4), True),
        (Safe.LOWER, Decimal(5), Decimal("5.0"), True),
        (Safe.LOWER, Decimal(5), Decimal(6), False),
        (Safe.HIGHER, Decimal(5), Decimal(6), True),
        (Safe.HIGHER, Decimal(5), Decimal(4), False),
        (Safe.SAME, Decimal(5), Decimal(4), False),
        (Safe.SAME, "EUR", "EUR", True),
        (Safe.SAME, "EUR", "USD", False),
        (Safe.LOWER, None, None, False),
        (Safe.SAME, (("1", None),), (("1", None),), False),
        (Safe.LOWER, None, Decimal(0), False),
        (Safe.LOWER, Decimal(5), None, False),
        (Safe.HIGHER, False, True, True),
        (Safe.LOWER, False, True, False),
        (Safe.LOWER, (("1", Decimal(5)), ("2", Decimal(5))), (("1", Decimal(5)), ("2", Decimal(1))), True),
        (Safe.LOWER, (("1", Decimal(5)), ("2", Decimal(5))), (("1", Decimal(6)), ("2", Decimal(1))), False),
        (Safe.LOWER, (("1", Decimal(5)),), (("1", Decimal(5)), ("2", Decimal(0))), False),
        (Safe.LOWER, LinesPast((("1", Decimal(6)), ("2", Decimal(9)))), LinesPast((("2", Decimal(8)),)), True),
        (Safe.LOWER, LinesPast((("1", Decimal(6)), ("2", Decimal(9)))), LinesPast((("1", Decimal(9)),)), False),
        (Safe.LOWER, LinesPast((("1", Decimal(9)),)), LinesPast((("2", Decimal(6)),)), False),
        (Safe.HIGHER, LinesPast((("1", None),)), LinesPast((("1", None),)), False),
    ],
)
def test_an_approval_stands_on_a_fact_that_stayed_or_moved_the_safe_way(safe, before, after, expected: bool):
    assert is_no_worse(FactRead("x", before, safe), FactRead("x", after, safe)) is expected
    assert not is_no_worse(FactRead("x", before, safe), FactRead("y", after, safe))


def test_the_commercial_chain_may_ask_each_role_in_turn():
    roles = Roles(("a", "b", "c"), ("x", "y"), asks_each=True)
    assert roles.chains(frozenset({"y", "c", "a"})) == (("a", "c"), ("y",))
    assert replace(roles, asks_each=False).chains(frozenset({"y", "c", "a", "x"})) == (("c",), ("x",), ("y",))
    assert roles.chains(frozenset()) == ()


def test_blocks_and_warnings_ask_nobody():
    text = (
        rules("net > 1", then="{severity: warning}").replace("r0", "w") + rules("net > 2", then="{severity: block}")[7:]
    )
    decision = evaluate(policies(discounts=text), plain())
    assert [violation.severity for violation in decision.violations] == [Severity.BLOCK, Severity.WARNING]
    assert decision.is_blocked
    assert not decision.approval_required


PRICING = """
rules:
  - {id: z_percent, when: "line.quantity >= 10", then: {percentage: -5, stacking: best_of}}
  - {id: fee, when: 'currency == "EUR"', then: {amount: 2.50}}
  - {id: a_percent, when: "has_term and term_months >= 36", then: {percentage: -4, base: list}}
  - {id: long, when: "term_months >= 24", then: {percentage: 1}}
  - {id: rush, when: 'line.category in {"saas"} or line.attributes.hp > 100', then: {markup: 10, base: list}}
  - {id: first, when: "segment != 'smb'", priority: 9, then: {percentage: 3}}
  - {id: flat, when: "line.quantity > 100", then: {amount: -7, base: line}}
"""


def test_adjustments_come_as_markups_percentages_amounts_each_by_priority_specificity_and_id():
    quote = QuoteInputs(currency="EUR", term_months=Decimal(36), segment="public")
    line = LineInputs(category="saas", quantity=Decimal(200))
    assert policies(pricing=PRICING).adjustments(quote, line) == (
        Adjustment("rush", "rush", "markup", Decimal(10), "list", "sequential"),
        Adjustment("first", "first", "percentage", Decimal(3), "running", "sequential"),
        Adjustment("a_percent", "a percent", "percentage", Decimal(-4), "list", "sequential"),
        Adjustment("long", "long", "percentage", Decimal(1), "running", "sequential"),
        Adjustment("z_percent", "z percent", "percentage", Decimal(-5), "running", "best_of"),
        Adjustment("fee", "fee", "amount", Decimal("2.50"), "unit", "sequential"),
        Adjustment("flat", "flat", "amount", Decimal(-7), "line", "sequential"),
    )


def test_an_unknown_changes_no_price():
    assert policies(pricing=PRICING).adjustments(QuoteInputs(segment="smb"), LineInputs()) == ()


def test_a_pricing_rule_that_cannot_be_worked_out_stops_the_pricing():
    text = 'rules: [{id: odd, when: "1 / (line.quantity - 1) > 2", then: {markup: 1}}]'
    with pytest.raises(CpqError) as caught:
        policies(pricing=text).adjustments(QuoteInputs(), LineInputs(line_id="1"))
    assert caught.value.code is Code.POLICY_BLOCKED
    assert caught.value.details == {"policy_id": "odd", "line_id": "1"}


QUOTE_FIRST = """
rules:
  - {id: a, when: 'region == "emea" and line.category == "saas"', then: {markup: 1}}
  - {id: b, when: 'line.quantity > 2 and region == "emea"', then: {markup: 2}}
  - {id: c, when: 'term_months > 12 and has_term and line.quantity > 1', then: {markup: 3}}
  - {id: d, when: 'region == "apac" or line.quantity > 5', then: {markup: 4}}
  - {id: e, when: 'not (currency == "USD")', then: {markup: 5}}
"""


@pytest.mark.parametrize("text", [PRICING, QUOTE_FIRST], ids=["lines first", "quote first"])
@given(facts=quotes)
def test_a_pricing_rule_is_left_out_only_when_it_applies_to_no_line(text: str, facts: QuoteFacts):
    policy_set = policies(pricing=text)
    environment = policy_set.environment(facts)
    rules_ = policy_set.pricing_within(environment)
    for line in facts.lines:
        whole = policy_set.adjustments_within(environment, line, policy_set.pricing)
        assert policy_set.adjustments_within(environment, line, rules_) == whole


@pytest.mark.parametrize(
    ("when", "is_asked"),
    [
        ('region == "apac" and line.quantity > 1', False),
        ('region == "emea" and line.quantity > 1', True),
        ('line.quantity > 1 and region == "apac"', True),
        ('region == "apac" or line.quantity > 1', True),
        ('region == "apac"', False),
        ("term_months > 12 and line.quantity > 1", True),
        ('term_months > 12 and region == "apac" and line.quantity > 1', False),
        ('1 / ((1 if has_term else 1) - 1) > 2 and region == "apac"', True),
    ],
)
def test_what_stands_before_the_lines_decides_whether_they_are_asked(when: str, is_asked: bool):
    policy_set = policies(pricing=f"rules: [{{id: r, when: '{when}', then: {{markup: 1}}}}]")
    found = policy_set.pricing_within(policy_set.environment(QuoteInputs(region="emea")))
    assert bool(found) is is_asked


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "1E+31", "1E-101"])
def test_facts_are_numbers_of_a_sensible_size(wrong: str):
    with pytest.raises(ValueError, match="margin is a finite number"):
        QuoteFacts(margin=Decimal(wrong))
    with pytest.raises(ValueError, match="cost is a finite number"):
        LineFacts(cost=Decimal(wrong))


def test_the_smallest_set_asks_nobody():
    assert evaluate(build(MINIMAL), plain(margin=None)).violations == ()


@pytest.mark.parametrize(
    ("condition", "lines", "is_spoken"),
    [
        ('any(line.category == "tanks" for line in lines)', ("1",), True),
        ('all(line.category == "saas" for line in lines)', (), False),
        ("max(line.attributes.hp for line in lines) > 7", (), True),
        ('"tanks" in categories', (), True),
        ("line_count > 2", (), False),
        ("count(line.quantity > 0 for line in lines) > 2", (), False),
        ("sum(line.net for line in lines) > 20", (), False),
        ('any(line.category == "tanks" and line.discount > 8 for line in lines)', ("1",), True),
        ('any(line.category == "tanks" and line.discount > 9 for line in lines)', (), False),
    ],
)
def test_what_is_inside_a_bundle_is_looked_at_but_not_counted(condition: str, lines: tuple[str, ...], is_spoken: bool):
    hp = {"hp": Decimal(1)}
    tank = Part("prod_tank", category="tanks", attributes={"hp": Decimal(8)})
    parts = (tank, Part("prod_b", category="saas", attributes=hp))
    kit = LineFacts(line_id="1", category="saas", net=Decimal(10), discount=Decimal(9), attributes=hp, parts=parts)
    other = LineFacts(line_id="2", category="saas", net=Decimal(10), attributes=hp)
    found = evaluate(policies(discounts=rules(condition)), plain(lines=(kit, other))).violations
    assert [violation.line_ids for violation in found] == ([lines] if is_spoken else [])


def test_a_ladder_about_a_category_reaches_into_bundles():
    steps = "[{id: cap, above: 5, then: {severity: block}}]"
    where = "'line.category == \"tanks\"'"
    policy_set = policies(discounts=f"ladders: [{{id: tanks, over: line.discount, where: {where}, steps: {steps}}}]")
    parts = (Part("prod_tank", category="tanks"),)
    kit = LineFacts(line_id="1", product_id="prod_kit", category="saas", discount=Decimal(9), parts=parts)
    [violation] = evaluate(policy_set, plain(lines=(kit,))).violations
    assert (violation.line_ids, violation.facts_read[1].value) == (
        ("1",),
        LinesPast((("1 prod_kit with prod_tank", Decimal(9)),)),
    )


def test_an_attribute_that_no_product_names_has_its_declared_value():
    """Kept approvals compare it: what is absent is known, what is unknown is not."""
    [violation] = evaluate(
        policies(discounts=rules("any(line.attributes.export_controlled or line.attributes.hp > 9 for line in lines)")),
        plain(lines=(LineFacts(line_id="1", product_id="a"),)),
    ).violations
    reads = {read.name: read.value for read in violation.facts_read}
    assert reads == {"line.attributes.export_controlled": (("1 a", False),), "line.attributes.hp": (("1 a", None),)}
