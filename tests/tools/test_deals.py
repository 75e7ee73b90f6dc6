"""The deals toolset: how a quote moves, what holds it, and what each refusal offers instead."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

from cpq.app import App
from cpq.base.settings import Settings
from cpq.domain.quotes.lifecycle import TRANSITIONS, Move, QuoteStatus
from mcp_facade.server import Facade
from mcp_facade.tools import quotes as quote_tools
from mcp_facade.toolsets import ALL_TOOLS
from tests.support import engine
from tests.support.approvals import person
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, assert_sound, new_quote, put_into, sent_quote, status_of, stored

MOVES: dict[Move, Callable[[str], tuple[str, dict[str, Any]]]] = {
    Move.EDIT: lambda id_: ("quote_update", {"quote_id": id_, "expected_version": 1, "notes": "new"}),
    Move.SEND: lambda id_: ("quote_send", {"quote_id": id_, "expected_version": 1}),
    Move.ACCEPT: lambda id_: ("quote_accept", {"quote_id": id_, "expected_version": 1}),
    Move.DECLINE: lambda id_: ("quote_decline", {"quote_id": id_, "expected_version": 1}),
    Move.CANCEL: lambda id_: ("quote_cancel", {"quote_id": id_, "expected_version": 1}),
    Move.REVISE: lambda id_: ("quote_revise", {"quote_id": id_, "expected_version": 1}),
}
CRANED = {"product_id": "prod_dr1000", "quantity": 1}
PREFILTER = {"product_id": "prod_fp1200", "quantity": 1}


def refused(tools: Tools, name: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call, which must have changed no row."""
    before = stored(tools.app)
    error = tools.error(name, **arguments)
    assert stored(tools.app) == before
    return error


def follow(tools: Tools, error: dict[str, Any]) -> dict[str, Any]:
    """Send the next call exactly as it was offered."""
    call = error["details"]["next_call"]
    return tools(call["tool"], **call["arguments"])


def version_of(tools: Tools, quote_id: str) -> int:
    return tools("quote_get", quote_id=quote_id)["quote"]["version"]


def in_state(tools: Tools, status: str) -> str:
    """A priced quote in a state; one that expired is a sent one whose time is over."""
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    if status != "draft":
        put_into(tools.app, quote_id, status)
    return quote_id


@pytest.mark.parametrize("status", list(QuoteStatus))
@pytest.mark.parametrize("move", MOVES)
def test_a_quote_moves_as_the_table_says_and_no_other_way(tools: Tools, status: QuoteStatus, move: Move):
    quote_id = in_state(tools, status)
    name, arguments = MOVES[move](quote_id)
    target = TRANSITIONS.get((status, move))
    if target is not None:
        moved = tools.seller(name, **arguments)
        assert moved["status"] == target == status_of(tools, quote_id)
        assert moved["version"] == 1 + (move is Move.REVISE)
        assert moved["edit"] == 3
        return
    error = refused(tools, name, **arguments)
    details = error["details"]
    assert (error["code"], details["field"], details["status"]) == ("CONFLICT", "/quote_id", status)
    assert details["allowed"] == [move for state, move in TRANSITIONS if state == status]
    if status == "pending_approval" and move is not Move.EDIT and "approval_status" not in tools.registry.tools:
        assert "next_call" not in details
    else:
        assert follow(tools, error)


def test_the_table_has_the_moves_that_the_product_promises():
    open_states = ("draft", "pending_approval", "approved", "sent")
    assert {state for state, move in TRANSITIONS if move is Move.CANCEL} == set(open_states)
    assert {state for state, move in TRANSITIONS if move in (Move.ACCEPT, Move.DECLINE)} == {"sent"}
    assert {state for state, move in TRANSITIONS if move is Move.SEND} == {"draft", "approved"}
    assert {state for state, move in TRANSITIONS if move is Move.EDIT} == {"draft"}
    assert not [state for state, _ in TRANSITIONS if state in ("accepted", "cancelled")]


@pytest.mark.parametrize("name", ["quote_update", "quote_send", "quote_cancel", "quote_revise"])
def test_a_version_that_is_not_current_is_refused_with_the_one_that_is(tools: Tools, name: str):
    quote_id = sent_quote(tools)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    for wrong in (1, 3):
        error = refused(tools, name, quote_id=quote_id, expected_version=wrong)
        assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/expected_version")
        assert (error["details"]["version"], error["details"]["status"]) == (2, "draft")
        assert follow(tools, error)["quote"]["version"] == 2


