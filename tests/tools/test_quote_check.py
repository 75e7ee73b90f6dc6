"""Rules over the lines of a quote: what is missing is named with its amount, and the next call repairs it."""

import io
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.base.errors import CpqError
from cpq.services.catalog import exporter
from tests.support import engine
from tests.support.approvals import refused
from tests.support.engine import Tools
from tests.support.quotes import ACME, new_quote

SETS: dict[str, Any] = {
    "compressors": {"categories": ["air_machines"]},
    "dryers": {"categories": ["air_dryers"]},
}
AIR = {
    "id": "DRY-AIR",
    "say": "The dryers must carry the air of all compressors.",
    "sets": SETS,
    "when": {"compressors": {"min": 1}},
    "compare": {"left": {"dryers.cfm": 1}, "op": ">=", "right": {"compressors.cfm": 1}},
}
PLANS = {
    "id": "PLAN-EACH",
    "say": "Every machine has one service plan.",
    "sets": {**SETS, "plans": {"products": ["plan"]}},
    "compare": {"left": {"plans": 1}, "op": "==", "right": {"compressors": 1}},
}
TOP = {"id": "TOP", "say": "At most three machines in a quote.", "sets": SETS, "then": {"compressors": {"max": 3}}}
OIL = {
    "id": "OIL",
    "severity": "recommended",
    "say": "Take oil for the first year.",
    "sets": {**SETS, "oil": {"products": ["oil"]}},
    "requires": ["compressors", "oil"],
}


def catalogue(app: App, *rules: dict[str, Any]) -> None:
    """Machines and dryers with their air, a plan, oil, and these rules."""
    rows = [("air_machines", "m100", {"cfm": 100}), ("air_machines", "m250", {"cfm": 250})]
    rows += [("air_dryers", f"d{cfm}", {"cfm": cfm}) for cfm in (125, 400, 1000)]
    rows += [("air_care", id_, {}) for id_ in ("plan", "oil")]
    specs = {"cfm": {"kind": "number", "unit": "CFM"}}
    for category in ("air_machines", "air_dryers", "air_care"):
        engine.import_dicts(app, "categories", {"id": category, "name": category, "specs": specs})
    products = [engine.product_row(id=id_, name=id_.upper(), category=category, specs=s) for category, id_, s in rows]
    engine.import_dicts(app, "products", *products)
    listed = {"price_book": "list", "currency": "USD", "unit_price": "10", "cost": "5"}
    engine.import_dicts(app, "prices", *({**listed, "product_id": id_} for _, id_, _ in rows))
    engine.import_dicts(app, "rules", *rules)


def follow(tools: Tools, answer: dict[str, Any]) -> dict[str, Any]:
    """Send the next call exactly as it was offered."""
    call = answer.get("details", answer)["next_call"]
    return tools(call["tool"], **call["arguments"])


def lines(**quantities: int) -> list[dict[str, Any]]:
    return [{"product_id": id_, "quantity": quantity} for id_, quantity in quantities.items()]


def test_a_missing_sum_is_named_with_its_lines_and_the_product_that_gives_it(app: App, tools: Tools):
    catalogue(app, AIR)
    checked = tools("quote_check", line_items=lines(m100=2, d125=1, m250=1))
    (found,) = checked["violations"]
    assert (checked["is_complete"], checked["violations_total"]) == (False, 1)
    assert (found["kind"], found["rule_id"], found["message"]) == ("rule", "DRY-AIR", AIR["say"])
    assert (found["missing"], found["of"]) == (325, "dryers.cfm")
    assert found["found"] == "dryers.cfm is 125, compressors.cfm is 450"
    assert found["lines"] == ["/line_items/0", "/line_items/1", "/line_items/2"]
    assert found["repair"]["add"] == [{"product_id": "d400", "product_name": "D400", "quantity": 1}]
    repaired = follow(tools, checked)
    assert repaired["is_complete"]
    assert checked["next_call"]["arguments"]["line_items"][-1] == {"product_id": "d400", "quantity": 1}


