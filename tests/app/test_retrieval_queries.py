"""What callers search for is on record for tuning: who, what, how many hits and how good; for a while, and bounded."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, audit, retrieval_queries
from cpq.app.access import Permission, Principal, Role
from cpq.app.call import Retrieval
from cpq.base.settings import Settings
from cpq.services.reports import query_report
from cpq.storage.schema.tables import retrieval_query
from tests.support.engine import SELLER, TODAY, StillEffects, Tools, add_tenant, open_app
from tests.support.website import Website, vendor

NONSENSE = "zxqv wkjh"


@pytest.fixture
def still(store: Settings, clock: StillEffects) -> Iterator[App]:
    app = open_app(store, clock)
    yield app
    app.close()


def recorded(app: App, tenant_id: str = "main", **asked: Any) -> list[Any]:
    """The searches, earliest first."""
    app.flush_audit()
    call = app.new_call(Principal("ops", "human", frozenset({Role.ADMIN}), tenant_id))
    found = app.read_unaudited(call, lambda tx: query_report.queries(tx, **{"limit": 100, "page": 1, **asked}))
    return found["items"][::-1]


def test_every_search_of_equipment_past_quotes_and_the_catalogue_is_on_record(app: App):
    tools = Tools(app)
    equipment = tools("search_equipment", query="quiet oilless compressor", top_k=3)
    lines = tools("search_line_items", query="100HP oilless food grade")
    tools.seller("search_past_quotes", query="air station for a dairy")
    tools("catalog_search", query="pro plan")
    near = tools("catalog_search", query="silent oilfree air blower")
    assert near["matched"] == "meaning"
    rows = recorded(app)
    assert [(row["tool"], row["caller"], row["query"]) for row in rows] == [
        ("search_equipment", "agent:mcp", "quiet oilless compressor"),
        ("search_line_items", "agent:mcp", "100HP oilless food grade"),
        ("search_past_quotes", "human:sam", "air station for a dairy"),
        ("catalog_search", "agent:mcp", "silent oilfree air blower"),
    ], "a search that all words answer is no search by meaning"
    assert (rows[0]["hits"], rows[0]["mode"]) == (3, equipment["mode"])
    best = lines["results"][0]
    assert (rows[1]["hits"], rows[1]["score"], rows[1]["confidence"]) == (
        len(lines["results"]),
        Decimal(str(best["score"])),
        best["confidence"],
    )
    assert {row["id"] for row in rows} <= {entry.id for entry in _trail(app)}


def test_searches_of_pages_chunks_and_the_web_are_on_record(sqlite_app: App, tmp_path: Path):
    docs, chunks = tmp_path / "docs", tmp_path / "chunks"
    docs.mkdir()
    (docs / "terms.md").write_text("# Payment\n\nInvoices are due after thirty days without discount.\n")
    chunks.mkdir()
    chunk = {"id": "a", "chunk_type": "data", "title": "limits", "text": "MAX_LOGINS = 5", "tags": [], "metadata": {}}
    (chunks / "data.json").write_text(json.dumps([chunk]))
    changes = {"docs_dir": docs, "chunks_dir": chunks, "web_allowed_hosts": "127.0.0.1"}
    app = open_app(sqlite_app.settings.model_copy(update=changes))
    tools = Tools(app)
    with Website(vendor()) as site:
        tools("search_docs", query="when are invoices due")
        tools("cortex_search", query="MAX_LOGINS")
        tools("answer", url=site.url("/service/oil.html"), query="How often is the oil changed?", expansion_budget=0)
        tools("search", query="oil change interval")
    rows = recorded(app)
    app.close()
    assert [row["tool"] for row in rows] == ["search_docs", "cortex_search", "answer", "search"]
    assert [row["is_failed"] for row in rows] == [False] * 4
    assert rows[0]["hits"] == 1
    assert rows[2]["query"] == "How often is the oil changed?"


def test_a_search_without_a_near_hit_is_a_failed_one(app: App):
    tools = Tools(app)
    tools("search_equipment", query="quiet oilless compressor")
    assert tools("search_equipment", query=NONSENSE)["results"] == []
    tools("search_equipment", query="ergonomic office chairs")
    tools("search_line_items", query=NONSENSE.upper())
    tools("search_line_items", query=NONSENSE)
    failed = recorded(app, failed_only=True)
    assert [(row["query"], row["confidence"]) for row in failed] == [
        (NONSENSE, None),
        ("ergonomic office chairs", "probable_miss"),
        (NONSENSE.upper(), None),
        (NONSENSE, None),
    ]
    assert len(recorded(app, failed_only=True, tool="search_equipment")) == 2
    assert [row["query"] for row in recorded(app, query="OFFICE ergon")] == ["ergonomic office chairs"]
    assert recorded(app, query="100%") == []
    call = app.new_call()
    often = app.read_unaudited(call, query_report.often_failed)
    assert next((one["query"], one["tool"], one["count"]) for one in often) == (NONSENSE, "search_line_items", 2)
    assert len(often) == 3
    assert app.read_unaudited(call, query_report.by_tool) == [
        {"tool": "search_equipment", "count": 3, "failed": 2},
        {"tool": "search_line_items", "count": 2, "failed": 2},
    ]


def test_a_long_query_of_any_signs_is_kept_as_one_bounded_line(app: App):
    batch = [_noted("au-long", "a\0b\n\tc\u202ed\ud800e " + "x" * 5_000), _noted("au-blank", " " * 20_000)]
    _write(app, batch)
    long, blank = sorted(recorded(app), key=lambda row: -len(row["query"]))
    assert long["query"].startswith("a b c d e xxx")
    assert len(long["query"]) == retrieval_queries.QUERY_LENGTH_MAX
    assert blank["query"] == ""


def test_a_batch_that_is_written_a_second_time_is_stored_once(app: App):
    for _ in range(2):
        _write(app, [_noted("au-1", "one"), _noted("au-2", "two")])
    assert len(recorded(app)) == 2


def test_a_call_that_is_refused_leaves_no_search(app: App):
    Tools(app).error("search_equipment", query="compressor", category="no such category", specs=[{"spec": "x"}])
    assert recorded(app) == []


def test_queries_are_deleted_after_their_days(still: App, clock: StillEffects):
    tools = Tools(still)
    tools("search_equipment", query="old one")
    still.flush_audit()
    clock.advance(days=60)
    tools("search_equipment", query="newer one")
    assert len(recorded(still)) == 2
    clock.advance(days=40)
    tools("catalog_get", product_id="prod_pro_v2")
    assert [row["query"] for row in recorded(still)] == ["newer one"]


def test_the_oldest_of_too_many_queries_are_deleted(still: App, clock: StillEffects, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retrieval_queries, "QUERIES_MAX", 3)
    tools = Tools(still)
    for number in range(6):
        tools("search_equipment", query=f"number {number}")
        still.flush_audit()
        clock.advance(seconds=1)
    clock.advance(hours=2)
    tools("catalog_get", product_id="prod_pro_v2")
    assert [row["query"] for row in recorded(still)] == ["number 3", "number 4", "number 5"]


def test_with_no_days_nothing_is_recorded_and_what_was_is_deleted(store: Settings):
    app = open_app(store)
    Tools(app)("search_equipment", query="compressor")
    assert len(recorded(app)) == 1
    app.close()
    app = open_app(store.model_copy(update={"query_retention_days": 0}))
    Tools(app)("search_equipment", query="compressor")
    assert recorded(app) == []
    app.close()


def test_a_tenant_sees_only_its_own_searches(app: App):
    add_tenant(app, "other")
    _write(app, [_noted("au-1", "ours")])
    _write(app, [_noted("au-1", "theirs", "other")], "other")
    assert [row["query"] for row in recorded(app)] == ["ours"]
    assert [row["query"] for row in recorded(app, "other")] == ["theirs"]


def test_searching_takes_no_transaction_that_writes(app: App, monkeypatch: pytest.MonkeyPatch):
    """The record is written with the audit entries, a moment after the answer."""
    Tools(app)("search_equipment", query="compressor")
    app.flush_audit()

    def refuse(*_: object) -> None:
        raise AssertionError("a search began to write")

    with monkeypatch.context() as patch:
        patch.setattr(app, "upkeep", refuse)
        patch.setattr(app, "write_within", refuse)
        Tools(app)("search_equipment", query="tank")
    assert [row["query"] for row in recorded(app)] == ["compressor", "tank"]


def test_only_the_deal_desk_and_administrators_may_see_queries():
    allowed = {role for role in Role if Principal("x", "human", frozenset({role})).may(Permission.SEE_QUERIES)}
    assert allowed == {Role.DEAL_DESK, Role.ADMIN}
    assert not SELLER.may(Permission.SEE_QUERIES)


def _trail(app: App) -> list[audit.Entry]:
    with app.database.reading() as connection:
        return list(audit.entries(connection, "main", sealed_only=True))


def _noted(id_: str, query: str, tenant_id: str = "main") -> audit.Noted:
    entry = audit.Entry(tenant_id, id_, TODAY, "agent:mcp", "search_docs", "", "OK", None, "tr-1")
    return audit.Noted(entry, Retrieval(query, 1, "lexical", Decimal("0.5"), "analog", is_failed=False))


def _write(app: App, batch: list[audit.Noted], tenant_id: str = "main") -> None:
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        retrieval_queries.record(connection, batch)
    with app.database.reading() as connection:
        stored = sa.select(retrieval_query.c.id).where(retrieval_query.c.tenant_id == tenant_id)
        assert {noted.entry.id for noted in batch} <= set(connection.scalars(stored))