def test_an_edit_that_is_not_the_last_is_refused(tools: Tools):
    quote_id = new_quote(tools)
    change = {"quote_id": quote_id, "expected_version": 1}
    assert tools("quote_update", **change, expected_edit=1, notes="first")["edit"] == 2
    error = refused(tools, "quote_update", **change, expected_edit=1, notes="second")
    assert (error["code"], error["details"]["field"], error["details"]["edit"]) == ("CONFLICT", "/expected_edit", 2)
    assert follow(tools, error)["quote"]["notes"] == "first"
    assert tools("quote_update", **change, notes="third")["edit"] == 3


@pytest.mark.parametrize("name", ["quote_update", "quote_revise", "quote_cancel", "quote_send", "quote_clone"])
def test_an_unknown_quote_is_not_found(tools: Tools, name: str):
    expected = {} if name == "quote_clone" else {"expected_version": 1}
    error = refused(tools, name, quote_id="Q-none", **expected)
    assert (error["code"], error["details"]["next_call"]["tool"]) == ("NOT_FOUND", "quote_list")


def test_update_adds_changes_and_removes_lines_and_line_ids_stay(app: App, tools: Tools):
    quote_id = new_quote(tools, SEATS, {"product_id": "prod_fc150", "quantity": 2}, {**SEATS, "quantity": 1})
    tools("quote_price", quote_id=quote_id)
    moved = tools(
        "quote_update",
        quote_id=quote_id,
        expected_version=1,
        remove_lines=[f"{quote_id}-ql-1"],
        change_lines=[{"line_id": f"{quote_id}-ql-3", "quantity": 10, "discount_pct": 5, "notes": "spare"}],
        add_lines=[{"product_id": "prod_tk240v", "quantity": 1}],
        term_months=24,
        start_date="2026-01-01",
        payment_terms="net_60",
    )
    read = tools("quote_get", quote_id=quote_id)
    lines = [(line["line_id"].removeprefix(quote_id), line["quantity"]) for line in read["line_items"]]
    assert lines == [("-ql-2", 2), ("-ql-3", 10), ("-ql-4", 1)]
    assert read["line_items"][1]["notes"] == "spare"
    assert (read["quote"]["end_date"], read["quote"]["payment_terms"]) == ("2027-12-31", "net_60")
    assert read["pricing"] == {
        "subtotal": 624 + 200 + 1980,
        "discount_total": 10,
        "tax_total": 0,
        "total": 2794,
        "priced_at": None,
    }
    assert moved["total"] == 2794
    assert tools("quote_list")["items"][0]["total"] == 2794
    assert_sound(app)


def test_update_clears_terms_and_an_end_date_stands_for_months(tools: Tools):
    quote_id = new_quote(tools, start_date="2026-01-01", notes="n", deal_id="d")
    change = {"quote_id": quote_id, "expected_version": 1}
    tools("quote_update", **change, end_date="2026-06-30", clear=["notes", "deal_id"])
    read = tools("quote_get", quote_id=quote_id)["quote"]
    assert [read[name] for name in ("term_months", "end_date", "notes", "deal_id")] == [None, "2026-06-30", None, None]
    tools("quote_update", **change, term_months=6)
    read = tools("quote_get", quote_id=quote_id)["quote"]
    assert (read["term_months"], read["end_date"]) == (6, "2026-06-30")
    error = refused(tools, "quote_update", **change, clear=["currency"])
    assert (error["details"]["field"], "notes" in error["details"]["allowed"]) == ("/clear/0", True)


def test_update_without_a_change_changes_nothing(app: App, tools: Tools):
    quote_id = new_quote(tools, notes="same")
    priced = tools("quote_price", quote_id=quote_id)["pricing"]
    moved = tools("quote_update", quote_id=quote_id, expected_version=1, notes="same")
    assert (moved["outcome"], moved["edit"]) == ("no_change", 2)
    assert tools("quote_get", quote_id=quote_id)["pricing"] == priced


