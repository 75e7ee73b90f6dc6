"""What the policies are told of a quote is what is sold: nothing on a line can hide, unsay or invent it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.settings import Settings, shipped
from cpq.services.catalog import repository
from tests.support import engine
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, new_quote, sent_quote, status_of

TERMS = """
  needs_review: {type: boolean, absent: true}
  refurbished: {type: boolean, absent: false}
  hazard: {type: boolean, absent: false}
  danger: {type: text, absent: none}
  power: {type: number, absent: 0}
"""
APPROVALS = """
  - id: review_legal
    when: any(line.attributes.needs_review for line in lines)
    then: {severity: approval_required, role: legal, message: "review"}
  - id: hazard_legal
    when: any(line.attributes.hazard for line in lines)
    then: {severity: approval_required, role: legal, message: "hazard"}
  - id: danger_block
    when: any(line.attributes.danger == "explosive" for line in lines)
    then: {severity: block}
  - id: power_legal
    when: max(line.attributes.power for line in lines) > 100
    then: {severity: approval_required, role: legal}
  - id: dryers_warning
    when: '"dryers" in categories'
    then: {severity: warning}
  - id: dryers_legal
    when: not all(line.category != "dryers" for line in lines) and net > 0
    then: {severity: approval_required, role: legal}
  - id: long_term_finance
    when: has_term and term_months > 36
    then: {severity: approval_required, role: finance, message: "long"}
  - id: open_use_legal
    when: any(line.is_usage and line.net == 0 for line in lines)
    then: {severity: approval_required, role: legal}
  - id: low_rate_finance
    when: any(line.is_usage and line.margin < 45 for line in lines)
    then: {severity: approval_required, role: finance}
"""
PRICING = """
  - id: refurbished_is_cheap
    when: line.attributes.refurbished
    then: {percentage: -40, base: list}
  - id: never_thirteen
    when: 1 / (line.quantity - 13) > 100
    then: {percentage: -1, base: list}
  - id: use_is_cheap
    when: line.is_usage
    then: {percentage: -10, base: list}
"""
MANAGER = Principal("maria", "human", frozenset({Role.SALES_MANAGER}))


@pytest.fixture
def tools(sqlite_template: Path, tmp_path: Path) -> Any:
    """On SQLite with policies that read attributes; what they are told does not depend on the database."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    policies = tmp_path / "policies"
    shutil.copytree(shipped("policies"), policies)
    for path in policies.glob("*_test.yaml"):
        path.unlink()
    for name, text in (("terms", TERMS), ("approvals", APPROVALS), ("pricing", PRICING)):
        with (policies / f"{name}.yaml").open("a") as file:
            file.write(text)
    settings = Settings(home=tmp_path, policies_dir=policies, rate_limit_per_minute=0)
    app = open_app(settings)
    plain = engine.product_row(id="prod_plain", attributes={"needs_review": False})
    option = {"hazard": {"type": "boolean", "default": True}}
    chosen = engine.product_row(
        id="prod_chosen", product_type="configurable", attributes={"needs_review": False}, options=option
    )
    part = engine.product_row(id="prod_part", attributes={"needs_review": False, "hazard": True})
    bundle = engine.product_row(
        id="prod_kit",
        product_type="bundle",
        attributes={"needs_review": False, "hazard": False},
        relationships=[{"kind": "component", "product_id": "prod_part"}],
    )
    engine.import_dicts(app, "products", plain, chosen, part, bundle)
    price = {"price_book": "list", "currency": "USD", "unit_price": "10", "cost": "1"}
    engine.import_dicts(app, "prices", *({**price, "product_id": row["id"]} for row in (plain, chosen, part, bundle)))
    yield Tools(app)
    app.close()


def priced(tools: Tools, *lines: dict[str, Any], **terms: Any) -> tuple[list[str], Any]:
    answer = tools("quote_price", quote_id=new_quote(tools, *lines, **terms))
    return [violation["policy_id"] for violation in answer["policy_violations"]], answer["pricing"]["total"]


