"""The shipped policies: the demo matrix at its exact boundaries, and a rate for everything the sample sells."""

import csv
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest
import yaml

from cpq.app.policy_files import load, run_tests
from cpq.base.errors import Code, CpqError
from cpq.base.rounding import Rounding
from cpq.base.row_files import read_rows
from cpq.domain.policy.evaluation import FactRead, LinesPast, Safe, Violation, evaluate
from cpq.domain.policy.facts import LineFacts, LineInputs, QuoteFacts, QuoteInputs, share
from cpq.domain.policy.files.cases import run_cases
from cpq.domain.policy.files.reference import json_schema
from cpq.domain.policy.files.shapes import FILES, OPTIONAL
from cpq.domain.policy.policy_kinds import PartPeriods, Severity, TaxRounding
from tests.support.engine import SAMPLE
from tests.support.policies import SHIPPED, policies

POLICIES = load(SHIPPED)
LINE = LineFacts(
    line_id="Q-1-ql-1",
    product_id="prod_pro_v2",
    sku="PLAN-PRO-001",
    category="saas",
    product_type="configurable",
    quantity=Decimal(150),
    billing_period="yearly",
    unit_price=Decimal(9),
    regular=Decimal(1500),
    net=Decimal(1350),
    discount=Decimal(10),
    discount_off_list=Decimal(10),
    margin=Decimal(80),
    cost=Decimal(270),
)
DEMO = QuoteFacts(
    currency="USD",
    term_months=Decimal(12),
    segment="mid_market",
    region="americas",
    country="US",
    gross=Decimal(1500),
    net=Decimal(1350),
    total=Decimal(1350),
    discount=Decimal(10),
    discount_off_list=Decimal(10),
    margin=Decimal(80),
    lines=(LINE,),
)
PLAIN = replace(DEMO, lines=(replace(LINE, discount=Decimal(0)),))


def with_discounts(*percents: str) -> QuoteFacts:
    lines = [replace(LINE, line_id=f"Q-1-ql-{n}", discount=Decimal(p)) for n, p in enumerate(percents, 1)]
    return replace(DEMO, lines=tuple(lines))


def test_ten_percent_on_the_demo_quote_is_one_violation_for_the_sales_manager():
    decision = evaluate(POLICIES, DEMO)
    assert decision.violations == (
        Violation(
            policy_id="discount_cap_sales_manager",
            policy_name="discount cap sales manager",
            severity=Severity.APPROVAL_REQUIRED,
            description="A discount of 10 % is above 5 %.",
            threshold=Decimal(5),
            actual=Decimal(10),
            required_approver_role="sales_manager",
            facts_read=(
                FactRead("line.discount", Decimal(10), Safe.LOWER),
                FactRead("line.discount by line", LinesPast((("Q-1-ql-1 prod_pro_v2", Decimal(10)),)), Safe.LOWER),
            ),
            line_ids=("Q-1-ql-1",),
            unit="percent",
        ),
    )
    assert (decision.required_roles, decision.chains) == (("sales_manager",), (("sales_manager",),))
    assert decision.approval_required
    assert not decision.is_blocked
    assert decision.policy_hash == POLICIES.content_hash


@pytest.mark.parametrize(
    ("discount", "roles"),
    [
        ("0", ()),
        ("4.99", ()),
        ("5", ()),
        ("5.000000000000000000001", ("sales_manager",)),
        ("5.01", ("sales_manager",)),
        ("20", ("sales_manager",)),
        ("20.01", ("vp_sales",)),
        ("30", ("vp_sales",)),
        ("30.01", ("vp_sales", "finance")),
        ("100", ("vp_sales", "finance")),
    ],
)
def test_a_discount_asks_whom_the_matrix_names(discount: str, roles: tuple[str, ...]):
    decision = evaluate(POLICIES, with_discounts("0", discount, "1"))
    assert decision.required_roles == roles
    assert {violation.actual for violation in decision.violations} <= {Decimal(discount)}
    assert {violation.line_ids for violation in decision.violations} <= {("Q-1-ql-2",)}


@pytest.mark.parametrize(
    ("margin", "roles"),
    [("9.99", ("finance",)), ("-3", ("finance",)), ("10", ()), ("10.01", ()), (None, ("finance",))],
)
def test_a_margin_under_ten_percent_or_unknown_asks_finance(margin: str | None, roles: tuple[str, ...]):
    decision = evaluate(POLICIES, replace(PLAIN, margin=None if margin is None else Decimal(margin)))
    assert decision.required_roles == roles


def test_an_unknown_margin_says_that_it_is_unknown():
    [violation] = evaluate(POLICIES, replace(PLAIN, margin=None)).violations
    assert (violation.policy_id, violation.threshold, violation.actual) == ("margin_floor_finance", Decimal(10), None)
    assert violation.description.startswith("A margin of unknown % is not known to reach 10 %")


