"""A deal is decided by a deliberate act: confirmed with its price in sight, and undone within ten seconds."""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.services import approvals
from cpq.services.approvals import decisions
from cpq.services.approvals.held_decisions import UNDO_SECONDS
from cpq.storage.schema import tables
from tests.support.approvals import ask, priced_quote, revoke_all
from tests.support.console import Console, fields, form_token, send
from tests.support.engine import StillEffects
from tests.support.quotes import stored


def asked_quote(console: Console, discount: int = 10) -> str:
    quote_id = priced_quote(console.tools, discount)
    ask(console.tools, quote_id)
    return quote_id


def confirm(visitor: Any, quote_id: str, decision: str = "approve", comment: str = "", **changed: str) -> str:
    """The address of the page of a decision that was confirmed and is not in effect yet."""
    shown = fields(visitor.get(f"/console/quotes/{quote_id}").text)
    data = {**shown, "decision": decision, "comment": comment, **changed}
    answer = visitor.post(f"/console/quotes/{quote_id}/decide", data=data)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def undo(visitor: Any, address: str) -> Any:
    return visitor.post(f"{address}/undo", data={"form_token": token_of(visitor)})


def token_of(visitor: Any) -> str:
    return form_token(visitor.get("/console/accounts").text)


def status(console: Console, quote_id: str) -> str:
    return str(console.tools("approval_status", quote_id=quote_id)["current_status"])


def test_the_confirmation_repeats_account_total_and_version_and_stores_nothing(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    page = dana.get(f"/console/quotes/{quote_id}").text
    assert "<textarea" not in page, "the comment belongs to the confirmation"
    before = stored(console.app)
    number = console.tools("quote_get", quote_id=quote_id)["quote"]["number"]
    for word in ("approve", "change", "reject"):
        address = re.search(rf'href="([^"]*/decide\?[^"]*decision={word})"', page)
        assert address
        confirmation = dana.get(html.unescape(address[1]))
        assert confirmation.status_code == 200
        text = re.sub(r"<[^>]+>|\s+", " ", confirmation.text)
        text = re.sub(r"\s+", " ", text)
        for shown in ("Total 1,350.00 USD", "Account Acme Corp", f"Version 1 of {number}", "Back, decide nothing"):
            assert shown in text, (word, shown)
        assert "You have 10 seconds to undo it." in text
        assert 'name="comment"' in confirmation.text
    assert stored(console.app) == before
    assert status(console, quote_id) == "pending_approval"


def test_nothing_is_decided_before_the_ten_seconds_are_over(console: Console, clock: StillEffects):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id, "approve", "Go.")
    assert "takes effect in" in dana.get(address).text
    clock.advance(seconds=UNDO_SECONDS - 1)
    assert dana.get(address).status_code == 200
    approvals.take_due(console.app)
    assert status(console, quote_id) == "pending_approval"
    assert "takes effect in 1 second" in dana.get(f"/console/quotes/{quote_id}").text
    clock.advance(seconds=1)
    assert dana.get(address).headers["location"] == f"/console/quotes/{quote_id}?done=approved"
    assert status(console, quote_id) == "approved"
    record = console.tools("approval_history", quote_id=quote_id)["items"][0]
    assert (record["decided_by"], record["comment"]) == ("human:dana", "Go.")


@pytest.mark.parametrize("decision", ["approve", "reject", "change"])
def test_an_undone_decision_leaves_the_request_open(console: Console, clock: StillEffects, decision: str):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id, decision, "Because.")
    assert undo(dana, address).status_code == 303
    assert undo(dana, address).status_code == 303, "twice is as once"
    clock.advance(minutes=1)
    assert approvals.take_due(console.app) is False
    back = dana.get(address).headers["location"]
    assert "Undone: nothing was decided." in dana.get(back).text
    assert status(console, quote_id) == "pending_approval"
    assert console.tools("approval_history", quote_id=quote_id)["items"][0]["votes"] == []
    assert send(console, dana, quote_id, "approve").headers["location"].endswith("done=approved")


def test_a_closed_page_neither_loses_nor_hides_the_decision(console: Console, clock: StillEffects):
    """The page is never opened again: the queue shows the decision, and the server takes it."""
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id)
    queue = dana.get("/console/queue").text
    assert address in queue
    assert "takes effect in" in queue
    clock.advance(seconds=UNDO_SECONDS)
    assert approvals.take_due(console.app) is True
    assert approvals.take_due(console.app) is False
    assert status(console, quote_id) == "approved"
    assert dana.get(address).headers["location"].endswith("done=approved")


