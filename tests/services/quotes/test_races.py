"""Quotes under rivals: twins, racing moves, and processes that are killed halfway. Totals and keys hold: Q-11."""

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from cpq.app import App, audit
from cpq.base.settings import Settings
from tests.support import engine as support_engine
from tests.support.approvals import race_calls
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, assert_sound, new_quote, sent_quote, status_of, stored, watched_statements

TWINS = 16
PROCESSES = 4
CALL = {"account_id": ACME, "term_months": 12, "line_items": [SEATS, {"product_id": "prod_oil_screw", "quantity": 7}]}
WAIT_SECONDS = 120

PROCESS = multiprocessing.get_context("forkserver")
PROCESS.set_forkserver_preload([__name__])
"""New processes come from one that has imported everything and opened nothing."""

Ask = tuple[str, dict[str, Any]]


def race(tools: Tools, asks: Sequence[Ask]) -> list[dict[str, Any]]:
    """Send all at once from threads of their own; every answer, failed or not, in the order of the asks."""
    return race_calls([(tools, *ask) for ask in asks])


def work(settings: Settings, asks: list[Ask], channel: Connection) -> None:
    """One process: asks in turn, when told to start."""
    app = open_app(settings)
    tools = Tools(app).seller
    channel.send("ready")
    channel.recv()
    with support_engine.patient():
        channel.send([tools.reply(*ask).body for ask in asks])
    app.close()


