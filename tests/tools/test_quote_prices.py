"""What a quote costs and what the policies say of it: Q-04, Q-24 to Q-28."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.app import App
from cpq.base.settings import Settings, read_settings, shipped
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import (
    ACME,
    SEATS,
    assert_adds_up,
    assert_sound,
    exact,
    new_quote,
    put_into,
    sent_quote,
    status_of,
    stored,
)

PRODUCTS = ("prod_pro_v2", "prod_fc150", "prod_oil_screw", "prod_enterprise_v2", "prod_bdl_qmb30", "prod_tk240v")
ACCOUNTS = (
    (ACME, "USD"),
    ("acct_lonestar_004", "USD"),
    ("acct_laurentide_009", "USD"),
    ("acct_fromagerie_014", "EUR"),
    ("acct_polder_017", "EUR"),
    ("acct_hikari_020", "JPY"),
)
STORED_STATES = ("pending_approval", "approved", "sent", "accepted", "declined", "cancelled")

percents = st.decimals(0, 100, places=6) | st.integers(0, 100)
lines = st.lists(
    st.fixed_dictionaries(
        {"product_id": st.sampled_from(PRODUCTS), "quantity": st.integers(1, 400), "discount_pct": percents.map(str)}
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def lasting_tools(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory):
    """One store for all examples of a property; quotes do not see each other."""
    home = tmp_path_factory.mktemp("lasting")
    shutil.copy(sqlite_template, home / "quotewright.db")
    app = open_app(read_settings({}, home=home, rate_limit_per_minute=0))
    yield Tools(app)
    app.close()


def without_time(answer: dict[str, Any], quote_id: str) -> str:
    """An answer as text without what names the moment or the quote."""
    kept = {**answer, "pricing": {**answer["pricing"], "priced_at": None}}
    return json.dumps({**kept, "number": "", "edit": 0, "outcome": ""}, sort_keys=True).replace(quote_id, "Q")


def test_q26_the_worked_example(tools: Tools):
    quote_id = new_quote(tools)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert priced["pricing"].pop("priced_at").endswith("Z")
    assert len(priced.pop("fingerprint")) == 64
    assert priced == {
        "quote_id": quote_id,
        "number": "2026-000001",
        "version": 1,
        "edit": 2,
        "status": "draft",
        "requested_discount_pct": 10,
        "pricing": {"subtotal": 1500, "discount_total": 150, "tax_total": 0, "total": 1350},
        "tax_groups": [{"category_code": "Z", "category": "saas", "rate": 0, "base": 1350, "tax": 0}],
        "line_pricing": [
            {
                "line_id": f"{quote_id}-ql-1",
                "product_id": "prod_pro_v2",
                "product_name": "Pro Plan",
                "quantity": 150,
                "base_unit_price": 10,
                "unit_price": 9,
                "base_unit_price_per_period": 10,
                "unit_price_per_period": 9,
                "billing_period": "yearly",
                "periods": 1,
                "selling_model": "yearly",
                "subtotal_before_discount": 1500,
                "discount_pct": 10,
                "line_discount_pct": 0,
                "discount_amount": 150,
                "line_total": 1350,
            }
        ],
        "approval_required": True,
        "required_roles": ["sales_manager"],
        "policy_violations": [
            {
                "policy_id": "discount_cap_sales_manager",
                "policy_name": "discount cap sales manager",
                "severity": "approval_required",
                "description": "A discount of 10 % is above 5 %.",
                "threshold": 5,
                "actual": 10,
                "unit": "percent",
                "required_approver_role": "sales_manager",
            }
        ],
        "warnings": [],
        "stored": True,
        "outcome": "changed",
        "message": "This price is stored.",
        "replayed": False,
    }


@pytest.mark.parametrize("value", [-1, 100.5, "NaN", "inf", float("nan"), float("inf"), True, "ten", [], "1e400"])
def test_q24_a_request_that_is_no_percentage_is_refused(tools: Tools, value: object):
    quote_id = new_quote(tools)
    before = stored(tools.app)
    error = tools.error("quote_price", quote_id=quote_id, requested_discount_pct=value)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/requested_discount_pct")
    assert stored(tools.app) == before


@pytest.mark.parametrize(
    ("line_discount", "requested", "actual"),
    [
        (0, 5, None),
        (5, 0, None),
        ("5.01", 0, 5.01),
        (4, 4, 7.84),
        (0, "5.000001", 5),
        (3, "2.062", 5),
        (3, "2.061", None),
    ],
)
def test_q24_the_policy_sees_line_and_request_together(sqlite_tools: Tools, line_discount, requested, actual):
    quote_id = new_quote(sqlite_tools, {**SEATS, "discount_pct": line_discount})
    priced = sqlite_tools("quote_price", quote_id=quote_id, requested_discount_pct=requested)
    found = [violation["actual"] for violation in priced["policy_violations"]]
    if actual is None:
        assert found == []
    else:
        assert [round(value, 2) for value in found] == [actual]


def test_q24_a_discount_cannot_hide_on_a_small_line_of_a_large_quote(tools: Tools):
    big = {"product_id": "prod_enterprise_v2", "quantity": 3000}
    quote_id = new_quote(tools, big, {**SEATS, "quantity": 1, "discount_pct": 50})
    priced = tools("quote_price", quote_id=quote_id)
    caps = {v["policy_id"]: v["actual"] for v in priced["policy_violations"] if "discount" in v["policy_id"]}
    assert caps == {"discount_cap_vp_sales": 50, "discount_review_finance": 50}


@settings(max_examples=40)
@given(lines=lines, requested=percents.map(str), buyer=st.sampled_from(ACCOUNTS))
def test_q25_everything_adds_up_to_the_last_minor_unit(lasting_tools: Tools, lines, requested, buyer):
    account, currency = buyer
    tools = lasting_tools
    quote_id = new_quote(tools, *lines, account_id=account, currency=currency)
    plain = tools("quote_price", quote_id=quote_id)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=requested)
    for answer in (plain, priced):
        assert_adds_up(answer)
    for before, after in zip(plain["line_pricing"], priced["line_pricing"], strict=True):
        assert 0 <= exact(after["line_total"]) <= exact(before["line_total"])
    read = tools("quote_get", quote_id=quote_id)
    assert read["pricing"] == priced["pricing"]
    assert [line["line_total"] for line in read["line_items"]] == [
        line["line_total"] for line in priced["line_pricing"]
    ]
    needs_role = any(violation["required_approver_role"] for violation in priced["policy_violations"])
    assert priced["approval_required"] is needs_role


@settings(max_examples=25)
@given(lines=lines, requested=percents.map(str), order=st.randoms(use_true_random=False))
def test_q27_the_order_of_the_lines_changes_no_price(lasting_tools: Tools, lines, requested, order):
    shuffled = list(enumerate(lines))
    order.shuffle(shuffled)
    quotes = [new_quote(lasting_tools, *lines), new_quote(lasting_tools, *(line for _, line in shuffled))]
    first, second = (lasting_tools("quote_price", quote_id=id_, requested_discount_pct=requested) for id_ in quotes)
    totals = ("subtotal", "discount_total", "tax_total", "total")
    assert [first["pricing"][name] for name in totals] == [second["pricing"][name] for name in totals]
    for place, (original, line) in enumerate(shuffled):
        one, other = first["line_pricing"][original], second["line_pricing"][place]
        assert one["subtotal_before_discount"] == other["subtotal_before_discount"]
        # Equal lines may swap the cent that the split of the quote's discount leaves over.
        if lines.count(line) == 1:
            assert abs(exact(one["line_total"]) - exact(other["line_total"])) <= exact("0.01")


@settings(max_examples=15)
@given(lines=lines, requested=percents.map(str), buyer=st.sampled_from(ACCOUNTS))
def test_q27_both_databases_give_the_same_price(both_tools: tuple[Tools, Tools], lines, requested, buyer):
    account, currency = buyer
    answers = []
    for tools in both_tools:
        quote_id = new_quote(tools, *lines, account_id=account, currency=currency)
        priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=requested)
        answers.append(without_time(priced, quote_id))
    assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def both_tools(lasting_tools: Tools, cluster, postgres_template: str):
    url = cluster.url(engine.copy_of(cluster, postgres_template))
    other = open_app(read_settings({}, database_url=url, rate_limit_per_minute=0))
    yield lasting_tools, Tools(other)
    other.close()


def test_q27_pricing_twice_changes_nothing(app: App, tools: Tools):
    quote_id = new_quote(tools, {**SEATS, "discount_pct": "3.3"}, {"product_id": "prod_fc150", "quantity": 7})
    first = tools("quote_price", quote_id=quote_id, requested_discount_pct="7.77")
    before = stored(app)
    again = tools("quote_price", quote_id=quote_id, requested_discount_pct=7.77)
    assert again == {**first, "outcome": "no_change"}
    del before["idempotency"]
    assert {name: rows for name, rows in stored(app).items() if name != "idempotency"} == before


def test_q27_another_request_is_another_price_and_going_back_gives_the_first_again(tools: Tools):
    quote_id = new_quote(tools)
    answers = [tools("quote_price", quote_id=quote_id, requested_discount_pct=percent) for percent in (10, 20, 10)]
    assert [answer["pricing"]["total"] for answer in answers] == [1350, 1200, 1350]
    assert without_time(answers[0], quote_id) == without_time(answers[2], quote_id)
    assert answers[0]["fingerprint"] != answers[1]["fingerprint"]


def test_q27_the_price_is_stored_with_the_hashes_of_its_inputs(app: App, tools: Tools):
    quote_id = new_quote(tools)
    priced = tools("quote_price", quote_id=quote_id)
    (version,) = stored(app)["quote_version"]
    hashes = next(value for value in version if isinstance(value, dict))
    assert hashes.keys() == {"catalog", "policies", "request", "result"}
    assert all(len(value) == 64 for value in hashes.values())
    assert priced["fingerprint"] not in hashes.values()
    assert assert_sound(app) == 1


def test_q27_a_fingerprint_does_not_let_its_reader_try_out_costs(app: App, tools: Tools):
    """A customer knows every amount but the cost, so what is hashed for them must not depend on it."""
    before = tools("quote_price", quote_id=new_quote(tools))
    with app.database.writing(app.effects.monotonic() + 5) as connection:
        connection.exec_driver_sql("UPDATE price SET cost = cost + 1000000")
        connection.exec_driver_sql("UPDATE catalog_revision SET revision = 'another'")
    after = tools("quote_price", quote_id=new_quote(tools))
    hashes = [next(value for value in version if isinstance(value, dict)) for version in stored(app)["quote_version"]]
    assert hashes[0]["result"] != hashes[1]["result"]
    assert before["fingerprint"] == after["fingerprint"]
    assert assert_sound(app) == 2


def test_q27_a_change_in_the_catalogue_changes_a_draft_only_when_it_is_priced_again(app: App, tools: Tools):
    quote_id, sent = new_quote(tools), sent_quote(tools)
    tools("quote_price", quote_id=quote_id)
    row = {"product_id": "prod_pro_v2", "account_id": ACME, "currency": "USD", "unit_price": "8"}
    engine.import_dicts(app, "prices", {**row, "billing_period": "yearly", "tax_category": "saas"})
    assert tools("quote_get", quote_id=quote_id)["pricing"]["total"] == 1500
    assert tools("quote_price", quote_id=quote_id)["pricing"]["total"] == 1200
    evaluated = tools("quote_price", quote_id=sent, requested_discount_pct=10)
    assert (evaluated["pricing"]["total"], evaluated["stored"]) == (1350, False)
    assert_sound(app)


@pytest.mark.parametrize("status", STORED_STATES)
def test_q27a_in_any_other_state_a_price_is_only_evaluated(app: App, tools: Tools, status: str):
    quote_id = new_quote(tools)
    first = tools("quote_price", quote_id=quote_id, requested_discount_pct=4)
    put_into(app, quote_id, status)
    before = tools("quote_get", quote_id=quote_id)
    rows = stored(app)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert (priced["stored"], priced["outcome"], priced["status"], priced["version"]) == (False, "no_change", status, 1)
    assert priced["pricing"]["total"] == 1350
    assert priced["approval_required"] is True
    assert priced["fingerprint"] != first["fingerprint"]
    assert tools("quote_get", quote_id=quote_id) == before
    del rows["idempotency"]
    assert {name: found for name, found in stored(app).items() if name != "idempotency"} == rows


def test_q27a_a_quote_that_expired_is_only_evaluated(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = sent_quote(tools)
    clock.advance(days=32)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert (priced["stored"], priced["status"], priced["pricing"]["total"]) == (False, "expired", 1350)
    app.close()


def test_q27a_pricing_a_rejected_draft_opens_the_next_version(app: App, tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=25)
    put_into(app, quote_id, "draft", "rejected")
    old = tools("quote_get", quote_id=quote_id, version=1)["pricing"]
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert (priced["version"], priced["stored"], priced["status"]) == (2, True, "draft")
    assert priced["pricing"]["total"] == 1350
    assert tools("quote_get", quote_id=quote_id, version=1)["pricing"] == old
    assert status_of(tools, quote_id, 1) == "rejected"
    assert tools("quote_get", quote_id=quote_id)["quote"]["version"] == 2
    again = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert (again["version"], again["outcome"]) == (2, "no_change")
    assert assert_sound(app) == 2


def test_q27a_a_draft_says_that_its_price_is_stored(tools: Tools):
    quote_id = new_quote(tools)
    assert tools("quote_price", quote_id=quote_id)["stored"] is True
    assert tools("quote_get", quote_id=quote_id)["pricing"]["total"] == 1500


def test_q28_approval_is_required_exactly_when_a_violation_needs_a_role(policies: Path, store: Settings):
    rules = """