def test_after_it_took_effect_it_cannot_be_undone(console: Console, clock: StillEffects):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id)
    clock.advance(seconds=UNDO_SECONDS)
    approvals.take_due(console.app)
    late = undo(dana, address)
    assert late.status_code == 409
    assert "too late to undo" in late.text
    assert status(console, quote_id) == "approved"


def test_a_price_that_changed_meanwhile_is_not_approved(console: Console, clock: StillEffects):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id)
    console.tools("quote_revise", quote_id=quote_id, expected_version=1)
    console.tools("quote_price", quote_id=quote_id, requested_discount_pct=15)
    ask(console.tools, quote_id)
    clock.advance(seconds=UNDO_SECONDS)
    approvals.take_due(console.app)
    assert status(console, quote_id) == "pending_approval"
    page = dana.get(address).text
    assert "It had no effect" in page
    assert "Nothing was decided by you." in page
    assert "had no effect" in dana.get("/console/queue").text
    assert approvals.take_due(console.app) is False, "a failure is final"


def outcomes(console: Console, caller: str) -> list[str]:
    """The outcomes of the decisions of a caller on record."""
    console.app.flush_audit()
    record = tables.audit_entry.c
    query = sa.select(record.outcome).where(record.operation == "approval_decide", record.caller == caller)
    with console.app.database.reading() as connection:
        return list(connection.scalars(query))


@pytest.mark.parametrize("left", [(), ("sales_rep",)])
def test_who_lost_the_role_meanwhile_decides_nothing_and_it_is_on_record(
    console: Console, clock: StillEffects, left: tuple[str, ...]
):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    confirm(dana, quote_id)
    revoke_all(console.app, "dana")
    console.grant("dana", *left)
    clock.advance(seconds=UNDO_SECONDS)
    approvals.take_due(console.app)
    assert status(console, quote_id) == "pending_approval"
    assert approvals.take_due(console.app) is False
    assert outcomes(console, "human:dana") == ["FORBIDDEN"]
    if left:
        for page in ("/console/queue", f"/console/quotes/{quote_id}"):
            text = dana.get(page).text
            assert "had no effect" in text, page
            assert "You no longer have a role that decides." in text


def test_a_decision_in_the_last_seconds_of_a_request_counts(console: Console, clock: StillEffects):
    """What the user saw: confirmed two seconds before the time limit, and "the request has expired"."""
    dana = console.signed_in("dana", "sales_manager")
    taken, undone = asked_quote(console), asked_quote(console)
    at = console.tools("approval_status", quote_id=taken)["pending_requests"][0]["expires_at"]
    clock.advance(seconds=(datetime.fromisoformat(at) - clock.now()).total_seconds() - 2)
    dana = console.signed_in("dana")
    confirm(dana, taken)
    address = confirm(dana, undone)
    clock.advance(seconds=UNDO_SECONDS - 1)
    approvals.sweep_if_due(console.app)
    assert status(console, taken) == "pending_approval", "the time limit is over, and an answer is under way"
    assert undo(dana, address).status_code == 303
    clock.advance(seconds=1)
    approvals.take_due(console.app)
    assert status(console, taken) == "approved"
    clock.advance(minutes=1)
    assert status(console, undone) == "none", "an undone answer is no answer"
    assert len(console.tools("approval_status", quote_id=undone)["expired_requests"]) == 1


def test_a_decision_that_the_server_took_too_late_is_named_on_the_page(console: Console, clock: StillEffects):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    confirm(dana, quote_id)
    clock.advance(days=40)
    approvals.take_due(console.app)
    assert outcomes(console, "human:dana") == ["CONFLICT"]
    page = console.signed_in("dana").get(f"/console/quotes/{quote_id}").text
    assert "Your approval had no effect.</strong> The request has expired." in page


