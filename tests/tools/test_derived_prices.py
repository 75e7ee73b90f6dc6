"""G-10: where a price book allows it, a missing price is derived from its base currency at the policies' rate."""

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, shipped
from cpq.services import quotes
from tests.support.approvals import refused
from tests.support.engine import Tools, import_dicts, open_app
from tests.support.quotes import ACME, assert_sound, new_quote

FJORD = "acct_nordfjord_027"
SCREW = {"product_id": "prod_qmb15", "quantity": 2}
OIL = {"product_id": "prod_oil_screw", "quantity": 10}
MANAGER = Principal("maria", "human", frozenset({Role.SALES_MANAGER}))


def steps(app: App, quote_id: str) -> list[Any]:
    found = app.read_unaudited(app.new_call(MANAGER), lambda tx: quotes.record_of(tx, quote_id))
    return list(found["option_sets"][0]["lines"][0]["steps"])


def test_g10_a_missing_price_is_derived_and_the_trace_says_how(app: App, tools: Tools):
    quote_id = new_quote(tools, SCREW, account_id=FJORD)
    priced = tools("quote_price", quote_id=quote_id)
    [line] = priced["line_pricing"]
    assert (line["base_unit_price"], line["line_total"]) == (99845, 199690)
    assert tools("quote_get", quote_id=quote_id)["quote"]["currency"] == "NOK"
    listed, converted, *_ = steps(app, quote_id)
    assert (listed["stage"], listed["value"]) == ("list", 99845)
    assert converted == {
        "stage": "currency",
        "part": None,
        "source": "8690 EUR at the rate of 2026-11-02, rounded to five",
        "value": Decimal("11.489362"),
        "unit": "rate",
        "amount": 199690,
    }
    assert assert_sound(app) == 1


def test_g10_tiers_are_derived_too(tools: Tools):
    for quantity, unit_price in ((9, 2055), (10, 1875), (40, 1725)):
        quote_id = new_quote(tools, {**OIL, "quantity": quantity}, account_id=FJORD)
        assert tools("quote_price", quote_id=quote_id)["line_pricing"][0]["base_unit_price"] == unit_price


def test_g10_without_permission_the_currency_is_refused_as_before(tools: Tools):
    for account_id, product_id in ((ACME, "prod_qmb15"), (FJORD, "prod_qmb30")):
        error = refused(tools, "quote_create", account_id=account_id, currency="NOK",
                        line_items=[{"product_id": product_id, "quantity": 1}])  # fmt: skip
        assert error["code"] == "CURRENCY_MISMATCH"
        assert error["details"]["field"] == "/line_items/0/product_id"
        assert "EUR" in error["details"]["allowed"]
        assert error["details"]["next_call"]["tool"] == "catalog_get"


def test_g10_a_price_of_the_book_in_the_currency_comes_first(app: App, tools: Tools):
    price = {"product_id": "prod_qmb15", "price_book": "nordic", "currency": "NOK", "unit_price": 101000}
    import_dicts(app, "prices", price)
    quote_id = new_quote(tools, SCREW, account_id=FJORD)
    assert tools("quote_price", quote_id=quote_id)["line_pricing"][0]["base_unit_price"] == 101000
    assert [step["stage"] for step in steps(app, quote_id)] == ["list"]


def test_g10_in_the_base_currency_nothing_is_derived(app: App, tools: Tools):
    quote_id = new_quote(tools, SCREW, account_id=FJORD, currency="EUR")
    assert tools("quote_price", quote_id=quote_id)["line_pricing"][0]["base_unit_price"] == 8690
    assert [step["stage"] for step in steps(app, quote_id)] == ["list"]


def test_g10_the_cost_is_converted_and_hidden_from_those_who_may_not_see_it(app: App, tools: Tools):
    maria = Tools(app, principal=MANAGER)
    quote_id = new_quote(maria, SCREW, account_id=FJORD)
    maria("quote_price", quote_id=quote_id)
    call = app.new_call(MANAGER)
    line = app.read_unaudited(call, lambda tx: {"lines": quotes.repository.load(tx, quote_id).lines})["lines"][0]
    assert line.cost == 134_425_530_000  # 2 × 5850 EUR
    for one in (tools("quote_get", quote_id=quote_id), tools("quote_price", quote_id=quote_id, dry_run=True)):
        assert "134425" not in str(one)
        assert "67212" not in str(one)
    assert "5850" not in str(tools("catalog_get", product_id="prod_qmb15", currency="NOK"))