rules:
  - {id: large, when: net_value > 2000, then: {severity: warning, message: "Large."}}
  - {id: huge, when: net_value > 5000, then: {severity: block, message: "Too large."}}
"""
    approvals = (policies / "approvals.yaml").read_text(encoding="utf-8")
    roles = approvals[: approvals.index("ladders:")]
    (policies / "approvals.yaml").write_text(roles + rules, encoding="utf-8")
    (policies / "approvals_test.yaml").unlink()
    app = open_app(store.model_copy(update={"policies_dir": policies}))
    tools = Tools(app)
    said = {}
    ids = {quantity: new_quote(tools, {**SEATS, "quantity": quantity}) for quantity in (100, 300, 600)}
    for quantity, quote_id in ids.items():
        priced = tools("quote_price", quote_id=quote_id)
        said[quantity] = ([v["severity"] for v in priced["policy_violations"]], priced["approval_required"])
    assert said == {100: ([], False), 300: (["warning"], False), 600: (["block", "warning"], False)}
    before = stored(app)
    error = tools.error("quote_send", quote_id=ids[600], expected_version=1)
    assert (error["code"], error["details"]["policy_violations"][0]["policy_id"]) == ("POLICY_BLOCKED", "huge")
    assert stored(app) == before
    app.close()


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A copy of the shipped policies that the test may change."""
    return Path(shutil.copytree(shipped("policies"), tmp_path / "policies"))


