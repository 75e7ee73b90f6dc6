"""Quantities that are not whole: hours and metres, exact to the thousandth, only where the product takes them."""

import csv
import io
import json
import re
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.services.documents import DocumentRequest, design_of
from cpq.services.documents.exporter import export
from tests.support import engine
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_adds_up, assert_sound, new_quote, stored

TIERS = [{"up_to": 2, "unit_price": "100"}, {"unit_price": "80"}]


def hours(app: App, decimals: int = 3, **price: Any) -> str:
    """A service sold by the hour."""
    product = engine.product_row(
        category="services", product_type="service", unit="hour", quantity_decimals=decimals, name="Fitter"
    )
    engine.import_dicts(app, "products", product)
    row = {"product_id": product["id"], "price_book": "list", "currency": "USD", "unit_price": "95.5", "cost": "40"}
    engine.import_dicts(app, "prices", {**row, **price})
    return str(product["id"])


def exported(app: App, quote_id: str, form: str) -> str:
    call = app.new_call(OPERATOR)
    return app.read_unaudited(call, lambda tx: export(tx, DocumentRequest(quote_id), form, design_of(app.settings)))


@pytest.mark.parametrize("quantity", [2.5, "2.5", "2.50"])
def test_g08_two_and_a_half_hours_are_quoted_as_such(app: App, tools: Tools, quantity: object):
    product = hours(app)
    quote_id = new_quote(tools, {"product_id": product, "quantity": quantity})
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert (line["quantity"], line["unit_price"], line["subtotal"]) == (2.5, 95.5, 238.75)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=5)
    assert_adds_up(priced)
    assert (priced["line_pricing"][0]["quantity"], priced["line_pricing"][0]["line_total"]) == (2.5, 226.81)
    copied = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert tools("quote_get", quote_id=copied)["line_items"][0]["quantity"] == 2.5
    change = [{"line_id": line["line_id"], "quantity": "0.125"}]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=change)
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert (line["quantity"], line["subtotal"], line["unit_price"]) == (0.125, 11.94, 95.52)
    assert_sound(app)


def test_g08_a_product_sold_in_whole_numbers_says_so(app: App, tools: Tools):
    before = stored(app)
    line = {"product_id": "prod_oil_screw", "quantity": 2.5}
    error = tools.error("quote_create", account_id=ACME, line_items=[line])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/line_items/0/quantity")
    assert error["message"].startswith("The quantity must be whole for ")
    assert error["details"]["allowed"] == [2, 3]
    assert stored(app) == before


@pytest.mark.parametrize("quantity", [0, -1, "0.0004", 1.0001, 1_000_000.5, "1e400", True, "two"])
def test_g08_a_quantity_out_of_bounds_is_refused(app: App, tools: Tools, quantity: object):
    line = {"product_id": hours(app), "quantity": quantity}
    error = tools.error("quote_create", account_id=ACME, line_items=[line])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/line_items/0/quantity")


def test_g08_more_decimals_than_the_unit_takes_are_refused(app: App, tools: Tools):
    line = {"product_id": hours(app, decimals=1), "quantity": "2.25"}
    error = tools.error("quote_create", account_id=ACME, line_items=[line])
    assert error["message"].endswith("has at most 1 decimals.")
    made = tools("quote_create", account_id=ACME, line_items=[{**line, "quantity": "2.2"}])
    assert made["line_items"][0]["quantity"] == 2.2


@pytest.mark.parametrize(
    ("mode", "subtotal"), [("volume", 200), ("graduated", 240)], ids=["all at the tier", "each in its tier"]
)
def test_g08_tiers_count_parts_of_a_unit(app: App, tools: Tools, mode: str, subtotal: int):
    product = hours(app, tier_mode=mode, tiers=TIERS, unit_price="100")
    quote_id = new_quote(tools, {"product_id": product, "quantity": "2.5"})
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["subtotal"] == subtotal
    assert_sound(app)


def test_g08_tiers_over_the_quote_add_parts_of_units(app: App, tools: Tools):
    product = hours(app, tier_mode="volume", tiers=TIERS, unit_price="100", quantity_scope="quote")
    lines = [{"product_id": product, "quantity": quantity} for quantity in ("1.25", "1.25", 1)]
    read = tools("quote_get", quote_id=new_quote(tools, *lines))
    assert [line["subtotal"] for line in read["line_items"]] == [100, 100, 80]
    assert_sound(app)


def test_g08_the_files_show_the_quantity_and_its_unit(app: App, tools: Tools):
    quote_id = new_quote(tools, {"product_id": hours(app), "quantity": "2.5"})
    tools("quote_price", quote_id=quote_id)
    assert json.loads(exported(app, quote_id, "json"))["option_sets"][0]["lines"][0]["quantity"] == 2.5
    row = next(csv.DictReader(io.StringIO(exported(app, quote_id, "csv"))))
    assert (row["quantity"], row["unit"]) == ("2.5", "hour")
    html = exported(app, quote_id, "html")
    assert "2.5" in html
    assert re.search(r"Unit of sale: \W*hour", html)
    counted = [part for part in Xml.fromstring(exported(app, quote_id, "ubl")).iter() if part.tag.endswith("}Quantity")]
    assert [(part.text, part.get("unitCode")) for part in counted] == [("2.5", "HUR")]


def test_g08_a_policy_sees_the_exact_quantity_and_a_past_quote_shows_it(app: App, tools: Tools):
    quote_id = new_quote(tools, {"product_id": hours(app), "quantity": "2.5"})
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    assert tools("get_quote", quote_id=quote_id)["line_items"][0]["quantity"] == 2.5


def test_g08_a_product_shows_its_unit_and_decimals(app: App, tools: Tools):
    product = tools("catalog_get", product_id=hours(app, decimals=2))
    assert (product["unit"], product["quantity_decimals"]) == ("hour", 2)
    plain = tools("catalog_get", product_id="prod_oil_screw")
    assert (plain["unit"], plain["quantity_decimals"]) == (None, 0)


def test_g08_a_ramp_takes_whole_quantities(app: App, tools: Tools):
    product = hours(app, billing_period="monthly")
    line = {"product_id": product, "quantity": "2.5", "ramp": [{"months": 12}]}
    error = tools.error("quote_create", account_id=ACME, term_months=12, line_items=[line])
    assert error["message"] == "The quantity of a line with a ramp must be whole, not 2.5."