def test_update_refuses_by_the_argument_that_is_wrong(tools: Tools):
    quote_id = new_quote(tools, SEATS, SEATS)
    change = {"quote_id": quote_id, "expected_version": 1}
    second = f"{quote_id}-ql-2"
    error = refused(tools, "quote_update", **change, remove_lines=[second, "Q-1-ql-1"])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/remove_lines/1")
    assert error["details"]["allowed"] == [f"{quote_id}-ql-1", second]
    assert follow(tools, error)["line_items"][1]["line_id"] == second
    error = refused(tools, "quote_update", **change, remove_lines=[f"{quote_id}-ql-1", second])
    assert (error["details"]["field"], error["details"]["minimum"]) == ("/remove_lines", 1)
    new = [{"product_id": "prod_fc150", "quantity": 1}, {"product_id": "prod_none", "quantity": 1}]
    error = refused(tools, "quote_update", **change, add_lines=new)
    assert (error["code"], error["details"]["field"]) == ("NOT_FOUND", "/add_lines/1/product_id")
    assert error["details"]["problems"][0]["field"] == "/add_lines/1/product_id"
    wrong = [{"line_id": second, "attributes": {"billing": "weekly"}}]
    error = refused(tools, "quote_update", **change, change_lines=wrong)
    assert (error["code"], error["details"]["field"]) == ("CONFIGURATION_INVALID", "/change_lines/0/attributes/billing")
    assert error["details"]["line_id"] == second
    error = refused(tools, "quote_update", **change, add_lines=[SEATS] * 499)
    assert (error["details"]["field"], error["details"]["maximum"]) == ("/add_lines", 500)


def test_a_product_that_is_no_longer_sold_is_named_by_its_line(app: App, tools: Tools):
    made = engine.product_row()
    engine.import_dicts(app, "products", made)
    price = {"product_id": made["id"], "price_book": "list", "currency": "USD", "unit_price": "5", "cost": "2"}
    engine.import_dicts(app, "prices", price)
    quote_id = sent_quote(tools, SEATS, {"product_id": made["id"], "quantity": 1})
    engine.import_dicts(app, "products", {**made, "active": False})
    for name, expected in (("quote_revise", {"expected_version": 1}), ("quote_clone", {})):
        error = refused(tools, name, quote_id=quote_id, **expected)
        assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/quote_id")
        assert error["details"]["line_id"] == f"{quote_id}-ql-2"
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=1)["status"] == "accepted"


@pytest.mark.parametrize("status", ["pending_approval", "approved", "sent", "accepted", "declined", "cancelled"])
def test_a_version_that_was_submitted_is_not_edited(tools: Tools, status: str):
    quote_id = in_state(tools, status)
    add = {"add_lines": [SEATS], "quote_id": quote_id, "expected_version": 1}
    assert refused(tools, "quote_update", **add)["code"] == "CONFLICT"


def test_a_version_that_was_rejected_stays_and_a_revision_goes_on(app: App, tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=25)
    put_into(app, quote_id, "draft", "rejected")
    for name in ("quote_update", "quote_send"):
        error = refused(tools, name, quote_id=quote_id, expected_version=1)
        assert error["code"] == "CONFLICT"
    error = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, notes="x")
    assert follow(tools, error)["version"] == 2
    assert status_of(tools, quote_id, 1) == "rejected"
    assert tools("quote_update", quote_id=quote_id, expected_version=2, notes="x")["status"] == "draft"
    assert tools("quote_get", quote_id=quote_id, version=1)["quote"]["notes"] is None


def test_what_was_sent_stays_valid_while_a_revision_is_open(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    first = tools("quote_get", quote_id=quote_id, version=1)
    moved = tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert (moved["version"], moved["status"], moved["outcome"]) == (2, "draft", "created")
    tools("quote_update", quote_id=quote_id, expected_version=2, add_lines=[SEATS])
    again = tools("quote_get", quote_id=quote_id, version=1)
    assert again == {**first, "quote": {**first["quote"], "edit": again["quote"]["edit"]}}
    accepted = tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    assert (accepted["status"], accepted["version"], accepted["total"]) == ("accepted", 1, 1500)
    dropped = tools("quote_get", quote_id=quote_id, version=2)["quote"]
    assert (dropped["status"], dropped["reason"]) == ("cancelled", "version 1 was accepted")
    assert_sound(app)


def test_the_next_send_supersedes_and_what_is_superseded_cannot_be_accepted(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=5)
    tools("quote_send", quote_id=quote_id, expected_version=2)
    old = tools("quote_get", quote_id=quote_id, version=1)["quote"]
    assert (old["status"], old["reason"]) == ("superseded", "version 2 was sent")
    for name in ("quote_accept", "quote_decline"):
        error = refused(tools, name, quote_id=quote_id, expected_version=1)
        assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/expected_version")
        assert error["details"]["version"] == 2
        assert follow(tools, error)["quote"]["status"] == "sent"
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=2)["total"] == 1425
    assert_sound(app)