def test_q24_an_option_left_at_its_default_is_seen_like_one_that_is_chosen(tools: Tools):
    line = {"product_id": "prod_chosen", "quantity": 1}
    assert priced(tools, line) == priced(tools, {**line, "attributes": {"hazard": True}}) == (["hazard_legal"], 10)
    assert priced(tools, {**line, "attributes": {"hazard": False}}) == ([], 10)


def test_q24_a_rule_that_cannot_be_evaluated_refuses_the_change_of_a_stored_quote(tools: Tools):
    """Its problem has no field, because no argument is wrong."""
    quote_id = new_quote(tools, {"product_id": "prod_plain", "quantity": 12})
    changes = [{"line_id": f"{quote_id}-ql-1", "quantity": 13}]
    error = tools.error("quote_update", quote_id=quote_id, expected_version=1, change_lines=changes)
    assert (error["code"], error["details"]["policy_id"]) == ("POLICY_BLOCKED", "never_thirteen")
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["quantity"] == 12


def test_g07_rules_read_whether_a_line_is_charged_by_its_use_before_and_after_its_price(tools: Tools):
    """The rate of 10 is lowered to 9, which leaves 5 or 4 beside two costs: 44.4 % and 55.6 %."""
    metered = {"billing_period": "monthly", "selling_model": "usage", "unit": "hour", "price_book": "list"}
    for id_, cost in (("prod_meter", "4"), ("prod_dear", "5")):
        engine.import_dicts(tools.app, "products", engine.product_row(id=id_, attributes={"needs_review": False}))
        price = {"product_id": id_, "currency": "USD", "unit_price": "10", "cost": cost, **metered}
        engine.import_dicts(tools.app, "prices", price)
    assert priced(tools, {"product_id": "prod_plain", "quantity": 1}) == ([], 10)
    assert priced(tools, {"product_id": "prod_meter", "quantity": 1}, term_months=12) == (["open_use_legal"], 0)
    line = {"product_id": "prod_dear", "quantity": 1, "commitment": {"quantity": 10}}
    assert priced(tools, line, term_months=12) == (["hidden"], 12 * 90)


def test_q24_a_bundle_is_what_its_components_are(tools: Tools):
    assert priced(tools, {"product_id": "prod_kit", "quantity": 1}) == (["hazard_legal"], 10)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("inside", "spoken"),
    [
        ({"attributes": {"needs_review": False, "hazard": True}}, ["hazard_legal"]),
        ({"attributes": {"needs_review": False, "danger": "explosive"}}, ["danger_block"]),
        ({"attributes": {"needs_review": False, "power": 101}}, ["power_legal"]),
        ({"attributes": {"needs_review": False, "power": 100}}, []),
        ({"attributes": {"needs_review": False}, "category": "dryers"}, ["dryers_legal", "dryers_warning"]),
        ({"attributes": {"needs_review": False}, "product_type": "configurable",
          "options": {"hazard": {"type": "boolean", "default": True}}}, ["hazard_legal"]),
    ],
    ids=["yes or no", "text", "number", "small number", "category", "option"],
)  # fmt: skip
def test_q24_what_is_inside_a_bundle_is_seen_however_deep(
    tools: Tools, depth: int, inside: dict[str, Any], spoken: list[str]
):
    inner = engine.product_row(id="prod_box_0", **inside)
    boxes = [
        engine.product_row(
            id=f"prod_box_{number}",
            product_type="bundle",
            attributes={"needs_review": False},
            bundle={"pricing": "own"},
            relationships=[{"kind": "component", "product_id": f"prod_box_{number - 1}"}],
        )
        for number in range(1, depth + 1)
    ]
    engine.import_dicts(tools.app, "products", inner, *boxes)
    price = {"price_book": "list", "currency": "USD", "unit_price": "10", "cost": "1"}
    engine.import_dicts(tools.app, "prices", *({**price, "product_id": row["id"]} for row in (inner, *boxes)))
    assert sorted(priced(tools, {"product_id": f"prod_box_{depth}", "quantity": 1})[0]) == spoken