def test_the_next_call_repairs_everything_at_once_and_then_the_quote_can_be_sent(app: App, tools: Tools):
    catalogue(app, AIR, PLANS, TOP)
    quote_id = new_quote(tools, *lines(m100=5, plan=1), term_months=None)
    checked = tools("quote_check", quote_id=quote_id)
    assert [one["rule_id"] for one in checked["violations"]] == ["DRY-AIR", "PLAN-EACH", "TOP"]
    assert [one["missing"] for one in checked["violations"]] == [500, 4, -2]
    arguments = checked["next_call"]["arguments"]
    changed = {one["line_id"]: one["quantity"] for one in arguments["change_lines"]}
    assert changed == {f"{quote_id}-ql-1": 3, f"{quote_id}-ql-2": 3}
    tools("quote_price", quote_id=quote_id)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["message"]) == (
        "CONFIGURATION_INVALID",
        "The dryers must carry the air of all compressors (dryers.cfm is 0, compressors.cfm is 500).",
    )
    assert error["details"]["next_call"]["tool"] == "quote_check"
    assert follow(tools, follow(tools, error))["warnings"] == []
    assert tools("quote_check", quote_id=quote_id) | {"suggestions": []} == {
        "is_complete": True,
        "violations": [],
        "violations_total": 0,
        "suggestions": [],
        "message": "Nothing is missing.",
    }
    tools("quote_price", quote_id=quote_id)
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_a_broken_rule_stops_an_approval_as_a_missing_product_does(app: App, tools: Tools):
    catalogue(app, AIR)
    quote_id = new_quote(tools, {"product_id": "m100", "quantity": 1, "discount_pct": 25}, term_months=None)
    priced = tools("quote_price", quote_id=quote_id)
    assert "The dryers must carry" in priced["warnings"][0]
    tools("approval_request", quote_id=quote_id, justification="A good customer.")
    assert not tools("approval_status", quote_id=quote_id)["can_proceed"]


def test_what_is_recommended_warns_and_stops_nothing(app: App, tools: Tools):
    catalogue(app, OIL)
    quote_id = new_quote(tools, *lines(m100=1), term_months=None)
    checked = tools("quote_check", quote_id=quote_id)
    assert (checked["is_complete"], checked["violations"]) == (True, [])
    (advice,) = checked["suggestions"]
    assert (advice["rule_id"], advice["repair"]["add"][0]["product_id"]) == ("OIL", "oil")
    assert "next_call" not in checked
    assert tools("quote_price", quote_id=quote_id)["warnings"] == [
        "Take oil for the first year (oil is 0, and at least 1 is needed)."
    ]
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_products_that_require_and_exclude_each_other_are_repaired_too(app: App, tools: Tools):
    catalogue(app)
    relations = [
        {"kind": "requires", "product_id": "plan", "quantity": 2},
        {"kind": "excludes", "product_id": "d125"},
        {"kind": "recommends", "product_id": "oil"},
    ]
    row = engine.product_row(id="m100", category="air_machines", specs={"cfm": 100}, relationships=relations)
    engine.import_dicts(app, "products", row)
    checked = tools("quote_check", account_id=ACME, line_items=lines(m100=1, d125=1))
    assert [(one["kind"], one["missing"], one["of"]) for one in checked["violations"]] == [
        ("requires", 2, "plan"),
        ("excludes", None, "d125"),
    ]
    assert [(one["kind"], one["of"]) for one in checked["suggestions"]] == [("recommends", "oil")]
    assert checked["next_call"]["tool"] == "quote_create"
    assert checked["next_call"]["arguments"]["line_items"] == lines(m100=1, plan=2)
    assert follow(tools, checked)["warnings"] == []


TERMS: list[dict[str, Any]] = [
    {"unit_price": 7, "price_reason": "A match."},
    {"discount_pct": 0.00005},
    {"discount_pct": 3, "notes": "For the yard.", "internal_notes": "Ask Kim.", "review": ["The yard."]},
    {"discount_amount": "2.50"},
    {"attributes": {"colour": "blue", "height": 1.5, "wet": True}, "option_set": None},
]
MONTHLY: list[dict[str, Any]] = [
    {
        "selling_model": "monthly",
        "term_months": 24,
        "ramp": [{"months": 12, "discount_pct": 5}, {"months": 12, "uplift_pct": 2.5}],
    },
    {"start_date": "2026-12-01", "end_date": "2027-01-31", "billing_period": "month"},
]


