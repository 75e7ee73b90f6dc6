"""Every event reaches every webhook at least once, in the order of its quote, whatever the receiver does meanwhile."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import ENGINE, OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base import background, tenant_settings
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.services import events, quotes
from cpq.services.events import EventName, claims, delivery, http_post, signing
from cpq.services.events.claims import CLAIM_SECONDS, Status
from cpq.services.quotes import expiry
from cpq.storage.schema.tables import event, event_delivery, quote
from tests.support import engine
from tests.support.engine import Tools, add_tenant, open_app
from tests.support.quotes import ACME, assert_sound, new_quote, sent_quote, status_of
from tests.support.tenants import write_in
from tests.support.webhook_receiver import KEY, SECRET, Delivery, Receiver

BAD_ANSWERS = (
    "500",
    "redirect",
    "close",
    "garbage",
    "endless line",
    "endless body",
    "hang",
    "drip",
    "late",
    "away",
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def hooked(store: Settings, receiver: Receiver) -> Settings:
    """A store whose events go to the receiver."""
    return store.model_copy(update={"webhooks": f"crm={receiver.url}", "webhook_secret": SECRET})


@pytest.fixture
def tools(hooked: Settings, clock: engine.StillEffects) -> Iterator[Tools]:
    app = open_app(hooked, clock)
    yield Tools(app)
    app.close()


def deliveries(app: App) -> list[Any]:
    with app.database.reading() as connection:
        ordered = sa.select(event_delivery).order_by(event_delivery.c.subject, event_delivery.c.number)
        return list(connection.execute(ordered))


def to_next_due(app: App, clock: engine.StillEffects) -> timedelta:
    """Move the clock to when the next delivery is due; by how much. Only the first that waits of a quote can be."""
    first = {row.subject: row.due_at for row in reversed(deliveries(app)) if row.status == "waiting"}
    pause = max(min(first.values()) - clock.now(), timedelta(0))
    clock.advance(seconds=pause.total_seconds())
    return pause


def deliver_all(app: App, clock: engine.StillEffects) -> list[delivery.Attempt]:
    """Deliver until nothing waits, moving the clock from one attempt to the next."""
    made = []
    while any(row.status == "waiting" for row in deliveries(app)):
        to_next_due(app, clock)
        made += delivery.deliver_due(app)
    return made


def declined_quote(tools: Tools) -> str:
    quote_id = sent_quote(tools)
    tools.seller("quote_decline", quote_id=quote_id, expected_version=1)
    return quote_id


def heard(receiver: Receiver) -> list[tuple[str, str]]:
    """What the receiver took, without what came again."""
    return list(dict.fromkeys((one.event["subject"], one.event["type"]) for one in receiver.accepted))


def test_an_event_tells_what_became_of_the_quote(tools: Tools, receiver: Receiver):
    quote_id = declined_quote(tools)
    assert [made.status for made in delivery.deliver_due(tools.app)] == [Status.DELIVERED] * 2
    sent, declined = (one.event for one in receiver.received)
    fingerprint = sent["data"].pop("fingerprint")
    assert sent == {
        "type": "quote.sent",
        "timestamp": "2026-11-16T09:00:00Z",
        "subject": quote_id,
        "number": 1,
        "data": {
            "quote_id": quote_id,
            "number": tools("quote_get", quote_id=quote_id)["quote"]["number"],
            "owner": None,
            "version": 1,
            "status": "sent",
            "reason": None,
            "account_id": ACME,
            "deal_id": None,
            "currency": "USD",
            "total": 1500,
            "option_set": None,
            "valid_until": "2026-12-16",
            "by": "agent:mcp",
        },
    }
    assert (declined["type"], declined["number"]) == ("quote.declined", 2)
    assert (declined["data"]["status"], declined["data"]["fingerprint"]) == ("declined", fingerprint)


def test_a_receiver_can_tell_that_it_comes_from_us_and_when(
    tools: Tools, receiver: Receiver, clock: engine.StillEffects
):
    sent_quote(tools)
    clock.advance(minutes=1)
    delivery.deliver_due(tools.app)
    (got,) = receiver.received
    assert got.is_signed()
    assert not got.is_signed(bytes(32))
    assert not Delivery(got.headers, got.body.replace(b"1500", b"15")).is_signed()
    later = {**got.headers, "webhook-timestamp": str(int(got.headers["webhook-timestamp"]) + 1)}
    assert not Delivery(later, got.body).is_signed()
    assert got.headers["webhook-timestamp"] == str(int(clock.now().timestamp()))
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("Quotewright/")


def test_an_old_secret_still_holds_while_a_new_one_comes(hooked: Settings, receiver: Receiver):
    new = "whsec_" + "QUJD" * 10
    app = open_app(hooked.model_copy(update={"webhook_secret": f"{new},{SECRET}"}))
    sent_quote(Tools(app))
    delivery.deliver_due(app)
    app.close()
    assert receiver.received[0].is_signed(KEY)
    assert receiver.received[0].is_signed(b"ABC" * 10)


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("quote_accept", {}, ["quote.sent", "quote.accepted", "order.created", "agreement.changed"]),
        ("quote_decline", {"reason": "Too late."}, ["quote.sent", "quote.declined"]),
        ("quote_revise", {}, ["quote.sent"]),
    ],
)
def test_each_move_of_a_sent_quote_has_its_event(tools: Tools, tool: str, arguments: dict[str, str], names: list[str]):
    quote_id = sent_quote(tools)
    tools.seller(tool, quote_id=quote_id, expected_version=1, **arguments)
    with tools.app.database.reading() as connection:
        rows = connection.execute(sa.select(event).order_by(event.c.number)).all()
    assert [row.name for row in rows] == names
    assert [row.number for row in rows] == list(range(1, len(names) + 1))
    assert rows[:2][-1].body["reason"] == arguments.get("reason")


def test_only_the_end_of_a_whole_quote_is_told_as_cancelled(tools: Tools):
    quote_id = sent_quote(tools)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_cancel", quote_id=quote_id, expected_version=2)
    draft = new_quote(tools)
    tools("quote_cancel", quote_id=draft, expected_version=1)
    with tools.app.database.reading() as connection:
        rows = connection.execute(sa.select(event.c.subject, event.c.name)).all()
    assert sorted(map(tuple, rows)) == sorted([(quote_id, "quote.sent"), (draft, "quote.cancelled")])


def test_nothing_is_told_of_what_was_rolled_back_or_refused(tools: Tools, receiver: Receiver):
    quote_id = sent_quote(tools)
    delivery.deliver_due(tools.app)
    before = engine.row_counts(tools.app)

    def work(tx: Tx) -> dict[str, Any]:
        quotes.accept(tx, quote_id, expected_version=1)
        raise CpqError(Code.CONFLICT, "Not after all.")

    with pytest.raises(CpqError):
        tools.app.write(tools.app.new_call(engine.SELLER), Command("test", Permission.QUOTE), work)
    tools.error("quote_accept", quote_id=quote_id, expected_version=7)
    assert delivery.deliver_due(tools.app) == []
    assert engine.row_counts(tools.app) == before
    assert len(receiver.received) == 1


def test_a_repeated_call_tells_it_once(tools: Tools):
    quote_id = sent_quote(tools)
    for _ in range(2):
        tools.seller("quote_decline", quote_id=quote_id, expected_version=1, idempotency_key="once")
    with tools.app.database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(event)) == 2


@pytest.mark.parametrize("bad", BAD_ANSWERS)
def test_whatever_a_receiver_does_it_gets_every_event_in_order(
    tools: Tools, receiver: Receiver, clock: engine.StillEffects, monkeypatch: pytest.MonkeyPatch, bad: str
):
    monkeypatch.setattr(http_post, "ANSWER_SECONDS", 0.25)
    made = [declined_quote(tools) for _ in range(2)]
    receiver.plan = lambda _: bad
    if bad == "away":
        receiver.go_away()
    for attempt in (1, 2):
        tried = delivery.deliver_due(tools.app)
        assert [(one.status, one.number) for one in tried] == [(Status.WAITING, attempt)] * 2
        pauses = [row.due_at - clock.now() for row in deliveries(tools.app) if row.attempts]
        least = signing.pause_seconds(attempt)
        assert all(timedelta(seconds=least) <= pause <= timedelta(seconds=least * 1.5) for pause in pauses)
        assert delivery.deliver_due(tools.app) == []
        clock.advance(seconds=least * 1.5)
    receiver.released.set()
    receiver.plan = lambda _: "200"
    if bad == "away":
        receiver.come_back()
    deliver_all(tools.app, clock)
    for quote_id in made:
        mine = [name for subject, name in heard(receiver) if subject == quote_id]
        assert mine == ["quote.sent", "quote.declined"]
    assert all(one.is_signed() for one in receiver.received)
    assert "followed a redirect" not in [one.id for one in receiver.received]
    assert {row.status for row in deliveries(tools.app)} == {"delivered"}


@pytest.mark.parametrize("good", ["200", "202 without a body", "200 that breaks off", "200 that breaks off early"])
def test_a_status_of_success_is_enough(tools: Tools, receiver: Receiver, good: str):
    receiver.plan = lambda _: good
    sent_quote(tools)
    assert [made.status for made in delivery.deliver_due(tools.app)] == [Status.DELIVERED]


def test_a_reason_from_outside_is_kept_on_one_short_line(tools: Tools, receiver: Receiver):
    receiver.plan = lambda _: "endless body"
    sent_quote(tools)
    (made,) = delivery.deliver_due(tools.app)
    assert made.answer == ("500 " + "z" * 4000)[: http_post.TEXT_MAX]


@pytest.mark.parametrize(("answer", "seconds"), [("503 and a time", 600), ("503 and nonsense", 5)])
def test_a_receiver_may_ask_for_more_time(
    tools: Tools, receiver: Receiver, clock: engine.StillEffects, answer: str, seconds: int
):
    receiver.plan = lambda _: answer
    sent_quote(tools)
    delivery.deliver_due(tools.app)
    assert timedelta(seconds=seconds) <= to_next_due(tools.app, clock) <= timedelta(seconds=seconds * 1.5)


def test_a_quote_that_waits_holds_back_its_own_events_and_no_others(tools: Tools, receiver: Receiver):
    slow, quick = declined_quote(tools), declined_quote(tools)
    receiver.plan = lambda delivery: "500" if delivery.event["subject"] == slow else "200"
    delivery.deliver_due(tools.app)
    assert heard(receiver) == [(quick, "quote.sent"), (quick, "quote.declined")]
    assert [one.event["type"] for one in receiver.received if one.event["subject"] == slow] == ["quote.sent"]


def test_what_is_never_taken_fails_in_the_end_and_can_be_replayed(
    tools: Tools, receiver: Receiver, clock: engine.StillEffects
):
    quote_id = declined_quote(tools)
    receiver.plan = lambda delivery: "500" if delivery.event["type"] == "quote.sent" else "200"
    made = deliver_all(tools.app, clock)
    assert [one.status for one in made] == [Status.WAITING] * 11 + [Status.FAILED, Status.DELIVERED]
    assert [one.number for one in made] == [*range(1, 13), 1]
    assert heard(receiver) == [(quote_id, "quote.declined")]
    receiver.plan = lambda _: "200"
    assert replay(tools.app, made[0].event_id) == ["crm"]
    (again,) = deliver_all(tools.app, clock)
    assert (again.status, again.number, again.event_id) == (Status.DELIVERED, 1, made[0].event_id)
    assert heard(receiver)[-1] == (quote_id, "quote.sent")


def test_a_replay_sends_the_same_bytes_under_the_same_id(tools: Tools, receiver: Receiver, clock: engine.StillEffects):
    sent_quote(tools)
    delivery.deliver_due(tools.app)
    clock.advance(hours=1)
    replay(tools.app, receiver.received[0].id)
    delivery.deliver_due(tools.app)
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


def test_a_replay_reaches_a_webhook_that_came_later(store: Settings, hooked: Settings, receiver: Receiver):
    app = open_app(store)
    sent_quote(Tools(app))
    with app.database.reading() as connection:
        event_id = connection.scalar(sa.select(event.c.id)) or ""
    with pytest.raises(CpqError, match="No webhook is configured"):
        replay(app, event_id)
    app.close()
    app = open_app(hooked)
    assert delivery.deliver_due(app) == []
    assert replay(app, event_id) == ["crm"]
    assert len(delivery.deliver_due(app)) == 1
    with pytest.raises(CpqError, match="There is no event 'ev-none'"):
        replay(app, "ev-none")
    app.close()


def replay(app: App, event_id: str) -> list[str]:
    command = Command("event_replay", Permission.ADMINISTER)
    return app.write(app.new_call(OPERATOR), command, lambda tx: {"to": events.replay(tx, event_id)}).answer["to"]


def test_no_transaction_is_open_while_a_receiver_is_awaited(tools: Tools, receiver: Receiver):
    made: list[str] = []

    def plan(_: Delivery) -> str:
        if not made:
            made.append(sent_quote(Tools(tools.app)))
        return "200"

    receiver.plan = plan
    first = sent_quote(tools)
    delivery.deliver_due(tools.app)
    assert heard(receiver) == [(first, "quote.sent"), (made[0], "quote.sent")]


def test_a_claim_is_nobody_elses_until_it_ends(tools: Tools, receiver: Receiver, clock: engine.StillEffects):
    sent_quote(tools)
    app, call = tools.app, tools.app.new_call(ENGINE)
    first = app.upkeep(call, lambda tx: claims.claim(tx, "crm", tx.now))
    assert first is not None
    assert delivery.deliver_due(app) == []
    replay(app, first.event_id)
    assert delivery.deliver_due(app) == [], "a replay leaves alone what is under way"
    clock.advance(seconds=CLAIM_SECONDS)
    (second,) = delivery.deliver_due(app)
    assert (second.number, second.status) == (2, Status.DELIVERED)
    assert app.upkeep(call, lambda tx: claims.settle(tx, first, status=Status.WAITING, answer="500")) is False
    (row,) = deliveries(app)
    assert (row.status, row.attempts, row.answer) == ("delivered", 2, "200")


def test_a_connection_that_came_too_late_sends_nothing(tools: Tools, receiver: Receiver):
    answer = http_post.post(receiver.url, {}, b"{}", may_send=lambda: False)
    assert (answer.status, answer.text) == (None, "it took too long to connect")
    assert receiver.received == []


def test_each_webhook_gets_every_event_at_its_own_pace(store: Settings, clock: engine.StillEffects):
    with Receiver() as first, Receiver() as second:
        hooks = f"first={first.url},second={second.url}"
        app = open_app(store.model_copy(update={"webhooks": hooks, "webhook_secret": SECRET}), clock)
        first.plan = lambda _: "500"
        declined_quote(Tools(app))
        delivery.deliver_due(app)
        assert (len(first.accepted), len(second.accepted)) == (0, 2)
        first.plan = lambda _: "200"
        deliver_all(app, clock)
        assert (len(first.accepted), len(second.accepted)) == (2, 2)
        app.close()


def test_a_sweep_tells_once_that_a_quote_has_expired(tools: Tools, receiver: Receiver, clock: engine.StillEffects):
    over, declined = sent_quote(tools), declined_quote(tools)
    draft = new_quote(tools)
    assert quotes.sweep(tools.app) == 0
    clock.advance(days=40)
    assert [quotes.sweep(tools.app) for _ in range(3)] == [1, 0, 0]
    with tools.app.database.reading() as connection:
        stored = {row.id: row.status for row in connection.execute(sa.select(quote.c.id, quote.c.status))}
    assert stored == {over: "expired", declined: "declined", draft: "draft"}
    delivery.deliver_due(tools.app)
    assert heard(receiver)[-1] == (over, "quote.expired")
    told = receiver.received[-1].event
    assert (told["data"]["status"], told["data"]["by"], told["number"]) == ("expired", "agent:engine", 2)
    assert_sound(tools.app)


def test_a_sweep_changes_nothing_that_a_caller_can_see(tools: Tools, clock: engine.StillEffects):
    """Of each pair one is swept; whatever is asked of either afterwards, the answers are the same."""
    left, swept = sent_quote(tools), sent_quote(tools)
    clock.advance(days=40)
    command = Command("quote_sweep", Permission.ADMINISTER)
    before = {quote_id: tools("quote_get", quote_id=quote_id) for quote_id in (left, swept)}
    with tools.app.database.writing(tools.app.effects.monotonic() + 30) as connection:
        connection.execute(sa.update(quote).where(quote.c.id == left).values(status="draft"))
    tools.app.write(tools.app.new_call(ENGINE), command, expiry.expire)
    with tools.app.database.writing(tools.app.effects.monotonic() + 30) as connection:
        connection.execute(sa.update(quote).where(quote.c.id == left).values(status="sent"))
    assert {quote_id: tools("quote_get", quote_id=quote_id) for quote_id in before} == before
    for name in ("quote_accept", "quote_decline", "quote_send", "quote_cancel"):
        errors = [tools.error(name, quote_id=quote_id, expected_version=1) for quote_id in (left, swept)]
        said = [str(error).replace(quote_id, "Q") for error, quote_id in zip(errors, (left, swept), strict=True)]
        assert without_trace(said[0]) == without_trace(said[1])
    for name, version in (("quote_revise", 1), ("quote_cancel", 2), ("quote_revise", 1)):
        moved = [tools(name, quote_id=quote_id, expected_version=version)["status"] for quote_id in (left, swept)]
        assert moved[0] == moved[1]


def without_trace(text: str) -> str:
    return text.partition("'trace_id'")[0]


def test_a_version_expires_once_even_when_its_revision_is_dropped(tools: Tools, clock: engine.StillEffects):
    quote_id = sent_quote(tools)
    clock.advance(days=40)
    quotes.sweep(tools.app)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_cancel", quote_id=quote_id, expected_version=2)
    assert quotes.sweep(tools.app) == 1
    assert status_of(tools, quote_id) == "expired"
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=3)
    clock.advance(days=40)
    quotes.sweep(tools.app)
    with tools.app.database.reading() as connection:
        rows = connection.execute(sa.select(event.c.name, event.c.body).order_by(event.c.number)).all()
    told = [(row.name, row.body["version"]) for row in rows]
    assert told == [("quote.sent", 1), ("quote.expired", 1), ("quote.sent", 3), ("quote.expired", 3)]


def test_a_sweep_of_many_goes_in_parts(tools: Tools, clock: engine.StillEffects, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(expiry, "SWEEP_MAX", 2)
    made = {sent_quote(tools) for _ in range(5)}
    clock.advance(days=40)
    assert quotes.sweep(tools.app) == 5
    with tools.app.database.reading() as connection:
        found = connection.scalars(sa.select(event.c.subject).where(event.c.name == EventName.QUOTE_EXPIRED))
        assert set(found) == made


def test_a_servers_threads_deliver_by_themselves_and_stop_when_told(hooked: Settings, receiver: Receiver):
    app = open_app(hooked)
    loops = delivery.loops(app)
    for loop in loops:
        loop.start()
    made = [declined_quote(Tools(app)) for _ in range(3)]
    receiver.wait_for(6)
    background.stop(loops)
    assert sorted(heard(receiver)) == sorted((q, name) for q in made for name in ("quote.sent", "quote.declined"))
    assert not {loop.name for loop in loops} & {thread.name for thread in threading.enumerate()}
    sent_quote(Tools(app))
    assert len(receiver.received) == 6
    app.close()


def test_a_thread_outlives_a_database_that_fails(hooked: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    app = open_app(hooked)
    sent_quote(Tools(app))
    real, failed = app.read_unaudited, threading.Event()

    def failing(*given: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise CpqError(Code.UNAVAILABLE, "The database does not answer.")
        return real(*given)

    monkeypatch.setattr(app, "read_unaudited", failing)
    loops = delivery.loops(app)
    loops[0].start()
    receiver.wait_for(1)
    background.stop(loops)
    assert failed.is_set()
    app.close()


def test_two_writers_of_one_subject_never_share_a_number(hooked: Settings):
    """Whoever forgets to lock the quote is refused; nothing is told twice or out of order."""
    app = open_app(hooked)
    command = Command("test", Permission.ADMINISTER)

    def work(tx: Tx) -> dict[str, Any]:
        return {"id": events.publish(tx, EventName.APPROVAL_REQUESTED, "Q-x", {"at": tx.now})}

    barrier = threading.Barrier(4)
    refused: list[Code] = []

    def write() -> None:
        barrier.wait(30)
        for _ in range(10):
            try:
                app.write(app.new_call(OPERATOR), command, work)
            except CpqError as error:
                refused.append(error.code)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with app.database.reading() as connection:
        numbers = list(connection.scalars(sa.select(event.c.number).order_by(event.c.number)))
    assert numbers == list(range(1, 41 - len(refused)))
    assert set(refused) <= {Code.CONFLICT}
    app.close()


def test_moments_in_a_body_are_written_as_everywhere(tools: Tools):
    command = Command("test", Permission.ADMINISTER)
    moment = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
    body = {"decided_at": moment, "day": moment.date()}
    work = {"id": ""}

    def publish(tx: Tx) -> dict[str, Any]:
        work["id"] = events.publish(tx, EventName.APPROVAL_DECIDED, "Q-x", body)
        return {}

    tools.app.write(tools.app.new_call(OPERATOR), command, publish)
    found = tools.app.read_unaudited(tools.app.new_call(), lambda tx: events.get(tx, work["id"]))
    assert found["data"] == {"decided_at": "2026-11-16T09:00:00Z", "day": "2026-11-16"}


def test_the_events_of_a_tenant_go_to_its_own_receiver_only(
    tools: Tools, receiver: Receiver, clock: engine.StillEffects
):
    """Also where the main tenant has a webhook of the same name; a name without an address is tried again later."""
    app = tools.app
    add_tenant(app, "acme")
    folder = tenant_settings.folder_of(app.settings, "acme")
    folder.mkdir(parents=True)
    with Receiver() as theirs:
        (folder / ".env").write_text(f"CPQ_WEBHOOKS=crm={theirs.url},old={theirs.url}\nCPQ_WEBHOOK_SECRET={SECRET}\n")
        write_in(app, "acme", lambda tx: events.publish(tx, EventName.AUDIT_HEAD, "walrus", {"at": "walrus"}))
        write_in(app, "main", lambda tx: events.publish(tx, EventName.AUDIT_HEAD, "ostrich", {"at": "ostrich"}))
        (folder / ".env").write_text(f"CPQ_WEBHOOKS=crm={theirs.url}\nCPQ_WEBHOOK_SECRET={SECRET}\n")
        clock.advance(seconds=5)
        assert [made.status for made in delivery.deliver_due(app)] == [Status.DELIVERED]
        tried = {made.webhook: made.status for made in iter(lambda: delivery.deliver_elsewhere(app), None)}
        assert tried == {"crm": Status.DELIVERED, "old": Status.WAITING}
        assert [b"walrus" in one.body for one in theirs.received] == [True]
    assert [b"ostrich" in one.body for one in receiver.received] == [True]
