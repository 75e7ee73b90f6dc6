"""Creating a quote durably, beside the bare floor: the same rows, written by hand in one transaction of the driver."""

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3
import sqlalchemy as sa

from cpq.app import App, Command, open_app
from cpq.app.access import Permission
from cpq.base.memory import spare_the_collector
from cpq.base.settings import Settings, read_settings
from cpq.services import quotes
from cpq.storage.schema.tables import audit_entry, idempotency, quote, quote_line, quote_pricing, quote_version
from mcp_facade.line_arguments import LineItem
from tests.support import engine as support_engine
from tests.support import postgres

TABLES = (idempotency, quote, quote_version, quote_line, quote_pricing, audit_entry)
ROUNDS = {10: 200, 500: 40}
BLOCK = 10
"""So many of one kind in a row, then of the other: each connection works with its own cache warm."""

_numbers = itertools.count(1)


def measure(home: Path) -> dict[str, float]:
    """Wall time of one quote, ours over the floor's, on both databases, alternating in one run."""
    results: dict[str, float] = {}
    with stores(home) as settings_of:
        for database, settings in settings_of.items():
            support_engine.fill_with_sample(settings)
            results |= {f"{database} {name}": value for name, value in compare(settings).items()}
    return results


def measure_full(home: Path, count: int) -> dict[str, float]:
    """The same on a store that already holds so many quotes, over what it took when the store was empty."""
    results: dict[str, float] = {}
    with stores(home) as settings_of:
        for database, settings in settings_of.items():
            support_engine.fill_with_sample(settings)
            empty = compare(settings)
            print(f"storing {count:,} quotes on {database}", file=sys.stderr)
            fill(settings, count)
            full = compare(settings)
            for lines in ROUNDS:
                name = f"{database} {lines} lines"
                results[f"{name}, empty ms"] = empty[f"{lines} lines ms"]
                results[f"{name}, full ms"] = full[f"{lines} lines ms"]
                results[f"{name}, full / floor"] = full[f"{lines} lines / floor"]
                results[f"{name}, full / empty"] = full[f"{lines} lines ms"] / empty[f"{lines} lines ms"]
    return results


def compare(settings: Settings) -> dict[str, float]:
    app = open_app(settings)
    spare_the_collector()
    floor = Floor(app)
    results = {}
    for count, rounds in ROUNDS.items():
        create = creator(app, count)
        command = engine_creator(app, count)
        rows = floor.rows_of(create())
        tool: list[float] = []
        engine: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds // BLOCK):
            tool += [timed(create) for _ in range(BLOCK)]
            engine += [timed(command) for _ in range(BLOCK)]
            theirs += [timed(partial(floor.write, rows)) for _ in range(BLOCK)]
        ours, bare = statistics.median(tool), statistics.median(theirs)
        results[f"{count} lines ms"] = ours * 1000
        results[f"{count} lines floor ms"] = bare * 1000
        results[f"{count} lines / floor"] = ours / bare
        results[f"{count} lines, engine alone / floor"] = statistics.median(engine) / bare
    floor.close()
    app.close()
    return results


def fill(settings: Settings, count: int) -> None:
    """Store many quotes of two lines by copying one inside the database, spread over a year."""
    app = open_app(settings)
    quote_id = creator(app, 2)()
    numbers, name, moment = (
        (
            f"(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count}) SELECT n FROM g) AS g",
            "'Q-full-' || substr('0000000' || n, -7)",
            "strftime('%Y-%m-%dT%H:%M:%S.000000Z', '2026-01-01', '+' || (n * 31) || ' seconds')",
        )
        if settings.is_sqlite
        else (
            f"generate_series(1, {count}) AS g(n)",
            "'Q-full-' || lpad(n::text, 7, '0')",
            "timestamptz '2026-01-01' + n * interval '31 seconds'",
        )
    )
    changed = {"id": name, "quote.number": name, "quote_id": name, "key": name, "created_at": moment}
    wanted = {"quote": "t.id = '{}'", "idempotency": "t.answer LIKE '%{}%'"}
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 3600) as connection:
        if not settings.is_sqlite:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        for table in TABLES[:-1]:
            columns = [column.name for column in table.columns]
            taken = ", ".join(
                changed.get(f"{table.name}.{column}", changed.get(column, f"t.{column}")) for column in columns
            )
            which = wanted.get(table.name, "t.quote_id = '{}'").format(quote_id)
            into = f"INSERT INTO {table.name} ({', '.join(columns)})"
            copied = f"{into} SELECT {taken} FROM {table.name} AS t CROSS JOIN {numbers} WHERE {which}"
            connection.exec_driver_sql(copied.replace("%", "%%") if not settings.is_sqlite else copied)
    app.close()


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def creator(app: App, count: int, prefix: str = "bench") -> Callable[[], str]:
    """A call of the tool that creates a quote of so many lines of different products, and gives its id."""
    tools = support_engine.Tools(app)
    arguments = asked(app, count)

    def create() -> str:
        return tools("quote_create", **arguments, idempotency_key=f"{prefix}-{next(_numbers)}")["quote_id"]

    return create


