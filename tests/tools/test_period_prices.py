"""What a period costs, in every answer about a recurring line, and in the files made of it."""

import csv
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.base.settings import Settings
from cpq.services.documents import DocumentRequest, design_of
from cpq.services.documents.exporter import export
from cpq.services.quotes.record import record_of
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_sound, new_quote
from tests.tools.test_quote_terms import with_policies

RENT = {"product_id": "prod_rent_rs100", "quantity": 2}
OIL = {"product_id": "prod_oil_screw", "quantity": 5}
ONCE = (189, None, "one_time", None)
FIELDS = ("unit_price", "unit_price_per_period", "billing_period", "periods")


def shown(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in FIELDS)


def exported(app: App, quote_id: str, form: str) -> str:
    call = app.new_call(OPERATOR)
    return app.read_unaudited(call, lambda tx: export(tx, DocumentRequest(quote_id), form, design_of(app.settings)))


def test_q27b_a_rental_of_4900_a_month_is_not_shown_as_58800_a_month(app: App, tools: Tools):
    term = (58_800, 4_900, "monthly", 12)
    created = tools("quote_create", account_id=ACME, term_months=12, line_items=[RENT, OIL])
    quote_id = created["quote_id"]
    assert [shown(line) for line in created["line_items"]] == [term, ONCE]
    assert [shown(line) for line in tools("quote_get", quote_id=quote_id)["line_items"]] == [term, ONCE]
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)["line_pricing"]
    assert shown(priced[0]) == (52_920, 4_410, "monthly", 12)
    assert (priced[0]["base_unit_price"], priced[0]["base_unit_price_per_period"]) == (58_800, 4_900)
    assert shown(priced[1]) == (170.1, None, "one_time", None)
    assert priced[1]["base_unit_price_per_period"] is None
    record = app.read_unaudited(app.new_call(OPERATOR), lambda tx: record_of(tx, quote_id))
    assert [shown(line) for line in record["option_sets"][0]["lines"]] == [term, ONCE]
    assert [shown(line) for line in record["line_items"]] == [term, ONCE]
    assert_sound(app)


def test_q27b_the_files_of_a_quote_say_what_a_month_costs(app: App, tools: Tools):
    quote_id = new_quote(tools, RENT, OIL)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    lines = json.loads(exported(app, quote_id, "json"))["option_sets"][0]["lines"]
    assert [shown(line) for line in lines] == [(58_800, 4_900, "monthly", 12), ONCE]
    assert [line["net_unit_price_per_period"] for line in lines] == [4_410, None]
    rows = list(csv.DictReader(io.StringIO(exported(app, quote_id, "csv"))))
    assert [shown(row) for row in rows] == [("58800", "4900", "monthly", "12"), ("189", "", "one_time", "")]


def test_q27b_a_price_without_a_term_is_for_one_period(tools: Tools):
    created = tools("quote_create", account_id=ACME, line_items=[RENT])
    assert shown(created["line_items"][0]) == (4_900, 4_900, "monthly", 1)
    assert shown(tools("quote_get", quote_id=created["quote_id"])["line_items"][0]) == (4_900, 4_900, "monthly", 1)


def test_q27b_half_a_year_of_a_yearly_price_is_half_a_period(tools: Tools):
    created = tools("quote_create", account_id=ACME, term_months=6, line_items=[{**RENT, "product_id": "prod_pro_v2"}])
    assert shown(created["line_items"][0]) == (5, 10, "yearly", 0.5)


def test_q27b_a_part_of_a_month_is_an_exact_fraction(store: Settings, tmp_path: Path):
    app = with_policies(store, tmp_path, part_periods="months_and_days")
    tools = Tools(app)
    term = {"start_date": "2026-01-15", "end_date": "2027-01-30"}
    quote_id = new_quote(tools, RENT, term_months=None, **term)
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert shown(line)[1:] == (4_900, "monthly", "12 16/31")
    assert line["subtotal"] == round(float(2 * 4_900 * Fraction(12 * 31 + 16, 31)), 2) == 122_658.06
    row = next(csv.DictReader(io.StringIO(exported(app, quote_id, "csv"))))
    assert shown(row)[1:] == ("4900", "monthly", "12 16/31")
    app.close()


def test_q27b_of_a_ramp_the_mean_price_is_shown(tools: Tools):
    ramp = [{"months": 6, "quantity": 1}, {"months": 6, "quantity": 2, "uplift_pct": 10}]
    line = tools("quote_get", quote_id=new_quote(tools, {**RENT, "ramp": ramp}))["line_items"][0]
    assert (line["subtotal"], line["periods"]) == (6 * 4_900 + 12 * 5_390, 12)
    assert line["unit_price_per_period"] == 5226.666667
