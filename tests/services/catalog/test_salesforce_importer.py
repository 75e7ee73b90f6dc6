"""A translated Salesforce export in the database: quoted with its components, and unchanged by a second import."""

from typing import Any

from cpq.app import App
from cpq.base.row_problems import SourceRow
from cpq.services.catalog import salesforce_importer
from tests.support import engine
from tests.support.engine import Tools
from tests.support.quotes import ACME
from tests.support.salesforce_exports import export, full, model_facts, model_tables, rate, with_model


def rows(**tables: Any) -> list[SourceRow]:
    return salesforce_importer.translated(export({**full(), **tables}), with_inactive_schedules=False).rows


def test_an_imported_bundle_is_quoted_with_its_components_and_a_second_import_changes_nothing(app: App):
    first = engine.import_rows(app, lambda: iter(rows()))
    again = engine.import_rows(app, lambda: iter(rows()))
    assert first.created["products"] == again.unchanged["products"] == 7
    assert again.created.total() == again.updated.total() == 0
    tools = Tools(app)
    chosen = {"Processor": "The CPU-B", "The DISK-2": 3}
    lines = [
        {"product_id": "RACK", "quantity": 2, "attributes": chosen},
        {"product_id": "PLAN", "quantity": "1.5", "attributes": {"Size": "large"}},
        {"product_id": "PLAN", "quantity": 12, "selling_model": "monthly"},
    ]
    made = tools("quote_create", account_id=ACME, line_items=lines, currency="USD", term_months=12)
    rack, plan, monthly = (line["subtotal"] for line in made["line_items"])
    assert rack == 2 * (1000 + (250 - 50) + 3 * 60)
    assert plan == 1.5 * 180
    assert monthly == 12 * 12 * 8
    too_many = {"The DISK 1": True, "The DISK-2": 1, "The DISK-3": True}
    line = {"product_id": "RACK", "quantity": 1, "attributes": too_many}
    error = tools.error("quote_create", account_id=ACME, line_items=[line], currency="USD")
    assert error["message"] == "Choose 0 to 2 of Drives: The DISK 1, The DISK-2, The DISK-3"


def test_the_pairs_of_a_constraint_model_are_asked_for_in_a_bundle_and_between_the_lines_of_a_quote(app: App):
    pairs = {
        "requires": [{"if": "Disk", "then": "Second"}, {"if": "Plan", "then": "Rack"}],
        "excludes": [{"if": "Processor", "then": "Disk"}],
    }
    types = {"Disk": "The DISK 1", "Second": "The DISK-2", "Processor": "The CPU-A", "Plan": "The PLAN"}
    types["Rack"] = "The RACK"
    files = with_model(full(), model_tables(types), model_facts(list(types), **pairs))
    made = salesforce_importer.translated(files, with_inactive_schedules=False).rows
    first = engine.import_rows(app, lambda: iter(made))
    again = engine.import_rows(app, lambda: iter(made))
    assert (first.created["products"], again.unchanged["products"], again.updated.total()) == (7, 7, 0)
    tools = Tools(app)

    def quoted(**chosen: Any) -> dict[str, Any]:
        line = {"product_id": "RACK", "quantity": 1, "attributes": chosen}
        return {"account_id": ACME, "line_items": [line], "currency": "USD"}

    error = tools.error("quote_create", **quoted(Processor="The CPU-B", **{"The DISK 1": True}))
    assert error["message"] == "The DISK 1 requires The DISK-2"
    error = tools.error("quote_create", **quoted(Processor="The CPU-A", **{"The DISK 1": True, "The DISK-2": 1}))
    assert error["message"] == "The CPU-A excludes The DISK 1"
    fine = tools("quote_create", **quoted(Processor="The CPU-B", **{"The DISK 1": True, "The DISK-2": 1}))
    assert fine["line_items"][0]["subtotal"] == 1000 + 200 + 40 + 60
    plan = {"product_id": "PLAN", "quantity": 1, "attributes": {"Size": "small"}}
    alone = tools("quote_create", account_id=ACME, line_items=[plan], currency="USD", term_months=12)
    assert alone["warnings"] == ["PLAN requires RACK in the quote."]


def test_a_plan_is_quoted_with_its_rate_cards_each_on_a_line_of_its_own(app: App):
    storage = {
        "UsageResource.Code": "GB",
        "UsageResource.Name": "Storage",
        "DefaultUnitOfMeasure.Name": "Gigabyte",
    }
    tables = full()
    entries = [*tables["RateCardEntry"], rate("Base", "2", **storage)]
    resources = [*tables["UsageResource"], {"Name": "Storage"}]
    engine.import_rows(app, lambda: iter(rows(RateCardEntry=entries, UsageResource=resources)))
    tools = Tools(app)
    lines = [
        {"product_id": "PLAN", "quantity": 1, "attributes": {"Size": "small"}},
        {"product_id": "PLAN", "quantity": 1, "selling_model": "monthly_usage:Support", "commitment": {"quantity": 15}},
        {"product_id": "PLAN", "quantity": 1, "selling_model": "Storage", "commitment": {"amount": 100}},
    ]
    made = tools("quote_create", account_id=ACME, line_items=lines, currency="USD", term_months=12)
    plan, support, use = made["line_items"]
    assert (plan["subtotal"], plan["billing_period"]) == (100, "yearly")
    assert (support["subtotal"], use["subtotal"]) == (12 * (10 * 0.4 + 5 * 0.3), 12 * 100)
    again = [*lines, {**lines[1], "commitment": {"quantity": 5}}]
    error = tools.error("quote_create", account_id=ACME, line_items=again, currency="USD", term_months=12)
    assert error["details"]["field"] == "/line_items/3/product_id"
