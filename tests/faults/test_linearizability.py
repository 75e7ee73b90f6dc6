"""Histories of eight agents on few quotes are linearizable, and the checker finds the ones that are not."""

import random
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest

from cpq.base.settings import Settings
from tests.faults import invariants
from tests.faults.agents import PROCESS
from tests.faults.histories import CONFLICT, Operation, violations
from tests.support.engine import Tools, open_app, patient
from tests.support.quotes import new_quote

AGENTS = 8
QUOTES = 4
WAIT_SECONDS = 3600


def agent(settings: Settings, ids: list[str], number: int, count: int, channel: Connection) -> None:
    """One process: reads and changes quotes by chance; half of its changes insist on the edit that it saw last."""
    app, chance = open_app(settings), random.Random(number)
    tools = Tools(app)
    seen: dict[str, int] = {}
    history = []
    channel.send("ready")
    channel.recv()
    with patient():
        for step in range(count):
            quote_id = chance.choice(ids)
            expected = seen.get(quote_id) if chance.random() < 0.5 else None
            is_change = chance.random() < 0.6
            began = time.monotonic()
            if is_change:
                text = f"{number}-{step}"
                insist = {} if expected is None else {"expected_edit": expected}
                reply = tools.reply(
                    "quote_update", {"quote_id": quote_id, "expected_version": 1, "notes": text, **insist}
                )
                made = Operation(quote_id, "change", began, time.monotonic(), reply.code, 0, text, expected)
                if not reply.is_error:
                    made = replace(made, edit=reply.body["edit"])
            else:
                reply = tools.reply("quote_get", {"quote_id": quote_id})
                found = reply.body["quote"]
                edit, text = found["edit"], found["notes"] or ""
                made = Operation(quote_id, "read", began, time.monotonic(), reply.code, edit, text)
            history.append(made)
            if made.code == "OK":
                seen[quote_id] = made.edit
    channel.send(history)
    app.close()


def history_of(settings: Settings, count: int) -> tuple[list[Operation], dict[str, tuple[int, str]]]:
    """What eight agents asked and were answered, and what is stored in the end."""
    app = open_app(settings)
    tools = Tools(app)
    ids = [new_quote(tools) for _ in range(QUOTES)]
    pipes = [PROCESS.Pipe() for _ in range(AGENTS)]
    processes = [
        PROCESS.Process(target=agent, args=(settings, ids, number, count // AGENTS, theirs))
        for number, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for word in ("ready", None):
        for ours, _ in pipes:
            if word:
                assert ours.poll(WAIT_SECONDS)
                assert ours.recv() == word
            else:
                ours.send("go")
    history = []
    for ours, _ in pipes:
        assert ours.poll(WAIT_SECONDS)
        history += ours.recv()
    for process in processes:
        process.join(WAIT_SECONDS)
        assert process.exitcode == 0
    final = {}
    for id_ in ids:
        stored = tools("quote_get", quote_id=id_)["quote"]
        final[id_] = (stored["edit"], stored["notes"] or "")
    assert invariants.violations(app) == []
    app.close()
    return history, final


def assert_linearizable(settings: Settings, count: int) -> None:
    history, final = history_of(settings.model_copy(update={"rate_limit_per_minute": 0}), count)
    codes = Counter((one.kind, one.code) for one in history)
    print(f"{len(history)} operations: {dict(codes)}")
    assert codes.keys() <= {("change", "OK"), ("change", CONFLICT), ("read", "OK")}
    assert list(violations(history, final)) == []


def test_a_history_of_eight_agents_is_linearizable(store: Settings):
    assert_linearizable(store, 240)


@pytest.mark.proof
def test_a_long_history_of_eight_agents_is_linearizable(store: Settings):
    assert_linearizable(store, 12_000)


def change(edit: int, began: float, ended: float, text: str = "", expected: int | None = None) -> Operation:
    return Operation("Q", "change", began, ended, "OK", edit, text or f"t{edit}", expected)


def read(edit: int, began: float, ended: float, text: str = "") -> Operation:
    return Operation("Q", "read", began, ended, "OK", edit, text or f"t{edit}")


REFUSED = Operation("Q", "change", 5, 6, CONFLICT, 0, "x", 3)


@pytest.mark.parametrize(
    ("problem", "history"),
    [
        ("", [change(2, 0, 1), change(3, 0, 2), read(2, 0, 2), read(3, 2.5, 3)]),
        ("given twice", [change(2, 0, 1), change(2, 0, 1), change(3, 2, 3)]),
        ("nobody was told", [change(3, 0, 1)]),
        ("is stored", [change(2, 0, 1), change(3, 2, 3, "another")]),
        ("a read saw", [change(2, 0, 1), read(2, 0, 1, "t3"), change(3, 2, 3)]),
        ("a read saw 't9'", [change(2, 0, 1), change(3, 2, 3), read(9, 4, 5)]),
        ("a read got edit 2 after edit 3", [change(2, 0, 1), change(3, 2, 3), read(2, 4, 5)]),
        ("a change got edit 2 after edit 3", [change(3, 0, 1), change(2, 2, 3)]),
        ("insisted on edit 1 became 3", [change(2, 0, 1), change(3, 0, 2, expected=1)]),
        ("nothing newer had begun", [change(2, 0, 1), change(3, 2, 3), REFUSED]),
    ],
)
def test_what_no_order_explains_is_found(problem: str, history: list[Operation]):
    found = list(violations(history, {"Q": (3, "t3")}))
    assert bool(found) is bool(problem), found
    assert any(problem in one for one in found) or not problem, found