def race_processes(settings: Settings, asks_of: Sequence[list[Ask]]) -> list[dict[str, Any]]:
    """The same with processes, which share nothing but the database."""
    pipes = [PROCESS.Pipe() for _ in asks_of]
    processes = [
        PROCESS.Process(target=work, args=(settings, asks, theirs))
        for asks, (_, theirs) in zip(asks_of, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    for ours, _ in pipes:
        assert receive(ours) == "ready"
    for ours, _ in pipes:
        ours.send("go")
    answers = [body for ours, _ in pipes for body in receive(ours)]
    for process in processes:
        process.join(WAIT_SECONDS)
        assert process.exitcode == 0
    return answers


def receive(channel: Connection) -> Any:
    assert channel.poll(WAIT_SECONDS), "the other process says nothing"
    return channel.recv()


def outcomes(answers: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(body["error"]["code"] if "error" in body else "OK" for body in answers)


def the_winner(answers: Sequence[dict[str, Any]]) -> int:
    """Which of them held; all others must have been told that somebody else was first."""
    assert outcomes(answers) == {"OK": 1, "CONFLICT": len(answers) - 1}
    return next(place for place, body in enumerate(answers) if "error" not in body)


def quotes(app: App) -> int:
    return support_engine.row_counts(app)["quote"]


def assert_one_quote_for_all(app: App, answers: Sequence[dict[str, Any]]) -> None:
    assert quotes(app) == len({body["quote_id"] for body in answers}) == 1
    assert Counter(body.pop("replayed") for body in answers) == {False: 1, True: len(answers) - 1}
    assert Counter(body.pop("outcome") for body in answers) == {"created": 1, "replayed": len(answers) - 1}
    assert all(body == answers[0] for body in answers)
    assert assert_sound(app) == 1


def test_q11_twins_of_many_threads_make_one_quote_and_get_one_answer(app: App):
    answers = race(Tools(app), [("quote_create", {**CALL, "idempotency_key": "twin"})] * TWINS)
    assert_one_quote_for_all(app, answers)


def test_q11_twins_of_many_processes_make_one_quote_for_each_key(store: Settings):
    asks: list[Ask] = [("quote_create", {**CALL, "idempotency_key": f"k{n}"}) for n in range(6)]
    answers = race_processes(store, [asks] * PROCESSES)
    app = open_app(store)
    assert quotes(app) == assert_sound(app) == 6
    told: dict[str, set[str]] = {}
    for body in answers:
        told.setdefault(body["idempotency_key"], set()).add(body["quote_id"])
    assert all(len(ids) == 1 for ids in told.values()), "two callers were told different things"
    assert Counter(body["replayed"] for body in answers) == {False: 6, True: 6 * (PROCESSES - 1)}
    with app.database.reading() as connection:
        assert audit.verify(connection, "main").broken_at is None
    app.close()


def test_q11_rivals_with_one_key_and_two_requests_get_one_quote_and_the_difference(app: App):
    other = {**CALL, "term_months": 24}
    asks: list[Ask] = [("quote_create", {**(CALL, other)[n % 2], "idempotency_key": "one"}) for n in range(TWINS)]
    answers = race(Tools(app), asks)
    assert outcomes(answers) == {"OK": TWINS // 2, "CONFLICT": TWINS // 2}
    assert {tuple(body["error"]["details"]["differing"]) for body in answers if "error" in body} == {("/term_months",)}
    assert quotes(app) == assert_sound(app) == 1


def test_q11_calls_that_fail_release_the_key_to_whoever_comes_next(app: App):
    wrong = {**CALL, "account_id": "acct_none", "idempotency_key": "one"}
    right = {**CALL, "idempotency_key": "one"}
    answers = race(Tools(app), [("quote_create", (wrong, right)[n % 2]) for n in range(TWINS)])
    codes = outcomes(answers[::2])
    assert set(codes) <= {"NOT_FOUND", "CONFLICT"}, (
        "a wrong request either fails by itself or meets the right one's key"
    )
    assert_one_quote_for_all(app, answers[1::2])


def test_writers_without_keys_each_make_a_quote(app: App):
    answers = race(Tools(app), [("quote_create", CALL)] * TWINS)
    assert len({body["quote_id"] for body in answers}) == TWINS == quotes(app) == assert_sound(app)


def test_of_rivals_who_saw_the_same_edit_exactly_one_changes_the_quote(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    same = {"quote_id": quote_id, "expected_version": 1, "expected_edit": 1}
    asks: list[Ask] = [
        ("quote_update", {**same, "notes": f"writer {n}", "add_lines": [{**SEATS, "quantity": n + 1}]})
        for n in range(TWINS)
    ]
    winner = the_winner(race(tools, asks))
    read = tools("quote_get", quote_id=quote_id)
    assert (read["quote"]["notes"], read["quote"]["edit"]) == (f"writer {winner}", 2)
    assert [line["quantity"] for line in read["line_items"]] == [150, winner + 1]
    assert assert_sound(app) == 1


def test_of_rival_processes_who_saw_the_same_edit_exactly_one_changes_the_quote(store: Settings):
    app = open_app(store)
    quote_id = new_quote(Tools(app))
    same = {"quote_id": quote_id, "expected_version": 1, "expected_edit": 1}
    answers = race_processes(store, [[("quote_update", {**same, "notes": str(n)})] for n in range(PROCESSES)])
    assert Tools(app)("quote_get", quote_id=quote_id)["quote"]["notes"] == str(the_winner(answers))
    app.close()


def test_changes_that_do_not_name_the_edit_all_happen_one_after_the_other(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    add = {"quote_id": quote_id, "expected_version": 1, "add_lines": [SEATS]}
    assert outcomes(race(tools, [("quote_update", add)] * 8)) == {"OK": 8}
    read = tools("quote_get", quote_id=quote_id)
    assert [line["line_id"] for line in read["line_items"]] == [f"{quote_id}-ql-{n}" for n in range(1, 10)]
    assert (read["quote"]["edit"], read["pricing"]["total"]) == (9, 9 * 1500)
    assert assert_sound(app) == 1


@pytest.mark.parametrize("repeat", range(3))
def test_of_accept_decline_and_cancel_exactly_one_holds(app: App, repeat: int):
    tools = Tools(app)
    quote_id = sent_quote(tools)
    names = ("quote_accept", "quote_decline", "quote_cancel")
    asks: list[Ask] = [(names[n % 3], {"quote_id": quote_id, "expected_version": 1}) for n in range(12)]
    winner = the_winner(race(tools.seller, asks))
    verdicts = {"quote_accept": "accepted", "quote_decline": "declined", "quote_cancel": "cancelled"}
    read = tools("quote_get", quote_id=quote_id)["quote"]
    assert (read["status"], read["edit"]) == (verdicts[asks[winner][0]], 4)
    assert assert_sound(app) == 1


@pytest.mark.parametrize("name", ["quote_send", "quote_cancel"])
def test_of_rivals_with_the_same_move_exactly_one_holds(app: App, name: str):
    tools = Tools(app)
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    the_winner(race(tools, [(name, {"quote_id": quote_id, "expected_version": 1})] * 8))
    assert tools("quote_get", quote_id=quote_id)["quote"]["edit"] == 3


def test_of_rivals_who_revise_exactly_one_opens_the_next_version(app: App):
    tools = Tools(app)
    quote_id = sent_quote(tools)
    the_winner(race(tools, [("quote_revise", {"quote_id": quote_id, "expected_version": 1})] * 8))
    assert tools("quote_get", quote_id=quote_id)["quote"]["version"] == 2 == assert_sound(app)


@pytest.mark.parametrize("repeat", range(3))
def test_either_the_old_version_is_accepted_or_the_new_one_is_sent(app: App, repeat: int):
    tools = Tools(app)
    quote_id = sent_quote(tools)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=5)
    accept: Ask = ("quote_accept", {"quote_id": quote_id, "expected_version": 1})
    send: Ask = ("quote_send", {"quote_id": quote_id, "expected_version": 2})
    winner = the_winner(race(tools.seller, [accept, send]))
    states = [status_of(tools, quote_id, version) for version in (1, 2)]
    assert states == [["accepted", "cancelled"], ["superseded", "sent"]][winner]
    assert_sound(app)


def test_of_rival_processes_who_decide_exactly_one_holds(store: Settings):
    app = open_app(store)
    tools = Tools(app)
    ids = [sent_quote(tools) for _ in range(5)]
    names = ["quote_accept", "quote_decline", "quote_cancel", "quote_accept"]
    asks_of = [[(name, {"quote_id": id_, "expected_version": 1}) for id_ in ids] for name in names]
    answers = race_processes(store, asks_of)
    for place in range(len(ids)):
        the_winner(answers[place :: len(ids)])
    assert assert_sound(app) == 5
    app.close()


def test_prices_that_race_leave_one_of_them_whole(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools, SEATS, {"product_id": "prod_oil_screw", "quantity": 7})
    asks: list[Ask] = [("quote_price", {"quote_id": quote_id, "requested_discount_pct": n}) for n in range(8)]
    answers = race(tools, asks)
    assert outcomes(answers) == {"OK": 8}
    read = tools("quote_get", quote_id=quote_id)["pricing"]
    assert read["total"] in [body["pricing"]["total"] for body in answers]
    assert assert_sound(app) == 1


STAGES = (
    "INTO idempotency",
    "INTO quote ",
    "INTO quote_version",
    "INTO quote_line",
    "INTO quote_pricing",
    "COMMIT",
    "ANSWER",
)
"""Where the process dies: before each of these statements, before the commit, and before the answer is passed on."""


def die_at(settings: Settings, stage: str, arguments: dict[str, Any], channel: Connection) -> None:
    """One process: makes a quote, says so at the stage, and waits there to be killed."""

    def halt(*_: Any) -> None:
        channel.send(stage)
        signal.pause()

    app = open_app(settings)
    if stage == "COMMIT":
        sa.event.listen(Engine, "commit", halt)
    with watched_statements(lambda statement: halt() if stage in statement else None):
        Tools(app)("quote_create", **arguments)
    halt()


@pytest.mark.parametrize("stage", STAGES)
def test_q11_a_process_killed_halfway_leaves_nothing_or_everything(store: Settings, stage: str):
    app = open_app(store)
    tools = Tools(app)
    before = stored(app)
    ours, theirs = PROCESS.Pipe()
    arguments = {**CALL, "idempotency_key": "k1"}
    process = PROCESS.Process(target=die_at, args=(store, stage, arguments, theirs))
    process.start()
    assert receive(ours) == stage
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(WAIT_SECONDS)
    assert process.exitcode == -signal.SIGKILL
    is_done = stage == "ANSWER"
    assert quotes(app) == is_done
    assert (stored(app) == before) is not is_done
    again = tools("quote_create", **arguments)
    assert again["replayed"] is is_done
    assert quotes(app) == assert_sound(app) == 1
    assert tools("quote_create", **arguments)["quote_id"] == again["quote_id"]
    app.close()


def make_many(settings: Settings, keys: list[str], channel: Connection) -> None:
    """One process: makes a quote under each key and reports each, until it is killed."""
    tools = Tools(open_app(settings))
    for key in keys:
        channel.send(tools("quote_create", **CALL, idempotency_key=key)["quote_id"])


def test_q11_what_a_killed_process_had_reported_is_there_and_the_rest_can_be_repeated(store: Settings):
    ours, theirs = PROCESS.Pipe()
    keys = [f"k{n}" for n in range(40)]
    process = PROCESS.Process(target=make_many, args=(store, keys, theirs))
    process.start()
    reported = [receive(ours) for _ in range(7)]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(WAIT_SECONDS)
    app = open_app(store)
    tools = Tools(app)
    answers = [tools("quote_create", **CALL, idempotency_key=key)["quote_id"] for key in keys]
    assert answers[:7] == reported
    assert len(set(answers)) == quotes(app) == assert_sound(app) == len(keys)
    app.close()
