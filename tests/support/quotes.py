"""Quotes for tests: made through the tools, put into any state, counted, and proven from the stored rows alone."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from cpq.app import App, recorded_state
from cpq.app.transaction import Tx
from cpq.base.text import canonical_json
from cpq.domain import pricing
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing import result as pricing_result
from cpq.storage import statements
from cpq.storage.schema.tables import (
    approval,
    approval_vote,
    delegation,
    idempotency,
    quote,
    quote_line,
    quote_pricing,
    quote_version,
)
from tests.support.engine import Tools, write

ACME = "acct_acme_001"
SEATS = {"product_id": "prod_pro_v2", "quantity": 150}
TABLES = (quote, quote_version, quote_line, quote_pricing, approval, approval_vote, delegation, idempotency)
MONEY = ("subtotal", "discount_total", "tax_total", "total")


def new_quote(tools: Tools, *lines: dict[str, Any], **terms: Any) -> str:
    """The id of a draft; the worked example unless lines are given."""
    given = {"account_id": ACME, "term_months": 12, "line_items": list(lines) or [SEATS], **terms}
    return tools("quote_create", **given)["quote_id"]


def sent_quote(tools: Tools, *lines: dict[str, Any], **terms: Any) -> str:
    """The id of a quote whose first version went to the customer."""
    quote_id = new_quote(tools, *lines, **terms)
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    return quote_id


def status_of(tools: Tools, quote_id: str, version: int | None = None) -> str:
    return tools("quote_get", quote_id=quote_id, version=version)["quote"]["status"]


def put_into(app: App, quote_id: str, status: str, version_status: str | None = None) -> None:
    """Set the state of a quote and of its current version, as approvals do, and record it."""

    def work(tx: Tx) -> dict[str, Any]:
        mine = tx.own(quote) & (quote.c.id == quote_id)
        number = tx.connection.scalar(sa.select(quote.c.version).where(mine))
        tx.connection.execute(sa.update(quote).where(mine).values(status=status))
        current = tx.own(quote_version) & (quote_version.c.quote_id == quote_id) & (quote_version.c.version == number)
        tx.connection.execute(sa.update(quote_version).where(current).values(status=version_status or status))
        recorded_state.rebase(tx, quote_id)
        return {}

    write(app, work)


def record_again(app: App, quote_id: str) -> None:
    """Record a quote that the test has changed in the database, as `cpq audit baseline --accept` does."""

    def work(tx: Tx) -> dict[str, Any]:
        recorded_state.rebase(tx, quote_id)
        return {}

    write(app, work)


def stored(app: App) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the quotes and of the keys, to show that a refused call changed nothing."""
    with app.database.reading() as connection:
        return {table.name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr) for table in TABLES}


@contextmanager
def watched_statements(see: Callable[[str], None]) -> Iterator[None]:
    """Calls `see` with every statement before it is run, whether SQLAlchemy runs it or the driver itself."""

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        see(statement)

    enter = statements.driver_cursor.__enter__

    def enter_seen(driver: Any) -> Any:
        see(driver._text)
        return enter(driver)

    sa.event.listen(Engine, "before_cursor_execute", note)
    statements.driver_cursor.__enter__ = enter_seen  # type: ignore[method-assign]
    try:
        yield
    finally:
        statements.driver_cursor.__enter__ = enter  # type: ignore[method-assign]
        sa.event.remove(Engine, "before_cursor_execute", note)


NOW_AND_THEN = ("policy_set", "call_pace", "synchronous_commit")


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """The statements that this thread sends meanwhile; the audit of reads follows later in a thread of its own.

    Without those that a process sends now and then: which policies are in force, and the pace of calls.
    """
    seen: list[str] = []
    mine = threading.get_ident()

    def note(statement: str) -> None:
        if threading.get_ident() == mine and not any(name in statement for name in NOW_AND_THEN):
            seen.append(statement)

    with watched_statements(note):
        yield seen


def exact(number: Any) -> Decimal:
    """A number of an answer as the decimal it was written as."""
    return Decimal(str(number))


def assert_adds_up(priced: dict[str, Any]) -> None:
    """Q-25 on an answer of quote_price without option sets."""
    subtotal, discount, tax, total = (exact(priced["pricing"][name]) for name in MONEY)
    lines = priced["line_pricing"]
    assert subtotal - discount + tax == total
    assert sum(exact(line["line_total"]) for line in lines) == subtotal - discount
    assert sum(exact(line["subtotal_before_discount"]) for line in lines) == subtotal
    for line in lines:
        assert exact(line["subtotal_before_discount"]) - exact(line["discount_amount"]) == exact(line["line_total"])


def assert_sound(app: App) -> int:
    """Every stored version adds up and its pricing replays to the same bytes; returns how many there are."""
    with app.database.reading() as connection:
        versions = connection.execute(sa.select(quote_version)).all()
        for version in versions:
            _assert_version_sound(connection, version)
        lonely = sa.select(quote.c.id).where(~sa.exists().where(quote_version.c.quote_id == quote.c.id))
        assert connection.execute(lonely).all() == []
        current = sa.select(quote.c.total, quote_version.c.total, quote.c.expires_at, quote_version.c.expires_at).join(
            quote_version, (quote_version.c.quote_id == quote.c.id) & (quote_version.c.version == quote.c.version)
        )
        assert all(row[0] == row[1] and row[2] == row[3] for row in connection.execute(current))
    return len(versions)


def _assert_version_sound(connection: sa.Connection, version: Any) -> None:
    def mine(table: sa.Table) -> Any:
        found = (table.c.quote_id == version.quote_id) & (table.c.version == version.version)
        return connection.execute(sa.select(table).where(found)).all()

    lines, records = mine(quote_line), mine(quote_pricing)
    assert lines
    assert records
    for record in records:
        replayed = pricing_result.dump(pricing.price(pricing_request.load(record.request)))
        assert canonical_json(replayed) == canonical_json(record.result)
    chosen = next(record.result for record in records if record.option_set == (version.option_set or ""))
    assert [getattr(version, name) for name in MONEY] == [chosen[name] for name in MONEY]
    inside = [line for line in lines if line.option_set in (None, version.option_set)]
    assert len(inside) == len(chosen["lines"])
    assert sum(line.net for line in inside) == version.subtotal - version.discount_total
    assert sum(line.regular for line in inside) == version.subtotal
