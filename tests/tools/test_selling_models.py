"""A product that is sold in several ways: which price a line has is said, kept, and never a matter of ids."""

from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.base.errors import Code, CpqError
from cpq.storage.schema import tables
from mcp_facade.toolsets import tools_of
from tests.support import engine
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_sound, new_quote, stored

CARE = "prod_svc_plan_basic"
RENT = "prod_rent_rs100"


def made_product(app: App, *rows: dict[str, Any], **values: Any) -> str:
    """A product with prices of its own."""
    product = engine.product_row(category="services", product_type="service", **values)
    engine.import_dicts(app, "products", product)
    price = {"product_id": product["id"], "price_book": "list", "currency": "USD", "cost": "1"}
    engine.import_dicts(app, "prices", *({**price, **row} for row in rows))
    return str(product["id"])


MONTHLY = {"unit_price": "12", "billing_period": "monthly"}
YEARLY = {"unit_price": "100", "billing_period": "yearly"}
ENDLESS = {"unit_price": "13", "billing_period": "monthly", "selling_model": "evergreen"}
PREPAID = {"unit_price": "90", "billing_period": "yearly", "name": "prepaid"}


def test_g01_a_product_sold_by_month_and_by_year_is_not_chosen_by_id(app: App, tools: Tools):
    """What the user saw: the yearly price of a product that was meant by the month, without a word."""
    product = made_product(app, {**YEARLY, "id": "a-first"}, {**MONTHLY, "id": "z-last"})
    before = stored(app)
    line = {"product_id": product, "quantity": 2}
    asked: dict[str, Any] = {"account_id": ACME, "term_months": 12, "line_items": [line]}
    error = tools.error("quote_create", **asked)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/line_items/0/selling_model")
    assert error["details"]["allowed"] == ["monthly", "yearly"]
    assert [(one["selling_model"], one["unit_price"]) for one in error["details"]["choices"]] == [
        ("monthly", 12),
        ("yearly", 100),
    ]
    assert stored(app) == before
    for choice, subtotal in zip(error["details"]["choices"], (288, 200), strict=True):
        call = choice["next_call"]
        sold = tools(call["tool"], **call["arguments"])["line_items"][0]
        assert (sold["selling_model"], sold["subtotal"]) == (choice["selling_model"], subtotal)
    assert_sound(app)
    odd = {**line, "billing_period": "fortnight"}
    for choice in tools.error("quote_create", **{**asked, "line_items": [odd]})["details"]["choices"]:
        made = tools(choice["next_call"]["tool"], **choice["next_call"]["arguments"])
        assert made["line_items"][0]["selling_model"] == choice["selling_model"]


def test_g01_one_answer_settles_all_lines_that_ask_the_same(app: App, tools: Tools):
    first, second = (made_product(app, MONTHLY, YEARLY) for _ in range(2))
    lines = [{"product_id": id_, "quantity": 1} for id_ in (first, second)]
    error = tools.error("quote_create", account_id=ACME, line_items=lines)
    assert [one["field"] for one in error["details"]["problems"]] == [
        "/line_items/0/selling_model",
        "/line_items/1/selling_model",
    ]
    call = error["details"]["choices"][0]["next_call"]
    made = tools(call["tool"], **call["arguments"])
    assert [line["selling_model"] for line in made["line_items"]] == ["monthly", "monthly"]
    listed = [choice for problem in error["details"]["problems"] for choice in problem["choices"]]
    assert [(one["selling_model"], one["unit_price"], "next_call" in one) for one in listed] == [
        ("monthly", 12, False),
        ("yearly", 100, False),
    ] * 2


def test_g01_the_refusal_of_a_large_call_does_not_repeat_it_for_each_choice(app: App, tools: Tools):
    """What the user saw: 60 MB of answer, because each choice of 50 problems had a copy of all 500 lines."""
    product = made_product(app, MONTHLY, YEARLY, ENDLESS, PREPAID)
    lines = [{"product_id": product, "quantity": 1, "notes": "n" * 500} for _ in range(500)]
    reply = tools.reply("quote_create", {"account_id": ACME, "line_items": lines})
    assert len(reply.text.encode()) < 200_000
    details = reply.body["error"]["details"]
    assert len(details["problems"]) == 50
    for part in (details, *details["problems"]):
        assert part["field"].endswith("/selling_model")
        assert part["hint"] == "Send one of them as the line's selling_model."
        assert {one["unit_price"] for one in part["choices"]} == {12, 13, 90, 100}
        assert not any("next_call" in one for one in part["choices"])


