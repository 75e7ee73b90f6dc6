"""What counts as evidence: not the words of a link, not a page that lacks the rare words; and what is quoted of it."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from mcp import Client

from cpq.app import App
from cpq.retrieval.search import corpus
from cpq.retrieval.web import crawler
from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of
from tests.support.engine import Tools
from tests.support.website import Website, page, vendor
from tests.tools.test_web import opened


@pytest.fixture
def site() -> Iterator[Website]:
    with Website(vendor()) as running:
        yield running


@pytest.fixture
def web(sqlite_app: App, site: Website) -> Iterator[Tools]:
    app = opened(sqlite_app.settings, site)
    yield Tools(app)
    app.close()


def evidence(brief: str) -> str:
    return brief.split("[EVIDENCE]\n")[1].split("\n\n[")[0]


def citations(brief: str) -> str:
    return brief.split("[CITATIONS]\n")[1].split("\n\n[STATS]")[0]


def test_a_page_of_contents_is_no_answer_but_leads_to_one(web: Tools, site: Website):
    """Before, its own link scored 0.81 and ended the search."""
    links = (("/service/oil.html", "Oil change intervals"), ("/warranty.html", "Warranty"), ("/models/1.html", "AX1"))
    items = "".join(f'<li><a href="{path}">{label}</a></li>' for path, label in links)
    site.pages["/contents"] = page("Contents", f"<ul>{items}</ul>")
    answer = web("answer", url=site.url("/contents"), query="oil change intervals?")
    assert answer["sources"][0]["url"] == site.url("/service/oil.html")
    assert "Oil change intervals" not in evidence(answer["brief"])
    assert '[1] "Change the compressor oil every 4000 hours or once a year."' in citations(answer["brief"])
    note = f"{site.url('/contents')}, which was asked for, has no text that can be searched, only links or pictures"
    assert f"Note: {note}; the evidence is from other pages." in answer["brief"]


def test_a_passage_without_the_rare_words_of_the_question_does_not_end_the_search(web: Tools, site: Website):
    general = "<p>The oil change interval of a rotary compressor depends on load; a compressor has its interval.</p>"
    site.pages["/general"] = page("Oil change", f'{general}<p><a href="/ax77">AX77 compressor</a></p>')
    site.pages["/ax77"] = page("AX77", "<p>The oil change interval of the rotary compressor AX77 is 3000 hours.</p>")
    answer = web("answer", url=site.url("/general"), query="oil change interval of the rotary compressor AX77")
    assert answer["stop_reason"].startswith("sufficient evidence")
    assert answer["sources"][0]["url"] == site.url("/ax77")
    assert answer["iterations"] == 1


def test_a_link_is_followed_for_what_it_means(web: Tools, site: Website):
    """No word of the question is in the link, and the first links are about other things."""
    site.pages["/start"] = page(
        "Start",
        "<p>Welcome to Acme.</p><ul>"
        + "".join(f'<li><a href="/models/{n}.html">Model AX{n}</a></li>' for n in range(90))
        + '<li><a href="/a/1">Paint and colours</a></li><li><a href="/a/2">Sound and vibration</a></li></ul>',
    )
    site.pages["/a/1"] = page("Paint", "<p>Every canopy is blue.</p>")
    site.pages["/a/2"] = page("Sound", "<p>At full load it makes 75 decibels at one metre.</p>")
    brief = web("answer", url=site.url("/start"), query="How loud is the machine?", expansion_budget=1)["brief"]
    assert list(site.count()) == ["/start", "/a/2"]
    assert '"At full load it makes 75 decibels at one metre."' in citations(brief)


def test_the_terms_are_read_when_they_are_asked_for(web: Tools, site: Website):
    footer = '<footer><a href="/terms">Terms</a> <a href="/legal">Legal</a></footer>'
    site.pages["/shop"] = page("Shop", "<p>Order compressors here.</p>").replace("</body>", f"{footer}</body>")
    site.pages["/terms"] = page("Terms", "<p>An order can be cancelled within 14 days; then the price is refunded.</p>")
    other = web("answer", url=site.url("/shop"), query="Which colours can be ordered?")
    assert {"/terms", "/legal"}.isdisjoint(site.count())
    assert other["iterations"] == 0
    asked = web("answer", url=site.url("/shop"), query="What do the terms say about an order that is cancelled?")
    assert asked["sources"][0]["url"] == site.url("/terms")


def test_f3_10_a_row_is_quoted_with_its_head_and_a_sentence_by_its_meaning(web: Tools, site: Website):
    """F3.10"""
    rows = "".join(f"<tr><td>QMB{n}</td><td>{n} hp</td><td>{50 + n} dBA</td></tr>" for n in (25, 30))
    table = f"<table><tr><th>Model</th><th>Power</th><th>Noise</th></tr>{rows}</table>"
    site.pages["/qmb"] = page(
        "QMB", f"<h2>Data</h2>{table}<h2>Care</h2><p>It is blue. Lubricant is replaced yearly.</p>"
    )
    ask = {"url": site.url("/qmb"), "expansion_budget": 0}
    noise = citations(web("answer", **ask, query="noise of the QMB30")["brief"])
    assert noise.startswith('> [1] "| Model | Power | Noise  |\n>     | QMB30 | 30 hp | 80 dBA |"\n>     — QMB, ')
    oil = citations(web("answer", **ask, query="How often is the oil changed?")["brief"])
    assert '"Lubricant is replaced yearly."' in oil


def test_passages_of_relevance_0_are_left_out(web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corpus, "installed_embedder", lambda: None)
    parts = "<h2>Oil</h2><p>The oil is changed yearly.</p><h2>Paint</h2><p>Every canopy is blue.</p>"
    site.pages["/small"] = page("Small", parts)
    brief = web("answer", url=site.url("/small"), query="When is the oil changed?", expansion_budget=0)["brief"]
    assert "Mode: full_context" in brief or "Mode: chunk" in brief
    assert "The oil is changed yearly." in evidence(brief)
    assert "canopy" not in evidence(brief)
    assert "relevance: 0.00" not in brief


def test_f3_26_it_is_said_when_the_page_that_was_asked_for_has_nothing(web: Tools, site: Website):
    """F3.26: the evidence is from another page of the same site, or there is none."""
    web("ingest", url=site.url("/warranty.html"))
    note = f"Note: Nothing relevant was found on {site.url('/models/1.html')}, which was asked for"
    ask = {"url": site.url("/models/1.html"), "expansion_budget": 0}
    found = web("answer", **ask, query="How many years does the warranty last on the air end?")
    assert f"{note}; the evidence is from other pages." in found["brief"]
    assert found["sources"][0]["url"] == site.url("/warranty.html")
    none = web("answer", **ask, query="zebra migration patterns")
    assert f"{note}." in none["brief"]
    assert none["stop_reason"] == "No chunks above relevance threshold."
    both = web("answer", url=[site.url("/warranty.html"), site.url("/models/1.html")], query="warranty on the air end")
    assert f"{note}; the evidence is from other pages." in both["brief"]


def test_answers_say_how_far_vectors_are_being_made(web: Tools, site: Website, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crawler, "EMBEDDED_AT_ONCE", 1)
    web("ingest", url=[site.url(f"/models/{n}.html") for n in range(3)])
    for found in (
        web("search", query="rotary compressor"),
        web("answer", url=site.url("/models/0.html"), query="rotary compressor", expansion_budget=0),
    ):
        assert found["mode"] == "lexical"
        assert re.fullmatch(r"1 of \d texts can be found by meaning so far", found["indexing"])
        assert f"Ranking: lexical ({found['indexing']})" in found["brief"]
    crawler.embed(web.app, web.app.new_call())
    assert "indexing" not in web("search", query="rotary compressor")


@pytest.mark.anyio
async def test_f3_01_a_page_is_named_as_a_text_or_in_a_list(web: Tools, site: Website):
    """F3.1: a client that checks arguments against the schema may send either."""
    url = site.url("/warranty.html")
    async with Client(Facade(web.app, tools_of(("web",)))) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        for pages in (url, [url], [url, site.url("/models/1.html")]):
            arguments = {"url": pages, "query": "How long is the warranty?", "expansion_budget": 0}
            jsonschema.validate(arguments, listed["answer"].input_schema)
            result: Any = await client.call_tool("answer", arguments)
            assert "five years" in result.structured_content["brief"]
        others: dict[str, dict[str, Any]] = {
            "ingest": {"url": url},
            "search": {"query": "warranty", "source_urls": url},
        }
        for name, given in others.items():
            jsonschema.validate(given, listed[name].input_schema)
            assert not (await client.call_tool(name, given)).is_error
