"""Many processes on one store: every writer gets its turn, nothing is lost, nothing is done twice."""

import multiprocessing
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.app import App, audit
from cpq.app.access import OPERATOR
from cpq.base.errors import CpqError
from cpq.base.settings import Settings
from cpq.storage.engine import SQLITE_SAFE_VERSION, sqlite_version
from cpq.storage.schema.tables import price_book
from tests.app.test_transactions import book, command
from tests.support import engine as support_engine
from tests.support.engine import open_app

PROCESSES = 8
CALLS = 40
WAIT_SECONDS = 120


def work(settings: Settings, keys: list[str], results: multiprocessing.Queue) -> None:
    """One process: writes under each key and reports what it was told."""
    app = open_app(settings)
    with support_engine.patient():
        for key in keys:
            try:
                outcome = app.write(app.new_call(OPERATOR), command(key), book)
                results.put((key, outcome.answer["book_id"], outcome.replayed))
            except CpqError as error:
                results.put((key, error.code.value, None))
    app.close()


def run(settings: Settings, keys_of: list[list[str]]) -> list[tuple]:
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    processes = [spawn.Process(target=work, args=(settings, keys, results)) for keys in keys_of]
    for process in processes:
        process.start()
    answers = [results.get(timeout=WAIT_SECONDS) for _ in range(sum(map(len, keys_of)))]
    for process in processes:
        process.join(WAIT_SECONDS)
        assert process.exitcode == 0
    return answers


def stored(app: App) -> set[str]:
    with app.database.reading() as connection:
        return set(connection.scalars(sa.select(price_book.c.id).where(price_book.c.id.like("book-%"))))


@pytest.fixture
def opened(store: Settings):
    app = open_app(store)
    yield app
    app.close()


def test_processes_with_keys_of_their_own_lose_nothing(store: Settings, opened: App):
    answers = run(store, [[f"{p}-{n}" for n in range(CALLS)] for p in range(PROCESSES)])
    assert Counter(replayed for _, _, replayed in answers) == {False: PROCESSES * CALLS}
    assert stored(opened) == {book_id for _, book_id, _ in answers}


def test_q11_processes_with_the_same_keys_do_each_thing_once(store: Settings, opened: App):
    answers = run(store, [[f"k{n}" for n in range(CALLS)]] * PROCESSES)
    told: dict[str, set[str]] = {}
    for key, book_id, _ in answers:
        told.setdefault(key, set()).add(book_id)
    assert all(len(ids) == 1 for ids in told.values()), "two callers were told different things"
    assert stored(opened) == {book_id for ids in told.values() for book_id in ids}
    assert len(stored(opened)) == CALLS
    with opened.database.reading() as connection:
        assert audit.verify(connection, "main").broken_at is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python's own SQLite may be older")
def test_the_sqlite_in_use_does_not_have_the_wal_reset_bug():
    assert sqlite_version() >= SQLITE_SAFE_VERSION


def test_sqlite_is_durable_and_strict(sqlite_app: App):
    with sqlite_app.database.writing(sqlite_app.effects.monotonic() + 5) as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
        }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "trusted_schema": 0}
        tables = connection.exec_driver_sql("PRAGMA table_list").mappings().all()
    ours = [
        table for table in tables if table["type"] == "table" and not table["name"].startswith(("sqlite_", "alembic"))
    ]
    assert all(table["strict"] for table in ours)
    assert len(ours) > 10


def test_a_forked_child_makes_ids_of_its_own_and_takes_its_own_turn(tmp_path: Path):
    """Descriptors and fetched randomness are inherited by a child; used there they would be its parent's."""
    said = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, timeout=WAIT_SECONDS, check=True
    )
    parent, child, waited = said.stdout.split()
    assert parent != child
    assert waited == "busy"


FORKED = """
import os, sys, threading
from pathlib import Path
from cpq.base.settings import read_settings
from cpq.storage.engine import Database
from cpq.base.clock import Effects
from cpq.base.errors import CpqError

effects = Effects()
effects.new_id("")
database = Database(read_settings({}, home=Path(sys.argv[1])), effects)
with database.writing(effects.monotonic() + 5):
    reading, writing = os.pipe()
    if os.fork() == 0:
        database._gate._threads = threading.Lock()
        try:
            with database._gate.held(effects.monotonic() + 0.3):
                said = "entered"
        except CpqError:
            said = "busy"
        os.write(writing, f"{effects.new_id('')[-8:]} {said}".encode())
        os._exit(0)
    os.wait()
    print(effects.new_id("")[-8:], os.read(reading, 100).decode())
"""