@pytest.mark.parametrize(
    ("net", "currency", "roles"),
    [
        ("100000", "USD", ()),
        ("100000.01", "USD", ("deal_desk",)),
        ("500000", "USD", ("deal_desk",)),
        ("500000.01", "USD", ("vp_sales",)),
        ("92592.59", "EUR", ()),
        ("92592.60", "EUR", ("deal_desk",)),
        ("14925373", "JPY", ()),
        ("14925374", "JPY", ("deal_desk",)),
        ("1", "XPF", ("vp_sales",)),
    ],
)
def test_a_deal_asks_by_its_size_in_the_policys_currency(net: str, currency: str, roles: tuple[str, ...]):
    decision = evaluate(POLICIES, replace(PLAIN, gross=Decimal(net), net=Decimal(net), currency=currency))
    assert decision.required_roles == roles


def test_legal_is_asked_in_parallel_for_terms_and_for_export_control():
    controlled = replace(LINE, line_id="Q-1-ql-2", discount=Decimal(25), attributes={"export_controlled": True})
    facts = replace(PLAIN, payment_terms="net_60", lines=(*PLAIN.lines, controlled))
    decision = evaluate(POLICIES, facts)
    assert decision.chains == (("vp_sales",), ("legal",))
    assert [(violation.policy_id, violation.line_ids) for violation in decision.violations] == [
        ("discount_cap_vp_sales", ("Q-1-ql-2",)),
        ("export_control_legal", ("Q-1-ql-2",)),
        ("non_standard_terms_legal", ()),
    ]


def test_the_highest_commercial_authority_is_asked_and_every_other_chain():
    facts = replace(with_discounts("31"), net=Decimal(150_000), margin=Decimal(5), payment_terms="net_90")
    assert evaluate(POLICIES, facts).chains == (("vp_sales",), ("finance",), ("legal",))


def test_every_case_beside_the_shipped_policies_passes():
    results = run_tests(SHIPPED)
    assert [result for result in results if not result.is_passed] == []
    assert {result.file for result in results} == {
        name.replace(".yaml", "_test.yaml") for name in FILES if name not in OPTIONAL
    }


def test_every_account_of_the_sample_has_a_rate_for_everything_it_can_buy():
    zones = {row.values["tax_zone"] for row in read_rows(SAMPLE / "accounts.yaml", "accounts")}
    with (SAMPLE / "prices.csv").open(encoding="utf-8", newline="") as file:
        prices = list(csv.DictReader(file))
    categories, currencies = {row["tax_category"] for row in prices}, {row["currency"] for row in prices}
    rates = {(zone, category): POLICIES.tax_rate(zone, category).rate for zone in zones for category in categories}
    assert all(0 <= rate <= 25 for rate in rates.values())
    assert {rates["US-OH", category] for category in categories} == {Decimal(0)}
    assert currencies <= POLICIES.terms.rates.keys()


@pytest.mark.parametrize(
    ("zone", "category", "known", "near"),
    [("US-NY", "saas", "US-OH", None), ("DEE", "saas", "DE", ["DE"]), ("DE", "standrd", "standard", ["standard"])],
)
def test_a_zone_or_category_without_a_rate_is_an_error_that_names_the_known_ones(
    zone: str, category: str, known: str, near: list[str] | None
):
    with pytest.raises(CpqError) as caught:
        POLICIES.tax_rate(zone, category)
    assert caught.value.code is Code.CONFIGURATION_INVALID
    assert known in caught.value.details["known"]  # type: ignore[operator]
    if near:
        assert caught.value.details["nearest"][:1] == near  # type: ignore[index]


def test_the_pricing_rules_leave_the_demo_quote_alone_at_any_size_and_term():
    for term, quantity in ((None, 1), (12, 150), (36, 1_000_000)):
        quote = QuoteInputs(
            currency="USD",
            term_months=None if term is None else Decimal(term),
            segment="mid_market",
            region="americas",
            country="US",
        )
        line = LineInputs(product_id="prod_pro_v2", category="saas", quantity=Decimal(quantity))
        assert POLICIES.adjustments(quote, line) == ()


def test_the_terms_are_those_of_the_product():
    terms = POLICIES.terms
    assert (terms.validity_days, terms.approval_expiry_hours, terms.currency) == (30, 4, "USD")
    assert (terms.rounding, terms.tax_rounding) == (Rounding.HALF_UP, TaxRounding.GROUP)
    assert (terms.part_periods, terms.standard_payment_terms) == (PartPeriods.WHOLE_MONTHS, ("net_30",))


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_files_fit_the_schema_their_first_line_names(path: Path):
    text = path.read_text(encoding="utf-8")
    definition = text.splitlines()[0].partition("#/$defs/")[2]
    schema = json_schema()
    assert definition in schema["$defs"]
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})
    assert list(validator.iter_errors(yaml.safe_load(text))) == []


def test_a_share_of_nothing_is_nothing():
    assert share(Decimal(5), Decimal(0)) == 0
    assert share(Decimal(1), Decimal(8)) == Decimal("12.5")


def test_the_examples_of_the_readme_load_and_pass():
    text = (SHIPPED / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    guards = "".join(block for block in blocks if block.startswith(("rules", "ladders", "define")))
    assert len(policies(discounts=guards).rules) == 1
    [tax] = [block for block in blocks if block.startswith("categories")]
    assert policies(tax=tax).tax_rate("FR-B2B", "standard").code == "K"
    [cases] = [block for block in blocks if block.startswith("decisions")]
    assert all(result.is_passed for result in run_cases(POLICIES, {"readme_test.yaml": cases}))
