"""What a call of the web toolset may take: its turn at a site, its share of the time, vectors of its own pages."""

from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from mcp import Client

from cpq.app import App, daily_bytes
from cpq.base.errors import Code
from cpq.retrieval.search.embedding import Embedder
from cpq.retrieval.search.vectors import Vector
from cpq.retrieval.web import answers, crawler, fetcher, repository
from cpq.storage.schema.tables import web_page
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS
from tests.support.console import WAIT_SECONDS
from tests.support.engine import Tools
from tests.support.website import Website, page, vendor
from tests.tools.test_server import until
from tests.tools.test_web import HTML, clock_of, opened

TOO_LATE = "its site wants us to wait longer than this call may take"


@pytest.fixture
def site() -> Iterator[Website]:
    with Website(vendor()) as running:
        yield running


@pytest.fixture
def sqlite_web(sqlite_app: App, site: Website) -> Iterator[Tools]:
    app = opened(sqlite_app.settings, site)
    yield Tools(app)
    app.close()


def test_the_pause_that_a_site_asks_for_is_kept(sqlite_web: Tools, site: Website):
    site.robots = "User-agent: *\nCrawl-delay: 7"
    sqlite_web("ingest", url=[site.url("/warranty.html"), site.url("/models/1.html"), site.url("/models/2.html")])
    assert 14 <= sum(clock_of(sqlite_web).slept) <= 16


def test_f3_33_r07_a_pause_that_is_longer_than_the_call_is_not_waited_for(sqlite_web: Tools, site: Website):
    """F3.33, R-07: what was read is told, and a page that was not asked for has not failed."""
    urls = [site.url(path) for path in ("/warranty.html", "/models/1.html", "/models/2.html")]
    sqlite_web("ingest", url=urls)
    site.robots = "User-agent: *\nCrawl-delay: 20"
    app = opened(sqlite_web.app.settings, site, tool_timeout_seconds=40)
    tools = Tools(app)
    report = tools("ingest", url=urls)
    assert [(item["outcome"], item["reason"]) for item in report["pages"]] == [
        *[("unchanged", None)] * 2,
        ("failed", TOO_LATE),
    ]
    assert sum(clock_of(tools).slept) <= answers.TIME_SHARE * 40
    assert [item["failure"] for item in tools("status")["pages"]] == [None] * 3
    app.close()


def test_f3_01_f3_33_pages_beside_the_seed_are_read_first_and_leave_it_its_time(sqlite_web: Tools, site: Website):
    """F3.01, F3.33: of a long pause between pages the seed is the last to suffer."""
    site.robots = "User-agent: *\nCrawl-delay: 7"
    app = opened(sqlite_web.app.settings, site, tool_timeout_seconds=30)
    ask = "How often must the compressor oil be changed, and what colour is the canopy?"
    pages = ["/", "/service/kits.html", "/warranty.html", "/models/1.html"]
    answer = Tools(app)("answer", url=[site.url(path) for path in pages], query=ask, expansion_budget=0)
    assert list(site.count()) == ["/service/kits.html", "/warranty.html", "/"]
    assert f"{site.url('/models/1.html')} was not read: {TOO_LATE}." in answer["brief"]
    app.close()


def test_pages_that_are_kept_count_for_the_caller_who_asked_for_them(
    sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(daily_bytes, "CHUNK_BYTES", 10_000)
    app = opened(sqlite_web.app.settings, site, caller_mb_per_day=1)
    tools, text = Tools(app), "<p>A compressor needs clean oil.</p>" * 6_000
    codes = []
    for number in range(12):
        site.pages[f"/large/{number}"] = (200, HTML, page(f"Page {number}", text).encode())
        codes.append(tools.reply("ingest", {"url": [site.url(f"/large/{number}")]}).code)
    assert (codes[0], codes[-1]) == ("OK", "RATE_LIMITED")
    with app.database.reading() as connection:
        kept = connection.scalar(sa.select(sa.func.count()).select_from(web_page)) or 0
    assert 1 < kept < 12
    app.close()


@pytest.mark.anyio
async def test_f3_25_a_call_over_the_time_limit_advises_to_skip_expansion(sqlite_web: Tools, site: Website):
    """F3.25"""
    site.pages["/slow"] = (200, {**HTML, "X-How": "hang", "Content-Length": "9"}, b"")
    app = opened(sqlite_web.app.settings, site, tool_timeout_seconds=0.3)
    async with Client(Facade(app, list(ALL_TOOLS))) as client:
        with anyio.fail_after(WAIT_SECONDS):
            result = await client.call_tool("answer", {"url": site.url("/slow"), "query": "x"})
            other = await client.call_tool("ingest", {"url": site.url("/slow")})
    structured: Any = result.structured_content
    text: Any = result.content[0]
    assert structured["error"]["code"] == Code.TIMEOUT
    assert "expansion_budget=0" in structured["error"]["details"]["hint"]
    assert "Suggestion: Retry with expansion_budget=0" in text.text
    assert "Suggestion: Ask for fewer pages at once" in other.content[0].text  # type: ignore[union-attr] # It is text.
    app.close()


def test_f3_27_a_full_index_fails_the_page_that_has_no_room_and_not_the_answer(
    sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch
):
    """F3.27"""
    monkeypatch.setattr(repository, "PAGES_MAX", 1)
    answer = sqlite_web("answer", url=site.url("/"), query="How often must the compressor oil be changed?")
    assert "[failed: 1 pages are kept already; the operator can take some away: cpq web forget]" in answer["brief"]
    assert sqlite_web("status")["documents"] == 1


@pytest.mark.anyio
async def test_a_cancelled_call_stops_at_the_page_it_waits_for(
    sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetcher, "FETCH_SECONDS", 10.0 * WAIT_SECONDS)
    site.pages["/slow"] = (200, {**HTML, "X-How": "hang", "Content-Length": "9"}, b"")
    facade = Facade(sqlite_web.app, list(ALL_TOOLS))
    async with Client(facade) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "ingest", {"url": [site.url("/slow"), site.url("/warranty.html")]})
            await until(lambda: site.count()["/slow"])
            calls.cancel_scope.cancel()
        await until(lambda: facade.places.running == 0)
    assert site.count() == {"/slow": 1}