def test_the_next_call_repeats_every_term_of_a_line_as_it_was_sent(app: App, tools: Tools):
    catalogue(app, AIR)
    price = {"product_id": "oil", "price_book": "list", "currency": "USD", "unit_price": "10", "cost": "5"}
    engine.import_dicts(app, "prices", {**price, "billing_period": "monthly"})
    given: list[dict[str, Any]] = [{"product_id": "m100", "quantity": 1, **term} for term in TERMS]
    given += [{"product_id": "oil", "quantity": 2, **term} for term in MONTHLY]
    given += [
        {
            "product_id": "prod_use_air",
            "quantity": 1,
            "commitment": {"amount": 500, "per": "month"},
            "expected_quantity": 12.5,
        },
        {"custom": {"name": "Crane", "unit_price": 100, "cost": 60.5}, "quantity": 1},
    ]
    wanted = tools("quote_create", account_id=ACME, term_months=12, line_items=[*given, *lines(d1000=1)])
    checked = tools("quote_check", account_id=ACME, line_items=given)
    call = checked["next_call"]
    assert call["arguments"]["line_items"] == [*given, {"product_id": "d1000", "quantity": 1}]
    stored = tools(call["tool"], **call["arguments"], term_months=12)
    assert [amounts(line) for line in stored["line_items"]] == [amounts(line) for line in wanted["line_items"]]


def amounts(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "line_id"}


def test_a_rule_about_chosen_options_is_repaired_at_the_lines_that_chose_them(app: App, tools: Tools):
    strong = {"categories": ["air_machines"], "where": {"hp": {"min": 100}}}
    few = {
        "id": "FEW",
        "say": "At most one strong machine.",
        "sets": {"strong": strong},
        "then": {"strong": {"max": 1}},
    }
    power = {**few, "id": "POWER", "say": "The grid gives 400 hp.", "then": {"strong.hp": {"max": 400}}}
    catalogue(app, few)
    options = {"hp": {"type": "integer", "min": 10, "max": 500, "default": 50}}
    row = engine.product_row(id="m100", category="air_machines", specs={"cfm": 100}, options=options)
    engine.import_dicts(app, "products", {**row, "product_type": "configurable"})
    given = [{"product_id": "m100", "quantity": 3, "attributes": {"hp": hp}} for hp in (150, 20, 200)]
    checked = tools("quote_check", line_items=given)
    (found,) = checked["violations"]
    assert found["found"] == "strong is 6, and at most 1 is allowed"
    assert found["repair"] == {
        "add": [],
        "change": [{"line": "/line_items/0", "quantity": 1}],
        "remove": ["/line_items/2"],
    }
    assert follow(tools, checked)["is_complete"]
    engine.import_dicts(app, "rules", power, {**few, "active": False})
    checked = tools("quote_check", line_items=given)
    assert checked["violations"][0]["repair"]["change"] == [{"line": "/line_items/0", "quantity": 2}]
    assert follow(tools, checked)["is_complete"]


def test_option_sets_are_checked_alone(app: App, tools: Tools):
    catalogue(app, AIR)
    small, large = ({**line, "option_set": name} for name, (line,) in (("A", lines(m100=1)), ("B", lines(m250=1))))
    checked = tools("quote_check", line_items=[small, large, *lines(d125=1)])
    assert [(one["missing"], one["lines"]) for one in checked["violations"]] == [
        (125, ["/line_items/1", "/line_items/2"])
    ]


