"""`cpq docs` and `cpq context`: what people get to see of the pages and chunks that agents search."""

import json
import shutil
from pathlib import Path

import pytest

from cpq.cli import output
from tests.cli.conftest import Run, query
from tests.support.engine import SAMPLE

TERMS = SAMPLE / "handbook" / "terms"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return shutil.copytree(TERMS, tmp_path / "pages")


def test_the_index_is_counted_and_kept(home: Path, pages: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    ran = run("docs", "index", pages)
    assert ran.code == 0, ran.err
    assert [line.split() for line in ran.out.splitlines()][1:3] == [["pages", "3"], ["passages", "18"]]
    assert query(home, "SELECT count(*) FROM search_vector") == [(18,)]
    (pages / "payment.md").unlink()
    monkeypatch.setenv("CPQ_DOCS_DIR", str(pages))
    assert json.loads(run("docs", "index", "--json").out)["index"]["total_pages"] == 2
    assert query(home, "SELECT count(*) FROM search_vector") == [(12,)]


def test_a_search_shows_page_heading_and_passage(home: Path, pages: Path, run: Run):
    ran = run("docs", "search", "--dir", pages, "restocking", "fee", "--top-k", 2)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith("1. warranty.md: Warranty and returns > Returns  (0.")
    assert "restocking fee of 20 %" in lines[1]
    assert lines[-1].startswith("2 of 18 passages, hybrid, ")


def test_looking_into_another_folder_leaves_the_vectors_of_the_first(home: Path, pages: Path, run: Run, monkeypatch):
    other = pages.with_name("other")
    other.mkdir()
    (other / "note.md").write_text("# Note\n\nThe quokka stays.\n")
    monkeypatch.setenv("CPQ_DOCS_DIR", str(pages))
    run("docs", "index")
    for arguments in (("search", "--dir", other, "quokka"), ("index", other)):
        assert run("docs", *arguments).code == 0
        assert query(home, "SELECT count(*) FROM search_vector") == [(19,)]
    run("docs", "index")
    assert query(home, "SELECT count(*) FROM search_vector") == [(18,)]


def test_a_search_can_be_narrowed_and_read_by_programs(home: Path, pages: Path, run: Run):
    ran = run("docs", "search", "--dir", pages, "--filter", "delivery.md", "--json", "restocking fee")
    found = json.loads(ran.out)
    assert found["total_chunks"] == 6
    assert {hit["metadata"]["file_path"] for hit in found["results"]} == {"delivery.md"}


def test_work_that_takes_a_while_shows_how_far_it_is(home: Path, pages: Path, run: Run, monkeypatch):
    monkeypatch.setattr(output, "QUIET_SECONDS", 0)
    monkeypatch.setattr(output, "LINE_EVERY_SECONDS", 0)
    ran = run("docs", "index", pages)
    assert "Reading: 100 %\n" in ran.err
    assert "Indexing: 0 %\n" in ran.err
    assert "Indexing: 100 %\n" in ran.err


def test_pages_with_problems_are_named(home: Path, pages: Path, run: Run):
    (pages / "bad.md").write_bytes(b"\0")
    ran = run("docs", "index", pages)
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "bad.md is not text")


def test_without_a_folder_the_guide_is_searched(home: Path, run: Run):
    ran = run("docs", "search", "seconds for one PDF, then TIMEOUT", "--filter", "settings.md", "--json")
    assert "CPQ_PDF_TIMEOUT" in json.loads(ran.out)["results"][0]["content"]
    assert run("docs", "index", "/nowhere").code == 2


def test_chunks_are_written_where_they_are_wanted(empty_home: Path, tmp_path: Path, run: Run, monkeypatch):
    ran = run("context", "index", TERMS, "--to", tmp_path / "made")
    assert ran.code == 0, ran.err
    assert [line.split() for line in ran.out.splitlines()][2:] == [
        ["doc-chunks.json", "18"],
        ["code-symbols.json", "0"],
        ["code-definitions.json", "0"],
        ["code-data.json", "0"],
        ["3", "sources,", "into", str(tmp_path / "made")],
        *[[*f"Serve them with CPQ_CHUNKS_DIR={tmp_path / 'made'} CPQ_TOOLSETS=context.".split()]],
    ]
    monkeypatch.setenv("CPQ_CHUNKS_DIR", str(tmp_path / "other"))
    assert json.loads(run("context", "index", TERMS, "--json").out)["chunks"]["doc-chunks.json"] == 18
    assert (tmp_path / "other" / "doc-chunks.json").is_file()


def test_sources_that_are_left_out_are_named(empty_home: Path, tmp_path: Path, run: Run):
    (tmp_path / "source").mkdir()
    for number in range(25):
        (tmp_path / "source" / f"bad{number:02}.py").write_text("def (")
    ran = run("context", "index", tmp_path / "source")
    assert ran.err.splitlines()[0] == "left out: bad00.py is not Python, or nested too deeply"
    assert ran.err.splitlines()[-1] == "and 5 more"
    assert run("context", "index", "/nowhere").code == 2