def test_q04_a_breach_is_no_error_and_is_listed(tools: Tools):
    quote_id = new_quote(tools, payment_terms="net_90")
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=50)
    assert [violation["policy_id"] for violation in priced["policy_violations"]] == [
        "discount_cap_vp_sales",
        "discount_review_finance",
        "non_standard_terms_legal",
    ]
    roles = [violation["required_approver_role"] for violation in priced["policy_violations"]]
    assert roles == ["vp_sales", "finance", "legal"]


def test_q25_tax_is_added_by_the_zone_of_the_account(tools: Tools):
    line = {"product_id": "prod_fc150", "quantity": 3}
    quote_id = new_quote(tools, line, account_id="acct_lonestar_004")
    priced = tools("quote_price", quote_id=quote_id)
    assert priced["pricing"]["tax_total"] == 58.5
    assert_adds_up(priced)
    exempt = new_quote(tools, line, account_id="acct_statecol_006")
    assert tools("quote_price", quote_id=exempt)["pricing"]["tax_total"] == 0
    assert "exemption" in tools("quote_get", quote_id=exempt)["quote"]["tax_note"]


def of_categories(tools: Tools, *categories: str, zone: str = "DE") -> str:
    """A quote of one unit at 0.03 for each category, for an account of its own in that zone."""
    lines = []
    for category in categories:
        product = engine.product_row()
        engine.import_dicts(tools.app, "products", product)
        price = {"id": f"price_{product['id']}", "product_id": product["id"], "price_book": "list", "currency": "EUR"}
        engine.import_dicts(tools.app, "prices", {**price, "unit_price": "0.03", "tax_category": category})
        lines.append({"product_id": product["id"], "quantity": 1})
    buyer = {"id": "acct_groups", "name": "Gruppen GmbH", "segment": "smb", "region": "emea", "country": "DE"}
    engine.import_dicts(tools.app, "accounts", {**buyer, "tax_zone": zone, "currency": "EUR", "locale": "de_DE"})
    return str(tools("quote_create", account_id="acct_groups", currency="EUR", line_items=lines)["quote_id"])


