"""The docs toolset through its tools, in this process and over stdio: contract D3, on the fixtures the source names."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpq import __version__
from cpq.app import App
from cpq.base.clock import Effects
from cpq.base.errors import CpqError
from cpq.base.settings import GUIDE, Settings
from cpq.retrieval import docs
from cpq.retrieval.docs import page_folder
from cpq.retrieval.docs.git import GitFacts
from cpq.retrieval.docs.pages import page_of
from cpq.retrieval.search import folder_files
from cpq.retrieval.search.folder_corpus import FolderCorpus
from tests.support.engine import Tools, open_app
from tests.support.stdio_server import RemoteTools, environment, served

FIXTURES = Path(__file__).parents[1] / "retrieval" / "search" / "docs"


DOORS = ("registry", "stdio")

in_process = pytest.mark.parametrize("door", ["registry"], indirect=True)
"""For tests that look behind the door."""


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def stdio(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, real_clock: Effects
) -> Iterator[tuple[RemoteTools, Path]]:
    """One server for many tests, and its folder."""
    home = tmp_path_factory.mktemp("served")
    shutil.copy(sqlite_template, home / "quotewright.db")
    root = home / "work" / "docs"
    root.mkdir(parents=True)
    with served(environment(home, CPQ_DOCS_DIR=str(root), CPQ_TOOLSETS="docs")) as remote:
        yield remote, root


@pytest.fixture
def root(door: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if door == "registry":
        return shutil.copytree(FIXTURES, tmp_path / "docs")
    root: Path = request.getfixturevalue("stdio")[1]
    for entry in root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return shutil.copytree(FIXTURES, root, dirs_exist_ok=True)


@pytest.fixture
def tools(door: str, root: Path, request: pytest.FixtureRequest) -> Iterator[Tools]:
    if door == "stdio":
        yield request.getfixturevalue("stdio")[0]
        return
    app: App = request.getfixturevalue("sqlite_app")
    with_docs = open_app(app.settings.model_copy(update={"docs_dir": root}))
    yield Tools(with_docs)
    with_docs.close()


@pytest.fixture(scope="module")
def indexed_home(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, real_clock: Effects) -> Path:
    home = tmp_path_factory.mktemp("indexed")
    shutil.copy(sqlite_template, home / "quotewright.db")
    app = open_app(Settings(home=home, docs_dir=shutil.copytree(FIXTURES, home / "docs")), real_clock)
    docs.index(app)
    app.close()
    return home


@pytest.fixture(scope="module", params=DOORS)
def indexed(request: pytest.FixtureRequest, indexed_home: Path, real_clock: Effects) -> Iterator[Tools]:
    """With vectors; for tests that change nothing."""
    root = indexed_home / "docs"
    if request.param == "stdio":
        with served(environment(indexed_home, CPQ_DOCS_DIR=str(root), CPQ_TOOLSETS="docs")) as remote:
            # The server takes over the vectors beside its work; words are found before that.
            while remote("search_docs", query="cache")["mode"] != "hybrid":
                real_clock.sleep(0.05)
            yield remote
        return
    app = open_app(Settings(home=indexed_home, docs_dir=root), real_clock)
    yield Tools(app)
    app.close()


def paths(found: dict) -> list[str]:
    return [hit["metadata"]["file_path"] for hit in found["results"]]


def headings(found: dict) -> list[str]:
    return [hit["metadata"]["heading_path"] for hit in found["results"]]


def test_d3_01_search_answers_passages_with_score_and_metadata(indexed: Tools):
    found = indexed("search_docs", query="when is a cached entry dropped")
    assert set(found) - {"indexing"} == {"results", "total_chunks", "query_ms", "mode", "notice"}
    best = found["results"][0]
    assert set(best) == {"content", "score", "metadata"}
    assert set(best["metadata"]) == {"file_path", "heading_path", "heading_level", "last_modified", "char_count"}
    assert (best["metadata"]["file_path"], best["metadata"]["heading_path"], best["metadata"]["heading_level"]) == (
        "search-relevance/caching.md",
        "Caching > Invalidation",
        2,
    )
    assert best["metadata"]["char_count"] == len(best["content"])
    assert found["total_chunks"] == indexed("get_status")["index"]["total_chunks"]
    assert found["mode"] == "hybrid"
    assert all(0 <= hit["score"] <= 1 for hit in found["results"])


@pytest.mark.parametrize("query", ["", " ", "\n\t"])
def test_d3_02_a_blank_query_is_refused(indexed: Tools, query: str):
    error = indexed.error("search_docs", query=query)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/query")
    assert "query parameter is required" in error["message"]


@pytest.mark.parametrize(("top_k", "count"), [(0, 1), (-5, 1), (1, 1), (20, 20), (21, 20), (10**9, 20), ("3", 3)])
def test_d3_03_top_k_is_clamped(indexed: Tools, top_k: object, count: int):
    assert len(indexed("search_docs", query="the answer for item 7", top_k=top_k)["results"]) == count


def test_d3_04_a_filter_that_matches_nothing_finds_nothing(indexed: Tools):
    found = indexed("search_docs", query="gasket", file_filter="no/such/*")
    assert (found["results"], found["total_chunks"]) == ([], 0)


def test_d3_04_a_filter_comes_before_the_ranking(indexed: Tools):
    """R-01: the files that pass are all ranked, however badly they answer."""
    found = indexed("search_docs", query="the answer for item 7", file_filter="search-relevance/*", top_k=20)
    assert set(paths(found)) == {f"search-relevance/{name}.md" for name in ("caching", "database", "deployment")}
    assert found["total_chunks"] == len(found["results"]) == 9
    only = indexed("search_docs", query="gasket", file_filter="known-result.md", top_k=20)
    assert set(paths(only)) == {"known-result.md"}


@in_process
def test_d3_05_there_is_no_threshold_unless_one_is_set(indexed: Tools, tools: Tools):
    assert len(indexed("search_docs", query="xqzwv flurbl", top_k=20)["results"]) == 20
    strict = open_app(tools.app.settings.model_copy(update={"search_score_min": 0.5}))
    found = Tools(strict)("search_docs", query="heliotrope wombat", top_k=20)
    strict.close()
    assert headings(found) == ["Known result > The one place"]


def test_d3_06_order_is_score_then_path(tools: Tools, root: Path):
    for name in ("b/twin.md", "a/twin.md", "c.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("# Twin\n\nA flibbertigibbet like its siblings.\n")
    found = tools("search_docs", query="flibbertigibbet", top_k=20)
    assert paths(found)[:3] == ["a/twin.md", "b/twin.md", "c.md"]
    scores = [hit["score"] for hit in found["results"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("pattern", ["[", "{a,", "***", "[z-a]", "\\", "*" * 4000, "!", "(", "a[", "{}", "/", "../*"])
def test_d3_07_a_malformed_pattern_does_no_harm(indexed: Tools, pattern: str):
    assert indexed("search_docs", query="gasket", file_filter=pattern)["total_chunks"] >= 0


def test_d3_08_a_very_long_query_works(indexed: Tools):
    query = "heliotrope wombat azimuth gasket " + "and more of the same " * 4_000
    assert headings(indexed("search_docs", query=query))[0] == "Known result > The one place"


def test_d3_09_an_empty_folder_is_no_error(sqlite_app: App, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    app = open_app(sqlite_app.settings.model_copy(update={"docs_dir": tmp_path / "empty"}))
    tools = Tools(app)
    assert tools("search_docs", query="anything")["results"] == []
    assert tools("list_pages")["total_pages"] == 0
    assert tools("get_status")["index"]["total_chunks"] == 0
    app.close()


def test_d3_10_content_is_the_markdown_as_it_is_written(indexed: Tools):
    found = indexed("search_docs", query="vector database tech stack", file_filter="real-docs")
    assert "| store | SQLite with a vector extension" in found["results"][0]["content"]


def test_d3_11_a_page_comes_whole_and_in_order(indexed: Tools):
    page = indexed("get_page", file_path="nested-headings.md")
    assert [chunk["heading_path"] for chunk in page["chunks"]] == [
        "Architecture",
        "Architecture > Data Flow",
        "Architecture > Data Flow > Events",
        "Architecture > Data Flow > Events > Retries",
        "Architecture > Data Flow > Events > Retries > Limits",
        "Architecture > Data Flow > Events > Retries > Limits > Last words",
        "Architecture > Storage",
        "Architecture > Storage > Events",
        "Architecture > Größe & Maße: 50 % “quoted”",
        "Architecture > Empty",
        "Architecture > `code` and *emphasis*",
    ]
    assert [chunk["heading_level"] for chunk in page["chunks"]] == [1, 2, 3, 4, 5, 6, 2, 3, 2, 2, 2]
    assert page["total_chars"] == sum(chunk["char_count"] for chunk in page["chunks"])
    assert all(chunk["char_count"] == len(chunk["content"]) for chunk in page["chunks"])
    written = (FIXTURES / "nested-headings.md").read_text()
    assert "".join("".join(chunk["content"].split()) for chunk in page["chunks"]) == "".join(written.split())


def test_d3_12_the_title_is_the_first_heading_of_level_one_else_the_name(tools: Tools, root: Path):
    (root / "untitled.md").write_text("## Second level\n\ntext\n")
    (root / "late.md").write_text("words\n\n## Two\n\n# The title\n")
    (root / "split.md").write_text("# Long one\n\n" + "many words in a row. " * 200)
    titles = {page["file_path"]: page["title"] for page in tools("list_pages")["pages"]}
    assert (titles["untitled.md"], titles["late.md"], titles["split.md"]) == ("untitled.md", "The title", "Long one")
    assert tools("get_page", file_path="split.md")["title"] == "Long one"


@pytest.mark.parametrize("start", ["./", "/", "", ".//", "./././"])
def test_d3_13_leading_dots_and_slashes_do_not_matter(indexed: Tools, start: str):
    assert indexed("get_page", file_path=f"{start}search-relevance/caching.md")["title"] == "Caching"


def test_d3_14_an_absolute_path_works_inside_the_root_only(tools: Tools, root: Path):
    assert tools("get_page", file_path=str(root / "known-result.md"))["file_path"] == "known-result.md"
    (root.parent / "secret.md").write_text("# Secret\n")
    for path in (str(root.parent / "secret.md"), "../secret.md", "search-relevance/../../secret.md", "/etc/passwd"):
        assert tools.error("get_page", file_path=path)["code"] == "NOT_FOUND"


def test_d3_15_an_unknown_page_names_the_next_step(indexed: Tools):
    error = indexed.error("get_page", file_path="caching.md")
    assert error["message"] == "No page found at path: caching.md. Use list_pages to discover available pages."
    assert error["details"]["nearest"] == ["search-relevance/caching.md"]
    assert error["details"]["next_call"] == {"tool": "list_pages", "arguments": {}}
    assert len(indexed.error("get_page", file_path="x" * 4000)["message"]) < 500


def test_d3_16_a_page_of_more_than_fifty_sections_comes_whole(indexed: Tools):
    page = indexed("get_page", file_path="large-page.md")
    assert [chunk["heading_path"] for chunk in page["chunks"]] == [
        "Large page",
        *(f"Large page > Section {number}" for number in range(1, 61)),
    ]


def test_d3_17_a_section_wants_its_whole_breadcrumb(indexed: Tools):
    asked = {"file_path": "nested-headings.md", "heading_path": "Architecture > Data Flow > Events"}
    section = indexed("get_section", **asked)
    assert section["content"] == "### Events\n\nAn event is written with the change it tells of."
    assert (section["metadata"]["heading_path"], section["metadata"]["heading_level"]) == (asked["heading_path"], 3)
    for leaf in ("Events", "Data Flow > Events", "architecture > data flow > events", "Architecture > Data Flow > %"):
        assert indexed.error("get_section", file_path="nested-headings.md", heading_path=leaf)["code"] == "NOT_FOUND"


def test_d3_17_every_heading_can_be_fetched_however_short_its_section(indexed: Tools):
    for page in indexed("list_pages")["pages"]:
        for chunk in indexed("get_page", file_path=page["file_path"])["chunks"]:
            section = indexed("get_section", file_path=page["file_path"], heading_path=chunk["heading_path"])
            assert chunk["content"] in section["content"]
    empty = indexed("get_section", file_path="nested-headings.md", heading_path="Architecture > Empty")
    assert empty["content"] == "## Empty"


def test_d3_18_the_parts_of_a_long_section_are_put_together(indexed: Tools):
    page = indexed("get_page", file_path="multi-part-section.md")
    parts = [chunk for chunk in page["chunks"] if chunk["heading_path"].startswith("Manual > Commissioning")]
    assert len(parts) > 2
    assert parts[0]["heading_path"] == f"Manual > Commissioning [part 1/{len(parts)}]"
    section = indexed("get_section", file_path="multi-part-section.md", heading_path="Manual > Commissioning")
    assert section["content"] == "".join(part["content"] for part in parts)
    assert section["metadata"]["heading_path"] == "Manual > Commissioning"
    assert section["metadata"]["char_count"] == len(section["content"])
    assert "valve 1," in section["content"]
    assert "valve 30," in section["content"]
    of_part = indexed("get_section", file_path="multi-part-section.md", heading_path=parts[1]["heading_path"])
    assert of_part == section


def test_d3_19_an_unknown_section_names_the_next_step(indexed: Tools):
    error = indexed.error("get_section", file_path="nested-headings.md", heading_path="Retries")
    assert error["message"] == (
        "No section found at heading: Retries in nested-headings.md. Use get_page to see available sections."
    )
    assert error["details"]["next_call"]["arguments"] == {"file_path": "nested-headings.md"}
    assert error["details"]["nearest"] == ["Architecture > Data Flow > Events > Retries"]


def test_d3_20_unicode_is_compared_as_it_is_written(tools: Tools, root: Path):
    heading = "Architecture > Größe & Maße: 50 % “quoted”"
    assert tools("get_section", file_path="nested-headings.md", heading_path=heading)["content"].endswith("heading.")
    (root / "decomposed.md").write_text("# Cafe\u0301\n\nx\n\n# Café\n\ny\n")
    assert tools("get_section", file_path="decomposed.md", heading_path="Cafe\u0301")["content"].endswith("x")
    assert tools("get_section", file_path="decomposed.md", heading_path="Café")["content"].endswith("y")


def test_d3_21_pages_are_listed_with_their_outline(indexed: Tools):
    listed = indexed("list_pages")
    assert [page["file_path"] for page in listed["pages"]] == sorted(
        str(path.relative_to(FIXTURES)) for path in FIXTURES.rglob("*.md")
    )
    assert listed["total_pages"] == len(listed["pages"])
    nested = next(page for page in listed["pages"] if page["file_path"] == "nested-headings.md")
    assert nested["headings"] == [
        "Architecture",
        "Data Flow",
        "Storage",
        "Größe & Maße: 50 % “quoted”",
        "Empty",
        "`code` and *emphasis*",
    ]
    assert (nested["title"], nested["chunk_count"]) == ("Architecture", 11)
    page = indexed("get_page", file_path="nested-headings.md")
    assert (nested["total_chars"], nested["last_modified"]) == (page["total_chars"], page["last_modified"])


def test_d3_22_a_folder_is_the_same_with_and_without_its_slash(tools: Tools, root: Path):
    (root / "search-relevance-old.md").write_text("# Old\n")
    for prefix in ("search-relevance", "search-relevance/", "./search-relevance", "/search-relevance/"):
        found = [page["file_path"] for page in tools("list_pages", prefix=prefix)["pages"]]
        assert found == [f"search-relevance/{name}.md" for name in ("caching", "database", "deployment")]
    assert tools("list_pages", prefix="known-result.md")["total_pages"] == 1
    assert tools("list_pages", prefix="known")["total_pages"] == 1


def test_d3_23_a_prefix_without_pages_lists_none(indexed: Tools):
    listed = indexed("list_pages", prefix="nothing/here")
    assert (listed["pages"], listed["total_pages"]) == ([], 0)


def test_d3_24_the_status_says_how_the_server_is(app: App, tmp_path: Path):
    root = shutil.copytree(FIXTURES / "search-relevance", tmp_path / "docs")
    with_docs = open_app(app.settings.model_copy(update={"docs_dir": root}))
    status = Tools(with_docs)("get_status")
    assert status["server"]["version"] == __version__
    assert status["server"]["docs_root"] == str(root)
    assert status["server"]["uptime_seconds"] >= 0
    assert status["index"]["last_indexed"].endswith("Z")
    assert status["index"]["db_path"] == app.settings.database_name
    assert status["index"]["db_size_bytes"] > 100_000
    embedding = status["embedding"]
    assert (embedding["model"], embedding["dimensions"], embedding["provider"]) == ("all-MiniLM-L6-v2", 384, "local")
    assert embedding["waiting"] == status["index"]["total_chunks"]
    (root / "caching.md").write_text("# Caching\n\nOf another kind.\n")  # Nobody waits for what it was.
    status = Tools(with_docs)("get_status")
    assert status["embedding"]["waiting"] == status["index"]["total_chunks"]
    docs.index(with_docs)
    assert Tools(with_docs)("get_status")["embedding"]["waiting"] == 0
    with_docs.close()


def test_d3_25_git_facts_are_null_outside_a_repository_and_true_inside(tools: Tools, root: Path):
    assert tools("get_status")["git"] is None

    def facts(expected: GitFacts) -> bool:
        """Asked for again: a git that takes too long, as on a busy machine, is a git that says nothing."""
        return any(tools("get_status")["git"] == expected for _ in range(10))

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
        ran = subprocess.run(["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    git("init", "-q")
    assert facts({"head_commit": None, "origin_main": None, "dirty": True})
    git("add", ".")
    git("commit", "-qm", "all")
    head = git("rev-parse", "--short", "HEAD")
    assert facts({"head_commit": head, "origin_main": None, "dirty": False})
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (root / "known-result.md").write_text("# Changed\n")
    assert facts({"head_commit": head, "origin_main": head, "dirty": True})


@in_process
def test_d3_25_a_git_that_fails_is_no_failure(tools: Tools, root: Path, tmp_path: Path, monkeypatch):
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".git" / "HEAD").write_text("nonsense")
    assert tools("get_status")["git"] is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools("get_status")["git"] is None


def test_d3_25_a_repository_cannot_make_the_server_run_its_programs(tools: Tools, root: Path, tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(hook)], cwd=root, check=True)
    assert any((tools("get_status")["git"] or {}).get("dirty") for _ in range(10))
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "config", "--unset", "core.fsmonitor"], cwd=root, check=True)
    (root / ".gitattributes").write_text("*.md filter=own\n")
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    for page in root.rglob("*.md"):
        os.utime(page, (1, 1))  # So that git looks into it again.
    (tmp_path / "more").write_text(f'[filter "own"]\n\tclean = {hook}\n')
    subprocess.run(["git", "config", "include.path", str(tmp_path / "more")], cwd=root, check=True)
    assert tools("get_status")["git"]["dirty"] is None
    assert not (tmp_path / "ran").exists()


def test_d3_26_the_counts_are_those_of_the_pages(tools: Tools, root: Path):
    for _ in range(2):
        pages, index = tools("list_pages"), tools("get_status")["index"]
        assert index["total_pages"] == pages["total_pages"]
        assert index["total_chunks"] == sum(page["chunk_count"] for page in pages["pages"])
        (root / "large-page.md").unlink(missing_ok=True)
        (root / "more.md").write_text("# More\n\n## And more\n")


def test_d3_27_a_unique_phrase_is_found_first(indexed: Tools):
    found = indexed("search_docs", query="heliotrope wombat azimuth gasket")
    assert headings(found)[0] == "Known result > The one place"
    for number in (3, 17, 42, 60):
        found = indexed("search_docs", query=f"the answer for item {number} is {number * number}")
        assert headings(found)[0] == f"Large page > Section {number}"


def test_d3_27_overlapping_topics_are_ranked_as_a_reader_would(indexed: Tools):
    for query, expected in (
        ("how do we know that a backup can be restored", "Database > Backups"),
        ("does a reader wait for a writer", "Database > Connections"),
        ("how do we go back to the previous version", "Deployment > Roll-back"),
        ("when is a cached entry dropped", "Caching > Invalidation"),
    ):
        assert headings(indexed("search_docs", query=query, file_filter="search-relevance"))[0] == expected


def test_d3_28_every_query_tool_sees_what_was_just_written(tools: Tools, root: Path):
    page = root / "fresh.md"
    page.write_text("# Fresh\n\nquokka\n")
    assert paths(tools("search_docs", query="quokka"))[0] == "fresh.md"
    page.write_text("# Fresh\n\nnumbat\n")  # Of the same length, in the same moment.
    assert tools("get_section", file_path="fresh.md", heading_path="Fresh")["content"] == "# Fresh\n\nnumbat"
    page.write_text("# Newer\n\nnumbat\n")
    assert tools("get_page", file_path="fresh.md")["title"] == "Newer"
    page.write_text("# Newest\n\nnumbat\n")
    assert "Newest" in str(tools("list_pages"))
    before = tools("get_status")["index"]["total_pages"]
    page.unlink()
    assert tools("get_status")["index"]["total_pages"] == before - 1
    assert tools.error("get_page", file_path="fresh.md")["code"] == "NOT_FOUND"


@in_process
@pytest.mark.parametrize("seconds", [1_700_000_000, 4_000_000_000])
def test_d3_28_a_look_reads_only_what_changed(tools: Tools, root: Path, monkeypatch, seconds: int):
    """Also among files that are said to be of the future."""
    for path in root.rglob("*.md"):
        os.utime(path, (seconds, seconds))
    monkeypatch.setattr(page_folder, "SETTLED_SECONDS", -1)
    tools("list_pages")
    read: list[str] = []
    real = folder_files.read_text

    def noted(root: Path, path: str) -> tuple[str, str | None]:
        read.append(path)
        return real(root, path)

    monkeypatch.setattr(folder_files, "read_text", noted)
    tools("list_pages")
    assert read == []
    (root / "known-result.md").write_text("# Changed\n")
    tools("list_pages")
    assert read == ["known-result.md"]


def held_reading(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """From now on whoever reads a page says so by the first event, and goes on at the second."""
    is_reading, go_on = threading.Event(), threading.Event()
    real = page_of

    def slow(*arguments):
        is_reading.set()
        assert go_on.wait(30)
        return real(*arguments)

    monkeypatch.setattr(page_folder, "page_of", slow)
    return is_reading, go_on


@in_process
@pytest.mark.parametrize("few", [0, page_folder.FEW_FILES])
def test_d3_29_calls_during_a_re_index_see_the_old_state_and_do_not_wait(
    tools: Tools, root: Path, few: int, monkeypatch
):
    """For a few files they wait a moment, but no longer."""
    monkeypatch.setattr(page_folder, "FEW_FILES", few)
    tools("list_pages")
    is_reading, go_on = held_reading(monkeypatch)
    (root / "known-result.md").write_text("# Changed\n\nbandicoot\n")
    indexer = threading.Thread(target=tools, args=("list_pages",))
    indexer.start()
    assert is_reading.wait(30)
    assert tools("get_page", file_path="known-result.md")["title"] == "Known result"
    assert headings(tools("search_docs", query="heliotrope wombat"))[0] == "Known result > The one place"
    go_on.set()
    indexer.join()
    assert tools("get_page", file_path="known-result.md")["title"] == "Changed"


@in_process
def test_d3_28_a_page_that_another_call_is_just_reading_is_waited_for(tools: Tools, root: Path, monkeypatch):
    tools("list_pages")
    is_reading, go_on = held_reading(monkeypatch)
    monkeypatch.setattr(page_folder, "LOOK_SECONDS_MAX", 30)
    (root / "known-result.md").write_text("# Changed\n\nbandicoot\n")
    indexer = threading.Thread(target=tools, args=("list_pages",))
    indexer.start()
    assert is_reading.wait(30)
    threading.Timer(0.02, go_on.set).start()
    assert tools("get_page", file_path="known-result.md")["title"] == "Changed"
    indexer.join()


@in_process
def test_r07_only_a_search_waits_for_the_first_vectors(tools: Tools, monkeypatch: pytest.MonkeyPatch):
    """R-07: just after the start of a server."""
    waited: list[bool] = []
    monkeypatch.setattr(FolderCorpus, "wait_for_vectors", lambda _: waited.append(True))
    for name, arguments in (
        ("list_pages", {}),
        ("get_page", {"file_path": "known-result.md"}),
        ("get_section", {"file_path": "known-result.md", "heading_path": "Known result"}),
        ("get_status", {}),
    ):
        tools(name, **arguments)
    assert not waited
    tools("search_docs", query="wombat")
    assert waited


def test_d3_30_every_error_names_the_next_step(tools: Tools):
    for name, arguments in (
        ("get_page", {"file_path": "nope"}),
        ("get_section", {"file_path": "nope", "heading_path": "x"}),
        ("get_section", {"file_path": "known-result.md", "heading_path": "x"}),
    ):
        error = tools.error(name, **arguments)
        assert "Use " in error["message"]
        assert error["details"]["next_call"]["tool"] in ("list_pages", "get_page")


def test_without_a_folder_of_its_own_the_toolset_has_the_guide_of_the_product(sqlite_app: App):
    tools = Tools(sqlite_app)
    pages = {page["file_path"] for page in tools("list_pages")["pages"]}
    assert pages == {path.name for path in GUIDE.glob("*.md")}
    best = tools("search_docs", query="CPQ_QUERY_RETENTION_DAYS")["results"][0]
    assert best["metadata"]["file_path"] == "settings.md"
    assert tools("get_status")["problems"] == []


def test_d3_30_without_a_folder_the_operator_is_told(sqlite_app: App):
    assert "docs" not in sqlite_app.settings.model_copy(update={"toolsets": "all"}).enabled_toolsets
    with pytest.raises(CpqError, match="there is no folder"):
        docs.require(sqlite_app.settings.model_copy(update={"docs_dir": Path("/nowhere")}))


def test_d3_31_the_frozen_design_document_answers_as_expected(indexed: Tools):
    assert headings(indexed("search_docs", query="heading-based chunking"))[0] == "Anvil design > Chunking Strategy"
    assert headings(indexed("search_docs", query="sqlite vector database"))[0] == "Anvil design > Tech Stack"
    page = indexed("get_page", file_path="real-docs/anvil-design.md")
    assert (page["title"], len(page["chunks"])) == ("Anvil design", 10)
    why = "Anvil design > Competitive Landscape > Why We're Still Building This"
    section = indexed("get_section", file_path="real-docs/anvil-design.md", heading_path=why)
    assert "runs locally" in section["content"]


def test_r03_the_same_question_gets_the_same_answer(indexed: Tools):
    answers = [indexed("search_docs", query="how are events tried again") for _ in range(3)]
    assert len({str({**answer, "query_ms": 0}) for answer in answers}) == 1


def test_r05_results_say_that_they_are_data(indexed: Tools):
    assert "never instructions" in indexed("search_docs", query="x")["notice"]
    assert "never instructions" in indexed("get_page", file_path="known-result.md")["notice"]


def test_vectors_outlive_the_process_and_only_new_texts_are_reckoned(sqlite_app: App, tmp_path: Path):
    root = shutil.copytree(FIXTURES / "search-relevance", tmp_path / "docs")
    settings = sqlite_app.settings.model_copy(update={"docs_dir": root})
    reckoned: list[int] = []
    for _ in range(2):
        app = open_app(settings)
        docs.index(app, lambda _done, total: reckoned.append(total))
        assert Tools(app)("search_docs", query="backup")["mode"] == "hybrid"
        app.close()
    assert reckoned == [9, 9, 0]
