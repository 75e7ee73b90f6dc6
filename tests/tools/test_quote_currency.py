"""The currency of a quote: the account's own, unless the caller asks for another one and is told."""

from typing import Any

import pytest

from tests.support.engine import Tools, import_dicts
from tests.support.quotes import ACME, SEATS, new_quote, sent_quote, stored

RHEINSTAHL = "acct_rheinstahl_010"
PUMP = {"product_id": "prod_qmb30", "quantity": 1}


@pytest.mark.parametrize(("account_id", "currency"), [(ACME, "USD"), (RHEINSTAHL, "EUR"), ("acct_hikari_020", "JPY")])
def test_q18_a_currency_left_out_is_the_accounts_own(tools: Tools, account_id: str, currency: str):
    made = tools("quote_create", account_id=account_id, line_items=[PUMP])
    assert made["currency"] == currency
    assert not [warning for warning in made["warnings"] if "buys in" in warning]
    assert tools("quote_get", quote_id=made["quote_id"])["quote"]["currency"] == currency


def test_q18_an_account_that_names_no_currency_is_quoted_in_usd(tools: Tools):
    row = {"id": "acct_plain", "name": "Plain", "segment": "smb", "region": "na", "country": "US", "tax_zone": "us"}
    zone = tools("account_get", account_id=ACME)
    import_dicts(tools.app, "accounts", {**row, "region": zone["region"], "tax_zone": zone["tax_zone"]})
    assert tools("quote_create", account_id="acct_plain", line_items=[PUMP])["currency"] == "USD"


def test_q18_a_currency_that_is_not_the_accounts_gets_a_warning(tools: Tools):
    made = tools("quote_create", account_id=RHEINSTAHL, currency="usd", line_items=[PUMP])
    expected = "The quote is in USD, but the account acct_rheinstahl_010 buys in EUR."
    assert (made["currency"], expected in made["warnings"]) == ("USD", True)
    quote_id = made["quote_id"]
    assert expected in tools("quote_price", quote_id=quote_id)["warnings"]
    assert expected in tools("quote_get", quote_id=quote_id)["warnings"]
    changed = tools("quote_update", quote_id=quote_id, expected_version=1, currency="EUR")
    assert (changed["currency"], [one for one in changed["warnings"] if "buys in" in one]) == ("EUR", [])


def test_q18_an_update_in_another_currency_prices_the_quote_in_it(tools: Tools):
    quote_id = new_quote(tools, PUMP)
    tools("quote_price", quote_id=quote_id)
    changed = tools("quote_update", quote_id=quote_id, expected_version=1, currency="EUR")
    assert (changed["currency"], changed["total"]) == ("EUR", 13400)
    assert changed["warnings"][-1].startswith("The quote is in EUR, but")
    read = tools("quote_get", quote_id=quote_id)
    assert (read["quote"]["currency"], read["pricing"]["total"]) == ("EUR", 13400)
    assert read["pricing"]["priced_at"] is None
    assert tools("quote_list", account_id=ACME)["items"][0]["currency"] == "EUR"


def test_q18_a_clone_takes_a_currency_and_otherwise_keeps_the_quotes(tools: Tools):
    quote_id = new_quote(tools, PUMP)
    assert tools("quote_clone", quote_id=quote_id, currency="EUR")["line_items"][0]["unit_price"] == 13400
    kept = tools("quote_clone", quote_id=quote_id, account_id=RHEINSTAHL)
    assert (kept["currency"], "buys in EUR" in kept["warnings"][-1]) == ("USD", True)


@pytest.mark.parametrize("tool", ["quote_update", "quote_clone"])
def test_q19_a_currency_without_a_price_is_refused_and_named(tools: Tools, tool: str):
    quote_id = new_quote(tools, SEATS, PUMP)
    before = stored(tools.app)
    expected = {"expected_version": 1} if tool == "quote_update" else {}
    error = tools.error(tool, quote_id=quote_id, currency="CHF", **expected)
    assert (error["code"], error["details"]["field"]) == ("CURRENCY_MISMATCH", "/currency")
    assert "USD" in error["details"]["allowed"]
    assert [problem["line_id"] for problem in error["details"]["problems"]] == [f"{quote_id}-ql-{n}" for n in (1, 2)]
    assert stored(tools.app) == before


def test_a_revision_in_another_currency_leaves_the_sent_version_in_its_own(tools: Tools):
    quote_id = sent_quote(tools, {"product_id": "prod_qmb15", "quantity": 1})
    sent = tools("quote_get", quote_id=quote_id)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, currency="EUR")
    first, second = (tools("quote_get", quote_id=quote_id, version=number) for number in (1, 2))
    assert (first["quote"]["currency"], first["pricing"]) == ("USD", sent["pricing"])
    assert (second["quote"]["currency"], second["pricing"]["total"]) == ("EUR", 8750)
    back = tools("quote_cancel", quote_id=quote_id, expected_version=2)
    assert (back["currency"], back["total"]) == ("USD", sent["pricing"]["total"])
    accepted = tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    assert (accepted["currency"], accepted["total"]) == ("USD", sent["pricing"]["total"])


TYPED: dict[str, dict[str, Any]] = {
    "unit_price": {"unit_price": 9000, "price_reason": "as agreed"},
    "discount_amount": {"discount_amount": 500},
    "custom": {"product_id": None, "custom": {"name": "Crane", "unit_price": 800, "cost": 600}},
}


@pytest.mark.parametrize("tool", ["quote_update", "quote_clone"])
@pytest.mark.parametrize("name", TYPED)
def test_g03_an_amount_that_was_typed_in_is_not_taken_for_another_currency(tools: Tools, tool: str, name: str):
    line = {key: value for key, value in {**PUMP, **TYPED[name]}.items() if value is not None}
    quote_id = new_quote(tools, line)
    before = stored(tools.app)
    error = tools.error(
        tool, quote_id=quote_id, currency="EUR", **({"expected_version": 1} if tool == "quote_update" else {})
    )
    assert (error["code"], error["details"]["field"]) == ("CURRENCY_MISMATCH", "/currency")
    told = {problem["field"]: (problem["line_id"], problem["message"]) for problem in error["details"]["problems"]}
    assert told[name] == (f"{quote_id}-ql-1", "was given in USD")
    assert stored(tools.app) == before


def test_g03_a_currency_changes_with_the_amounts_that_are_given_or_cleared_in_the_same_call(tools: Tools):
    quote_id = new_quote(tools, {**PUMP, **TYPED["unit_price"]}, {**PUMP, "discount_amount": 500})
    first, second = (f"{quote_id}-ql-{number}" for number in (1, 2))
    lines = [{"line_id": first, "unit_price": 9000}, {"line_id": second, "clear": ["discount_amount"]}]
    changed = tools("quote_update", quote_id=quote_id, expected_version=1, currency="EUR", change_lines=lines)
    assert (changed["currency"], changed["total"]) == ("EUR", 9000 + 13400)


def test_g04_an_amount_off_the_quote_is_not_taken_for_another_currency(tools: Tools):
    quote_id = new_quote(tools, PUMP)
    tools("quote_price", quote_id=quote_id, requested_discount_amount=100)
    error = tools.error("quote_update", quote_id=quote_id, expected_version=1, currency="EUR")
    assert error["details"]["problems"][0]["field"] == "requested_discount_amount"
    tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    assert tools("quote_update", quote_id=quote_id, expected_version=1, currency="EUR")["total"] == 13400
    assert tools("quote_clone", quote_id=quote_id, currency="USD")["currency"] == "USD"
