"""`cpq events` at a terminal: what happened, who has heard of it, and once more."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpq.base.settings import read_settings
from tests.cli.conftest import Run, query
from tests.support.engine import Tools, open_app
from tests.support.quotes import sent_quote
from tests.support.webhook_receiver import SECRET, Receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Receiver]:
    """A receiver that the settings name."""
    with Receiver() as receiver:
        monkeypatch.setenv("CPQ_WEBHOOKS", f"crm={receiver.url}")
        monkeypatch.setenv("CPQ_WEBHOOK_SECRET", SECRET)
        yield receiver


def send_one(home: Path) -> tuple[str, str]:
    """A quote that was sent, and the event that tells of it."""
    app = open_app(read_settings(home=home))
    quote_id = sent_quote(Tools(app))
    app.close()
    return quote_id, query(home, "SELECT id FROM event WHERE subject = ?", quote_id)[0][0]


def test_an_event_is_listed_delivered_and_shown(home: Path, receiver: Receiver, run: Run):
    quote_id, event_id = send_one(home)
    listed = run("events", "list").out
    assert all(part in listed for part in (event_id, "quote.sent", quote_id, "1 waiting"))
    ran = run("events", "deliver")
    assert (ran.code, ran.err) == (0, "")
    assert "delivered" in ran.out
    assert [one.id for one in receiver.received] == [event_id]
    assert run("events", "deliver").out == "Nothing is due.\n"
    shown = run("events", "show", event_id).out
    assert all(part in shown for part in ("quote.sent", "crm", "delivered", '"currency":"USD"'))


def test_json_has_everything(home: Path, receiver: Receiver, run: Run):
    quote_id, event_id = send_one(home)
    (item,) = json.loads(run("events", "list", "--json").out)["items"]
    assert (item["id"], item["subject"], item["number"], item["data"]["total"]) == (event_id, quote_id, 1, 1500)
    (made,) = json.loads(run("events", "deliver", "--json").out)["attempts"]
    assert made == {"event_id": event_id, "webhook": "crm", "number": 1, "status": "delivered", "answer": "200"}
    shown = json.loads(run("events", "show", event_id, "--json").out)
    assert [(one["webhook"], one["status"], one["due_at"]) for one in shown["deliveries"]] == [
        ("crm", "delivered", None)
    ]


def test_an_event_that_was_not_taken_fails_the_command_and_is_found_by_its_state(
    home: Path, receiver: Receiver, run: Run
):
    receiver.plan = lambda _: "500"
    _, event_id = send_one(home)
    ran = run("events", "deliver")
    assert ran.code == 1
    assert "500 no [31mway" in ran.out
    assert event_id in run("events", "list", "--status", "waiting").out
    assert run("events", "list", "--status", "failed").out == "There are no such events.\n"


def test_a_replay_delivers_once_more(home: Path, receiver: Receiver, run: Run):
    _, event_id = send_one(home)
    run("events", "deliver")
    assert run("events", "replay", event_id).out == f"Event {event_id} waits for crm.\n"
    assert run("events", "deliver").code == 0
    assert [one.id for one in receiver.received] == [event_id, event_id]
    assert query(home, "SELECT subject FROM audit_entry WHERE operation = 'event_replay'") == [(event_id,)]


def test_only_the_events_of_one_quote_are_listed_when_asked(home: Path, receiver: Receiver, run: Run):
    (first, first_event), (_, second_event) = send_one(home), send_one(home)
    listed = run("events", "list", "--quote", first).out
    assert first_event in listed
    assert second_event not in listed


def test_a_quote_that_expired_is_told_by_deliver(home: Path, receiver: Receiver, run: Run):
    quote_id, _ = send_one(home)
    query(home, "UPDATE quote SET expires_at = '2026-01-01T00:00:00.000000Z' WHERE id = ?", quote_id)
    assert run("audit", "baseline", "--accept", quote_id).code == 0
    assert json.loads(run("events", "deliver", "--json").out)["expired"] == 1
    assert [one.event["type"] for one in receiver.received] == ["quote.sent", "quote.expired"]


def test_without_a_webhook_events_are_kept_and_the_way_is_told(home: Path, run: Run):
    _, event_id = send_one(home)
    assert "no webhook" in run("events", "list").out
    assert "No webhook was configured" in run("events", "show", event_id).out
    for command in (("deliver",), ("replay", event_id)):
        ran = run("events", *command)
        assert ran.code == 1
        assert "CPQ_WEBHOOKS" in ran.err


def test_an_unknown_event_is_not_found(home: Path, receiver: Receiver, run: Run):
    for command in ("show", "replay"):
        ran = run("events", command, "ev-none")
        assert (ran.code, "There is no event 'ev-none'." in ran.err) == (1, True)
