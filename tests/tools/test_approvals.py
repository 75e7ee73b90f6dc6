"""The approval tools of the contract, Q-30 to Q-34: asking, the derived state, and what waits for a decision."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from cpq.app import App
from cpq.base.settings import Settings
from cpq.services import events
from cpq.services.approvals.expiry import sweep_if_due
from mcp_facade.tools import quotes as quote_tools
from tests.services.quotes.test_races import race, the_winner
from tests.support.approvals import ask, decide, follow, person, priced_quote, refused, refused_decision, with_roles
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.quotes import new_quote, put_into, status_of


@pytest.fixture
def app(store: Settings, clock: StillEffects) -> Iterator[App]:
    """The engine at a time that the test moves."""
    app = open_app(store, clock)
    yield app
    app.close()


@pytest.fixture
def dana(app: App) -> Tools:
    return person(app, "dana", "sales_manager")


def test_the_quote_tools_come_in_the_order_of_the_contract():
    assert [tool.name for tool in quote_tools.TOOLS][:9] == [
        "catalog_search",
        "catalog_get",
        "quote_create",
        "quote_get",
        "quote_price",
        "quote_list",
        "approval_request",
        "approval_status",
        "approval_pending",
    ]


def test_q30_a_request_answers_as_the_contract_says(tools: Tools):
    quote_id = priced_quote(tools)
    answer = tools("approval_request", quote_id=f" {quote_id} ", justification="They buy more next year.")
    assert answer["approval_id"].startswith("APR-")
    assert {
        name: answer[name] for name in ("quote_id", "status", "approver_role", "requested_by", "justification")
    } == {
        "quote_id": quote_id,
        "status": "pending",
        "approver_role": "sales_manager",
        "requested_by": "agent:mcp",
        "justification": "They buy more next year.",
    }
    assert (answer["created_at"], answer["expires_at"]) == ("2026-11-16T09:00:00Z", "2026-11-16T13:00:00Z")
    assert answer["message"] == "Approval request submitted and persisted"
    assert (answer["also_requested"], answer["waits_for"], answer["replayed"]) == ([], None, False)


def test_q30_without_a_role_the_policies_say_whom_to_ask_and_nobody_more_is_asked(app: App, tools: Tools):
    vera = person(app, "vera", "vp_sales")
    quote_id = priced_quote(tools, 25)
    answer = tools("approval_request", quote_id=quote_id, justification="x")
    assert (answer["approver_role"], answer["also_requested"], answer["warnings"]) == ("vp_sales", [], [])
    assert decide(vera, answer)["quote_status"] == "approved"


def test_q30_without_a_role_and_without_a_policy_the_sales_manager_is_asked_with_a_warning(tools: Tools, dana: Tools):
    answer = tools("approval_request", quote_id=priced_quote(tools, 5), justification="x")
    assert (answer["approver_role"], answer["required_roles"], answer["reasons"]) == ("sales_manager", [], [])
    assert answer["warnings"] == ["No policy requires an approval of this version; sales_manager was asked anyway."]
    assert decide(dana, answer)["quote_status"] == "approved"


def test_q30_a_named_role_is_asked_besides_those_of_the_policies(tools: Tools):
    answer = ask(tools, priced_quote(tools, 35), "legal")
    assert answer["approver_role"] == "legal"
    assert [one["approver_role"] for one in answer["also_requested"]] == answer["required_roles"]
    assert answer["required_roles"] == ["vp_sales", "finance"]


def test_q30_a_role_that_nobody_holds_gets_a_warning_with_the_roles_that_have_people(app: App, tools: Tools):
    quote_id = priced_quote(tools, 35)
    nobody = "nobody holds any role that approves."
    assert tools("approval_preview", quote_id=quote_id)["warnings"] == [
        f"Nobody holds the role vp_sales; {nobody}",
        f"Nobody holds the role finance; {nobody}",
    ]
    person(app, "vera", "vp_sales")
    person(app, "robot", "finance", kind="agent")
    answer = tools("approval_request", quote_id=quote_id, justification="x")
    assert answer["warnings"] == ["Nobody holds the role finance; people hold vp_sales."]


def test_q30_preview_price_request_and_status_name_the_same_roles_in_the_same_order(tools: Tools):
    """A discount for the sales manager in a deal for the VP Sales: the VP Sales is asked for both reasons."""
    quote_id = new_quote(tools, {"product_id": "prod_pro_v2", "quantity": 60_000}, payment_terms="net_90")
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=6)
    preview = tools("approval_preview", quote_id=quote_id)
    asked = tools("approval_request", quote_id=quote_id, justification="x")
    status = tools("approval_status", quote_id=quote_id)
    roles = ["vp_sales", "legal"]
    assert [found["required_roles"] for found in (priced, preview, asked, status)] == [roles] * 4
    assert [step["approver_role"] for step in preview["steps"]] == roles
    assert [one["required_approver_role"] for one in priced["policy_violations"]] == ["vp_sales", "vp_sales", "legal"]
    assert [asked["approver_role"], *(one["approver_role"] for one in asked["also_requested"])] == roles
    assert [one["approver_role"] for one in status["pending_requests"]] == roles


def test_q34_all_reasons_for_a_role_are_in_the_request_the_queue_and_the_event(app: App, tools: Tools):
    quote_id = new_quote(tools, {"product_id": "prod_pro_v2", "quantity": 60_000})
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=6)
    asked = tools("approval_request", quote_id=quote_id, justification="x")
    reasons = ["A discount of 6 % is above 5 %.", "A deal of USD 564,000.00 is above USD 500,000.00."]
    assert [one["description"] for one in priced["policy_violations"]] == reasons
    assert [one["unit"] for one in priced["policy_violations"]] == ["percent", "USD"]
    [waiting] = tools("approval_pending")["items"]
    [pending] = tools("approval_status", quote_id=quote_id)["pending_requests"]
    [record] = tools("approval_history", quote_id=quote_id)["items"]
    [step] = tools("approval_preview", quote_id=quote_id)["steps"]
    assert [one["reasons"] for one in (asked, waiting, pending, record, step)] == [reasons] * 5
    [told] = app.read_unaudited(app.new_call(), lambda tx: events.of_subject(tx, quote_id))
    assert told.body["reasons"] == reasons


def test_a_deal_in_euros_says_both_currencies(tools: Tools):
    line = {"product_id": "prod_pro_v2", "quantity": 14_500}
    quote_id = priced_quote(tools, 0, line, account_id="acct_rheinstahl_010", currency="EUR")
    priced = tools("quote_price", quote_id=quote_id)
    net = Decimal(str(priced["pricing"]["subtotal"]))
    [violation] = [one for one in priced["policy_violations"] if one["policy_id"] == "deal_size_deal_desk"]
    value = f"USD {net * Decimal('1.08'):,.2f} (EUR {net:,.2f})"
    assert violation["description"] == f"A deal of {value} is above USD 100,000.00."
    assert violation["unit"] == "USD"


def test_whoever_may_not_see_margins_learns_nothing_of_them_from_reasons(app: App, tools: Tools):
    fay = person(app, "fay", "finance")
    quote_id = priced_quote(tools, 95)
    answer = tools("approval_request", quote_id=quote_id, justification="x")
    [finance] = [one for one in answer["also_requested"] if one["approver_role"] == "finance"]
    hidden = "Cost or margin is outside its limit; finance has to approve."
    assert finance["reasons"] == ["A discount of 95 % is above 30 %.", hidden]
    for told in app.read_unaudited(app.new_call(), lambda tx: events.of_subject(tx, quote_id)):
        assert "margin of" not in str(told.body)
    [seen] = fay("approval_pending", approver_role="finance")["items"]
    assert re.fullmatch(r"A margin of -?[\d,]+\.\d % is not known to reach 10 %\.", seen["reasons"][1])


def test_q30_a_justification_has_at_most_2000_characters_not_bytes(tools: Tools):
    quote_id = priced_quote(tools)
    for wrong in ("x" * 2001, "", "  \n ", None):
        error = refused(tools, "approval_request", quote_id=quote_id, justification=wrong)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/justification")
    whole = "ü" * 1999 + "🙂"
    assert tools("approval_request", quote_id=quote_id, justification=whole)["justification"] == whole


def test_q30_an_unknown_role_is_refused_with_the_nearest_one(tools: Tools):
    quote_id = priced_quote(tools)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x", approver_role="sales_manger")
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/approver_role")
    assert error["details"]["nearest"] == ["sales_manager"]
    assert error["details"]["allowed"] == ["sales_manager", "deal_desk", "vp_sales", "finance", "legal"]


def test_q11_a_key_gives_the_same_request_again(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    asked = {"quote_id": quote_id, "justification": "x", "idempotency_key": "once"}
    first = tools("approval_request", **asked)
    decide(dana, first)
    again = tools("approval_request", **asked)
    assert (again.pop("replayed"), again.pop("outcome")) == (True, "replayed")
    assert again == {name: first[name] for name in again}


@pytest.mark.parametrize("status", ["approved", "sent", "expired", "cancelled", "accepted", "declined"])
def test_q31_a_quote_that_is_past_asking_is_a_conflict(app: App, tools: Tools, status: str):
    quote_id = priced_quote(tools, 0)
    put_into(app, quote_id, status)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert (error["code"], error["details"]["status"]) == ("CONFLICT", status)
    assert follow(tools, error)


def test_q31_a_quote_that_expired_is_a_conflict_though_nobody_swept(tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    clock.advance(days=40)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x", approver_role="finance")
    assert (error["code"], error["details"]["status"]) == ("CONFLICT", "expired")


def test_q31_a_second_pending_request_of_one_role_is_a_conflict_and_another_role_is_not(tools: Tools):
    quote_id = priced_quote(tools)
    first = ask(tools, quote_id)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/approver_role")
    assert error["details"]["approval_id"] == first["approval_id"]
    assert follow(tools, error)["pending_requests"][0]["approval_id"] == first["approval_id"]
    assert ask(tools, quote_id, "finance")["status"] == "pending"
    roles = [one["approver_role"] for one in tools("approval_status", quote_id=quote_id)["pending_requests"]]
    assert sorted(roles) == ["finance", "sales_manager"]


def test_q31_of_two_requests_at_once_one_is_made(app: App, tools: Tools):
    quote_id = priced_quote(tools)
    call = ("approval_request", {"quote_id": quote_id, "justification": "x"})
    the_winner(race(tools, [call] * 8))
    assert tools("approval_pending")["total"] == 1


def test_q31_a_rejected_version_is_not_asked_for_again_unchanged(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 12)
    decide(dana, ask(tools, quote_id), word="reject")
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert error["code"] == "CONFLICT"
    assert error["details"]["next_call"] == {
        "tool": "quote_price",
        "arguments": {"quote_id": quote_id, "requested_discount_pct": 12},
    }
    assert follow(tools, error)["version"] == 2
    assert ask(tools, quote_id)["version"] == 2


def test_q31_a_quote_without_a_current_price_is_sent_to_pricing_first(tools: Tools, clock: StillEffects):
    quote_id = new_quote(tools)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert error["code"] == "CONFLICT"
    assert follow(tools, error)["stored"] is True
    clock.advance(days=40)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert follow(tools, error)["stored"] is True
    assert ask(tools, quote_id)["status"] == "pending"


def test_q32_the_quote_is_pending_and_the_request_is_bound_to_version_and_price(tools: Tools):
    quote_id = new_quote(tools)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    answer = ask(tools, quote_id)
    assert (answer["version"], answer["fingerprint"]) == (1, priced["fingerprint"])
    assert status_of(tools, quote_id) == answer["quote_status"] == "pending_approval"
    assert tools("quote_list", status="pending_approval")["items"][0]["id"] == quote_id
    evaluated = tools("quote_price", quote_id=quote_id, requested_discount_pct=50)
    assert evaluated["stored"] is False
    assert evaluated["fingerprint"] != priced["fingerprint"]  # It is that of the price shown.
    pending = tools("approval_pending")["items"][0]
    assert (pending["quote_total"], pending["fingerprint"]) == (1350, priced["fingerprint"])


def test_q33_the_state_is_derived_for_the_current_version(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    assert told(tools, quote_id) == ("none", False, [], ["sales_manager"])
    answer = ask(tools, quote_id)
    assert told(tools, quote_id) == ("pending_approval", False, [], [])
    [one] = tools("approval_status", quote_id=quote_id)["pending_requests"]
    assert one == {
        "approval_id": answer["approval_id"],
        "status": "pending",
        "approver_role": "sales_manager",
        "reasons": ["A discount of 10 % is above 5 %."],
        "waits_for": None,
        "requested_at": "2026-11-16T09:00:00Z",
        "expires_at": "2026-11-16T13:00:00Z",
    }
    decide(dana, answer, word="reject")
    assert told(tools, quote_id)[:2] == ("rejected", False)
    assert tools("approval_status", quote_id=quote_id)["reason"] == "Too much."
    tools("quote_price", quote_id=quote_id, requested_discount_pct=8)
    assert told(tools, quote_id)[:2] == ("none", False)
    decide(dana, ask(tools, quote_id))
    assert told(tools, quote_id) == ("approved", True, [], [])
    tools("quote_send", quote_id=quote_id, expected_version=2)
    assert told(tools, quote_id) == ("approved", True, [], [])


def told(tools: Tools, quote_id: str) -> tuple[str, bool, list[str], list[str]]:
    found = tools("approval_status", quote_id=quote_id)
    assert (found["current_status"] == "pending_approval") is bool(found["pending_requests"])
    return found["current_status"], found["can_proceed"], [], found["missing_roles"]


def test_q33_a_quote_that_no_policy_holds_can_proceed(tools: Tools):
    quote_id = priced_quote(tools, 5)
    assert told(tools, quote_id) == ("none", True, [], [])
    ask(tools, quote_id)
    assert told(tools, quote_id)[:2] == ("pending_approval", False)


def test_q33_silence_approves_nothing_where_nobody_had_to_be_asked(tools: Tools, clock: StillEffects):
    quote_id = priced_quote(tools, 5)
    answer = ask(tools, quote_id)
    clock.advance(hours=4)
    assert told(tools, quote_id) == ("none", False, [], ["sales_manager"])
    assert [one["status"] for one in tools("approval_status", quote_id=quote_id)["expired_requests"]] == ["expired"]
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], follow(tools, error)["missing_roles"]) == ("CONFLICT", ["sales_manager"])
    tools("approval_withdraw", approval_id=answer["approval_id"])
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
    assert [one["status"] for one in tools("approval_history", quote_id=quote_id)["items"]] == ["withdrawn"]


def test_q33_every_role_of_the_policy_must_have_approved(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools, 35)
    answer = ask(tools, quote_id)
    assert sorted(one["approver_role"] for one in answer["also_requested"]) == ["finance", "vp_sales"]
    decide(dana, answer)
    decide(person(app, "vera", "vp_sales"), answer, "vp_sales")
    assert told(tools, quote_id) == ("pending_approval", False, [], [])
    clock.advance(hours=4)
    assert told(tools, quote_id) == ("none", False, [], ["finance"])
    assert status_of(tools, quote_id) == "draft"
    again = tools("approval_request", quote_id=quote_id, justification="x")
    assert (again["approver_role"], again["also_requested"]) == ("finance", [])
    decided = decide(person(app, "fay", "finance"), again)
    assert decided["quote_status"] == "approved"
    assert told(tools, quote_id) == ("approved", True, [], [])


def test_q33_an_expired_request_is_not_pending_and_does_not_block(tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    clock.advance(hours=3, minutes=59)
    assert told(tools, quote_id)[0] == "pending_approval"
    clock.advance(minutes=1)
    assert told(tools, quote_id) == ("none", False, [], ["sales_manager"])
    assert tools("approval_pending") == {"items": [], "total": 0}
    error = refused_decision(dana, answer)
    assert (error["code"], error["details"]["status"]) == ("CONFLICT", "expired")
    again = follow(tools, error)
    assert decide(dana, again)["quote_status"] == "approved"


def test_q33_an_expired_request_stays_in_sight_and_the_quote_is_a_draft_with_its_price(
    app: App, tools: Tools, dana: Tools, clock: StillEffects
):
    quote_id = priced_quote(tools)
    before = tools("quote_get", quote_id=quote_id)
    answer = ask(tools, quote_id)
    clock.advance(hours=4)
    found = tools("approval_status", quote_id=quote_id)
    assert (found["current_status"], found["pending_requests"], found["can_proceed"]) == ("none", [], False)
    [expired] = found["expired_requests"]
    assert (expired["approval_id"], expired["status"]) == (answer["approval_id"], "expired")
    assert found["reason"] == (
        "Nobody with the role sales_manager decided by 2026-11-16 13:00 UTC; nothing was approved."
        " The quote is a draft again, at the same price; approval_request asks again."
    )
    shown = tools("quote_get", quote_id=quote_id)
    assert (shown["quote"]["status"], shown["quote"]["version"]) == ("draft", 1)
    assert shown["quote"]["reason"].startswith("Nobody decided by 2026-11-16 13:00 UTC; the quote is a draft again")
    assert (shown["pricing"], shown["line_items"]) == (before["pricing"], before["line_items"])
    assert [one["id"] for one in tools("quote_list", status="draft")["items"]] == [quote_id]
    assert tools("quote_list", status="pending_approval")["items"] == []
    again = tools("approval_request", quote_id=quote_id, justification="Please.")
    assert (again["version"], again["fingerprint"]) == (1, answer["fingerprint"])
    assert decide(dana, again)["quote_status"] == "approved"


def test_q33_the_asker_is_told_once_however_the_expiry_is_found(app: App, tools: Tools, clock: StillEffects):
    swept, priced, cancelled, asked = (priced_quote(tools) for _ in range(4))
    for quote_id in (swept, priced, cancelled, asked):
        ask(tools, quote_id)
    clock.advance(hours=4)
    tools("quote_price", quote_id=priced, requested_discount_pct=9)
    tools("quote_cancel", quote_id=cancelled, expected_version=1)
    ask(tools, asked)
    assert sweep_if_due(app)
    assert not sweep_if_due(app)
    for quote_id in (swept, priced, cancelled, asked):
        told = app.read_unaudited(app.new_call(), partial(events.of_subject, subject=quote_id))
        [expired] = [one.body for one in told if one.name == "approval.expired"]
        assert expired["requested_by"] == "agent:mcp"
        assert expired["note"] == (
            "Nobody with the role sales_manager decided by 2026-11-16 13:00 UTC; nothing was approved."
        )
    assert tools("quote_get", quote_id=priced)["quote"]["version"] == 2


def test_q33_a_change_of_a_lapsed_draft_opens_the_next_version_and_keeps_the_asked_one(
    tools: Tools, clock: StillEffects
):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    clock.advance(hours=4)
    assert tools("quote_price", quote_id=quote_id, requested_discount_pct=10)["outcome"] == "no_change"
    moved = tools("quote_update", quote_id=quote_id, expected_version=1, notes="Cheaper.")
    assert moved["version"] == 2
    tools("quote_price", quote_id=quote_id, requested_discount_pct=8)
    assert ask(tools, quote_id)["version"] == 2
    records = tools("approval_history", quote_id=quote_id)["items"]
    assert [(one["version"], one["status"]) for one in records] == [(1, "expired"), (2, "pending")]
    assert records[0]["fingerprint"] == answer["fingerprint"]
    assert tools("quote_get", quote_id=quote_id, version=1)["quote"]["notes"] is None


def test_q33_what_was_left_in_time_does_not_lapse_later(tools: Tools, clock: StillEffects):
    revised, cancelled = priced_quote(tools), priced_quote(tools)
    for quote_id in (revised, cancelled):
        ask(tools, quote_id)
    tools("quote_revise", quote_id=revised, expected_version=1)
    tools("quote_cancel", quote_id=cancelled, expected_version=1)
    clock.advance(hours=5)
    for quote_id, status in ((revised, "draft"), (cancelled, "cancelled")):
        assert [one["status"] for one in tools("approval_history", quote_id=quote_id)["items"]] == ["withdrawn"]
        assert status_of(tools, quote_id) == status


def test_q33_with_the_first_request_that_expires_the_whole_round_does(
    store: Settings, tmp_path: Path, clock: StillEffects
):
    """A round waits no longer than its most urgent role; what was granted stays."""
    app = open_app(with_roles(store, tmp_path / "policies", "time_limit: {finance: {hours: 8}}"), clock)
    tools, vera, fay = Tools(app), person(app, "vera", "vp_sales"), person(app, "fay", "finance")
    quote_id = priced_quote(tools, 35)
    first = tools("approval_request", quote_id=quote_id, justification="x")
    clock.advance(hours=4)
    found = tools("approval_status", quote_id=quote_id)
    assert [one["approver_role"] for one in found["expired_requests"]] == ["vp_sales", "finance"]
    assert refused_decision(fay, first, "finance")["details"]["status"] == "expired"
    again = tools("approval_request", quote_id=quote_id, justification="x")
    decide(vera, again)
    clock.advance(hours=8)
    assert told(tools, quote_id) == ("none", False, [], ["finance"])
    last = tools("approval_request", quote_id=quote_id, justification="x")
    assert last["approver_role"] == "finance"
    assert decide(fay, last)["quote_status"] == "approved"
    app.close()


def test_business_hours_count_only_while_people_work(store: Settings, tmp_path: Path, clock: StillEffects):
    """Asked on Monday at 9:00 UTC, 10:00 in Berlin: eight open hours end on Tuesday at 11:00 there."""
    settings = with_roles(store, tmp_path / "policies", "time_limit: {sales_manager: {hours: 8, calendar: office}}")
    path = tmp_path / "policies" / "approvals.yaml"
    days = ", ".join(f"{day}: [09:00-12:00, 13:00-17:00]" for day in ("mon", "tue", "wed", "thu", "fri"))
    calendar = f"calendars: {{office: {{time_zone: Europe/Berlin, hours: {{{days}}}, holidays: [2026-11-17]}}}}\n"
    path.write_text(path.read_text(encoding="utf-8") + calendar, encoding="utf-8")
    app = open_app(settings, clock)
    tools = Tools(app)
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    assert answer["expires_at"] == "2026-11-18T10:00:00Z"
    [waiting] = tools("approval_pending")["items"]
    assert waiting["is_escalated"] is False
    clock.advance(days=2, hours=1)
    reason = tools("approval_status", quote_id=quote_id)["reason"]
    assert "decided by 2026-11-18 11:00 (Europe/Berlin)" in reason
    app.close()


def test_q33_an_unknown_quote_is_not_found(tools: Tools):
    for name in ("approval_status", "approval_history", "approval_preview"):
        assert refused(tools, name, quote_id="Q-none")["code"] == "NOT_FOUND"
    assert refused(tools, "approval_request", quote_id="Q-none", justification="x")["code"] == "NOT_FOUND"


def test_q34_requests_come_oldest_first_with_the_true_count_and_the_bound_total(tools: Tools, clock: StillEffects):
    asked = []
    for number in range(5):
        quote_id = priced_quote(tools, 10 + number)
        asked.append(ask(tools, quote_id))
        clock.advance(minutes=1)
    found = tools("approval_pending", limit=3)
    assert found["total"] == 5
    assert [item["approval_id"] for item in found["items"]] == [one["approval_id"] for one in asked[:3]]
    assert [item["quote_total"] for item in found["items"]] == [1350, 1335, 1320]
    first = found["items"][0]
    assert (first["account_name"], first["requested_by"], first["justification"]) == (
        "Acme Corp",
        "agent:mcp",
        "A good deal.",
    )
    assert (first["requested_at"], first["fingerprint"]) == ("2026-11-16T09:00:00Z", asked[0]["fingerprint"])
    assert tools("approval_pending", approver_role="finance") == {"items": [], "total": 0}
    assert tools("approval_pending", approver_role="sales_manager", limit="2")["total"] == 5
    assert refused(tools, "approval_pending", approver_role="boss")["details"]["allowed"][0] == "sales_manager"


def test_q34_what_the_quote_has_left_behind_is_not_listed(tools: Tools, dana: Tools):
    revised, cancelled, decided = (priced_quote(tools) for _ in range(3))
    answers = [ask(tools, one) for one in (revised, cancelled, decided)]
    tools("quote_revise", quote_id=revised, expected_version=1)
    tools("quote_cancel", quote_id=cancelled, expected_version=1)
    decide(dana, answers[2])
    assert tools("approval_pending") == {"items": [], "total": 0}
    for answer in answers[:2]:
        error = refused_decision(dana, answer)
        assert (error["code"], error["details"]["status"]) == ("CONFLICT", "withdrawn")


def test_a_blocked_quote_cannot_be_asked_for(store: Settings, tmp_path: Path):
    from_shipped = tmp_path / "policies"
    settings = _blocking(store, from_shipped)
    app = open_app(settings)
    tools = Tools(app)
    quote_id = priced_quote(tools, 60)
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x")
    assert error["code"] == "POLICY_BLOCKED"
    assert error["details"]["policy_violations"]
    status = tools("approval_status", quote_id=quote_id)
    assert status["can_proceed"] is False
    assert tools("approval_preview", quote_id=quote_id)["is_blocked"] is True
    app.close()


def _blocking(store: Settings, folder: Path) -> Settings:
    settings = with_roles(store, folder)
    path = folder / "discounts.yaml"
    rule = "\nrules:\n  - {id: never, when: discount > 50, then: {severity: block}}\n"
    path.write_text(path.read_text(encoding="utf-8") + rule, encoding="utf-8")
    return settings