def test_cancelling_a_revision_brings_back_what_was_sent(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    for version in (2, 3):
        moved = tools("quote_revise", quote_id=quote_id, expected_version=1)
        assert (moved["version"], moved["status"]) == (version, "draft")
        tools("quote_update", quote_id=quote_id, expected_version=version, add_lines=[SEATS])
        back = tools("quote_cancel", quote_id=quote_id, expected_version=version, reason=f"no {version}")
        assert (back["version"], back["status"], back["total"]) == (1, "sent", 1500)
    assert [tools("quote_get", quote_id=quote_id, version=n)["quote"]["reason"] for n in (2, 3)] == ["no 2", "no 3"]
    error = refused(tools, "quote_get", quote_id=quote_id, version=4)
    assert error["details"]["maximum"] == 3
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=1)["status"] == "accepted"
    assert tools("quote_get", quote_id=quote_id, version=2)["quote"]["reason"] == "no 2"
    assert assert_sound(app) == 3


def test_cancelling_what_was_never_sent_ends_the_quote(tools: Tools):
    quote_id = new_quote(tools)
    moved = tools("quote_cancel", quote_id=quote_id, expected_version=1, reason="budget is gone")
    assert (moved["status"], moved["edit"]) == ("cancelled", 2)
    assert tools("quote_get", quote_id=quote_id)["quote"]["reason"] == "budget is gone"
    error = refused(tools, "quote_revise", quote_id=quote_id, expected_version=1)
    assert follow(tools, error)["status"] == "draft"


def test_declining_keeps_the_reason_and_a_revision_can_follow(tools: Tools):
    quote_id = sent_quote(tools)
    assert tools("quote_decline", quote_id=quote_id, expected_version=1, reason="too dear")["status"] == "declined"
    assert tools("quote_get", quote_id=quote_id)["quote"]["reason"] == "too dear"
    assert tools("quote_revise", quote_id=quote_id, expected_version=1)["version"] == 2
    tools("quote_price", quote_id=quote_id, requested_discount_pct=5)
    assert tools("quote_send", quote_id=quote_id, expected_version=2)["total"] == 1425
    assert status_of(tools, quote_id, 1) == "declined"


def test_a_draft_is_sent_only_with_a_price(tools: Tools):
    quote_id = new_quote(tools)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["code"] == "CONFLICT"
    assert follow(tools, error)["stored"] is True
    tools("quote_price", quote_id=quote_id, requested_discount_pct="4.5")
    tools("quote_update", quote_id=quote_id, expected_version=1, notes="changed")
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert follow(tools, error)["pricing"]["total"] == 1432.5
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_a_draft_that_needs_approval_has_no_door_to_the_customer(app: App, tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["details"]["policy_violations"][0]["actual"]) == ("CONFLICT", 10)
    assert refused(tools, "quote_accept", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
    put_into(app, quote_id, "approved")
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=2)["code"] == "CONFLICT"
    copied = tools("quote_clone", quote_id=quote_id)["quote_id"]
    tools("quote_price", quote_id=copied, requested_discount_pct=10)
    assert refused(tools, "quote_send", quote_id=copied, expected_version=1)["code"] == "CONFLICT"
    lines = [{**SEATS, "discount_pct": 10}]
    tools("quote_update", quote_id=copied, expected_version=1, add_lines=lines)
    tools("quote_price", quote_id=copied)
    assert refused(tools, "quote_send", quote_id=copied, expected_version=1)["code"] == "CONFLICT"


