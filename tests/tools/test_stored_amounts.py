"""How much a quote and a caller may store: text of a quote, and bytes of a day over processes and restarts."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cpq.app import daily_bytes
from cpq.app.access import OPERATOR, Role
from cpq.base.settings import Settings
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.storage.schema import tables
from tests.support import engine
from tests.support.engine import StillEffects, Tools, row_counts
from tests.support.quotes import SEATS, new_quote

NOTE = "x" * 500


@contextmanager
def limited(store: Settings, clock: StillEffects, **limits: Any) -> Iterator[Tools]:
    """An engine with smaller limits; each is a process of its own to the database."""
    with closing(engine.open_app(store.model_copy(update=limits), clock)) as app:
        yield Tools(app)


def test_q03_more_text_than_a_quote_may_have_names_the_longest_and_the_amount(store: Settings, clock: StillEffects):
    with limited(store, clock, quote_text_max=1_000) as tools:
        lines = [{**SEATS, "notes": NOTE}, {**SEATS, "notes": NOTE + "y"}]
        error = tools.error("quote_create", account_id="acct_acme_001", line_items=lines)
        assert error["code"] == "VALIDATION_ERROR"
        assert error["details"]["field"] == "/line_items/1/notes"
        assert (error["details"]["maximum"], error["details"]["characters"]) == (1_000, 1_001)
        assert "at most 1,000 characters together, not 1,001; /line_items/1/notes has 501" in error["message"]
        quote_id = new_quote(tools, lines[0], notes=NOTE)
        before = row_counts(tools.app)
        change = {"line_id": f"{quote_id}-ql-1", "notes": NOTE + "y"}
        error = tools.error("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
        assert error["details"]["field"] == "/change_lines/0/notes"
        assert row_counts(tools.app) == before
        assert tools("quote_update", quote_id=quote_id, expected_version=1, notes="short")["outcome"] == "changed"
    with limited(store, clock) as tools:  # With more than a smaller limit allows now.
        large = new_quote(tools, *[{**SEATS, "notes": NOTE}] * 3)
    with limited(store, clock, quote_text_max=1_000) as tools:
        assert tools.error("quote_clone", quote_id=large)["details"]["field"] == "/quote_id"
        assert tools("quote_update", quote_id=large, expected_version=1, deal_id="D-1")["outcome"] == "changed"
        assert tools("quote_price", quote_id=large)["stored"] is True


@given(st.lists(st.tuples(st.text(max_size=20), st.dictionaries(st.text(max_size=5), st.text(max_size=9)))))
def test_every_character_of_notes_and_attributes_counts(texts: list[tuple[str, dict[str, str]]]):
    lines = tuple(DraftLine(n, "p", 1, notes=note, attributes=given) for n, (note, given) in enumerate(texts, 1))
    draft = Draft("a", "USD", lines, notes="12345")
    wanted = 5 + sum(len(note) + sum(len(k) + len(v) for k, v in given.items()) for note, given in texts)
    assert draft.text_length == wanted == replace(draft, deal_id="D").text_length


def test_bytes_of_a_day_are_counted_over_processes_and_restarts(
    store: Settings, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    """Clones of a quote with long notes wrote 95 GB an hour."""
    monkeypatch.setattr(daily_bytes, "CHUNK_BYTES", 10_000)
    with limited(store, clock, caller_mb_per_day=1) as one, limited(store, clock, caller_mb_per_day=1) as two:
        quote_id = new_quote(one, *[{**SEATS, "notes": "x" * 2_000}] * 40)
        replies = ((one, two)[turn % 2].reply("quote_clone", {"quote_id": quote_id}) for turn in range(100))
        made = [reply.body for reply in takewhile(lambda reply: not reply.is_error, replies)]
        error = two.error("quote_clone", quote_id=quote_id)
        assert error["code"] == "RATE_LIMITED"
        assert error["message"].startswith("agent:mcp has stored 1 MB today")
        wait = error["details"]["retry_after_seconds"]
        midnight = clock.now() + timedelta(seconds=wait)
        assert (midnight.hour, midnight.minute, midnight.second) == (0, 0, 0)
        assert 2 <= len(made) <= 10
        before = row_counts(two.app)
        assert two.error("quote_create", account_id="acct_acme_001", line_items=[SEATS])["code"] == "RATE_LIMITED"
        assert row_counts(two.app) == before
        assert two("quote_get", quote_id=quote_id)["quote"]["id"] == quote_id
        product = engine.product_row(id="prod_new", sku="NEW", name="New")
        assert engine.import_dicts(two.app, "products", product).created["products"] == 1  # By the operator.
        rosa = Tools(two.app, principal=replace(OPERATOR, name="rosa", roles=frozenset({Role.SALES_REP})))
        assert rosa("quote_clone", quote_id=quote_id)["quote_id"], "another caller has a share of its own"
    with limited(store, clock, caller_mb_per_day=1) as again:
        codes = [again.reply("quote_clone", {"quote_id": quote_id}).code for _ in range(3)]
        assert codes[-1] == "RATE_LIMITED", "a restart gives no new share"
        clock.advance(seconds=wait)
        assert again("quote_clone", quote_id=quote_id)["quote_id"]
        with again.app.database.reading() as connection:
            rows = connection.execute(sa.select(tables.caller_bytes.c.caller, tables.caller_bytes.c.bytes)).all()
    assert {row.caller for row in rows} == {"agent:mcp", "human:rosa"}
    assert all(0 < row.bytes <= 1_000_000 for row in rows)


def test_what_is_counted_is_near_what_is_stored(sqlite_tools: Tools, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(daily_bytes, "CHUNK_BYTES", 1)
    quote_id = new_quote(sqlite_tools, *[{**SEATS, "notes": "x" * 2_000}] * 100)

    def size() -> int:
        with sqlite_tools.app.database.reading() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) * 4096

    def counted() -> int:
        with sqlite_tools.app.database.reading() as connection:
            return int(connection.scalar(sa.select(tables.caller_bytes.c.bytes)) or 0)

    before = size(), counted()
    for _ in range(10):
        sqlite_tools("quote_clone", quote_id=quote_id)
    assert 0.5 < (counted() - before[1]) / (size() - before[0]) < 2  # A page holds only one such line.
