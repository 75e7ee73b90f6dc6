"""Small doors an agent walks into: a wrong field, a SKU for an id, a suggestion that is sent as it is."""

from __future__ import annotations

import pytest

from cpq.base.errors import CpqError
from cpq.domain.quotes.lifecycle import TRANSITIONS, Move, QuoteStatus, after
from tests.support.engine import Tools

LINE = {"product_id": "prod_pro_v2", "quantity": 1}
RECORDS_A_FACT = {"quote_send", "quote_accept", "quote_decline", "approval_decide"}


def test_q03_an_unknown_field_of_a_line_lists_the_fields_of_a_line(tools: Tools):
    error = tools.error("quote_create", account_id="acct_acme_001", line_items=[LINE, {**LINE, "discout_pct": 5}])
    problem = error["details"]["problems"][0]
    assert problem["field"] == "/line_items/1/discout_pct"
    assert "discount_pct" in problem["allowed"]
    assert "line_items" not in problem["allowed"]
    assert problem["nearest"][0] == "discount_pct"


def test_q03_an_unknown_field_of_a_ramp_lists_the_fields_of_a_segment(tools: Tools):
    line = {**LINE, "ramp": [{"months": 12, "quantitty": 3}]}
    error = tools.error("quote_create", account_id="acct_acme_001", line_items=[line])
    assert error["details"]["problems"][0]["nearest"] == ["quantity"]
    assert "months" in error["details"]["problems"][0]["allowed"]


def test_q03_the_nearest_names_of_an_argument_are_a_list(tools: Tools):
    assert tools.error("quote_get", quote_idd="Q-1")["details"]["problems"][-1]["nearest"] == ["quote_id"]


@pytest.mark.parametrize("status", list(QuoteStatus))
def test_q03_a_suggested_call_records_nothing_that_did_not_happen(status: QuoteStatus):
    for move in Move:
        if (status, move) not in TRANSITIONS:
            with pytest.raises(CpqError) as refused:
                after(status, move, "Q-1", 1)
            suggested = refused.value.details["next_call"]
            assert isinstance(suggested, dict)
            assert suggested["tool"] not in RECORDS_A_FACT


def test_q05_a_product_is_found_by_its_sku_in_any_case(tools: Tools):
    assert tools("catalog_get", product_id="plan-pro-001")["id"] == "prod_pro_v2"
    lines = [{"product_id": "PLAN-PRO-001", "quantity": 150}]
    made = tools("quote_create", account_id="acct_acme_001", term_months=12, line_items=lines)
    assert (made["line_items"][0]["product_id"], made["line_items"][0]["subtotal"]) == ("prod_pro_v2", 1500)
    missing = tools.error(
        "quote_create", account_id="acct_acme_001", line_items=[{**LINE, "product_id": "PLAN-PRO-009"}]
    )
    assert missing["code"] == "NOT_FOUND"


def test_accounts_are_found_by_country_and_currency(tools: Tools):
    everyone = tools("account_search", limit=100)["items"]
    germans = tools("account_search", country="de", limit=100)["items"]
    assert germans == [one for one in everyone if one["country"] == "DE"] != []
    euros = tools("account_search", currency="eur", limit=100)["items"]
    assert euros == [one for one in everyone if one["currency"] == "EUR"] != []


def test_a_quote_and_a_past_quote_point_at_each_other(tools: Tools):
    assert "get_quote" in tools.error("quote_get", quote_id="Q-none")["details"]["hint"]
    assert "quote_get" in tools.error("get_quote", quote_id="Q-none")["details"]["hint"]