def test_what_was_approved_is_sent_as_it_is(app: App, tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    put_into(app, quote_id, "approved")
    moved = tools("quote_send", quote_id=quote_id, expected_version=1)
    assert (moved["status"], moved["total"]) == ("sent", 1350)


@pytest.mark.parametrize("status", ["draft", "approved"])
def test_a_missing_required_product_is_a_warning_and_stops_the_send(app: App, tools: Tools, status: str):
    created = tools("quote_create", account_id=ACME, line_items=[CRANED])
    quote_id = created["quote_id"]
    assert "prod_fp1200" in created["warnings"][0]
    tools("quote_price", quote_id=quote_id)
    put_into(app, quote_id, status)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["details"]["problems"][0]["message"]) == (
        "CONFIGURATION_INVALID",
        created["warnings"][0],
    )
    check = follow(tools, error)
    assert [violation["of"] for violation in check["violations"]] == ["prod_fp1200"]
    assert check["next_call"]["tool"] == ("quote_revise" if status == "approved" else "quote_update")
    if status == "approved":
        tools("quote_revise", quote_id=quote_id, expected_version=1)
    version = version_of(tools, quote_id)
    moved = tools("quote_update", quote_id=quote_id, expected_version=version, add_lines=[PREFILTER])
    assert moved["warnings"] == []
    tools("quote_price", quote_id=quote_id)
    assert tools("quote_send", quote_id=quote_id, expected_version=version)["status"] == "sent"


def test_a_clone_is_a_new_draft_at_todays_prices_without_the_discount_of_the_quote(app: App, tools: Tools):
    quote_id = new_quote(tools, {**SEATS, "discount_pct": 3, "notes": "a"}, SEATS, PREFILTER, notes="n", deal_id="d")
    tools("quote_update", quote_id=quote_id, expected_version=1, remove_lines=[f"{quote_id}-ql-2"])
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    tools("quote_cancel", quote_id=quote_id, expected_version=1)
    copied = tools("quote_clone", quote_id=quote_id, idempotency_key="c1")
    new_id = copied["quote_id"]
    assert (copied["status"], copied["version"], copied["idempotency_key"]) == ("draft", 1, "c1")
    assert [line["line_id"] for line in copied["line_items"]] == [f"{new_id}-ql-1", f"{new_id}-ql-2"]
    read = tools("quote_get", quote_id=new_id)
    assert [(line["discount_pct"], line["notes"]) for line in read["line_items"]] == [(3, "a"), (0, None)]
    assert (read["quote"]["notes"], read["quote"]["deal_id"]) == ("n", "d")
    assert read["pricing"] == {**read["pricing"], "discount_total": 45, "priced_at": None}
    assert tools("quote_clone", quote_id=quote_id, idempotency_key="c1")["quote_id"] == new_id
    other = tools("quote_clone", quote_id=quote_id, account_id="acct_groeb_002")
    assert tools("quote_get", quote_id=other["quote_id"])["quote"]["account_name"] == "Groeb Honey Packing"
    error = refused(tools, "quote_clone", quote_id=quote_id, account_id="acct_none")
    assert (error["code"], error["details"]["field"]) == ("NOT_FOUND", "/account_id")
    assert_sound(app)


def test_q11_every_move_is_idempotent_by_its_key(app: App, tools: Tools):
    quote_id = new_quote(tools)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("quote_update", {"expected_version": 1, "notes": "x"}),
        ("quote_price", {}),
        ("quote_send", {"expected_version": 1}),
        ("quote_revise", {"expected_version": 1}),
        ("quote_cancel", {"expected_version": 2}),
        ("quote_clone", {}),
        ("quote_decline", {"expected_version": 1}),
    ]
    answers = [tools(name, quote_id=quote_id, **arguments, idempotency_key="k") for name, arguments in calls]
    before = stored(app)
    again = [tools(name, quote_id=quote_id, **arguments, idempotency_key="k") for name, arguments in calls]
    assert again == [{**answer, "outcome": "replayed", "replayed": True} for answer in answers]
    assert stored(app) == before
    error = refused(tools, "quote_decline", quote_id=quote_id, expected_version=1, reason="x", idempotency_key="k")
    assert (error["code"], error["details"]["differing"]) == ("CONFLICT", ["/reason"])


def test_q03_a_next_call_never_names_a_tool_that_is_off(app: App, tools: Tools):
    """With the quote tools alone: no account search, no revision, no clone, and never a call that cannot be made."""
    few = Tools(app, tools=quote_tools.TOOLS)
    for arguments in ({"account_id": "acct_none"}, {"line_items": [{"product_id": "prod_none", "quantity": 1}]}):
        error = few.error("quote_create", **{"account_id": ACME, "line_items": [SEATS], **arguments})
        for part in (error["details"], *error["details"]["problems"]):
            offered = part.get("next_call")
            assert offered is None or few(offered["tool"], **offered["arguments"])
    assert few.error("quote_send", quote_id="Q-1", expected_version=1)["code"] == "NOT_FOUND"