@pytest.mark.parametrize(
    ("word", "model", "subtotal", "periods"),
    [
        ("monthly", "monthly", 288, 12),
        ("evergreen", "monthly_evergreen", 26, 1),
        ("prepaid", "yearly:prepaid", 180, 1),
        ("yearly:prepaid", "yearly:prepaid", 180, 1),
    ],
)
def test_g01_the_chosen_model_is_kept_through_the_life_of_the_quote(
    app: App, tools: Tools, word: str, model: str, subtotal: int, periods: int
):
    product = made_product(app, MONTHLY, YEARLY, ENDLESS, PREPAID)
    quote_id = new_quote(tools, {"product_id": product, "quantity": 2, "selling_model": word})

    def shown(id_: str) -> tuple[Any, ...]:
        line = tools("quote_get", quote_id=id_)["line_items"][0]
        return line["selling_model"], line["subtotal"], line["periods"]

    assert shown(quote_id) == (model, subtotal, periods)
    priced = tools("quote_price", quote_id=quote_id)["line_pricing"][0]
    assert (priced["selling_model"], priced["subtotal_before_discount"]) == (model, subtotal)
    assert tools("quote_price", quote_id=quote_id)["outcome"] == "no_change"
    tools("quote_update", quote_id=quote_id, expected_version=1, notes="n")
    assert shown(quote_id) == (model, subtotal, periods)
    assert shown(tools("quote_clone", quote_id=quote_id)["quote_id"]) == (model, subtotal, periods)
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    assert tools("quote_price", quote_id=quote_id)["line_pricing"][0]["selling_model"] == model
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert shown(quote_id) == (model, subtotal, periods)
    assert_sound(app)


def test_g01_a_draft_changes_from_one_model_to_another(app: App, tools: Tools):
    quote_id = new_quote(tools, {"product_id": CARE, "quantity": 1}, {"product_id": RENT, "quantity": 1})
    first, second = (line["line_id"] for line in tools("quote_get", quote_id=quote_id)["line_items"])
    changes = [{"line_id": first, "selling_model": "monthly"}, {"line_id": second, "selling_model": "evergreen"}]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=changes)
    lines = tools("quote_get", quote_id=quote_id)["line_items"]
    assert [(line["selling_model"], line["unit_price_per_period"], line["subtotal"]) for line in lines] == [
        ("monthly", 88, 88 * 12),
        ("monthly_evergreen", 5_200, 5_200),
    ]
    wrong = [{"line_id": first, "selling_model": "weekly"}]
    error = tools.error("quote_update", quote_id=quote_id, expected_version=1, change_lines=wrong)
    assert error["details"]["field"] == "/change_lines/0/selling_model"
    call = error["details"]["choices"][1]["next_call"]
    assert call["arguments"]["change_lines"] == [{"line_id": first, "selling_model": "yearly"}]
    tools(call["tool"], **call["arguments"])
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["selling_model"] == "yearly"
    assert_sound(app)


def test_g01_the_products_default_decides_and_the_sample_keeps_its_prices(tools: Tools):
    lines = [{"product_id": CARE, "quantity": 1}, {"product_id": RENT, "quantity": 1}]
    made = tools("quote_create", account_id=ACME, term_months=12, line_items=lines)["line_items"]
    assert [(line["selling_model"], line["subtotal"]) for line in made] == [("yearly", 960), ("monthly", 58_800)]


