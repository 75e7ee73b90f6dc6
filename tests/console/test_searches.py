"""The page of searches: for the deal desk and administrators, filtered, page by page, and as a file."""

import csv
import io
import re

import pytest

from cpq.console import visit
from tests.support.console import Console
from tests.support.engine import StillEffects

NONSENSE = "zxqv wkjh"


def queries_on(page: str) -> list[str]:
    """The queries of the list, in order."""
    body = page.partition('<table class="list searches">')[2].partition("</table>")[0]
    return re.findall(r"<td><bdi>(.*?)</bdi><small>", body)


def search(console: Console, clock: StillEffects, *queries: str, tool: str = "search_equipment") -> None:
    for query in queries:
        console.tools(tool, query=query)
        console.app.flush_audit()
        clock.advance(seconds=1)


def test_the_page_lists_searches_latest_first_with_filters(console: Console, clock: StillEffects):
    search(console, clock, "quiet oilless compressor", NONSENSE, NONSENSE)
    search(console, clock, "air station for a dairy", tool="search_past_quotes")
    page = (desk := console.signed_in("dora", "deal_desk")).get("/console/searches")
    assert page.status_code == 200
    assert queries_on(page.text) == ["air station for a dairy", NONSENSE, NONSENSE, "quiet oilless compressor"]
    assert '<a href="/console/searches" aria-current="page">Searches</a>' in page.text
    assert re.search(rf'id="frequent".*<bdi>{NONSENSE}</bdi>.*<td class="n">2</td>', page.text, re.DOTALL)
    assert queries_on(desk.get("/console/searches?failed=yes").text) == [NONSENSE, NONSENSE]
    found = desk.get("/console/searches?tool=search_past_quotes").text
    assert queries_on(found) == ["air station for a dairy"]
    assert queries_on(desk.get("/console/searches?q=OILLESS").text) == ["quiet oilless compressor"]
    assert "No search matches this." in desk.get("/console/searches?q=unheard").text
    file = desk.get("/console/searches?format=csv&failed=yes").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(file)))
    assert [(row["caller"], row["query"], row["hits"], row["is_failed"]) for row in rows] == [
        ("agent:mcp", NONSENSE, "0", "yes")
    ] * 2


def test_many_searches_are_listed_page_by_page(
    sqlite_console: Console, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(visit, "PAGE_ROWS", 2)
    search(sqlite_console, clock, "one", "two", "three")
    admin = sqlite_console.signed_in("ada", "admin")
    assert queries_on(admin.get("/console/searches").text) == ["three", "two"]
    assert queries_on(admin.get("/console/searches?page=2").text) == ["one"]
    assert "Show its last page" in admin.get("/console/searches?page=9").text


@pytest.mark.parametrize("role", ["sales_rep", "sales_manager", "vp_sales", "finance", "legal"])
def test_others_neither_see_the_page_nor_its_link(sqlite_console: Console, clock: StillEffects, role: str):
    search(sqlite_console, clock, "secret plan for Acme")
    visitor = sqlite_console.signed_in("sam", role)
    page = visitor.get("/console/searches")
    assert (page.status_code, "secret plan" in page.text) == (403, False)
    assert visitor.get("/console/searches?format=csv").status_code == 403
    assert "/console/searches" not in visitor.get("/console/queue").text


def test_a_hostile_query_is_shown_as_text(sqlite_console: Console, clock: StillEffects):
    search(sqlite_console, clock, "<script>alert(1)</script> compressor", "=cmd|' /C calc'!A0 compressor")
    admin = sqlite_console.signed_in("ada", "admin")
    page = admin.get("/console/searches").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; compressor" in page
    assert "<script>alert" not in page
    assert "'=cmd" in admin.get("/console/searches?format=csv").text