def engine_creator(app: App, count: int) -> Callable[[], str]:
    """The same quote by the engine's own command, without the tool's validation and envelope."""
    arguments = asked(app, count)
    lines = [LineItem(**line).as_draft(number) for number, line in enumerate(arguments["line_items"], 1)]
    draft = quotes.Draft(arguments["account_id"], "USD", tuple(lines), term_months=arguments["term_months"])

    def create() -> str:
        key = f"engine-{next(_numbers)}"
        command = Command("quote_create", Permission.QUOTE, arguments, key)
        outcome = app.write(app.new_call(), command, lambda tx: dict(quotes.create(tx, draft, idempotency_key=key)))
        return outcome.answer["quote_id"]

    return create


def asked(app: App, count: int) -> dict[str, Any]:
    products = plain_products(app)
    lines = [
        {"product_id": products[n % len(products)], "quantity": n % 9 + 1, "discount_pct": n % 5} for n in range(count)
    ]
    return {"account_id": "acct_acme_001", "term_months": 12, "line_items": lines}


def plain_products(app: App) -> list[str]:
    """Products that want nothing of each other: a quote of them is complete."""
    query = sa.text(
        "SELECT id FROM product WHERE product_type = 'simple' AND active = :yes AND id IN "
        "(SELECT product_id FROM price WHERE currency = 'USD' AND price_book_id = 'list') AND id NOT IN "
        "(SELECT product_id FROM price WHERE selling_model = 'usage') AND id NOT IN "
        "(SELECT product_id FROM product_relation WHERE kind IN ('requires', 'excludes')) ORDER BY id"
    )
    with app.database.reading() as connection:
        return list(connection.scalars(query, {"yes": 1 if app.database.is_sqlite else True}))


class Floor:
    """One connection of the bare driver with the settings of the engine."""

    def __init__(self, app: App, prefix: str = "") -> None:
        self._app = app
        self._prefix = prefix
        self._is_sqlite = app.database.is_sqlite
        if self._is_sqlite:
            self._connection: Any = pysqlite3.connect(app.settings.sqlite_path, isolation_level=None)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
                self._connection.execute(f"PRAGMA {pragma}")
        else:
            url = sa.make_url(app.settings.database_url).set(drivername="postgresql")
            self._connection = psycopg.connect(url.render_as_string(hide_password=False))

    def rows_of(self, quote_id: str) -> dict[str, list[dict[str, Any]]]:
        """The rows that creating this quote left, as the driver gives them."""
        self._app.flush_audit()
        where = {
            "quote": "id = '{}'",
            "audit_entry": "subject = '{}'",
            "idempotency": "answer LIKE '%{}%'",
        }
        found = {}
        for table in TABLES:
            condition = where.get(table.name, "quote_id = '{}'").format(quote_id)
            cursor = self._connection.cursor()
            cursor.execute(f"SELECT * FROM {table.name} WHERE {condition}")
            names = [column[0] for column in cursor.description]
            found[table.name] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            assert found[table.name], table.name
        for entry in found["audit_entry"]:
            entry["seq"] = entry["hash"] = None
        if not self._is_sqlite:
            self._connection.rollback()
        return found

    def write(self, rows: dict[str, list[dict[str, Any]]]) -> None:
        """The same rows under new keys; one statement a table, as one would write it by hand."""
        number = f"{self._prefix}{next(_numbers)}"
        name = f"Q-floor-{number}"
        fresh = {"quote_id": name, "quote.id": name, "quote.number": name, "key": f"floor-{number}"}
        cursor = self._connection.cursor()
        if self._is_sqlite:
            cursor.execute("BEGIN IMMEDIATE")
        for table, found in rows.items():
            fresh["id"] = f"au-floor-{number}"
            names = list(found[0])
            marks = ", ".join("?" if self._is_sqlite else "%s" for _ in names)
            values = [
                [fresh.get(f"{table}.{name}", fresh.get(name, value)) for name, value in row.items()] for row in found
            ]
            statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
            if len(values) == 1:
                cursor.execute(statement, values[0])
            else:
                cursor.executemany(statement, values)
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def stores(home: Path) -> Iterator[dict[str, Settings]]:
    """An empty store of each kind; PostgreSQL runs in a cluster of its own."""
    cluster = postgres.start(durable=True)
    try:
        cluster.create_database("bench")
        options: dict[str, Any] = {"rate_limit_per_minute": 0}
        yield {
            "SQLite": read_settings({}, home=home / "sqlite", **options),
            "PostgreSQL": read_settings({}, home=home / "postgres", database_url=cluster.url("bench"), **options),
        }
    finally:
        cluster.stop()
