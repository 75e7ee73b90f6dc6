"""Prices by the week, the half-year and any number of periods: what a quote, its files and its commands say."""

import pytest

from cpq.app import App
from tests.support import engine
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_sound, new_quote, stored
from tests.tools.test_selling_models import MONTHLY, made_product

WEEKLY = {"unit_price": "70", "billing_period": "week"}
FORTNIGHT = {"unit_price": "120", "billing_period": "2 weeks"}
LONG = {"unit_price": "900", "billing_period": "18 months"}
HALF = {"unit_price": "300", "billing_period": "half_year"}


@pytest.mark.parametrize(
    ("row", "period", "periods", "subtotal"),
    [
        (WEEKLY, "weekly", "52 1/7", 3650),
        (FORTNIGHT, "2_weeks", "26 1/14", 3128.57),
        (HALF, "half_yearly", 2, 600),
        (LONG, "18_months", "2/3", 600),
    ],
)
def test_g01_a_year_of_any_period_is_counted_and_said(
    app: App, tools: Tools, row: dict, period: str, periods: object, subtotal: float
):
    product = made_product(app, row)
    asked = {"account_id": ACME, "start_date": "2027-01-01", "term_months": 12}
    quote = tools("quote_create", **asked, line_items=[{"product_id": product, "quantity": 1}])
    line = quote["line_items"][0]
    assert (line["billing_period"], line["selling_model"], line["subtotal"]) == (period, period, subtotal)
    assert str(line["periods"]) in (str(periods), f"0 {periods}")
    detail = tools("catalog_get", product_id=product)["prices"][0]
    assert (detail["billing_period"], detail["pick_with"]) == (period, period)
    assert_sound(app)


def test_g01_a_weekly_price_runs_for_whole_weeks_and_a_monthly_one_does_not(app: App, tools: Tools):
    product, by_month = made_product(app, WEEKLY), made_product(app, MONTHLY)
    dates = {"account_id": ACME, "start_date": "2027-03-01", "end_date": "2027-03-21"}
    quote = tools("quote_create", **dates, line_items=[{"product_id": product, "quantity": 2}])
    assert (quote["line_items"][0]["periods"], quote["line_items"][0]["subtotal"]) == (3, 420)
    before = stored(app)
    error = tools.error("quote_create", **dates, line_items=[{"product_id": by_month, "quantity": 2}])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/end_date")
    assert error["details"]["allowed"] == ["2027-03-31"]
    own = {"product_id": by_month, "quantity": 1, "start_date": "2027-03-01", "end_date": "2027-03-21"}
    error = tools.error("quote_create", account_id=ACME, line_items=[own])
    assert error["details"]["field"] == "/line_items/0/end_date"
    odd = {**dates, "end_date": "2027-03-20"}
    error = tools.error("quote_create", **odd, line_items=[{"product_id": product, "quantity": 2}])
    assert error["details"]["field"] == "/end_date"
    assert stored(app) == before


def test_g01_a_line_picks_by_model_and_billing_period(app: App, tools: Tools):
    endless = {"unit_price": "80", "billing_period": "week", "selling_model": "evergreen"}
    product = made_product(app, WEEKLY, FORTNIGHT, MONTHLY, endless)
    quote_id = ""
    for model, period, expected in (
        ("term", "week", "weekly"),
        ("evergreen", "week", "weekly_evergreen"),
        (None, "2 weeks", "2_weeks"),
        ("term", "month", "monthly"),
    ):
        line = {"product_id": product, "quantity": 1, "selling_model": model, "billing_period": period}
        quote_id = new_quote(tools, line)
        assert tools("quote_get", quote_id=quote_id)["line_items"][0]["selling_model"] == expected
    change = {"line_id": f"{quote_id}-ql-1", "selling_model": "term", "billing_period": "2 weeks"}
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["selling_model"] == "2_weeks"
    line = {"product_id": product, "quantity": 1, "selling_model": "term", "billing_period": "quarter"}
    error = tools.error("quote_create", account_id=ACME, line_items=[line])
    assert error["details"]["field"] == "/line_items/0/selling_model"
    assert error["details"]["allowed"] == ["2_weeks", "monthly", "weekly", "weekly_evergreen"]


def test_g01_an_export_of_any_period_imports_again_without_a_change(app: App):
    product = made_product(app, WEEKLY, FORTNIGHT, LONG, HALF)
    price = {"product_id": product, "price_book": "list", "currency": "USD", "cost": "1"}
    rows = [{**price, **row} for row in (WEEKLY, FORTNIGHT, LONG, HALF)]
    spelled = [
        {**row, "billing_period": word}
        for row, word in zip(rows, ("weekly", "2_weeks", "18_months", "2 quarters"), strict=True)
    ]
    assert engine.import_dicts(app, "prices", *spelled).unchanged["prices"] == 4