def test_f3_33_the_time_of_a_call_is_not_used_up(sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch):
    """F3.33: near the limit it answers with what it has."""
    monkeypatch.setattr(answers, "TIME_SHARE", 0.0)
    answer = sqlite_web("answer", url=site.url("/"), query="How often needs a rotary compressor of Acme Air new oil?")
    assert answer["stop_reason"] == "time limit — what was found so far is returned"
    report = sqlite_web("ingest", url=[site.url(f"/models/{n}.html") for n in range(5)])
    assert len(report["pages"]) == 1


def test_vectors_of_what_was_just_read_come_first_and_the_rest_later(
    sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch
):
    """A call reckons as many as its own pages have, and leaves to the server what waited before."""
    monkeypatch.setattr(crawler, "EMBEDDED_AT_ONCE", 1)
    sqlite_web("ingest", url=[site.url(f"/models/{n}.html") for n in range(3)])
    monkeypatch.undo()
    sqlite_web("ingest", url=[site.url("/warranty.html"), site.url("/models/0.html")])
    corpus = sqlite_web.app.kept["main", repository.CORPUS, ""]
    waiting = [corpus._index.text(name) for name in corpus.missing()]
    assert len(waiting) == 2
    assert not [text for text in waiting if "warranty" in text.lower()]
    sqlite_web("answer", url=site.url("/service/kits.html"), query="What is in the kit SK-9?", expansion_budget=0)
    assert len(corpus.missing()) == 2
    assert crawler.embed(sqlite_web.app, sqlite_web.app.new_call()) == 2


def test_f3_33_vectors_take_no_more_than_half_of_the_time_that_is_left(
    sqlite_web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch
):
    """A long page on a slow machine: it is answered by words, and says how far the vectors are."""
    site.pages["/long"] = page("Long", "".join(f"<h2>Part {n}</h2><p>Valve {n} opens.</p>" for n in range(40)))
    plain = Embedder.passages

    def slow(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        clock_of(sqlite_web).advance(seconds=3 * len(texts))
        return plain(embedder, texts)

    monkeypatch.setattr(Embedder, "passages", slow)
    answer = sqlite_web("answer", url=site.url("/long"), query="When does valve 7 open?", expansion_budget=0)
    assert "> Valve 7 opens." in answer["brief"]
    assert answer["indexing"] == "16 of 40 texts can be found by meaning so far"


def test_a_link_that_was_kept_although_it_is_too_long_stops_nobody(sqlite_web: Tools, site: Website):
    """Earlier versions kept such links; the page is not read again while it has not changed."""
    site.pages["/hub"] = page("Hub", '<p>The oil is changed yearly, see <a href="/warranty.html">the warranty</a>.</p>')
    sqlite_web("ingest", url=site.url("/hub"))
    app, kept = sqlite_web.app, [[site.url(path), "warranty", False] for path in (f"/{'x' * 3000}", "/warranty.html")]
    app.upkeep(app.new_call(), lambda tx: tx.connection.execute(sa.update(web_page).values(links=kept)))
    report = sqlite_web("ingest", url=site.url("/hub"), depth=1)
    assert [(item["url"], item["outcome"]) for item in report["pages"]] == [
        (site.url("/hub"), "unchanged"),
        (site.url("/warranty.html"), "indexed"),
    ]
    assert "yearly" in sqlite_web("answer", url=site.url("/hub"), query="How often is the oil changed?")["brief"]