def test_a_bundle_that_holds_itself_comes_to_an_end(tools: Tools):
    for id_, other in (("prod_egg", "prod_hen"), ("prod_hen", "prod_egg")):
        made = {"product_type": "bundle", "attributes": {"needs_review": False}}
        relations = [{"kind": "component", "product_id": other}]
        engine.import_dicts(tools.app, "products", engine.product_row(id=other, attributes={"needs_review": False}))
        engine.import_dicts(tools.app, "products", engine.product_row(id=id_, **made, relationships=relations))
    price = {"price_book": "list", "currency": "USD", "unit_price": "10", "cost": "1"}
    engine.import_dicts(tools.app, "prices", {**price, "product_id": "prod_hen"})
    assert priced(tools, {"product_id": "prod_hen", "quantity": 1}) == ([], 10)


def test_q24_a_note_on_a_line_neither_unsays_nor_earns_anything(tools: Tools):
    line = {"product_id": "prod_qmb15", "quantity": 1}
    plain = priced(tools, line)
    assert plain[0] == ["review_legal"]
    assert priced(tools, {**line, "attributes": {"needs_review": False, "refurbished": True}}) == plain


def test_q24_a_term_by_its_last_day_is_as_long_as_one_by_months(tools: Tools):
    line = {"product_id": "prod_plain", "quantity": 1}
    by_months = priced(tools, line, term_months=60, start_date="2026-01-01")
    by_day = priced(tools, line, term_months=None, start_date="2026-01-01", end_date="2030-12-31")
    assert by_months == by_day == (["long_term_finance"], 10)


def test_q24_who_may_not_see_margins_is_told_none(app: App):
    row = engine.product_row()
    engine.import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "cost": "95", "product_id": row["id"]}
    engine.import_dicts(app, "prices", price)
    agent, manager = Tools(app), Tools(app, principal=MANAGER)
    quote_id = new_quote(agent, {"product_id": row["id"], "quantity": 1})
    told, whole = (tools("quote_price", quote_id=quote_id)["policy_violations"][0] for tools in (agent, manager))
    assert (whole["policy_id"], whole["actual"], whole["threshold"]) == ("margin_floor_finance", 5, 10)
    assert told["actual"] is None
    assert "5" not in told["description"]
    refused = agent.error("quote_send", quote_id=quote_id, expected_version=1)
    assert refused["details"]["policy_violations"][0]["actual"] is None


LADDER = """  - id: profit
    over: sum(line.net - line.cost for line in lines)
    steps: [{id: eye, under: 100000, then: {severity: warning}}]
"""
SHOWN = "  - {id: eye, when: net > 1, actual: margin, then: {severity: warning}}\n"
NAMED = "  - {id: eye, when: thin or net > 1, actual: net, then: {severity: warning, message: 'It is {actual}.'}}\n"


@pytest.mark.parametrize(
    ("place", "rule"),
    [("ladders:\n", LADDER), ("rules:\n", SHOWN), ("rules:\n", NAMED)],
    ids=["a ladder over profit", "the number shown", "a named condition"],
)
def test_q24_no_rule_tells_a_cost_or_a_margin_to_an_agent(sqlite_template: Path, tmp_path: Path, place: str, rule: str):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    policies = shutil.copytree(shipped("policies"), tmp_path / "policies")
    path = policies / "approvals.yaml"
    text = path.read_text(encoding="utf-8").replace(place, place + rule)
    path.write_text(text + "define: {thin: margin < 3}\n", encoding="utf-8")
    app = open_app(Settings(home=tmp_path, policies_dir=policies, rate_limit_per_minute=0))
    agent, manager = Tools(app), Tools(app, principal=MANAGER)
    quote_id = new_quote(agent)
    told, whole = (
        next(v for v in tools("quote_price", quote_id=quote_id)["policy_violations"] if v["policy_id"] == id_)
        for tools, id_ in ((agent, "hidden"), (manager, "eye"))
    )
    assert whole["actual"] is not None
    assert (told["actual"], told["threshold"], told["policy_name"]) == (None, None, "hidden policy")
    assert told["description"] == "Cost or margin is outside its limit."
    app.close()