@pytest.mark.anyio
async def test_q03_a_real_client_can_follow_what_a_refusal_offers(sqlite_app: App):
    quote_id = sent_quote(Tools(sqlite_app))
    async with Client(Facade(sqlite_app, list(ALL_TOOLS))) as client:
        change = {"quote_id": quote_id, "expected_version": "1", "add_lines": json.dumps([SEATS])}
        refusal = await client.call_tool("quote_update", change)
        call = (refusal.structured_content or {})["error"]["details"]["next_call"]
        revised = await client.call_tool(call["tool"], call["arguments"])
        changed = await client.call_tool("quote_update", {**change, "expected_version": 2})
    assert refusal.is_error
    assert call["tool"] == "quote_revise"
    assert (revised.structured_content or {})["version"] == 2
    assert (changed.structured_content or {})["total"] == 3000


def test_accounts_are_found_by_words_and_closed_ones_only_when_asked_for(tools: Tools):
    def found(**arguments: Any) -> list[str]:
        return [item["id"] for item in tools("account_search", **arguments)["items"]]

    assert found(query="ACME corp") == found(query="corp acme") == found(query="acct_acme") == [ACME]
    assert found(query="acme honey") == []
    assert found(query="100%_") == []
    everyone = tools("account_search", limit=100)
    names = [item["name"] for item in everyone["items"]]
    assert names == sorted(names)
    assert everyone["pagination"]["total"] == len(names)
    assert "acct_sudair_025" not in found(limit=100)
    assert "acct_sudair_025" in found(limit=100, active_only="false")
    pages = [found(limit=7, page=page) for page in range(1, 6)]
    assert [id_ for page in pages for id_ in page] == found(limit=100)


def test_an_account_is_read_in_full_and_an_unknown_one_offers_a_search(tools: Tools):
    account = tools("account_get", account_id=" acct_acme_001 ")
    expected = {"name": "Acme Corp", "currency": "USD", "time_zone": "America/New_York", "price_book": "list"}
    assert expected.items() <= account.items()
    error = refused(tools, "account_get", account_id="acct_acme")
    assert error["code"] == "NOT_FOUND"
    assert follow(tools, error)["items"][0]["id"] == ACME


def test_an_unknown_account_is_told_with_those_called_alike_to_whoever_sees_customers(app: App):
    """Q-03: names of customers are for roles that sell, also in a refusal."""
    tools, finance = Tools(app), person(app, "fay", "finance")
    lines = [{"product_id": "prod_pro_v2", "quantity": 1}]
    refusals = [
        refused(tools, "account_get", account_id="acct_acme_01"),
        refused(tools, "quote_create", account_id="acct_acme_01", line_items=lines),
    ]
    assert [error["details"]["nearest"][0] for error in refusals] == [ACME, ACME]
    assert "nearest" not in refused(finance, "account_get", account_id="acct_acme_01")["details"]
    assert "nearest" not in refused(tools, "account_get", account_id="zzz")["details"]


def test_a_quote_cannot_be_taken_when_its_time_is_over(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id, revised = sent_quote(tools), sent_quote(tools)
    tools("quote_revise", quote_id=revised, expected_version=1)
    clock.advance(days=40)
    assert status_of(tools, quote_id) == "expired"
    app.flush_audit()  # Keys whose time is over go with it.
    for name in ("quote_accept", "quote_decline"):
        error = refused(tools, name, quote_id=quote_id, expected_version=1)
        assert (error["code"], error["details"]["status"]) == ("CONFLICT", "expired")
        error = refused(tools, name, quote_id=revised, expected_version=1)
        assert (error["code"], error["details"]["status"]) == ("CONFLICT", "expired")
        assert follow(tools, error)["quote"]["version"] == 2
    assert tools("quote_cancel", quote_id=revised, expected_version=2)["status"] == "expired"
    error = refused(tools, "quote_accept", quote_id=quote_id, expected_version=1)
    assert follow(tools, error)["version"] == 2
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=2)
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=2)["status"] == "accepted"
    app.close()
