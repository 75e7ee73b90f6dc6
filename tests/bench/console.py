"""The console's heaviest pages, in the processor's time that the server takes for each."""

import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy as sa

from cpq.app import App, open_app, sessions, tokens
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.memory import spare_the_collector
from cpq.base.settings import Settings
from cpq.console import routes
from cpq.services import approvals
from cpq.storage.schema.tables import approval, delegation, quote, quote_line, quote_pricing, quote_version
from tests.bench import quotes
from tests.support import engine

LINES = 500
LOANS = 40
ROUNDS = 15


def measure(home: Path, pending: int) -> dict[str, float]:
    """The queue with so many pending requests and the page of a large quote, on both databases."""
    results: dict[str, float] = {}
    with quotes.stores(home) as settings_of:
        for database, settings in settings_of.items():
            engine.fill_with_sample(settings)
            results |= {f"{database} {name}": value for name, value in _pages(settings, pending).items()}
    return results


def _pages(settings: Settings, pending: int) -> dict[str, float]:
    app = open_app(settings)
    large = _asked(app, LINES)
    _copy(app, _asked(app, 4), pending)
    secret = _signed_in(app)
    _lend(app)
    get = _getter(routes.build(app), secret)
    spare_the_collector()
    asked = {
        f"queue of {pending:,} ms CPU": "/console/queue",
        f"queue of {pending:,}, biggest first, ms CPU": "/console/queue?sort=biggest",
        f"queue of {pending:,}, by owner, ms CPU": "/console/queue?sort=owner",
        f"queue of {pending:,}, searched, ms CPU": "/console/queue?q=acme",
        f"queue of {pending:,}, nothing new, ms CPU": "live",
        f"quote of {LINES} lines ms CPU": f"/console/quotes/{large}",
        "figures ms CPU": "/console/figures",
    }
    results = {}
    for name, path in asked.items():
        times = []
        for _ in range(ROUNDS + 1):
            where = f"/console/queue?live={_stamp(app)}" if path == "live" else path
            start = time.process_time()
            anyio.run(get, where)
            times.append(time.process_time() - start)
        results[name] = statistics.median(times[1:]) * 1000
    app.close()
    return results


def _stamp(app: App) -> str:
    """What the page of a sales manager sends back every few seconds."""
    dana = Principal("dana", "human", frozenset({Role.SALES_MANAGER}))
    return app.read_unaudited(app.new_call(dana), approvals.queue_stamp)


def _asked(app: App, lines: int) -> str:
    """A quote that waits for a sales manager."""
    tools = engine.Tools(app)
    quote_id = quotes.creator(app, lines)()
    tools("quote_price", quote_id=quote_id, requested_discount_pct=6)
    tools("approval_request", quote_id=quote_id, justification="A good deal.", approver_role="sales_manager")
    return str(quote_id)


def _copy(app: App, quote_id: str, count: int) -> None:
    """The same quote and its request so many times, inside the database."""
    if app.database.is_sqlite:
        counting = f"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {count}) SELECT n FROM g"
        numbers, number = f"({counting}) AS g", "substr('0000000' || n, -7)"
    else:
        numbers, number = f"generate_series(1, {count}) AS g(n)", "lpad(n::text, 7, '0')"
    with app.database.writing(app.effects.monotonic() + 600) as connection:
        for table in (quote, quote_version, quote_line, quote_pricing, approval):
            own = "'APR-copy-' || t.role || " if table is approval else "'Q-copy-' || "
            changed = {"id": f"{own}{number}", "quote_id": f"'Q-copy-' || {number}"}
            if table is quote:
                changed["number"] = f"'copy-' || {number}"
            columns = [column.name for column in table.columns]
            taken = ", ".join(changed.get(column, f"t.{column}") for column in columns)
            which = f"t.{'id' if table is quote else 'quote_id'} = '{quote_id}'"
            into = f"INSERT INTO {table.name} ({', '.join(columns)})"
            connection.exec_driver_sql(
                f"{into} SELECT {taken} FROM {table.name} AS t CROSS JOIN {numbers} WHERE {which}"
            )
        connection.exec_driver_sql("ANALYZE")


def _lend(app: App) -> None:
    """Roles of many people, lent to whoever looks: each for its own time."""

    def work(tx: Tx) -> dict[str, Any]:
        for number in range(LOANS):
            row = {"id": f"dlg-{number}", "role": "vp_sales", "from_name": f"lender{number}", "to_name": "dana"}
            tokens.grant(tx, name=row["from_name"], role=row["role"])
            window = {"starts_at": tx.now, "ends_at": tx.now + timedelta(days=1, minutes=number)}
            tx.connection.execute(
                sa.insert(delegation).values(tenant_id=tx.tenant_id, **row, **window, created_at=tx.now)
            )
        return {}

    engine.write(app, work)


def _signed_in(app: App) -> str:
    found: list[str] = []

    def work(tx: Tx) -> dict[str, Any]:
        tokens.grant(tx, name="dana", role="sales_manager")
        found.append(sessions.begin(tx, "dana").secret)
        return {}

    engine.write(app, work)
    return found[-1]


def _getter(application: Any, secret: str) -> Callable[[str], Awaitable[None]]:
    async def get(path: str) -> None:
        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": where.removeprefix("/console"),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1"), (b"cookie", f"cpq_session={secret}".encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        await application(scope, receive, send)
        assert said[0]["status"] in (200, 204), said

    return get
