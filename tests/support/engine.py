"""Builders for tests: stores with sample data, callers, and effects that stand still."""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import cpq
from cpq import app as engine
from cpq.app import App, Command, tenant_registry
from cpq.app.access import LOCAL_AGENT, OPERATOR, Permission, Principal, Role
from cpq.app.transaction import Tx
from cpq.base.clock import Effects
from cpq.base.row_problems import SourceRow
from cpq.base.settings import Settings, read_settings
from cpq.domain.guided_selling.guide_file import read_guides
from cpq.retrieval import past_quotes
from cpq.services import catalog, guided_selling
from cpq.storage import migrations
from cpq.storage.schema import metadata
from cpq.storage.schema.tables import idempotency
from mcp_facade.envelope import Reply
from mcp_facade.registry import Registry, Tool
from mcp_facade.toolsets import ALL_TOOLS
from tests.support import postgres

SAMPLE = Path(cpq.__file__).parent / "sample"
SAMPLE_FILES = (
    ("catalog.yaml", "products"),
    ("price_books.yaml", "price_books"),
    ("accounts.yaml", "accounts"),
    ("prices.csv", "prices"),
)

TODAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
"""When every test begins, whatever the day is on which it runs."""

SELLER = Principal("sam", "human", frozenset({Role.SALES_REP}))

STARTED = "QUOTEWRIGHT_TESTS_STARTED"
os.environ.setdefault(STARTED, str(time.time()))
"""The real moment that stands for `TODAY`; processes that a test starts inherit it."""

_numbers = itertools.count(1)


class RunningEffects(Effects):
    """The clock of the tests: it starts at `TODAY` and runs as fast as the real one, in all processes of a run.

    A test may move it on, for this engine alone.
    """

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return TODAY + self._ahead + (super().now() - datetime.fromtimestamp(float(os.environ[STARTED]), UTC))

    def advance(self, **duration: float) -> None:
        self._ahead += timedelta(**duration)


class StillEffects(Effects):
    """A clock that moves only by `step` at each look, or when told; no waiting."""

    def __init__(self, now: datetime, step: timedelta = timedelta(0)) -> None:
        self._now = now
        self._step = step
        self.slept: list[float] = []

    def now(self) -> datetime:
        self._now += self._step
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += timedelta(seconds=seconds)

    def advance(self, **duration: float) -> None:
        self._now += timedelta(**duration)


def open_app(settings: Settings, effects: Effects | None = None) -> App:
    """The engine by the clock of the tests, or by the one a test asks for.

    The real clock is for stores that a server or command of ours uses in a process of its own: those have no other.
    """
    return engine.open_app(settings, effects or RunningEffects())


def bare_environment() -> dict[str, str]:
    """What a program of ours needs to be started with in a test: where programs are, and which clock moves it."""
    needed = ("PATH", "LD_PRELOAD", "FAKETIME", "FAKETIME_DONT_FAKE_MONOTONIC")
    return {name: os.environ[name] for name in needed if name in os.environ}


@contextmanager
def patient() -> Iterator[None]:
    """Rivals wait for their turn however slow the machine is; how long they would be let wait is not their subject."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpq.app.app.WRITE_DEADLINE_SECONDS", 120.0)
        yield


def unique_name(kind: str) -> str:
    """A database name that no other test of this run has."""
    return f"{kind}_{os.getpid()}_{next(_numbers)}"


def copy_of(cluster: postgres.Cluster, template: str) -> str:
    """A database of its own that starts as a copy."""
    name = unique_name("copy")
    cluster.create_database(name, template=template)
    return name


def fill_with_sample(settings: Settings) -> None:
    """Written before the day on which the tests' clock stands, whatever the day is on which they run."""
    migrations.upgrade(settings)
    app = open_app(settings, StillEffects(datetime(2026, 1, 1, tzinfo=UTC), step=timedelta(milliseconds=1)))
    for file, section in SAMPLE_FILES:
        import_file(app, SAMPLE / file, section)
    import_history(app, SAMPLE / "past_quotes.csv")
    import_guides(app, (SAMPLE / "guides.yaml").read_text(encoding="utf-8"))
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        connection.execute(sa.delete(idempotency))  # Else they run out whenever the first test looks.
    app.close()


def opened(home: Path) -> App:
    """The engine on the SQLite file in a folder."""
    return open_app(read_settings({}, home=home))


def import_file(app: App, path: Path, section: str) -> catalog.ImportReport:
    return import_rows(app, lambda: catalog.read_rows(path, section))


def import_guides(app: App, text: str, file: str = "guides.yaml") -> catalog.ImportReport:
    reports: list[catalog.ImportReport] = []

    def work(tx: Tx) -> dict[str, Any]:
        reports.append(guided_selling.import_guides(tx, read_guides(file, text)))
        return {}

    write(app, work)
    return reports[-1]


def import_history(app: App, path: Path) -> catalog.ImportReport:
    reports: list[catalog.ImportReport] = []

    def work(tx: Tx) -> dict[str, Any]:
        reports.append(past_quotes.import_history(tx, catalog.read_rows(path, "quotes")))
        return {}

    write(app, work)
    return reports[-1]


def import_dicts(app: App, section: str, *values: Mapping[str, Any]) -> catalog.ImportReport:
    """Import rows as if they stood in a file, one a line from line 1."""
    rows = [SourceRow(section, line, dict(value)) for line, value in enumerate(values, 1)]
    return import_rows(app, lambda: iter(rows))


def import_rows(app: App, rows: Callable[[], Any]) -> catalog.ImportReport:
    reports: list[catalog.ImportReport] = []

    def work(tx: Tx) -> dict[str, Any]:
        reports.append(catalog.import_rows(tx, rows()))
        return {}

    app.write(app.new_call(OPERATOR), Command("import", Permission.ADMINISTER), work)
    return reports[-1]


def write(app: App, work: Callable[[Tx], dict[str, Any]]) -> None:
    app.write(app.new_call(OPERATOR), Command("test", Permission.ADMINISTER), work)


def add_tenant(app: App, tenant_id: str) -> None:
    """A tenant beside the main one, without any data."""
    write(app, lambda tx: vars(tenant_registry.create(tx, tenant_id, tenant_id.title())))


def product_row(**values: Any) -> dict[str, Any]:
    """A product that can be imported, with whatever the test cares about."""
    number = next(_numbers)
    return {"id": f"prod_made_{number}", "sku": f"MADE-{number}", "name": "Made", "category": "tanks", **values}


class Tools:
    """Calls tools as a client does, through the registry, as one caller."""

    def __init__(self, app: App, tools: tuple[Tool, ...] = ALL_TOOLS, principal: Principal = LOCAL_AGENT) -> None:
        self.app = app
        self.registry = Registry(app, tools)
        self.principal = principal

    @property
    def seller(self) -> "Tools":
        """The same tools in the hands of a person who sells: only a person records that a customer accepted."""
        return Tools(self.app, tuple(self.registry.tools.values()), SELLER)

    def reply(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        return self.registry.call(self.app.new_call(self.principal), name, arguments)

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        reply = self.reply(name, arguments)
        assert not reply.is_error, reply.body
        return reply.body

    def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        reply = self.reply(name, arguments)
        assert reply.is_error, reply.body
        return reply.body["error"]


def row_counts(app: App, *, but: tuple[str, ...] = ("audit_entry", "audit_head", "retrieval_query")) -> dict[str, int]:
    """How many rows every table has, to show that a refused call changed nothing."""
    with app.database.reading() as connection:
        return {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for table in metadata.sorted_tables
            if table.name not in but
        }
