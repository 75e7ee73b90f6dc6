"""What callers notice when the PostgreSQL server is gone, is silent, or stands behind a pooler."""

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import OPERATOR, Permission
from cpq.app.health import readiness
from cpq.app.transaction import Tx
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import read_settings
from cpq.storage.schema.tables import price_book
from tests.support import engine
from tests.support.engine import TODAY, StillEffects, open_app
from tests.support.postgres import Cluster
from tests.support.relay import Relay, relay

MADE = Command("book_create", Permission.ADMINISTER)


@pytest.fixture
def database(cluster: Cluster, postgres_template: str) -> Iterator[str]:
    name = engine.copy_of(cluster, postgres_template)
    yield name
    cluster.drop_database(name)


@pytest.fixture
def between(cluster: Cluster) -> Iterator[Relay]:
    with tempfile.TemporaryDirectory(prefix="cpq-", dir="/tmp") as folder, relay(cluster, Path(folder)) as made:
        yield made


def book(tx: Tx) -> dict[str, Any]:
    """The smallest real change: one more price book."""
    book_id = tx.new_id("book-")
    values = {"id": book_id, "name": f"made {book_id}", "is_default": False, "content_hash": ""}
    tx.connection.execute(sa.insert(price_book).values(tenant_id=tx.tenant_id, **values))
    return {"book_id": book_id}


def made_books(app: App) -> int:
    with app.database.reading() as connection:
        statement = sa.select(sa.func.count()).where(price_book.c.tenant_id == OPERATOR.tenant_id)
        return connection.scalar(statement.where(price_book.c.name.like("made %"))) or 0


class Comeback(StillEffects):
    """Time stands still but for pauses; after so many of them the server is there again."""

    def __init__(self, back: Relay, pauses: int) -> None:
        super().__init__(TODAY)
        self._back, self._pauses = back, pauses

    def jitter(self, ceiling: float) -> float:
        return ceiling

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept) == self._pauses:
            self._back.open()


def test_q11_a_write_waits_for_a_server_that_is_away_for_seconds_and_is_done_once(database: str, between: Relay):
    app = open_app(read_settings({}, database_url=between.url(database)), Comeback(between, pauses=14))
    assert made_books(app) == 0
    between.refuse()
    assert app.write(app.new_call(OPERATOR), MADE, book).replayed is False
    assert made_books(app) == 1
    app.close()


def test_the_door_waits_for_a_server_that_is_away(database: str, between: Relay):
    app = open_app(read_settings({}, database_url=between.url(database)), Comeback(between, pauses=14))
    between.refuse()
    assert app.identify("qw_tok-x_y") is None
    app.close()


def test_a_server_that_stays_away_is_unavailable_after_the_deadline(database: str, between: Relay):
    effects = Comeback(between, pauses=10_000)
    app = open_app(read_settings({}, database_url=between.url(database)), effects)
    between.refuse()
    with pytest.raises(CpqError) as refused:
        app.write(app.new_call(OPERATOR), MADE, book)
    assert refused.value.code is Code.UNAVAILABLE
    assert refused.value.details["retry_after_seconds"] == 2
    assert 15 <= sum(effects.slept) <= 17
    between.open()
    assert made_books(app) == 0
    app.close()


@pytest.mark.parametrize("is_stored", [False, True], ids=["lost-before-the-commit", "lost-after-it"])
def test_q11_a_commit_that_is_never_answered_is_given_up_and_done_once(database: str, between: Relay, is_stored: bool):
    """The server is silent, as one that was stopped: its machine still acknowledges every packet."""
    url = between.url(database)
    app = open_app(read_settings({}, database_url=url, database_answer_seconds=1), Effects())
    assert made_books(app) == 0
    silent = iter([True])
    between.is_sent_on = is_stored
    between.silence = lambda sent: b"COMMIT" in sent and next(silent, False)
    outcome = app.write(app.new_call(OPERATOR), MADE, book)
    assert between.fell_silent.acquire(blocking=False)
    assert outcome.answer["book_id"].startswith("book-")
    assert made_books(app) == 1
    app.close()


def test_readiness_says_how_many_calls_wait_for_a_silent_server(database: str, between: Relay, clock: StillEffects):
    app = open_app(read_settings({}, database_url=between.url(database), database_answer_seconds=600), clock)
    assert readiness(app)["database"] == "ok"
    between.silence = lambda sent: b"COMMIT" in sent
    writer = threading.Thread(target=lambda: app.write(app.new_call(OPERATOR), MADE, book))
    writer.start()
    assert between.fell_silent.acquire(timeout=300)
    clock.advance(seconds=6)
    assert readiness(app)["database"] == "does not answer: 1 calls wait for it, the longest for 6 s"
    between.silence = lambda _sent: False
    between.go_on()
    writer.join()
    assert readiness(app)["database"] == "ok"
    assert made_books(app) == 1
    app.close()


def test_changes_that_hang_leave_connections_for_reads(database: str, cluster: Cluster, clock: StillEffects):
    app = open_app(read_settings({}, database_url=cluster.url(database), database_connections_max=3), clock)
    with app.database.writing(0), app.database.writing(0):
        assert made_books(app) == 0
    app.close()


def test_behind_a_pooler_each_transaction_brings_its_settings_and_nothing_is_prepared(cluster: Cluster, database: str):
    """PgBouncer in transaction mode refuses start-up options and gives each transaction another session."""
    settings = read_settings(
        {}, database_url=cluster.url(database), database_pooler="transaction", database_prepare_threshold=0
    )
    app = open_app(settings)
    shown = sa.text("SELECT current_setting('lock_timeout'), current_setting('timezone')")
    with app.database.reading() as connection:
        driver: Any = connection.connection.driver_connection
        assert "options" not in driver.info.get_parameters()
        assert tuple(connection.execute(shown).one()) == ("5s", "UTC")
        for _ in range(8):
            connection.execute(sa.text("SELECT 1"))
        assert connection.scalar(sa.text("SELECT count(*) FROM pg_prepared_statements")) == 0
    with driver.cursor() as outside:
        assert outside.execute("SHOW lock_timeout").fetchone() == ("0",)
    driver.rollback()
    app.write(app.new_call(OPERATOR), MADE, book)
    assert made_books(app) == 1
    app.close()
