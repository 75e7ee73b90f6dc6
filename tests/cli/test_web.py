"""`cpq web`: a whole site read from the command line, what is there, and pages taken away."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpq.base.errors import Code, CpqError
from tests.cli.conftest import Run, query
from tests.support.website import MODELS, Website, page, vendor


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Website]:
    with Website(vendor()) as running:
        monkeypatch.setenv("CPQ_WEB_ALLOWED_HOSTS", running.host)
        monkeypatch.setenv("CPQ_WEB_PAUSE_SECONDS", "0")
        yield running


def test_a_whole_site_is_read_once_and_later_only_what_changed(
    site: Website, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """A few hundred linked pages, on words alone; the second time every page answers that it has not changed."""
    monkeypatch.setattr("cpq.retrieval.search.corpus.installed_embedder", lambda: None)
    site.pages["/gone"] = (410, {}, b"")
    site.pages["/warranty.html"] = page("Warranty", '<p>Three years.</p><a href="/gone">Old terms</a>')
    pages = MODELS + 5
    ran = run("web", "ingest", site.url(), "--depth", "3", "--json")
    first = json.loads(ran.out)
    assert (ran.code, len(first["pages"]), first["fetched"], first["failed"]) == (1, pages + 1, pages - 1, 2)
    assert {item["url"]: item["reason"] for item in first["pages"] if item["reason"]} == {
        site.url("/login"): "it answered with status 404",
        site.url("/gone"): "it answered with status 410",
    }
    assert max(site.count().values()) == 1
    site.asked.clear()
    site.pages["/models/7.html"] = page("AX7", "<p>Sold out.</p>")
    again = json.loads(run("web", "ingest", site.url(), "--depth", "3", "--json").out)
    assert (again["fetched"], again["unchanged"]) == (1, pages - 2)
    sent = [path for path in site.asked if not path.endswith(" 304")]
    assert sorted(sent) == ["/gone", "/login", "/models/7.html", "/robots.txt"]
    assert f"Documents indexed: {pages - 1}" in run("web", "status").out


def test_q12_reading_pages_leaves_one_record_also_when_it_fails(
    site: Website, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    assert run("web", "ingest", site.url("/warranty.html")).code == 0

    def fails(*_: object, **_named: object) -> None:
        raise CpqError(Code.UNAVAILABLE, "The pages cannot be read for meaning.")

    monkeypatch.setattr("cpq.retrieval.web.crawler.embed", fails)
    assert run("web", "ingest", site.url("/warranty.html")).code == 1
    recorded = "SELECT outcome FROM audit_entry WHERE operation = 'web_ingest' ORDER BY seq"
    assert query(home, recorded) == [("OK",), ("UNAVAILABLE",)]


def test_a_page_is_shown_and_taken_away(site: Website, run: Run):
    url = site.url("/warranty.html")
    ran = run("web", "ingest", url)
    assert (ran.code, ran.out.splitlines()[1]) == (0, "Pages: 1 (1 fetched, 0 unchanged, 0 failed)")
    assert json.loads(run("web", "status", url, "--json").out)["pages"][0]["title"] == "Warranty"
    assert run("web", "forget", url).out == f"Removed: {url}.\n"
    assert "Not indexed" in run("web", "status", url).out
    gone = run("web", "forget", url)
    assert (gone.code, gone.err.splitlines()[0]) == (1, f"Error: Not indexed: {url}.")


def test_a_private_host_needs_the_operators_word(site: Website, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CPQ_WEB_ALLOWED_HOSTS")
    ran = run("web", "ingest", site.url())
    assert ran.code == 1
    assert "(failed: its host is on a private network)" in ran.out
    assert not site.asked
    monkeypatch.setenv("CPQ_WEB_ALLOWED_HOSTS", "http://x/y")
    assert "CPQ_WEB_ALLOWED_HOSTS" in run("web", "status").err


def test_an_address_that_cannot_be_read_is_refused(site: Website, run: Run):
    ran = run("web", "ingest", "example.com")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: Only http and https addresses are fetched.")
