"""The requested discount stays until it is taken back, and an answer that stored nothing says so."""

from typing import Any

import pytest

from tests.support.engine import Tools
from tests.support.quotes import SEATS, new_quote, put_into, sent_quote, stored


def test_q24_pricing_again_without_a_discount_keeps_the_stored_one(tools: Tools):
    quote_id = new_quote(tools)
    first = tools("quote_price", quote_id=quote_id, requested_discount_pct=4)
    again = tools("quote_price", quote_id=quote_id)
    assert (first["requested_discount_pct"], again["requested_discount_pct"]) == (4, 4)
    assert (again["pricing"], again["outcome"], again["stored"]) == (first["pricing"], "no_change", True)
    assert tools("quote_get", quote_id=quote_id)["requested_discount_pct"] == 4


def test_q24_zero_takes_the_requested_discount_back(tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=4)
    back = tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    assert (back["requested_discount_pct"], back["pricing"]["total"], back["outcome"]) == (0, 1500, "changed")
    assert tools("quote_get", quote_id=quote_id)["requested_discount_pct"] == 0


def test_q24_changes_and_revisions_keep_the_discount_and_show_it(tools: Tools):
    quote_id = new_quote(tools)
    assert tools("quote_get", quote_id=quote_id)["requested_discount_pct"] == 0
    tools("quote_price", quote_id=quote_id, requested_discount_pct=4)
    changed = tools("quote_update", quote_id=quote_id, expected_version=1, notes="More.")
    assert (changed["requested_discount_pct"], changed["total"]) == (4, 1440)
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    revised = tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert (revised["requested_discount_pct"], revised["total"]) == (4, 1440)
    assert tools("quote_clone", quote_id=quote_id)["requested_discount_pct"] == 0


def test_q27a_a_dry_run_of_a_draft_stores_nothing_and_says_how_to(tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=2)
    before = stored_quotes(tools)
    shown = tools("quote_price", quote_id=quote_id, requested_discount_pct=4, dry_run=True)
    assert (shown["stored"], shown["outcome"], shown["pricing"]["total"]) == (False, "no_change", 1440)
    assert (shown["requested_discount_pct"], shown["pricing"]["priced_at"]) == (4, None)
    assert shown["message"] == (
        "Nothing was stored: this was a dry run. The same call without dry_run stores this price."
    )
    assert stored_quotes(tools) == before
    done = tools(shown["next_call"]["tool"], **shown["next_call"]["arguments"])
    assert (done["stored"], done["pricing"]["total"]) == (True, 1440)
    assert done["fingerprint"] == shown["fingerprint"]


def test_q27a_a_dry_run_of_a_rejected_draft_opens_no_version(tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    put_into(tools.app, quote_id, "draft", "rejected")
    before = stored_quotes(tools)
    shown = tools("quote_price", quote_id=quote_id, requested_discount_pct=4, dry_run=True)
    assert (shown["version"], shown["stored"]) == (1, False)
    assert stored_quotes(tools) == before


@pytest.mark.parametrize("arguments", [{}, {"dry_run": True}, {"requested_discount_pct": 0}])
@pytest.mark.parametrize(
    ("status", "next_tool"),
    [
        ("pending_approval", "quote_revise"),
        ("approved", "quote_revise"),
        ("sent", "quote_revise"),
        ("declined", "quote_revise"),
        ("accepted", "quote_clone"),
        ("cancelled", "quote_clone"),
    ],
)
def test_q27a_a_quote_that_is_no_draft_is_only_evaluated_and_says_so(
    sqlite_tools: Tools, status: str, next_tool: str, arguments: dict[str, Any]
):
    tools = sqlite_tools
    quote_id = new_quote(tools)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=4)
    put_into(tools.app, quote_id, status)
    before = stored_quotes(tools)
    shown = tools("quote_price", quote_id=quote_id, **arguments)
    assert stored_quotes(tools) == before
    assert shown["stored"] is False
    assert shown["message"].startswith(f"Nothing was stored: the quote is {status}")
    assert (shown["next_call"]["tool"], next_tool in shown["message"]) == (next_tool, True)
    is_stored_price = "requested_discount_pct" not in arguments
    assert shown["requested_discount_pct"] == (4 if is_stored_price else 0)
    assert (shown["fingerprint"] == priced["fingerprint"]) is is_stored_price
    assert (shown["pricing"]["priced_at"] is not None) is is_stored_price
    tools(next_tool, **shown["next_call"]["arguments"])


def test_q27a_the_fingerprint_is_that_of_what_is_shown_with_option_sets_too(tools: Tools):
    lines = [{**SEATS, "option_set": "b"}, {**SEATS, "option_set": "a", "quantity": 20}]
    quote_id = sent_quote(tools, *lines)
    priced = tools("quote_price", quote_id=quote_id)
    assert priced["fingerprint"] == tools("quote_price", quote_id=quote_id, requested_discount_pct=0)["fingerprint"]
    other = tools("quote_price", quote_id=quote_id, requested_discount_pct=3)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert tools("quote_price", quote_id=quote_id, requested_discount_pct=3)["fingerprint"] == other["fingerprint"]


def test_a_switched_off_tool_is_not_the_next_call_of_a_price_that_was_not_stored(tools: Tools):
    quote_id = sent_quote(tools)
    few = Tools(tools.app, tuple(tool for tool in tools.registry.tools.values() if tool.toolset == "quotes"))
    assert "next_call" not in few("quote_price", quote_id=quote_id)


def test_q24_discount_pct_means_the_same_in_every_answer(tools: Tools):
    made = tools("quote_create", account_id="acct_acme_001", line_items=[{**SEATS, "discount_pct": 4}])
    quote_id = made["quote_id"]
    assert discounts(made["line_items"]) == [(4, 4)]
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    read = tools("quote_get", quote_id=quote_id)
    assert discounts(priced["line_pricing"]) == discounts(read["line_items"]) == [(13.6, 4)]
    assert [line["discount_amount"] for line in read["line_items"]] == [204]


def discounts(lines: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(line["discount_pct"], line["line_discount_pct"]) for line in lines]


def stored_quotes(tools: Tools) -> dict[str, Any]:
    """Every stored row but the keys of calls."""
    return {name: rows for name, rows in stored(tools.app).items() if name != "idempotency"}