def test_an_agent_is_not_told_a_margin_by_why_it_is_asked_for_again(app: App):
    row = engine.product_row()
    engine.import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "cost": "91", "product_id": row["id"]}
    engine.import_dicts(app, "prices", price)
    agent = Tools(app)
    quote_id = priced_quote(agent, 0, {"product_id": row["id"], "quantity": 1})
    decide(person(app, "fay", "finance"), ask(agent, quote_id, "finance"))
    agent("quote_revise", quote_id=quote_id, expected_version=1)
    agent("quote_price", quote_id=quote_id, requested_discount_pct=4)
    [step] = agent("approval_preview", quote_id=quote_id)["steps"]
    assert step["reasons"][-1] == "Asked again: cost or margin got worse."
    assert ask(agent, quote_id, "finance")["reason"] == "Asked again: cost or margin got worse."
    assert (
        agent("approval_history", quote_id=quote_id)["items"][-1]["reason"] == "Asked again: cost or margin got worse."
    )


def test_a_bundle_with_a_retired_component_is_not_quoted(tools: Tools):
    retired = engine.product_row(id="prod_part", attributes={"needs_review": False, "hazard": True}, active=False)
    engine.import_dicts(tools.app, "products", retired)
    error = tools.error("quote_create", account_id=ACME, line_items=[{"product_id": "prod_kit", "quantity": 1}])
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/line_items/0/product_id")


def test_what_was_retired_after_it_was_priced_is_not_sent(app: App):
    row = engine.product_row()
    engine.import_dicts(app, "products", row)
    engine.import_dicts(
        app,
        "prices",
        {"price_book": "list", "currency": "USD", "unit_price": "1", "cost": "0", "product_id": row["id"]},
    )
    tools = Tools(app)
    quote_id = new_quote(tools, {"product_id": row["id"], "quantity": 1})
    tools("quote_price", quote_id=quote_id)
    engine.import_dicts(app, "products", {**row, "active": False})
    assert tools.error("quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
    assert status_of(tools, quote_id) == "draft"


def test_an_account_that_was_closed_is_sent_nothing(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    sample = yaml.safe_load((engine.SAMPLE / "accounts.yaml").read_text())
    row = next(row for row in sample["accounts"] if row["id"] == ACME)
    engine.import_dicts(app, "accounts", {**row, "active": False})
    error = tools.error("quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["message"]) == ("CONFLICT", f"The account {ACME} is not active.")
    assert status_of(tools, quote_id) == "draft"


def test_a_quote_is_not_sent_when_the_same_version_was_changed_since_it_was_read(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    seen = tools("quote_price", quote_id=quote_id)["edit"]
    change = [{"line_id": f"{quote_id}-ql-1", "quantity": 900}]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=change)
    tools("quote_price", quote_id=quote_id)
    error = tools.error("quote_send", quote_id=quote_id, expected_version=1, expected_edit=seen)
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/expected_edit")


def test_declining_what_was_sent_leaves_the_revision_in_the_making(app: App):
    tools = Tools(app)
    quote_id = sent_quote(tools)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, notes="better")
    tools("quote_decline", quote_id=quote_id, expected_version=1)
    read = tools("quote_get", quote_id=quote_id)["quote"]
    assert (read["version"], read["status"], read["notes"]) == (2, "draft", "better")
    assert status_of(tools, quote_id, 1) == "declined"


def test_the_deal_of_a_version_that_was_sent_stays_as_it_was(app: App):
    tools = Tools(app)
    quote_id = sent_quote(tools, deal_id="D1")
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, deal_id="D2")
    assert tools("quote_get", quote_id=quote_id)["quote"]["deal_id"] == "D2"
    assert tools("quote_get", quote_id=quote_id, version=1)["quote"]["deal_id"] == "D1"
    tools("quote_cancel", quote_id=quote_id, expected_version=2)
    assert tools("quote_get", quote_id=quote_id)["quote"]["deal_id"] == "D1"


def test_q25_the_lines_of_an_answer_are_those_of_the_selected_option_set(app: App):
    tools = Tools(app)
    lines = [{"product_id": "prod_oil_screw", "quantity": 2}, *({**SEATS, "option_set": name} for name in "ab")]
    answer = tools("quote_price", quote_id=new_quote(tools, *lines), requested_discount_pct=3)
    for one in (answer, *answer["option_sets"]):
        totals = one.get("pricing", one)
        assert sum(line["line_total"] for line in one["line_pricing"]) == pytest.approx(
            totals["subtotal"] - totals["discount_total"]
        )


def test_q18_a_quote_has_at_most_twenty_option_sets(app: App):
    tools = Tools(app)
    lines = [{**SEATS, "option_set": f"s{n}"} for n in range(21)]
    error = tools.error("quote_create", account_id=ACME, line_items=lines)
    assert (error["code"], error["details"]["maximum"]) == ("VALIDATION_ERROR", 20)


def test_q09_nulls_and_json_text_inside_a_line_are_understood(app: App):
    line = {**SEATS, "discount_pct": None, "ramp": None, "notes": None, "attributes": '{"billing": "annual"}'}
    assert (
        Tools(app)("quote_create", account_id=ACME, term_months=12, line_items=[line])["line_items"][0]["subtotal"]
        == 1500
    )


def test_q20_true_is_not_one(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools, {"product_id": "prod_qmb15", "quantity": 1, "attributes": {"x": True}})
    change = [{"line_id": f"{quote_id}-ql-1", "attributes": {"x": 1}}]
    assert tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=change)["outcome"] == "changed"
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["attributes"]["x"] is not True