def test_g01_a_line_keeps_its_model_when_the_default_changes(app: App, tools: Tools):
    product = made_product(app, MONTHLY, YEARLY, default_selling_model="yearly")
    quote_id = new_quote(tools, {"product_id": product, "quantity": 1})
    row = engine.product_row(category="services", product_type="service", default_selling_model="monthly")
    engine.import_dicts(app, "products", {**row, "id": product})
    assert tools("quote_price", quote_id=quote_id)["line_pricing"][0]["selling_model"] == "yearly"
    fresh = tools("quote_get", quote_id=new_quote(tools, {"product_id": product, "quantity": 1}))
    assert fresh["line_items"][0]["selling_model"] == "monthly"


def test_g01_a_line_whose_model_is_gone_is_asked_again_and_not_moved_to_another(app: App, tools: Tools):
    product = made_product(app, YEARLY)
    quote_id = new_quote(tools, {"product_id": product, "quantity": 1})
    price = {"product_id": product, "price_book": "list", "currency": "USD", "cost": "1"}
    with app.database.writing(app.effects.monotonic() + 30) as connection:
        connection.execute(sa.delete(tables.price).where(tables.price.c.product_id == product))
    engine.import_dicts(app, "prices", {**price, **MONTHLY})
    error = tools.error("quote_price", quote_id=quote_id)
    assert (error["code"], error["details"]["line_id"]) == ("VALIDATION_ERROR", f"{quote_id}-ql-1")
    alone = Tools(app, tuple(tools_of(("quotes",))))
    for choice in alone.error("quote_price", quote_id=quote_id)["details"]["choices"]:
        assert choice["selling_model"] == "monthly"
        assert "next_call" not in choice, "quote_update is a tool of the deals, which are off here"
    call = error["details"]["choices"][0]["next_call"]
    tools(call["tool"], **call["arguments"])
    assert tools("quote_price", quote_id=quote_id)["pricing"]["total"] == 144


def test_g01_contracted_prices_follow_the_choice(app: App, tools: Tools):
    product = made_product(app, MONTHLY, YEARLY, default_selling_model="monthly")
    agreed = {"product_id": product, "account_id": ACME, "currency": "USD", "unit_price": "70"}
    engine.import_dicts(app, "prices", {**agreed, "billing_period": "yearly"})
    for word, subtotal in (("yearly", 70), ("monthly", 144), (None, 144)):
        line = {"product_id": product, "quantity": 1, "selling_model": word}
        assert tools("quote_get", quote_id=new_quote(tools, line))["line_items"][0]["subtotal"] == subtotal


def test_g01_a_product_shows_how_it_is_sold_and_what_tax_and_tiers_mean(tools: Tools):
    product = tools("catalog_get", product_id=RENT)
    assert product["default_selling_model"] == "monthly"
    usd = [price for price in product["prices"] if price["currency"] == "USD"]
    assert {price["pick_with"]: price["selling_model"] for price in usd} == {
        "monthly": "term",
        "monthly_evergreen": "evergreen",
    }
    assert {(price["tax_category"], price["tax_included"]) for price in usd} == {("service", False)}
    monitor = tools("catalog_get", product_id="prod_app_monitor")["prices"]
    assert {price["quantity_scope"] for price in monitor} == {"quote"}
    assert {price["free_quantity"] for price in monitor} == {0}


def test_an_import_takes_rows_of_several_models_and_names_wrong_ones(app: App):
    product = made_product(app, MONTHLY, YEARLY, ENDLESS, PREPAID)
    price = {"product_id": product, "price_book": "list", "currency": "USD", "cost": "1"}
    again = engine.import_dicts(app, "prices", *({**price, **row} for row in (MONTHLY, YEARLY, ENDLESS, PREPAID)))
    assert (again.unchanged["prices"], again.created["prices"], again.updated["prices"]) == (4, 0, 0)
    explicit = {**price, **MONTHLY, "selling_model": "term"}
    assert engine.import_dicts(app, "prices", explicit).unchanged["prices"] == 1
    for wrong in ({"selling_model": "one_time"}, {"name": "yearly"}, {"name": "a:b"}):
        with pytest.raises(CpqError) as refused:
            engine.import_dicts(app, "prices", {**price, **MONTHLY, **wrong})
        assert refused.value.code is Code.VALIDATION_ERROR