def test_a_decision_that_fails_does_not_stop_the_others(
    console: Console, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    dana, made = console.signed_in("dana", "sales_manager"), []
    for _ in range(3):
        made.append(asked_quote(console))
        confirm(dana, made[-1])
        clock.advance(seconds=1)
    clock.advance(seconds=UNDO_SECONDS)
    decide = decisions.decide

    def broken(tx: Tx, approval_id: str, *args: Any, **options: Any) -> Any:
        result = decide(tx, approval_id, *args, **options)
        return 1 / 0 if result["quote_id"] == made[1] else result

    with monkeypatch.context() as patch:
        patch.setattr("cpq.services.approvals.decisions.decide", broken)
        with pytest.raises(ZeroDivisionError):
            approvals.take_due(console.app)
    assert [status(console, one) for one in made] == ["approved", "pending_approval", "approved"]
    approvals.take_due(console.app)
    assert status(console, made[1]) == "approved", "nothing of the failed attempt was stored"


def test_of_two_people_in_the_same_ten_seconds_the_first_decides(console: Console, clock: StillEffects):
    dana, dirk = (console.signed_in(name, "sales_manager") for name in ("dana", "dirk"))
    quote_id = asked_quote(console)
    first = confirm(dana, quote_id)
    clock.advance(seconds=1)
    second = confirm(dirk, quote_id, "reject", "No.")
    clock.advance(seconds=UNDO_SECONDS)
    assert dana.get(first).headers["location"].endswith("done=approved")
    assert " dana has approved it already" in dirk.get(second).text
    assert status(console, quote_id) == "approved"


def test_the_first_decides_even_if_the_page_of_the_second_is_opened_first(console: Console, clock: StillEffects):
    dana, dirk = (console.signed_in(name, "sales_manager") for name in ("dana", "dirk"))
    quote_id = asked_quote(console)
    first = confirm(dana, quote_id)
    clock.advance(seconds=1)
    second = confirm(dirk, quote_id, "reject", "No.")
    clock.advance(seconds=UNDO_SECONDS)
    assert " dana has approved it already" in dirk.get(second).text
    assert dana.get(first).headers["location"].endswith("done=approved")
    assert status(console, quote_id) == "approved"


def test_of_more_decisions_than_are_taken_at_once_the_oldest_come_first(
    console: Console, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cpq.services.approvals.held_decisions._DUE_MAX", 1)
    quote_id = asked_quote(console)
    for name, decision, comment in (("dana", "approve", ""), ("dirk", "reject", "No.")):
        confirm(console.signed_in(name, "sales_manager"), quote_id, decision, comment)
        clock.advance(seconds=1)
    clock.advance(seconds=UNDO_SECONDS)
    approvals.take_due(console.app)
    assert status(console, quote_id) == "approved"


def test_a_form_that_is_sent_twice_holds_one_decision(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    quote_id = asked_quote(console)
    shown = fields(dana.get(f"/console/quotes/{quote_id}").text)
    form = {**shown, "form_key": "form-1", "decision": "approve", "comment": ""}
    first = dana.post(f"/console/quotes/{quote_id}/decide", data=form).headers["location"]
    assert "/decide?" not in dana.get(f"/console/quotes/{quote_id}").text
    again = dana.post(f"/console/quotes/{quote_id}/decide", data=form)
    assert again.headers["location"] == first
    other = dana.post(f"/console/quotes/{quote_id}/decide", data={**form, "form_key": "form-2"})
    assert other.status_code == 409
    assert "You have already decided" in other.text


def test_undo_and_effect_at_once_leave_one_outcome(console: Console, clock: StillEffects):
    """The race that counts: the last moment of ten seconds, on both databases, many times."""
    dana = console.signed_in("dana", "sales_manager")
    outcomes = set()
    for _ in range(6):
        quote_id = asked_quote(console)
        address = confirm(dana, quote_id)
        token = token_of(dana)
        clock.advance(seconds=UNDO_SECONDS)
        with ThreadPoolExecutor(2) as pool:
            taken = pool.submit(approvals.take_due, console.app)
            undone = pool.submit(dana.post, f"{address}/undo", data={"form_token": token})
            taken.result()
            answer = undone.result()
        result = status(console, quote_id)
        assert (answer.status_code, result) in ((303, "pending_approval"), (409, "approved"))
        outcomes.add(result)
    assert outcomes


def test_a_decision_belongs_to_its_maker(console: Console):
    dana, dirk = (console.signed_in(name, "sales_manager") for name in ("dana", "dirk"))
    quote_id = asked_quote(console)
    address = confirm(dana, quote_id)
    assert dirk.get(address).status_code == 404
    assert undo(dirk, address).status_code == 404
    assert address not in dirk.get("/console/queue").text


def test_the_next_in_the_queue_follows_a_decision(console: Console, clock: StillEffects):
    dana = console.signed_in("dana", "sales_manager")
    made = []
    for _ in range(3):
        made.append(asked_quote(console))
        clock.advance(seconds=1)
    first, second, third = made
    address = confirm(dana, first)
    follow = f"/console/queue/next?after={first}"
    assert html.escape(follow) in dana.get(address).text
    assert dana.get(follow).headers["location"] == f"/console/quotes/{second}"
    confirm(dana, second)
    assert dana.get(f"/console/queue/next?after={second}").headers["location"] == f"/console/quotes/{third}"
    confirm(dana, third, "reject", "No.")
    assert dana.get(f"/console/queue/next?after={third}").headers["location"] == "/console/queue"