def test_a_tax_rate_is_missed_only_where_the_price_that_wins_needs_it(app: App):
    row = engine.product_row()
    engine.import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "10", "cost": "1", "product_id": row["id"]}
    old = {**price, "tax_category": "curious", "valid_to": "2020-01-01", "priority": -1}
    engine.import_dicts(app, "prices", price, old)
    tools, line = Tools(app), {"product_id": row["id"], "quantity": 1}
    assert tools("quote_create", account_id=ACME, line_items=[line])["line_items"][0]["subtotal"] == 10
    engine.import_dicts(app, "prices", {**price, "tax_category": "curious", "priority": 5})
    error = tools.error("quote_create", account_id=ACME, line_items=[SEATS, line])
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/line_items/1/product_id")


def test_relationships_are_never_kept_under_the_hash_of_a_later_content(app: App, monkeypatch: pytest.MonkeyPatch):
    """On PostgreSQL each statement sees what others committed; an import may come between two of them."""
    part, other = engine.product_row(), engine.product_row()
    kit = engine.product_row(product_type="bundle", relationships=[{"kind": "component", "product_id": part["id"]}])
    engine.import_dicts(app, "products", part, other, kit)
    later = {**kit, "relationships": [{"kind": "component", "product_id": other["id"]}]}
    relations = repository._RELATIONS.rows
    imports = [later]

    def with_an_import_in_between(connection: sa.Connection, **values: Any) -> list[Any]:
        found = relations(connection, **values)
        if imports and kit["id"] in str(values["ids"]):
            engine.import_dicts(app, "products", imports.pop())
        return found

    if not app.database.is_sqlite:
        monkeypatch.setattr(repository._RELATIONS, "rows", with_an_import_in_between)
    else:
        engine.import_dicts(app, "products", imports.pop())
    seen: list[Any] = []

    def look(tx: Tx) -> dict[str, Any]:
        found = repository.gather(tx, [kit["id"]]).products
        seen.append([relation.product_id for relation in found[kit["id"]].relations])
        return {}

    engine.write(app, look)
    engine.write(app, look)
    assert seen == [[other["id"]], [other["id"]]]
