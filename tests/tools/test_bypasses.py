"""Ways around an approval, each of them tried: none leads to a quote that is sent without the approvals it needs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App, audit
from cpq.base.settings import Settings
from cpq.domain.quotes.lifecycle import TRANSITIONS
from cpq.services import events
from cpq.services.approvals import sweep_if_due
from tests.services.quotes.test_races import the_winner
from tests.support.approvals import (
    ask,
    decide,
    decision,
    follow,
    person,
    priced_quote,
    race_as,
    race_calls,
    refused,
    refused_decision,
    revoke_all,
    with_roles,
)
from tests.support.engine import StillEffects, Tools, import_dicts, open_app, product_row
from tests.support.quotes import SEATS, status_of

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def app(store: Settings, clock: StillEffects) -> Iterator[App]:
    app = open_app(store, clock)
    yield app
    app.close()


@pytest.fixture
def dana(app: App) -> Tools:
    return person(app, "dana", "sales_manager")


def cannot_send(tools: Tools, quote_id: str, version: int = 1) -> None:
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=version)
    assert error["code"] == "CONFLICT"
    error = refused(tools, "quote_accept", quote_id=quote_id, expected_version=version)
    assert error["code"] == "CONFLICT"


def test_a_discount_hidden_in_a_line_needs_its_approval(tools: Tools):
    cheap = {"product_id": "prod_pro_v2", "quantity": 1, "discount_pct": 40}
    quote_id = priced_quote(tools, 0, SEATS, cheap)
    found = tools("approval_preview", quote_id=quote_id)
    assert [step["approver_role"] for step in found["steps"]] == ["vp_sales", "finance"]
    cannot_send(tools, quote_id)


def test_a_discount_split_over_line_and_request_is_seen_whole(tools: Tools):
    quote_id = priced_quote(tools, 4, {**SEATS, "discount_pct": 4})
    [violation] = tools("approval_preview", quote_id=quote_id)["policy_violations"]
    assert (violation["required_approver_role"], violation["actual"]) == ("sales_manager", 7.84)
    cannot_send(tools, quote_id)


def test_a_discount_in_one_alternative_needs_its_approval(tools: Tools):
    good, cheap = {**SEATS, "option_set": "good"}, {**SEATS, "option_set": "cheap", "discount_pct": 15}
    quote_id = priced_quote(tools, 0, good, cheap)
    assert tools("approval_status", quote_id=quote_id)["required_roles"] == ["sales_manager"]
    cannot_send(tools, quote_id)


def test_nothing_is_edited_once_it_is_submitted_or_approved(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    change = {"quote_id": quote_id, "expected_version": 1, "add_lines": [{**SEATS, "discount_pct": 50}]}
    answer = ask(tools, quote_id)
    for _ in range(2):
        assert refused(tools, "quote_update", **change)["code"] == "CONFLICT"
        assert tools("quote_price", quote_id=quote_id, requested_discount_pct=50)["stored"] is False
        if status_of(tools, quote_id) == "pending_approval":
            decide(dana, answer)
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["total"] == 1350


def test_a_clone_of_an_approved_quote_is_not_approved(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 0, {**SEATS, "discount_pct": 10})
    decide(dana, ask(tools, quote_id))
    clone = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert tools("approval_history", quote_id=clone)["items"] == []
    tools("quote_price", quote_id=clone)
    assert tools("approval_status", quote_id=clone)["can_proceed"] is False
    cannot_send(tools, clone)
    assert ask(tools, clone)["status"] == "pending"


def test_a_clone_is_the_own_of_whoever_cloned_it(app: App, tools: Tools, dana: Tools):
    """Whose lines were copied has not asked; telling somebody in words what to quote could not be barred either."""
    original = priced_quote(dana, 0, {**SEATS, "discount_pct": 10})
    dora = person(app, "dora", "sales_manager")
    clone = dora("quote_clone", quote_id=original)["quote_id"]
    dora("quote_price", quote_id=clone)
    answer = ask(tools, clone)
    assert refused_decision(dora, answer)["code"] == "FORBIDDEN"
    assert decide(dana, answer)["quote_status"] == "approved"
    assert refused_decision(dana, ask(tools, original))["code"] == "FORBIDDEN"


def test_a_revision_of_an_approved_quote_cannot_go_out_at_the_old_word(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=18)
    cannot_send(tools, quote_id, 2)
    cannot_send(tools, quote_id, 1)
    assert ask(tools, quote_id)["status"] == "pending"
    cannot_send(tools, quote_id, 2)


def test_cancelling_a_revision_does_not_bring_back_an_approval(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert tools("quote_cancel", quote_id=quote_id, expected_version=2)["status"] == "cancelled"
    cannot_send(tools, quote_id, 1)


def test_a_revision_drops_the_open_request_even_when_the_price_stays(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    first = ask(tools, quote_id)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    second = ask(tools, quote_id)
    assert second["fingerprint"] == first["fingerprint"]
    error = refused_decision(dana, first)
    assert (error["code"], error["details"]["now"]["version"]) == ("CONFLICT", 2)
    assert status_of(tools, quote_id) == "pending_approval"


@pytest.mark.parametrize("move", ["quote_send", "quote_accept"])
def test_nothing_is_sent_or_accepted_before_it_is_approved(tools: Tools, move: str):
    quote_id = priced_quote(tools)
    for _ in range(2):
        assert refused(tools, move, quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
        if status_of(tools, quote_id) == "draft":
            ask(tools, quote_id)


def test_asking_a_lower_role_asks_those_who_are_needed_too(app: App, tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 25)
    answer = ask(tools, quote_id, "sales_manager")
    assert [one["approver_role"] for one in answer["also_requested"]] == ["vp_sales"]
    assert decide(dana, answer)["quote_status"] == "pending_approval"
    cannot_send(tools, quote_id)


def test_nobody_decides_their_own_request(app: App, tools: Tools, dana: Tools):
    answer = ask(dana, priced_quote(tools))
    error = refused_decision(dana, answer)
    assert (error["code"], error["message"][:6]) == ("FORBIDDEN", "Nobody")
    assert decide(person(app, "dora", "sales_manager"), answer)["quote_status"] == "approved"


def test_nobody_decides_on_a_quote_they_made(app: App, tools: Tools, dana: Tools):
    made = priced_quote(dana)
    assert refused_decision(dana, ask(tools, made))["code"] == "FORBIDDEN"
    revised = priced_quote(tools, 0)
    tools("quote_send", quote_id=revised, expected_version=1)
    dana("quote_revise", quote_id=revised, expected_version=1)
    dana("quote_price", quote_id=revised, requested_discount_pct=10)
    assert refused_decision(dana, ask(tools, revised))["code"] == "FORBIDDEN"


def test_nobody_decides_through_a_delegate_of_themselves(app: App, tools: Tools, dana: Tools):
    desk = person(app, "desk", "deal_desk")
    dana("approval_delegate", role="sales_manager", to="desk", until="2026-11-17T00:00:00Z")
    answer = ask(dana, priced_quote(tools))
    assert refused_decision(desk, answer)["code"] == "FORBIDDEN"
    assert refused_decision(dana, answer)["code"] == "FORBIDDEN"


def test_a_delegate_with_the_role_does_not_decide_for_the_lender_either(app: App, tools: Tools, dana: Tools):
    dora = person(app, "dora", "sales_manager")
    dana("approval_delegate", role="sales_manager", to="dora", until="2026-11-17T00:00:00Z")
    assert refused_decision(dora, ask(dana, priced_quote(tools)))["code"] == "FORBIDDEN"
    assert refused_decision(dana, ask(dora, priced_quote(tools)))["code"] == "FORBIDDEN"


def test_a_delegation_is_not_escaped_by_its_end(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    dora = person(app, "dora", "sales_manager")
    dana("approval_delegate", role="sales_manager", to="dora", until="2026-11-16T10:00:00Z")
    answer = ask(dora, priced_quote(tools))
    clock.advance(hours=2)
    assert refused_decision(dana, answer)["code"] == "FORBIDDEN"


def test_nobody_decides_on_a_draft_they_changed_or_priced(app: App, tools: Tools, dana: Tools):
    priced = priced_quote(tools, 0)
    dana("quote_price", quote_id=priced, requested_discount_pct=20)
    changed = priced_quote(tools, 0)
    dana("quote_update", quote_id=changed, expected_version=1, add_lines=[{**SEATS, "discount_pct": 20}])
    tools("quote_price", quote_id=changed)
    for quote_id in (priced, changed):
        assert refused_decision(dana, ask(tools, quote_id))["code"] == "FORBIDDEN"
        assert tools("approval_preview", quote_id=quote_id)["steps"][0]["approvers"] == []


def test_what_somebody_changed_stays_theirs_in_the_next_version(app: App, tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 0)
    dana("quote_price", quote_id=quote_id, requested_discount_pct=4)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert refused_decision(dana, ask(tools, quote_id))["code"] == "FORBIDDEN"


def test_looking_at_a_price_makes_nobody_its_maker(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools)
    assert dana("quote_price", quote_id=quote_id, requested_discount_pct=10)["outcome"] == "no_change"
    answer = ask(tools, quote_id)
    assert dana("quote_price", quote_id=quote_id, requested_discount_pct=50)["stored"] is False
    assert decide(dana, answer)["quote_status"] == "approved"


def with_all(store: Settings, clock: StillEffects, folder: Path) -> App:
    """Every sales manager has to approve."""
    return open_app(with_roles(store, folder, "quorum: {sales_manager: all}"), clock)


def test_a_maker_cannot_choose_by_lending_whose_word_is_needed(store: Settings, clock: StillEffects, tmp_path: Path):
    app = with_all(store, clock, tmp_path / "policies")
    maker, strict, friend = (person(app, name, "sales_manager") for name in ("maker", "strict", "friend"))
    quote_id = priced_quote(maker)
    answer = ask(maker, quote_id)
    maker("approval_delegate", role="sales_manager", to="strict", until="2026-11-17T00:00:00Z")
    done = decide(friend, answer)
    assert (done["status"], done["approvals"], done["approvals_needed"]) == ("pending", 1, 2)
    assert refused_decision(strict, answer)["code"] == "FORBIDDEN"
    assert status_of(maker, quote_id) == "pending_approval"
    cannot_send(maker, quote_id, 1)
    app.close()


def test_a_maker_cannot_keep_anybody_from_saying_no_by_lending(app: App, tools: Tools):
    maker, strict, lender = (person(app, name, "sales_manager") for name in ("maker", "strict", "lender"))
    desk = person(app, "desk", "deal_desk")
    quote_id = priced_quote(maker)
    answer = ask(maker, quote_id)
    for name in ("strict", "desk"):
        maker("approval_delegate", role="sales_manager", to=name, until="2026-11-17T00:00:00Z")
    lender("approval_delegate", role="sales_manager", to="maker", until="2026-11-17T00:00:00Z")
    for one in (maker, desk, lender):  # Their own, by nothing but the maker's role, and by their own doing.
        assert refused_decision(one, answer, word="reject")["code"] == "FORBIDDEN"
    error = refused_decision(strict, answer)
    assert (error["code"], error["details"]["hint"][:18]) == ("FORBIDDEN", "You may reject it;")
    assert decide(strict, answer, word="reject")["quote_status"] == "draft"
    cannot_send(maker, quote_id)


def test_a_maker_cannot_put_a_stand_in_in_place_of_the_approver(store: Settings, clock: StillEffects, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "backup: {finance: vp_sales}"), clock)
    mike, vera = person(app, "mike", "sales_manager"), person(app, "vera", "vp_sales")
    fia = person(app, "fia", "finance")
    quote_id = priced_quote(mike, 35)
    answer = ask(mike, quote_id, "finance")
    mike("approval_delegate", role="sales_manager", to="fia", quote_id=quote_id, until="2026-11-17T00:00:00Z")
    decide(vera, answer, "vp_sales")
    for one in (vera, fia):
        assert refused_decision(one, answer, "finance")["code"] == "FORBIDDEN"
    cannot_send(mike, quote_id)
    app.close()


def test_another_product_under_the_number_of_a_removed_line_is_asked_about(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 0, SEATS, {"product_id": "prod_pro_v2", "quantity": 1, "discount_pct": 20})
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_update", quote_id=quote_id, expected_version=2, remove_lines=[f"{quote_id}-ql-2"])
    dear = {"product_id": "prod_qmb30", "quantity": 2, "discount_pct": 20}
    tools("quote_update", quote_id=quote_id, expected_version=2, add_lines=[dear])
    tools("quote_price", quote_id=quote_id)
    again = ask(tools, quote_id)
    assert (again["status"], again["reason"]) == (
        "pending",
        "Asked again: line.discount by line got worse at 2 prod_qmb30.",
    )
    cannot_send(tools, quote_id, 2)


def test_the_word_of_somebody_who_may_no_longer_decide_is_not_carried_on(
    app: App, tools: Tools, dana: Tools, clock: StillEffects
):
    person(app, "otto", "sales_manager")
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    clock.advance(minutes=30)
    revised(tools, quote_id)
    assert ask(tools, quote_id)["status"] == "kept"
    kept = tools("approval_history", quote_id=quote_id)["items"][-1]
    assert (kept["decided_by"], kept["decided_at"]) == ("human:dana", "2026-11-16T09:00:00Z")
    revoke_all(app, "dana")
    tools("quote_revise", quote_id=quote_id, expected_version=2)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    again = ask(tools, quote_id)
    assert (again["status"], again["reason"]) == (
        "pending",
        "Asked again: human:dana, who approved before, may no longer decide.",
    )
    cannot_send(tools, quote_id, 3)


def test_a_holder_and_whom_they_lent_the_role_to_are_one_voice(store: Settings, clock: StillEffects, tmp_path: Path):
    app = with_all(store, clock, tmp_path / "policies")
    tools = Tools(app)
    dana, dora = person(app, "dana", "sales_manager"), person(app, "dora", "sales_manager")
    desk = person(app, "desk", "deal_desk")
    dana("approval_delegate", role="sales_manager", to="desk", until="2026-11-17T00:00:00Z")
    first, second = ask(tools, priced_quote(tools)), ask(tools, priced_quote(tools))
    decide(dana, first)
    error = refused_decision(desk, first)
    assert (error["code"], error["details"]["decided_by"]) == ("CONFLICT", "human:dana")
    assert decide(desk, second)["approvals"] == 1
    error = refused_decision(dana, second)
    assert error["message"].startswith("human:desk has approved it for human:dana already")
    for answer in (first, second):
        assert decide(dora, answer)["quote_status"] == "approved"
    app.close()


def test_all_means_the_holders_themselves_whoever_else_may_decide(store: Settings, clock: StillEffects, tmp_path: Path):
    app = with_all(store, clock, tmp_path / "policies")
    tools = Tools(app)
    dana, dora = person(app, "dana", "sales_manager"), person(app, "dora", "sales_manager")
    answer = ask(tools, priced_quote(tools))
    decide(dana, answer)
    clock.advance(hours=2)
    done = decide(person(app, "vera", "vp_sales"), answer)
    assert (done["status"], done["approvals"], done["approvals_needed"]) == ("pending", 1, 2)
    assert decide(dora, answer)["quote_status"] == "approved"
    app.close()


def revised(tools: Tools, quote_id: str, discount: int = 10) -> None:
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)


def test_an_approval_is_not_kept_for_any_of_those_who_gave_it(store: Settings, clock: StillEffects, tmp_path: Path):
    app = with_all(store, clock, tmp_path / "policies")
    tools = Tools(app)
    dana, dora = person(app, "dana", "sales_manager"), person(app, "dora", "sales_manager")
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    decide(dana, answer)
    decide(dora, answer)
    revised(tools, quote_id)
    assert ask(tools, quote_id)["status"] == "kept"
    dana("quote_revise", quote_id=quote_id, expected_version=2)
    dana("quote_price", quote_id=quote_id, requested_discount_pct=9)
    again = ask(dana, quote_id)
    assert (again["status"], again["quote_status"]) == ("pending", "pending_approval")
    assert again["reason"] == "Asked again: human:dana, who approved before, had a hand in this version."
    app.close()


def test_an_approval_is_not_kept_for_somebody_who_shares_the_role(app: App, tools: Tools, dana: Tools):
    dora = person(app, "dora", "sales_manager")
    quote_id = priced_quote(tools)
    decide(dana, ask(tools, quote_id))
    dana("approval_delegate", role="sales_manager", to="dora", until="2026-11-17T00:00:00Z")
    revised(dora, quote_id)
    assert ask(dora, quote_id)["quote_status"] == "pending_approval"
    cannot_send(tools, quote_id, 2)


def test_one_discounted_seat_does_not_open_the_door_for_a_thousand(tools: Tools, dana: Tools):
    one = {"product_id": "prod_pro_v2", "quantity": 1, "discount_pct": 20}
    quote_id = priced_quote(tools, 0, one, SEATS)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    change = [{"line_id": f"{quote_id}-ql-2", "quantity": 900, "discount_pct": 20}]
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=change, add_lines=[one])
    tools("quote_price", quote_id=quote_id)
    again = ask(tools, quote_id)
    assert (again["status"], again["reason"]) == (
        "pending",
        "Asked again: line.discount by line got worse at 2 prod_pro_v2, 3 prod_pro_v2.",
    )
    cannot_send(tools, quote_id, 2)


ONE = {"product_id": "prod_pro_v2", "quantity": 1, "discount_pct": 20}


def approved(tools: Tools, dana: Tools, *lines: dict[str, Any], discount: int = 0, **terms: Any) -> str:
    """A quote whose first version a sales manager has approved, and whose second one is open."""
    quote_id = priced_quote(tools, discount, *lines, **terms)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    return quote_id


def asked_again(tools: Tools, quote_id: str, discount: int = 0) -> str:
    """Why the approval is not kept; the second version cannot be sent."""
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    again = ask(tools, quote_id)
    assert again["status"] == "pending"
    cannot_send(tools, quote_id, 2)
    return str(again["reason"])


def test_what_was_approved_for_one_seat_is_not_kept_for_190_000(app: App, tools: Tools):
    """95 % off one seat is 9.50; the same on 190,000 seats is 1.8 million."""
    people = {"vp_sales": person(app, "vera", "vp_sales"), "finance": person(app, "fay", "finance")}
    quote_id = priced_quote(tools, 95, {"product_id": "prod_pro_v2", "quantity": 1})
    answer = tools("approval_request", quote_id=quote_id, justification="x")
    for role, one in people.items():
        decide(one, answer, role)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    change = [{"line_id": f"{quote_id}-ql-1", "quantity": 190_000}]
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=change)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=95)
    again = tools("approval_request", quote_id=quote_id, justification="x")
    assert [again["status"], *(one["status"] for one in again["also_requested"])] == ["pending", "pending"]
    reasons = [again["reason"], *(one["reason"] for one in again["also_requested"])]
    assert reasons == [
        "Asked again: discount_money_vp_sales did not apply to version 1.",
        "Asked again: discount_money_finance did not apply to version 1.",
    ]
    cannot_send(tools, quote_id, 2)


def test_an_approval_is_not_kept_without_the_lines_that_the_discount_was_given_for(tools: Tools, dana: Tools):
    quote_id = approved(tools, dana, ONE, SEATS, ONE)
    tools("quote_update", quote_id=quote_id, expected_version=2, remove_lines=[f"{quote_id}-ql-2"])
    assert "line 2 was removed" in asked_again(tools, quote_id)


def test_an_approval_of_12_months_is_not_kept_for_120(tools: Tools, dana: Tools):
    quote_id = approved(tools, dana, SEATS, discount=10, term_months=12)
    tools("quote_update", quote_id=quote_id, expected_version=2, term_months=120)
    assert "term_months went from 12 to 120" in asked_again(tools, quote_id, 10)


@pytest.mark.parametrize("where", ["quote", "line"])
def test_an_approval_is_not_kept_for_a_side_letter_in_the_notes(tools: Tools, dana: Tools, where: str):
    quote_id = approved(tools, dana, SEATS, discount=10)
    letter = {"notes": "We pay 40 % back, and payment is due in 180 days."}
    change = letter if where == "quote" else {"change_lines": [{"line_id": f"{quote_id}-ql-1", **letter}]}
    tools("quote_update", quote_id=quote_id, expected_version=2, **change)
    assert "notes changed" in asked_again(tools, quote_id, 10)


def test_an_approval_is_not_kept_for_a_later_validity(tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = approved(tools, dana, SEATS, discount=10)
    clock.advance(days=1)
    assert "valid_until went from 2026-12-16 to 2026-12-17" in asked_again(tools, quote_id, 10)


def test_keeping_can_be_switched_off(store: Settings, clock: StillEffects, tmp_path: Path):
    app = open_app(with_roles(store, tmp_path / "policies", "keep_approvals: false"), clock)
    tools, dana = Tools(app), person(app, "dana", "sales_manager")
    quote_id = approved(tools, dana, SEATS, discount=10)
    assert asked_again(tools, quote_id, 10) == "Asked again: the policies keep no approvals."
    app.close()


@pytest.mark.parametrize(
    ("currency", "cost", "role"), [("SEK", "1", "vp_sales"), ("USD", None, "finance")], ids=["no rate", "no cost"]
)
def test_what_is_unknown_twice_is_asked_twice(app: App, tools: Tools, currency: str, cost: str | None, role: str):
    row = product_row()
    import_dicts(app, "products", row)
    price = {"product_id": row["id"], "currency": currency, "unit_price": "10", "cost": cost, "price_book": "list"}
    import_dicts(app, "prices", {name: value for name, value in price.items() if value is not None})
    quote_id = priced_quote(tools, 0, {"product_id": row["id"], "quantity": 10}, currency=currency)
    decide(person(app, "vera", role), ask(tools, quote_id, role))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    change = [{"line_id": f"{quote_id}-ql-1", "quantity": 9000}]
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=change)
    tools("quote_price", quote_id=quote_id)
    assert ask(tools, quote_id, role)["status"] == "pending"
    cannot_send(tools, quote_id, 2)


def test_whoever_was_asked_beyond_the_policies_does_not_approve_by_silence(
    app: App, tools: Tools, dana: Tools, clock: StillEffects
):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id, "legal")
    decide(dana, answer, "sales_manager")
    clock.advance(hours=4)
    for _ in range(2):
        found = tools("approval_status", quote_id=quote_id)
        assert (found["current_status"], found["can_proceed"], found["missing_roles"]) == ("none", False, ["legal"])
        assert [one["approver_role"] for one in found["expired_requests"]] == ["legal"]
        cannot_send(tools, quote_id)
        sweep_if_due(app)
    again = ask(tools, quote_id, "legal")
    assert again["also_requested"] == []
    assert decide(person(app, "lee", "legal"), again)["quote_status"] == "approved"


def test_asking_again_without_a_role_asks_whoever_was_silent(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    again = ask(tools, quote_id, "legal")
    decide(dana, again, "sales_manager")
    for _ in range(2):
        clock.advance(hours=4)
        cannot_send(tools, quote_id)
        again = tools("approval_request", quote_id=quote_id, justification="x")
        assert (again["approver_role"], again["status"], again["also_requested"]) == ("legal", "pending", [])
        assert again["quote_status"] == "pending_approval"
        cannot_send(tools, quote_id)
    assert decide(person(app, "lee", "legal"), again)["quote_status"] == "approved"
    tools("quote_send", quote_id=quote_id, expected_version=1)


@pytest.mark.parametrize("role", ["legal", None])
def test_a_role_that_no_policy_requires_does_not_approve_by_silence(
    app: App, tools: Tools, clock: StillEffects, role: str | None
):
    quote_id = priced_quote(tools, 0)
    named = {"approver_role": role} if role else {}
    first = tools("approval_request", quote_id=quote_id, justification="x", **named)
    clock.advance(hours=4)
    asked = role or "sales_manager"
    found = tools("approval_status", quote_id=quote_id)
    assert (found["can_proceed"], found["required_roles"], found["missing_roles"]) == (False, [], [asked])
    assert f"No policy requires {asked}: approval_withdraw ends that request." in found["reason"]
    [step] = tools("approval_preview", quote_id=quote_id)["steps"]
    assert (step["approver_role"], step["would_be"]) == (asked, "asked")
    cannot_send(tools, quote_id)
    again = tools("approval_request", quote_id=quote_id, justification="x")
    assert (again["approver_role"], again["status"]) == (asked, "pending")
    assert refused(tools, "approval_withdraw", approval_id=first["approval_id"])["code"] == "CONFLICT"
    clock.advance(hours=4)
    cannot_send(tools, quote_id)
    assert refused(tools, "approval_withdraw", approval_id=first["approval_id"])["code"] == "CONFLICT"
    assert tools("approval_withdraw", approval_id=again["approval_id"])["quote_status"] == "approved"
    assert tools("approval_status", quote_id=quote_id)["can_proceed"] is True
    tools("quote_send", quote_id=quote_id, expected_version=1)


@pytest.mark.parametrize("is_swept", [False, True])
def test_what_nobody_answered_can_be_withdrawn_and_then_the_quote_is_sent(
    app: App, tools: Tools, dana: Tools, clock: StillEffects, is_swept: bool
):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id, "legal")
    decide(dana, answer, "sales_manager")
    clock.advance(hours=4)
    assert sweep_if_due(app) is True if is_swept else True
    cannot_send(tools, quote_id)
    stranger = person(app, "rob", "sales_rep")
    assert refused(stranger, "approval_withdraw", approval_id=answer["approval_id"])["code"] == "FORBIDDEN"
    assert tools("approval_withdraw", approval_id=answer["approval_id"])["quote_status"] == "approved"
    seen = app.read_unaudited(app.new_call(), lambda tx: [row.name for row in events.of_subject(tx, quote_id)])
    assert [name for name in seen if name.startswith("approval.")][-2:] == ["approval.expired", "approval.decided"]
    assert refused(tools, "approval_withdraw", approval_id=answer["approval_id"])["code"] == "CONFLICT"
    assert tools("approval_status", quote_id=quote_id)["missing_roles"] == []
    tools("quote_send", quote_id=quote_id, expected_version=1)


@pytest.mark.parametrize("is_swept", [False, True])
def test_withdrawing_an_expired_request_approves_nothing_that_a_policy_requires(
    app: App, tools: Tools, dana: Tools, clock: StillEffects, is_swept: bool
):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id, "legal")
    [required] = answer["also_requested"]
    clock.advance(hours=4)
    assert sweep_if_due(app) is True if is_swept else True
    assert refused(tools, "approval_withdraw", approval_id=required["approval_id"])["code"] == "CONFLICT"
    assert tools("approval_withdraw", approval_id=answer["approval_id"])["quote_status"] == "draft"
    cannot_send(tools, quote_id)
    again = tools("approval_request", quote_id=quote_id, justification="x")
    assert (again["approver_role"], again["also_requested"]) == ("sales_manager", [])
    assert decide(dana, again)["quote_status"] == "approved"


def test_withdrawing_what_an_old_version_asked_approves_no_new_one(
    app: App, tools: Tools, dana: Tools, clock: StillEffects
):
    quote_id = priced_quote(tools)
    old = ask(tools, quote_id, "legal")
    decide(dana, old, "sales_manager")
    clock.advance(hours=4)
    sweep_if_due(app)
    revised(tools, quote_id, 18)
    assert ask(tools, quote_id)["status"] == "pending"
    assert refused(tools, "approval_withdraw", approval_id=old["approval_id"])["code"] == "CONFLICT"
    cannot_send(tools, quote_id, 2)


def test_a_request_is_withdrawn_once_and_only_the_last_one(app: App, tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    first = ask(tools, quote_id, "legal")
    tools("approval_withdraw", approval_id=first["approval_id"])
    clock.advance(minutes=1)
    second = ask(tools, quote_id, "legal")
    decide(dana, answer)
    assert refused(tools, "approval_withdraw", approval_id=first["approval_id"])["code"] == "CONFLICT"
    clock.advance(hours=4)
    assert refused(tools, "approval_withdraw", approval_id=first["approval_id"])["code"] == "CONFLICT"
    assert tools("approval_withdraw", approval_id=second["approval_id"])["quote_status"] == "approved"


@pytest.mark.parametrize("role", ["agent", "sales_manager", "admin"])
def test_an_agent_never_decides_whatever_its_role(app: App, tools: Tools, role: str):
    robot = person(app, "robot", role, kind="agent")
    answer = ask(tools, priced_quote(tools))
    assert refused_decision(robot, answer)["code"] == "FORBIDDEN"
    error = refused(robot, "approval_delegate", role="sales_manager", to="dana", until="2026-11-17T00:00:00Z")
    assert error["code"] == "FORBIDDEN"


def test_an_agent_does_not_decide_by_a_lent_role(app: App, tools: Tools, dana: Tools):
    robot = person(app, "robot", "deal_desk", kind="agent")
    lend = {"role": "sales_manager", "to": "robot", "until": "2026-11-17T00:00:00Z"}
    assert refused(dana, "approval_delegate", **lend)["details"]["field"] == "/to"
    assert refused_decision(robot, ask(tools, priced_quote(tools)))["code"] == "FORBIDDEN"


def test_an_old_fingerprint_decides_nothing_and_the_difference_is_told(tools: Tools, dana: Tools):
    quote_id = priced_quote(tools, 10)
    old = ask(tools, quote_id)
    decide(dana, old, word="reject")
    tools("quote_price", quote_id=quote_id, requested_discount_pct=18)
    new = ask(tools, quote_id)
    error = refused(dana, "approval_decide", **decision(new["approval_id"], old["fingerprint"]))
    details = error["details"]
    assert (error["code"], details["field"]) == ("CONFLICT", "/fingerprint")
    then = {"version": 1, "fingerprint": old["fingerprint"], "total": 1350, "discount_total": 150}
    now = {"version": 2, "fingerprint": new["fingerprint"], "total": 1230, "discount_total": 270}
    assert (details["then"], details["now"]) == (then, now)
    assert follow(dana, error)["pricing"]["total"] == 1230
    error = refused(dana, "approval_decide", **decision(old["approval_id"], old["fingerprint"]))
    assert (error["code"], error["details"]["status"]) == ("CONFLICT", "rejected")


def test_a_made_up_fingerprint_decides_nothing(tools: Tools, dana: Tools):
    answer = ask(tools, priced_quote(tools))
    error = refused(dana, "approval_decide", **decision(answer["approval_id"], "0" * 64))
    assert (error["code"], error["details"]["now"]["total"]) == ("CONFLICT", 1350)


def test_nothing_is_decided_after_its_time_though_nobody_swept(tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    answer = ask(tools, quote_id)
    clock.advance(hours=4)
    for word in ("approve", "reject"):
        assert refused_decision(dana, answer, word=word)["code"] == "CONFLICT"
    cannot_send(tools, quote_id)


def test_nothing_is_approved_at_a_price_that_is_no_longer_valid(tools: Tools, dana: Tools, clock: StillEffects):
    quote_id = priced_quote(tools)
    clock.advance(days=30, hours=18)
    answer = ask(tools, quote_id)
    clock.advance(hours=3)
    error = refused_decision(dana, answer)
    assert (error["code"], error["details"]["next_call"]["tool"]) == ("CONFLICT", "quote_revise")
    error = refused(tools, "approval_request", quote_id=quote_id, justification="x", approver_role="legal")
    assert follow(tools, error)["version"] == 2


def test_of_two_managers_who_race_one_decides(app: App, tools: Tools, dana: Tools):
    dora = person(app, "dora", "sales_manager")
    for _ in range(5):
        quote_id = priced_quote(tools)
        answer = ask(tools, quote_id)
        yes, no = (decision(answer["approval_id"], answer["fingerprint"], word) for word in ("approve", "reject"))
        place = the_winner(race_as([(dana, yes), (dora, no)]))
        assert status_of(tools, quote_id) == ("approved", "draft")[place]


def test_two_last_approvers_at_once_do_not_pass_each_other(app: App, tools: Tools):
    fay, lee = person(app, "fay", "finance"), person(app, "lee", "legal")
    vera = person(app, "vera", "vp_sales")
    for _ in range(5):
        quote_id = priced_quote(tools, 35, payment_terms="net_90")
        answer = ask(tools, quote_id, "vp_sales")
        decide(vera, answer)
        ids = {one["approver_role"]: one["approval_id"] for one in answer["also_requested"]}
        answers = race_as(
            [(who, decision(ids[role], answer["fingerprint"])) for who, role in ((fay, "finance"), (lee, "legal"))]
        )
        assert sorted(body["quote_status"] for body in answers) == ["approved", "pending_approval"]
        assert status_of(tools, quote_id) == "approved"


def test_a_decision_that_races_a_revision_never_approves_the_revision(app: App, tools: Tools, dana: Tools):
    for _ in range(5):
        quote_id = priced_quote(tools)
        answer = ask(tools, quote_id)
        revise = {"quote_id": quote_id, "expected_version": 1}
        race_calls(
            [
                (dana, "approval_decide", decision(answer["approval_id"], answer["fingerprint"])),
                (tools, "quote_revise", revise),
            ]
        )
        assert (status_of(tools, quote_id), tools("quote_get", quote_id=quote_id)["quote"]["version"]) == ("draft", 2)


def test_a_refused_decision_is_on_record(app: App, tools: Tools, clock: StillEffects):
    robot = person(app, "robot", "sales_manager", kind="agent")
    answer = ask(tools, priced_quote(tools))
    clock.advance(seconds=1)
    refused_decision(robot, answer)
    app.flush_audit()
    with app.database.reading() as connection:
        last = next(iter(audit.entries(connection, "main", newest=1)))
    assert (last.caller, last.operation, last.outcome, last.subject) == (
        "agent:robot",
        "approval_decide",
        "FORBIDDEN",
        answer["approval_id"],
    )


def test_only_approvals_set_a_quote_to_approved():
    """The moves that approve or reject are named where approvals decide, and where moves are defined."""
    owners = {"cpq/services/approvals/requests.py", "cpq/services/approvals/decisions.py"}
    owners |= {"cpq/services/quotes/transitions.py", "cpq/domain/quotes/lifecycle.py"}
    used = {
        str(path.relative_to(ROOT))
        for package in ("cpq", "mcp_facade")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bMove\.(APPROVE|REJECT)\b", path.read_text(encoding="utf-8"))
    }
    assert used == owners
    assert {state for (state, _), target in TRANSITIONS.items() if target == "approved"} == {"pending_approval"}