def test_q27b_three_categories_at_19_percent_are_one_tax_group_in_every_answer(tools: Tools):
    quote_id = of_categories(tools, "standard", "service", "saas")
    priced = tools("quote_price", quote_id=quote_id)
    group = {"category_code": "S", "category": "saas, service, standard", "rate": 19, "base": 0.09, "tax": 0.02}
    assert priced["tax_groups"] == [group]
    assert (priced["pricing"]["tax_total"], priced["pricing"]["total"]) == (0.02, 0.11)
    read = tools("quote_get", quote_id=quote_id)
    assert read["tax_groups"] == priced["tax_groups"]
    assert read["pricing"] == priced["pricing"]
    assert "tax_groups" not in tools("quote_get", quote_id=quote_id, include_pricing=False)


def test_q27b_an_exempt_account_is_one_group_that_says_why(tools: Tools):
    quote_id = new_quote(tools, {"product_id": "prod_fc150", "quantity": 3}, account_id="acct_statecol_006")
    (group,) = tools("quote_price", quote_id=quote_id)["tax_groups"]
    assert (group["category_code"], group["rate"], group["tax"]) == ("E", 0, 0)
    assert group["reason"] == tools("quote_get", quote_id=quote_id)["quote"]["tax_note"]


def test_q27b_the_codes_of_the_policy_are_those_of_the_groups(policies: Path, store: Settings):
    """An export is G and says why; the account's own status does not replace what the sale is."""
    tax = policies / "tax.yaml"
    export = "{standard: {rate: 0, code: G, reason: Export}, service: {rate: 0, code: E, reason: Education}, saas: 19}"
    tax.write_text(tax.read_text(encoding="utf-8").replace("  DE: 19", f"  DE: {export}"), encoding="utf-8")
    app = open_app(store.model_copy(update={"policies_dir": policies}))
    tools = Tools(app)
    priced = tools("quote_price", quote_id=of_categories(tools, "standard", "service", "saas"))
    codes = [(group["category_code"], group["rate"], group.get("reason")) for group in priced["tax_groups"]]
    assert codes == [("S", 19, None), ("E", 0, "Education"), ("G", 0, "Export")]
    assert tools("quote_get", quote_id=priced["quote_id"])["quote"]["tax_note"] == "Education; Export"
    account = {"id": "acct_groups", "name": "Gruppen GmbH", "segment": "smb", "region": "emea", "country": "DE"}
    status = {"tax_zone": "DE", "currency": "EUR", "tax_status": "reverse_charge", "tax_note": "Article 196"}
    engine.import_dicts(app, "accounts", {**account, **status})
    again = tools("quote_price", quote_id=priced["quote_id"])
    codes = [(group["category_code"], group["base"], group.get("reason")) for group in again["tax_groups"]]
    assert codes == [("AE", 0.06, "Article 196"), ("G", 0.03, "Export")]
    app.close()