def test_a_repair_cuts_first_says_so_and_adds_no_more_than_what_is_left_needs(app: App, tools: Tools):
    catalogue(app, AIR, PLANS, TOP)
    checked = tools("quote_check", line_items=lines(m100=1000))
    assert checked["next_call"]["arguments"]["line_items"] == lines(m100=3, d400=1, plan=3)
    assert checked["message"] == (
        "3 problems to repair before it can be sent. The next call reduces M100 from 1,000 to 3."
    )
    quote_id = new_quote(tools, *lines(m100=2, m250=2, plan=4, d1000=1), term_months=None)
    message = tools("quote_check", quote_id=quote_id)["message"]
    assert message.endswith("The next call reduces M250 from 2 to 1, PLAN from 4 to 3.")
    assert tools("quote_check", line_items=lines(m100=1, d125=1, plan=1))["message"] == "Nothing is missing."


def test_what_a_repair_adds_is_the_least_that_all_rules_need(app: App, tools: Tools):
    # Two rules need dryers; what the second adds is enough for the first.
    big = {**AIR, "id": "BIG", "compare": {"left": {"dryers.cfm": 1}, "op": ">=", "right": {"const": 3000}}}
    catalogue(app, {**AIR, "add": "d125"}, {**big, "add": "d1000"})
    checked = tools("quote_check", line_items=lines(m100=10))
    assert checked["next_call"]["arguments"]["line_items"] == lines(m100=10, d1000=3)


def test_each_option_set_gets_what_it_lacks_and_shared_lines_get_it_once(app: App, tools: Tools):
    catalogue(app, AIR, PLANS)
    (machine,), (large,) = lines(m100=1), lines(m250=2)
    given = [{**machine, "option_set": "A"}, {**large, "option_set": "B"}]
    checked = tools("quote_check", line_items=given)
    dryer = next(one["repair"]["add"] for one in checked["violations"] if one["missing"] == 100)
    assert dryer == [{"product_id": "d125", "product_name": "D125", "quantity": 1, "option_set": "A"}]
    added = checked["next_call"]["arguments"]["line_items"][2:]
    assert sorted((one["option_set"], one["product_id"], one["quantity"]) for one in added) == [
        ("A", "d125", 1),
        ("A", "plan", 1),
        ("B", "d1000", 1),
        ("B", "plan", 2),
    ]
    assert follow(tools, checked)["is_complete"]
    quote_id = new_quote(tools, *given, *lines(plan=1), term_months=None)
    follow(tools, tools("quote_check", quote_id=quote_id))
    assert tools("quote_check", quote_id=quote_id)["is_complete"]
    oil = {"product_id": "oil", "quantity": 1}
    shared = [machine, {**oil, "option_set": "A"}, {**oil, "option_set": "B"}]
    checked = tools("quote_check", line_items=shared)
    assert checked["next_call"]["arguments"]["line_items"] == [*shared, *lines(d125=1, plan=1)]


def test_twenty_option_sets_are_repaired_by_one_call(app: App, tools: Tools):
    catalogue(app, AIR, PLANS)
    given = [{"product_id": "m100", "quantity": number, "option_set": f"S{number}"} for number in range(1, 21)]
    checked = tools("quote_check", line_items=given)
    assert checked["violations_total"] == 40
    assert follow(tools, checked)["is_complete"]


def test_a_chosen_component_of_a_bundle_counts(app: App, tools: Tools):
    catalogue(app, AIR)
    groups = [{"name": "more", "components": [{"name": "dryer", "product_id": "d400", "max_quantity": 3}]}]
    parts = [{"kind": "component", "product_id": "m250", "quantity": 2}]
    row = engine.product_row(id="yard", product_type="bundle", bundle={"groups": groups}, relationships=parts)
    engine.import_dicts(app, "products", row)
    bundle = {"product_id": "yard", "quantity": 2}
    (found,) = tools("quote_check", line_items=[{**bundle, "attributes": {"dryer": 1}}])["violations"]
    assert found["missing"] == 200
    assert tools("quote_check", line_items=[{**bundle, "attributes": {"dryer": 2}}])["is_complete"]


