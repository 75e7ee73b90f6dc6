"""Events among several processes: no attempt is made twice at once, and a killed deliverer's work is taken over."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.base.clock import Effects
from cpq.base.settings import Settings
from cpq.services import quotes
from cpq.services.events import EventName, delivery
from cpq.services.events.claims import CLAIM_SECONDS, Status
from cpq.storage.schema.tables import event
from tests.support import engine
from tests.support.engine import Tools, bare_environment, open_app
from tests.support.quotes import sent_quote
from tests.support.webhook_receiver import PATIENCE_SECONDS, SECRET, Receiver

PROCESSES = 3
QUOTES = 6


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def hooked(store: Settings, receiver: Receiver) -> Settings:
    return store.model_copy(update={"webhooks": f"crm={receiver.url}", "webhook_secret": SECRET})


class Later(engine.RunningEffects):
    """Some time ahead of the clock of the tests."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


def deliver(settings: Settings) -> None:
    """One process: delivers until nothing is due. Whoever delivers an event goes on, so none is left behind."""
    app = open_app(settings)
    with engine.patient():
        delivery.deliver_due(app)
    app.close()


def sweep_later(settings: Settings) -> None:
    app = open_app(settings, Later(timedelta(days=40)))
    with engine.patient():
        quotes.sweep(app)
    app.close()


def start(target, settings: Settings) -> multiprocessing.context.SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(settings,))
    process.start()
    return process


def finish(processes) -> None:
    for process in processes:
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0


def test_many_deliverers_deliver_each_event_once_and_in_order(hooked: Settings, receiver: Receiver):
    app = open_app(hooked)
    tools = Tools(app)
    made = [sent_quote(tools) for _ in range(QUOTES)]
    for quote_id in made:
        tools.seller("quote_decline", quote_id=quote_id, expected_version=1)
    finish([start(deliver, hooked) for _ in range(PROCESSES)])
    assert Counter(one.id for one in receiver.received).most_common(1)[0][1] == 1
    assert len(receiver.received) == 2 * QUOTES
    assert receiver.met_itself == []
    for quote_id in made:
        numbers = [one.event["number"] for one in receiver.received if one.event["subject"] == quote_id]
        assert numbers == [1, 2]
    app.close()


def test_what_a_killed_deliverer_had_claimed_is_taken_over(hooked: Settings, receiver: Receiver):
    app = open_app(hooked)
    quote_id = sent_quote(Tools(app))
    Tools(app).seller("quote_decline", quote_id=quote_id, expected_version=1)
    receiver.plan = lambda _: "hang"
    victim = start(deliver, hooked)
    receiver.wait_for(1)
    os.kill(victim.pid or 0, signal.SIGKILL)
    victim.join(PATIENCE_SECONDS)
    receiver.plan = lambda _: "200"
    assert delivery.deliver_due(app) == [], "the claim still holds"
    app.close()
    app = open_app(hooked, Later(timedelta(seconds=CLAIM_SECONDS + 1)))
    made = delivery.deliver_due(app)
    assert [(one.number, one.status) for one in made] == [(2, Status.DELIVERED), (1, Status.DELIVERED)]
    assert [one.event["type"] for one in receiver.received] == ["quote.sent", "quote.sent", "quote.declined"]
    assert receiver.received[0].body == receiver.received[1].body
    app.close()


def test_many_sweeps_at_once_tell_each_quote_once(hooked: Settings):
    app = open_app(hooked)
    tools = Tools(app)
    made = sorted(sent_quote(tools) for _ in range(QUOTES))
    finish([start(sweep_later, hooked) for _ in range(PROCESSES)])
    with app.database.reading() as connection:
        told = sa.select(event.c.subject).where(event.c.name == EventName.QUOTE_EXPIRED)
        assert sorted(connection.scalars(told)) == made
    app.close()


def test_a_server_delivers_while_it_serves_and_ends_cleanly(hooked: Settings, receiver: Receiver, real_clock: Effects):
    app = open_app(hooked, real_clock)
    quote_id = sent_quote(Tools(app))
    app.close()
    environment = {
        **bare_environment(),
        "CPQ_HOME": str(hooked.home),
        "CPQ_DATABASE_URL": hooked.database_url,
        "CPQ_WEBHOOKS": hooked.webhooks,
        "CPQ_WEBHOOK_SECRET": SECRET,
    }
    command = [sys.executable, "-m", "mcp_facade"]
    pipe, root = subprocess.PIPE, Path(__file__).parents[3]
    with subprocess.Popen(command, env=environment, cwd=root, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        receiver.wait_for(1)
        _, said = server.communicate(timeout=PATIENCE_SECONDS)
    assert (server.returncode, b"Traceback" in said) == (0, False)
    assert [one.event["subject"] for one in receiver.received] == [quote_id]
    assert SECRET.encode() not in said
