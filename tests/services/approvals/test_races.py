"""Approvals under rivals: of many decisions one holds, and nothing else that happens slips between."""

from collections import Counter
from collections.abc import Iterator

import pytest

from cpq.app import App
from cpq.base.settings import Settings
from tests.services.quotes.test_races import the_winner
from tests.support.approvals import ask, decision, person, priced_quote, race_as, race_calls
from tests.support.engine import Tools, open_app
from tests.support.quotes import assert_sound, status_of

RIVALS = 50
PEOPLE = ("ann", "bob", "cy", "dee", "eve")


@pytest.fixture
def app(store: Settings) -> Iterator[App]:
    app = open_app(store.model_copy(update={"rate_limit_per_minute": 0}))
    yield app
    app.close()


def decide_at_once(app: App, rounds: int) -> None:
    """In every round 50 people and twins of them say yes or no at once; one is heard, the others are told of it."""
    tools = Tools(app)
    people = [person(app, name, "sales_manager") for name in PEOPLE]
    won: Counter[str] = Counter()
    for _ in range(rounds):
        quote_id = priced_quote(tools)
        answer = ask(tools, quote_id)
        calls = [
            (
                people[n % len(people)],
                decision(answer["approval_id"], answer["fingerprint"], ("approve", "reject")[n % 2]),
            )
            for n in range(RIVALS)
        ]
        answers = race_as(calls)
        place = the_winner(answers)
        caller = calls[place][0].principal.caller
        losers = [body["error"]["details"] for n, body in enumerate(answers) if n != place]
        assert {one["decided_by"] for one in losers} == {caller}
        assert {one["decided_at"] for one in losers} == {answers[place]["decided_at"]}
        assert status_of(tools, quote_id) == ("approved", "draft")[place % 2]
        [record] = tools("approval_history", quote_id=quote_id)["items"]
        assert [vote["by"] for vote in record["votes"]] == [caller]
        won[record["status"]] += 1
        if record["status"] == "approved":  # Open quotes of an account count together, and need others in the end.
            tools("quote_cancel", quote_id=quote_id, expected_version=1)
    assert sum(won.values()) == rounds
    assert assert_sound(app) == rounds


def test_of_fifty_decisions_at_once_exactly_one_holds(app: App):
    decide_at_once(app, rounds=10)


@pytest.mark.proof
def test_of_fifty_decisions_at_once_exactly_one_holds_two_hundred_times(app: App):
    decide_at_once(app, rounds=200)


def test_a_round_is_decided_whatever_else_happens_to_the_quote(app: App):
    tools, ann = Tools(app), person(app, "ann", "sales_manager")
    for _ in range(10):
        quote_id = priced_quote(tools)
        answer = ask(tools, quote_id)
        here = {"quote_id": quote_id, "expected_version": 1}
        yes = decision(answer["approval_id"], answer["fingerprint"])
        answers = race_calls(
            [
                (ann, "approval_decide", yes),
                (tools, "quote_cancel", here),
                (tools, "approval_withdraw", {"approval_id": answer["approval_id"]}),
                (tools, "quote_send", here),
                (tools, "approval_request", {"quote_id": quote_id, "justification": "x", "approver_role": "legal"}),
            ]
        )
        assert not [body for body in answers if "error" in body and body["error"]["code"] != "CONFLICT"]
        history = tools("approval_history", quote_id=quote_id)["items"]
        granted = {one["approver_role"] for one in history if one["status"] == "approved"}
        assert tools("quote_get", quote_id=quote_id, version=1)["quote"]["status"] in ("cancelled", "sent")
        if "error" not in answers[3]:
            assert "sales_manager" in granted
    assert_sound(app)