def test_a_product_without_the_number_that_is_summed_up_is_said_and_not_counted_as_nothing(app: App, tools: Tools):
    catalogue(app, AIR)
    engine.import_dicts(app, "products", engine.product_row(id="m0", category="air_machines"))
    (found,) = tools("quote_check", line_items=lines(m0=1, d400=1))["violations"]
    assert found["found"] == "m0 has no number cfm, so compressors.cfm is not known"
    assert found["repair"] is None


def test_a_rule_that_is_taken_out_of_force_is_not_asked_any_more(app: App, tools: Tools):
    catalogue(app, AIR)
    engine.import_dicts(app, "rules", {**AIR, "active": False})
    assert tools("quote_check", line_items=lines(m100=1))["is_complete"]


def test_one_of_quote_and_lines_is_given(tools: Tools):
    assert tools.error("quote_check")["code"] == "VALIDATION_ERROR"
    assert tools.error("quote_check", quote_id="q", line_items=lines(m=1))["code"] == "VALIDATION_ERROR"
    assert tools.error("quote_check", quote_id="q-none")["code"] == "NOT_FOUND"
    assert tools.error("quote_check", line_items=lines(nowhere=1))["code"] == "NOT_FOUND"


def test_what_a_quote_would_refuse_is_refused_before_the_rules_are_asked(app: App, tools: Tools):
    catalogue(app, AIR)
    half = [{"product_id": "m100", "quantity": 1.5}]
    for given in ({"line_items": half}, {"account_id": "acct_nobody", "line_items": lines(m100=1)}):
        error, wanted = (tools.error(name, **{"account_id": ACME, **given}) for name in ("quote_check", "quote_create"))
        fields = ("code", "message", "details")
        assert {name: error.get(name) for name in fields} == {name: wanted.get(name) for name in fields}
    assert tools.error("quote_check", line_items=half)["details"]["field"] == "/line_items/0/quantity"


def test_an_item_of_no_catalogue_needs_no_account_to_be_checked(app: App, tools: Tools):
    catalogue(app, AIR)
    crane = {"custom": {"name": "Crane", "unit_price": 100}, "quantity": 0.5}
    checked = tools("quote_check", line_items=[crane, {**crane, "quantity": 2}, *lines(m100=1, d125=1)])
    assert checked["is_complete"]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_rules_survive_an_export_and_its_import(app: App, form: str, tmp_path: Path):
    catalogue(app, AIR, PLANS, TOP, OIL)
    file = tmp_path / f"out.{form}"
    out = io.StringIO()
    engine.write(app, lambda tx: dict(exporter.write_catalog(tx, form, out)))
    file.write_text(out.getvalue())
    report = engine.import_file(app, file, "products")
    assert (report.created.total(), report.updated.total(), report.unchanged["rules"]) == (
        0,
        0,
        6,
    )  # Two are of the sample.


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        ({"compare": None}, "row", "a rule has exactly one of then, forbid, compare, requires, excludes"),
        ({"when": {"compresors": 1}}, "row", "'compresors' is not a set of this rule; did you mean compressors?"),
        ({"sets": {"dryers": {}}}, "sets.dryers", "a set names products, categories or conditions"),
        ({"sett": {}}, "sett", "is not a known field; did you mean sets?"),
        ({"when": {"compressors": {"least": 1}}}, "row", "'least' is not one of min, max"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_line(
    app: App, wrong: dict[str, Any], field: str, message: str
):
    row = {name: value for name, value in {**AIR, **wrong}.items() if value is not None}
    with pytest.raises(CpqError) as error:
        engine.import_dicts(app, "rules", TOP, row)
    problem = error.value.details["problems"][0]  # type: ignore[index]
    assert (problem["line"], problem["field"], problem["message"]) == (2, field, message)


def test_a_rule_that_names_no_product_is_refused(app: App):
    rule = {**PLANS, "sets": {**SETS, "plans": {"products": ["nowhere"]}}}
    with pytest.raises(CpqError) as error:
        engine.import_dicts(app, "rules", rule)
    problem = error.value.details["problems"][0]  # type: ignore[index]
    assert problem["message"] == "PLAN-EACH names 'nowhere', which does not exist"