def with_terms(store: Settings, folder: Path, old: str, new: str) -> Settings:
    shutil.copytree(shipped("policies"), folder)
    terms = folder / "terms.yaml"
    text = terms.read_text(encoding="utf-8")
    assert old in text
    terms.write_text(text.replace(old, new), encoding="utf-8")
    return store.model_copy(update={"policies_dir": folder})


DAY = 'rates_as_of: "2026-11-02"'


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (DAY, f"{DAY}\nrates_valid_until: 2026-11-15", "could be used until 2026-11-15"),
        (DAY, "", "the rates in terms.yaml have no day"),
        ("  NOK: 0.094\n", "", "terms.yaml has no rate for NOK"),
    ],
)
def test_g10_a_rate_that_may_not_be_used_is_refused_with_the_way_out(
    store: Settings, tmp_path: Path, old: str, new: str, why: str
):
    app = open_app(with_terms(store, tmp_path / "policies", old, new))
    tools = Tools(app)
    lines = [{"product_id": "prod_qmb15", "quantity": 1}]
    error = refused(tools, "quote_create", account_id=FJORD, line_items=lines)
    assert (error["code"], error["details"]["field"]) == ("CURRENCY_MISMATCH", "/line_items/0/product_id")
    assert why in error["message"]
    assert error["details"]["hint"].endswith("or quote in EUR.")
    assert tools("quote_create", account_id=FJORD, line_items=lines, currency="EUR")["currency"] == "EUR"
    app.close()


def test_g10_another_rate_gives_the_next_price_and_leaves_the_stored_one(store: Settings, tmp_path: Path):
    app = open_app(store)
    quote_id = new_quote(Tools(app), SCREW, account_id=FJORD)
    app.close()
    app = open_app(with_terms(store, tmp_path / "policies", "NOK: 0.094", "NOK: 0.1"))
    tools = Tools(app)
    assert tools("quote_get", quote_id=quote_id)["pricing"]["subtotal"] == 199690
    assert assert_sound(app) == 1
    assert tools("quote_price", quote_id=quote_id)["pricing"]["subtotal"] == 187700  # 93,852 to five
    app.close()


def test_g10_the_catalogue_says_what_is_derived(tools: Tools):
    stored = [row for row in tools("catalog_get", product_id="prod_qmb15")["prices"] if row["price_book"] == "nordic"]
    assert [(row["currency"], row["unit_price"]) for row in stored] == [("EUR", 8690)]
    assert {"DKK", "NOK", "SEK", "USD"} <= set(stored[0]["converted_into"])
    assert "EUR" not in stored[0]["converted_into"]
    [derived] = tools("catalog_get", product_id="prod_qmb15", currency="nok")["prices"]
    assert (derived["price_book"], derived["currency"], derived["unit_price"]) == ("nordic", "NOK", 99845)
    assert derived["derived_from"] == {
        "currency": "EUR", "unit_price": 8690, "rate": derived["derived_from"]["rate"], "rates_as_of": "2026-11-02",
        "rounding": "five",
    }  # fmt: skip
    assert str(derived["derived_from"]["rate"]) == "11.489362"
    [oil] = tools("catalog_get", product_id="prod_oil_screw", currency="NOK")["prices"]
    assert [tier["unit_price"] for tier in oil["tiers"]] == [2055, 1875, 1725]
    listed = tools("catalog_get", product_id="prod_qmb15", currency="JPY")["prices"]
    assert ("list", 1400000) in [(row["price_book"], row["unit_price"]) for row in listed]


def test_g10_a_book_is_imported_with_its_base_currency_and_rule(sqlite_app: App):
    import_dicts(sqlite_app, "price_books", {"id": "fair", "name": "Fair", "base_currency": "usd"})
    import_dicts(sqlite_app, "price_books", {"id": "fair", "name": "Fair", "base_currency": "USD",
                                             "price_rounding": "just_below"})  # fmt: skip
    for wrong in (
        {"base_currency": "XXX"},
        {"base_currency": "USD", "price_rounding": "up"},
        {"price_rounding": "five"},
    ):
        with pytest.raises(CpqError) as refusal:
            import_dicts(sqlite_app, "price_books", {"id": "fair", "name": "Fair", **wrong})
        assert refusal.value.details["problems"]
