"""The approvals toolset: turns, quorums, stand-ins, lent roles, escalation, what is kept, and what is taken back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cpq.app import App, Command
from cpq.app.access import OPERATOR, Permission
from cpq.base.background import Loop, stop
from cpq.base.settings import Settings
from cpq.services import events
from cpq.services.approvals import sweep
from cpq.services.approvals.expiry import sweep_if_due
from cpq.services.approvals.repository import overdue, tenants_overdue
from tests.support.approvals import (
    ask,
    decide,
    follow,
    person,
    priced_quote,
    refused,
    refused_decision,
    revoke_all,
    with_roles,
)
from tests.support.engine import StillEffects, Tools, add_tenant, open_app
from tests.support.quotes import status_of

HUGE = {"product_id": "prod_pro_v2", "quantity": 60_000}
"""600,000 USD a year: the VP Sales has to approve the size alone."""


@pytest.fixture
def app(store: Settings, clock: StillEffects) -> Iterator[App]:
    app = open_app(store, clock)
    yield app
    app.close()


@pytest.fixture
def dana(app: App) -> Tools:
    return person(app, "dana", "sales_manager")


@pytest.fixture
def vera(app: App) -> Tools:
    return person(app, "vera", "vp_sales")


@pytest.fixture
def lee(app: App) -> Tools:
    return person(app, "lee", "legal")


def steps_of(tools: Tools, quote_id: str) -> dict[str, str]:
    """Each role of the current version with the state of its last request."""
    found = tools("approval_history", quote_id=quote_id)
    return {one["approver_role"]: one["status"] for one in found["items"] if one["version"] == found["version"]}


def next_version(tools: Tools, quote_id: str, version: int, discount: int) -> None:
    tools("quote_revise", quote_id=quote_id, expected_version=version)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)


def test_the_commercial_chain_decides_in_turn_and_others_beside_it(tools: Tools, dana: Tools, vera: Tools, lee: Tools):
    quote_id = priced_quote(tools, 25, payment_terms="net_90")
    answer = ask(tools, quote_id)
    waiting = {one["approver_role"]: one["waits_for"] for one in tools("approval_pending")["items"]}
    assert waiting == {"sales_manager": None, "vp_sales": "sales_manager", "legal": None}
    error = refused_decision(vera, answer, "vp_sales")
    assert (error["code"], error["details"]["waits_for"]) == ("CONFLICT", "sales_manager")
    assert decide(lee, answer, "legal")["quote_status"] == "pending_approval"
    assert decide(dana, answer)["quote_status"] == "pending_approval"
    done = decide(vera, answer, "vp_sales")
    assert (done["quote_status"], done["message"]) == ("approved", "Approved. The quote can be sent.")
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_whoever_is_asked_beyond_the_policy_must_answer_too(tools: Tools, vera: Tools, lee: Tools):
    quote_id = priced_quote(tools, 25)
    answer = ask(tools, quote_id, "vp_sales")
    extra = ask(tools, quote_id, "legal")
    assert decide(vera, answer)["quote_status"] == "pending_approval"
    assert decide(lee, extra)["quote_status"] == "approved"


def test_a_rejection_needs_a_comment_and_ends_the_round(tools: Tools, dana: Tools, lee: Tools):
    quote_id = priced_quote(tools, payment_terms="net_90")
    answer = ask(tools, quote_id)
    shown = {"approval_id": answer["approval_id"], "fingerprint": answer["fingerprint"], "decision": "reject"}
    assert refused(dana, "approval_decide", **shown)["details"]["field"] == "/comment"
    assert refused(dana, "approval_decide", **shown, comment=" ")["details"]["field"] == "/comment"
    done = dana("approval_decide", **shown, comment="Margin first.")
    assert (done["status"], done["quote_status"], status_of(tools, quote_id, 1)) == ("rejected", "draft", "draft")
    assert steps_of(tools, quote_id) == {"sales_manager": "rejected", "legal": "withdrawn"}
    error = refused_decision(lee, answer, "legal")
    assert (error["code"], error["message"]) == ("CONFLICT", "sales_manager rejected this version.")
    assert tools("quote_get", quote_id=quote_id)["quote"]["reason"] == "Margin first."


def test_the_loser_is_told_who_decided_and_when(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    answer = ask(tools, priced_quote(tools))
    decide(dana, answer)
    clock.advance(minutes=5)
    error = refused_decision(person(app, "dora", "sales_manager"), answer, word="reject")
    details = error["details"]
    assert (error["code"], details["decided_by"], details["decided_at"]) == (
        "CONFLICT",
        "human:dana",
        "2026-11-16T09:00:00Z",
    )


def test_an_unknown_request_and_one_of_another_role_get_the_same_answer(tools: Tools, vera: Tools):
    answer = ask(tools, priced_quote(tools))
    forbidden = refused_decision(vera, answer)
    unknown = vera.error("approval_decide", approval_id="APR-none", decision="approve", fingerprint="x")
    assert forbidden == unknown
    assert forbidden["code"] == "FORBIDDEN"
    others = [
        person(tools.app, "rob", "sales_rep").error("approval_withdraw", approval_id=id_)
        for id_ in ("APR-none", answer["approval_id"])
    ]
    assert others[0] == others[1] == forbidden


@pytest.mark.parametrize(("quorum", "needed"), [("one", 1), ("all", 3), ("majority", 2), ("2", 2)])
def test_a_quorum_counts_the_people_of_the_role(store: Settings, tmp_path: Path, quorum: str, needed: int):
    app = open_app(with_roles(store, tmp_path / "policies", f"quorum: {{sales_manager: {quorum}}}"))
    tools = Tools(app)
    people = [person(app, name, "sales_manager") for name in ("ann", "bob", "cy")]
    person(app, "robot", "sales_manager", kind="agent")
    quote_id = priced_quote(tools)
    assert tools("approval_preview", quote_id=quote_id)["steps"][0]["approvals_needed"] == needed
    answer = ask(tools, quote_id)
    for count, one in enumerate(people[:needed], 1):
        done = decide(one, answer)
        assert (done["approvals"], done["approvals_needed"]) == (count, needed)
        assert done["status"] == ("approved" if count == needed else "pending")
        if count < needed:
            assert refused_decision(one, answer)["code"] == "CONFLICT"
    assert status_of(tools, quote_id) == "approved"
    [record] = tools("approval_history", quote_id=quote_id)["items"]
    assert [vote["by"] for vote in record["votes"]] == [f"human:{name}" for name in ("ann", "bob", "cy")][:needed]
    app.close()


def test_all_does_not_count_the_one_who_asked(store: Settings, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "quorum: {sales_manager: all}"))
    ann, bob = person(app, "ann", "sales_manager"), person(app, "bob", "sales_manager")
    quote_id = priced_quote(Tools(app))
    done = decide(bob, ask(ann, quote_id))
    assert (done["approvals_needed"], done["quote_status"]) == (1, "approved")
    app.close()


def test_all_are_those_who_are_still_there_when_one_of_them_says_so_again(store: Settings, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "quorum: {sales_manager: all}"))
    ann, bob = person(app, "ann", "sales_manager"), person(app, "bob", "sales_manager")
    quote_id = priced_quote(Tools(app))
    asked = ask(Tools(app), quote_id)
    assert decide(ann, asked)["status"] == "pending"
    assert refused_decision(ann, asked)["code"] == "CONFLICT"
    revoke_all(app, "bob")
    assert decide(ann, asked)["quote_status"] == "approved"
    assert refused_decision(bob, asked)["code"] in ("FORBIDDEN", "CONFLICT")
    app.close()


def test_one_no_ends_a_quorum(store: Settings, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "quorum: {sales_manager: 2}"))
    tools = Tools(app)
    answer = ask(tools, priced_quote(tools))
    decide(person(app, "ann", "sales_manager"), answer)
    assert decide(person(app, "bob", "sales_manager"), answer, word="reject")["quote_status"] == "draft"
    app.close()


def test_a_stand_in_decides_only_when_nobody_of_the_role_is_left(store: Settings, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "backup: {sales_manager: deal_desk}"))
    tools = Tools(app)
    person(app, "ann", "sales_manager")
    desk = person(app, "desk", "deal_desk")
    answer = ask(tools, priced_quote(tools))
    assert refused_decision(desk, answer)["code"] == "FORBIDDEN"
    revoke_all(app, "ann")
    done = decide(desk, answer)
    assert (done["acted_as"], done["quote_status"]) == ("deal_desk, in place of sales_manager", "approved")
    app.close()


def test_who_is_barred_is_neither_waited_for_nor_in_the_way(store: Settings, clock: StillEffects, tmp_path: Path):
    """Whoever shares a role with the maker cannot decide: `all` does not count them, and a stand-in may take over."""
    lines = ("quorum: {sales_manager: all}", "backup: {sales_manager: deal_desk}")
    app = open_app(with_roles(store, tmp_path / "policies", *lines), clock)
    dana, dora = person(app, "dana", "sales_manager"), person(app, "dora", "sales_manager")
    rep, desk = person(app, "rep", "vp_sales"), person(app, "desk", "deal_desk")
    dana("approval_delegate", role="sales_manager", to="rep", until="2026-11-17T00:00:00Z")
    quote_id = priced_quote(rep)
    [step] = rep("approval_preview", quote_id=quote_id)["steps"]
    assert (step["approvers"], step["approvals_needed"]) == (["dora"], 1)
    assert decide(dora, ask(rep, quote_id))["quote_status"] == "approved"
    dora("approval_delegate", role="sales_manager", to="rep", until="2026-11-17T00:00:00Z")
    answer = ask(rep, priced_quote(rep))
    for one in (dana, dora):
        assert refused_decision(one, answer)["code"] == "FORBIDDEN"
    assert decide(desk, answer)["acted_as"] == "deal_desk, in place of sales_manager"
    app.close()


def test_what_was_escalated_is_found_by_whom_it_was_escalated_to(
    app: App, tools: Tools, vera: Tools, clock: StillEffects
):
    answer = ask(tools, priced_quote(tools))
    assert vera("approval_pending", approver_role="vp_sales") == {"items": [], "total": 0}
    [item] = vera("approval_pending", approver_role="sales_manager")["items"]
    assert (item["escalates_to"], item["is_escalated"]) == ("vp_sales", False)
    clock.advance(hours=2)
    for role in ("vp_sales", "sales_manager"):
        listed = vera("approval_pending", approver_role=role)
        assert (listed["total"], listed["items"][0]["is_escalated"]) == (1, True)
    assert decide(vera, answer)["quote_status"] == "approved"


def test_a_request_that_waits_goes_further_up_and_its_own_role_can_still_decide(
    app: App, tools: Tools, dana: Tools, vera: Tools, clock: StillEffects
):
    first, second = ask(tools, priced_quote(tools)), ask(tools, priced_quote(tools))
    clock.advance(hours=1, minutes=59)
    assert refused_decision(vera, first)["code"] == "FORBIDDEN"
    clock.advance(minutes=1)
    assert decide(vera, first)["acted_as"] == "vp_sales, escalated from sales_manager"
    assert decide(dana, second)["acted_as"] == "sales_manager"


def test_a_role_can_be_lent_for_a_while(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    desk = person(app, "desk", "deal_desk")
    early, late = ask(tools, priced_quote(tools)), None
    lent = dana(
        "approval_delegate",
        role="sales_manager",
        to="desk",
        starts_at="2026-11-16T10:00:00Z",
        until="2026-11-16T12:00:00Z",
    )
    assert (lent["from_principal"], lent["to_principal"], lent["starts_at"]) == (
        "human:dana",
        "human:desk",
        "2026-11-16T10:00:00Z",
    )
    assert refused_decision(desk, early)["code"] == "FORBIDDEN"
    clock.advance(hours=1)
    assert decide(desk, early)["acted_as"] == "sales_manager, delegated by human:dana"
    late = ask(tools, priced_quote(tools))
    clock.advance(hours=2)
    assert refused_decision(desk, late)["code"] == "FORBIDDEN"


def test_a_lent_role_ends_with_the_token_of_the_lender(app: App, tools: Tools, dana: Tools):
    desk = person(app, "desk", "deal_desk")
    dana("approval_delegate", role="sales_manager", to="desk", until="2026-11-17T00:00:00Z")
    answer = ask(tools, priced_quote(tools))
    revoke_all(app, "dana")
    assert refused_decision(desk, answer)["code"] == "FORBIDDEN"


def test_a_lent_role_can_be_taken_back_before_its_time(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    desk = person(app, "desk", "deal_desk")
    lent = {"role": "sales_manager", "to": "desk"}
    begun = dana("approval_delegate", **lent, until="2026-11-17T00:00:00Z")
    dana("approval_delegate", **lent, starts_at="2026-11-18T00:00:00Z", until="2026-11-19T00:00:00Z")
    first, second = ask(tools, priced_quote(tools)), ask(tools, priced_quote(tools))
    decide(desk, first)
    clock.advance(minutes=1)
    assert refused(dana, "approval_delegate", **lent, account_id="acct_acme_001")["code"] == "NOT_FOUND"
    ended = dana("approval_delegate", **lent)
    assert (ended["outcome"], ended["ends_at"]) == ("ended", "2026-11-16T09:01:00Z")
    assert ended["from_principal"] == begun["from_principal"]
    assert refused_decision(desk, second)["code"] == "FORBIDDEN"
    assert tools("approval_status", quote_id=first["quote_id"])["current_status"] == "approved"
    clock.advance(days=2)
    assert refused_decision(desk, second)["code"] == "FORBIDDEN"
    assert refused(dana, "approval_delegate", **lent)["details"]["hint"] == "To delegate it, give `until`."


def test_taking_a_role_back_does_not_untie_those_who_shared_it(app: App, dana: Tools, clock: StillEffects):
    """Otherwise two people could lend, let ask, take back, and decide for each other."""
    desk = person(app, "desk", "deal_desk", "sales_manager")
    lent = {"role": "sales_manager", "to": "desk"}
    dana("approval_delegate", **lent, until="2026-11-17T00:00:00Z")
    clock.advance(minutes=1)
    answer = ask(dana, priced_quote(dana))
    clock.advance(minutes=1)
    dana("approval_delegate", **lent)
    assert refused_decision(desk, answer)["code"] == "FORBIDDEN"


@pytest.mark.parametrize("scope", ["account_id", "quote_id"])
def test_a_role_can_be_lent_for_one_account_or_one_quote(app: App, tools: Tools, dana: Tools, scope: str):
    desk = person(app, "desk", "deal_desk")
    quote_id = priced_quote(tools)
    other = priced_quote(tools, account_id="acct_rheinstahl_010", currency="EUR")
    limit = {"account_id": "acct_acme_001"} if scope == "account_id" else {"quote_id": quote_id}
    dana("approval_delegate", role="sales_manager", to="desk", until="2026-11-17T00:00:00Z", **limit)
    assert refused_decision(desk, ask(tools, other))["code"] == "FORBIDDEN"
    assert decide(desk, ask(tools, quote_id))["quote_status"] == "approved"


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        ({"role": "vp_sales"}, "FORBIDDEN", None),
        ({"to": "nobody"}, "VALIDATION_ERROR", "/to"),
        ({"to": "rob"}, "VALIDATION_ERROR", "/to"),
        ({"to": "robot"}, "VALIDATION_ERROR", "/to"),
        ({"to": "dana"}, "VALIDATION_ERROR", "/to"),
        ({"until": "2026-11-16T09:00:00Z"}, "VALIDATION_ERROR", "/until"),
        ({"until": "2028-11-16T09:00:00Z"}, "VALIDATION_ERROR", "/until"),
        ({"until": "2026-11-18T09:00:00"}, "VALIDATION_ERROR", "/until"),
        ({"until": "2026-13-18T09:00:00Z"}, "VALIDATION_ERROR", "/until"),
        ({"account_id": "acct_none"}, "NOT_FOUND", "/account_id"),
        ({"quote_id": "Q-none"}, "NOT_FOUND", "/quote_id"),
    ],
)
def test_what_cannot_be_lent_is_refused_with_the_reason(app: App, dana: Tools, wrong, code: str, field: str | None):
    person(app, "rob", "sales_rep")
    person(app, "robot", "sales_manager", kind="agent")
    person(app, "desk", "deal_desk")
    asked = {"role": "sales_manager", "to": "desk", "until": "2026-11-18T09:00:00Z", **wrong}
    error = refused(dana, "approval_delegate", **asked)
    assert (error["code"], error["details"].get("field")) == (code, field)


def test_what_got_no_worse_is_kept_and_what_did_is_asked_again(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 10)
    first = ask(tools, quote_id)
    decide(dana, first)
    next_version(tools, quote_id, 1, 8)
    [step] = tools("approval_preview", quote_id=quote_id)["steps"]
    assert (step["would_be"], step["reasons"][-1]) == (
        "kept",
        "Kept from version 1: the customer gets no more than sales_manager approved.",
    )
    kept = ask(tools, quote_id)
    assert (kept["status"], kept["quote_status"]) == ("kept", "approved")
    assert kept["message"] == "Earlier approvals are kept; the quote is approved"
    record = tools("approval_history", quote_id=quote_id)["items"][-1]
    assert (record["status"], record["kept_from"], record["decided_by"]) == (
        "kept",
        first["approval_id"],
        "human:dana",
    )
    next_version(tools, quote_id, 2, 10)
    assert ask(tools, quote_id)["status"] == "kept", "measured by what a person approved, not by what was kept since"
    assert tools("approval_history", quote_id=quote_id)["items"][-1]["kept_from"] == first["approval_id"]
    next_version(tools, quote_id, 3, 11)
    again = ask(tools, quote_id)
    assert (again["status"], again["reason"]) == ("pending", "Asked again: line.discount went from 10 to 11.")
    assert again["quote_status"] == "pending_approval"


def test_what_is_kept_and_what_ends_by_itself_is_told_to_the_outside(app: App, tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 10)
    decide(dana, ask(tools, quote_id))
    next_version(tools, quote_id, 1, 9)
    ask(tools, quote_id)
    next_version(tools, quote_id, 2, 12)
    ask(tools, quote_id)
    next_version(tools, quote_id, 3, 12)
    swept(app)
    told = app.read_unaudited(
        app.new_call(OPERATOR), lambda tx: [(row.name, row.body) for row in events.of_subject(tx, quote_id)]
    )
    assert [body["status"] for name, body in told if name == "approval.decided"] == ["approved", "kept", "withdrawn"]


def test_some_are_kept_and_others_asked_and_legal_looks_at_every_version(tools: Tools, vera: Tools, lee: Tools):
    quote_id = priced_quote(tools, 25, payment_terms="net_90")
    answer = ask(tools, quote_id, "vp_sales")
    decide(vera, answer)
    decide(lee, answer, "legal")
    next_version(tools, quote_id, 1, 25)
    steps = {one["approver_role"]: one["would_be"] for one in tools("approval_preview", quote_id=quote_id)["steps"]}
    assert steps == {"vp_sales": "kept", "legal": "asked"}
    answer = ask(tools, quote_id, "legal")
    assert (answer["status"], answer["reason"]) == ("pending", "Asked again: legal looks at every version.")
    assert [(one["approver_role"], one["status"]) for one in answer["also_requested"]] == [("vp_sales", "kept")]
    assert decide(lee, answer)["quote_status"] == "approved"


def test_one_who_approved_for_a_chain_approved_what_those_below_care_for(tools: Tools, vera: Tools):
    quote_id = priced_quote(tools, 6, HUGE)
    decide(vera, ask(tools, quote_id, "vp_sales"))
    next_version(tools, quote_id, 1, 7)
    answer = ask(tools, quote_id, "vp_sales")
    assert (answer["status"], answer["reason"]) == ("pending", "Asked again: line.discount went from 6 to 7.")


def test_an_approval_is_not_kept_for_the_one_who_gave_it(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    dana("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    reason = ask(tools, quote_id)["reason"]
    assert reason == "Asked again: human:dana, who approved before, had a hand in this version."


def test_an_approval_is_not_kept_under_other_policies_or_after_its_time(
    store: Settings, tmp_path: Path, clock: StillEffects
):
    settings = with_roles(store, tmp_path / "policies")
    app = open_app(settings, clock)
    tools, dana = Tools(app), person(app, "dana", "sales_manager")
    old, other = priced_quote(tools), priced_quote(tools)
    for quote_id in (old, other):
        decide(dana, ask(tools, quote_id))
    next_version(tools, old, 1, 10)
    tools("quote_revise", quote_id=other, expected_version=1)
    clock.advance(days=31)
    tools("quote_price", quote_id=other, requested_discount_pct=10)
    assert ask(tools, other)["reason"] == "Asked again: version 1, which was approved, is no longer valid."
    path = tmp_path / "policies" / "discounts.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("above: 30", "above: 31"), encoding="utf-8")
    clock.advance(minutes=1)
    tools("quote_price", quote_id=old, requested_discount_pct=10)
    assert ask(tools, old)["reason"] == "Asked again: the policies have changed since version 1."
    app.close()


def test_later_policies_do_not_change_what_was_submitted(store: Settings, tmp_path: Path, clock: StillEffects):
    app = open_app(with_roles(store, tmp_path / "policies"), clock)
    tools, dana = Tools(app), person(app, "dana", "sales_manager")
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    path = tmp_path / "policies" / "discounts.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("above: 20", "above: 9"), encoding="utf-8")
    clock.advance(minutes=1)
    assert (
        tools("quote_price", quote_id=quote_id, requested_discount_pct=10)["policy_violations"][0][
            "required_approver_role"
        ]
        == "vp_sales"
    )
    assert tools("approval_status", quote_id=quote_id)["required_roles"] == ["sales_manager"]
    assert decide(dana, answer)["quote_status"] == "approved"
    app.close()


def test_a_request_is_withdrawn_by_its_maker_or_an_administrator(app: App, tools: Tools, dana: Tools):
    rob = person(app, "rob", "sales_rep")
    first, second = ask(tools, priced_quote(tools)), ask(tools, priced_quote(tools))
    assert refused(rob, "approval_withdraw", approval_id=first["approval_id"])["code"] == "FORBIDDEN"
    done = tools("approval_withdraw", approval_id=first["approval_id"], reason="The customer left.")
    assert (done["status"], done["quote_status"]) == ("withdrawn", "pending_approval")
    assert tools("approval_history", quote_id=first["quote_id"])["items"][0]["reason"] == (
        "Withdrawn by agent:mcp: The customer left."
    )
    error = refused_decision(dana, first)
    assert (error["code"], error["details"]["decided_by"]) == ("CONFLICT", "agent:mcp")
    assert follow(tools, error)["status"] == "pending"
    admin = person(app, "ada", "admin")
    assert admin("approval_withdraw", approval_id=second["approval_id"])["status"] == "withdrawn"
    assert refused(admin, "approval_withdraw", approval_id=second["approval_id"])["code"] == "CONFLICT"


def test_withdrawing_what_the_policies_did_not_ask_for_lets_the_rest_stand(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    answer, extra = ask(tools, quote_id), ask(tools, quote_id, "finance")
    assert decide(dana, answer)["quote_status"] == "pending_approval"
    assert tools("approval_withdraw", approval_id=extra["approval_id"])["quote_status"] == "approved"


@pytest.mark.parametrize(("discount", "is_free"), [(0, True), (10, False)])
def test_q33_withdrawing_frees_only_what_no_policy_holds(tools: Tools, discount: int, is_free: bool):
    quote_id = priced_quote(tools, discount)
    extra = ask(tools, quote_id, "legal")
    for one in extra["also_requested"]:
        tools("approval_withdraw", approval_id=one["approval_id"])
    done = tools("approval_withdraw", approval_id=extra["approval_id"])
    assert done["quote_status"] == ("approved" if is_free else "pending_approval")
    found = tools("approval_status", quote_id=quote_id)
    assert (found["current_status"], found["can_proceed"]) == ("none", is_free)
    assert tools.reply("quote_send", {"quote_id": quote_id, "expected_version": 1}).is_error is not is_free


def test_what_later_policies_hold_is_not_freed_by_withdrawing(store: Settings, tmp_path: Path, clock: StillEffects):
    app = open_app(with_roles(store, tmp_path / "policies"), clock)
    tools = Tools(app)
    quote_id = priced_quote(tools, 4)
    answer = ask(tools, quote_id)
    path = tmp_path / "policies" / "discounts.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("above: 5", "above: 3"), encoding="utf-8")
    clock.advance(minutes=1)
    assert tools("approval_withdraw", approval_id=answer["approval_id"])["quote_status"] == "pending_approval"
    assert tools("approval_status", quote_id=quote_id)["can_proceed"] is False
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
    app.close()


def swept(app: App) -> dict[str, object]:
    counts: dict[str, object] = {}

    def work(tx):
        counts.update(sweep(tx))
        return {}

    app.write(app.new_call(OPERATOR), Command("approvals_sweep", Permission.ADMINISTER), work)
    return counts


def test_the_sweeper_writes_down_what_time_has_done_and_reads_do_not_change(
    app: App, tools: Tools, dana: Tools, clock: StillEffects
):
    left, revised, partly = (priced_quote(tools) for _ in range(3))
    for quote_id in (left, revised):
        ask(tools, quote_id)
    answer = ask(tools, partly)
    ask(tools, partly, "finance")
    decide(dana, answer)
    tools("quote_revise", quote_id=revised, expected_version=1)
    assert swept(app) == {"expired": 0, "withdrawn": 1, "escalated": 0, "quotes": 1, "after": ""}
    clock.advance(hours=2)
    assert swept(app) == {"expired": 0, "withdrawn": 0, "escalated": 1, "quotes": 1, "after": ""}
    clock.advance(hours=2)
    seen = ("approval_status", "quote_get")
    before = [tools(name, quote_id=one) for name in seen for one in (left, revised, partly)]
    assert swept(app) == {"expired": 2, "withdrawn": 0, "escalated": 0, "quotes": 2, "after": ""}
    assert [tools(name, quote_id=one) for name in seen for one in (left, revised, partly)] == before
    assert status_of(tools, partly) == status_of(tools, left) == "draft", "nothing is approved by silence"
    assert swept(app)["quotes"] == 0
    assert sweep_if_due(app) is False


def test_a_sweep_goes_on_to_the_end(app: App, tools: Tools, clock: StillEffects, monkeypatch: pytest.MonkeyPatch):
    for _ in range(3):
        ask(tools, priced_quote(tools))
    clock.advance(hours=5)
    monkeypatch.setattr(sweep, "__kwdefaults__", {"quotes_max": 2})
    assert sweep_if_due(app) is True
    assert not sweep_waits(app)


def test_a_sweep_sees_every_tenant(app: App, tools: Tools, clock: StillEffects):
    ask(tools, priced_quote(tools))
    clock.advance(hours=5)
    add_tenant(app, "other")
    other = replace(OPERATOR, tenant_id="other")
    assert app.read_unaudited(app.new_call(other), tenants_overdue) == ["main"]


def test_a_server_sweeps_by_itself(app: App, tools: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    ask(tools, quote_id)
    clock.advance(hours=5)
    loop = Loop("sweep", lambda: 60.0 + sweep_if_due(app))
    loop.start()
    for _ in range(1000):
        if not sweep_waits(app):
            break
    stop([loop])
    [record] = tools("approval_history", quote_id=quote_id)["items"]
    assert record["status"] == "expired"
    assert (
        record["reason"] == "Nobody with the role sales_manager decided by 2026-11-16 13:00 UTC; nothing was approved."
    )


def sweep_waits(app: App) -> bool:
    """Whether there is still something to sweep."""
    return bool(app.read_unaudited(app.new_call(), lambda tx: overdue(tx, 1)))
