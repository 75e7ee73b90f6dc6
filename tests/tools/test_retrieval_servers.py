"""Docs and context through a real MCP client and the real server over stdio, with its watchers running."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from cpq.base.clock import Effects
from tests.support.engine import SAMPLE
from tests.support.stdio_server import environment, served, server
from tests.tools.test_context import AUTH, HANDLER, chunk, write

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[1] / "retrieval" / "search" / "docs"
WAIT_SECONDS = 60


@pytest.fixture
def home(sqlite_template: Path, tmp_path: Path, real_clock: Effects) -> dict[str, str]:
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    (tmp_path / "chunks").mkdir()
    write(tmp_path / "chunks", "doc-chunks", AUTH)
    write(tmp_path / "chunks", "code-symbols", HANDLER)
    shutil.copytree(FIXTURES / "search-relevance", tmp_path / "docs")
    shutil.copy(FIXTURES / "multi-part-section.md", tmp_path / "docs")
    return environment(
        tmp_path,
        CPQ_DOCS_DIR=str(tmp_path / "docs"),
        CPQ_CHUNKS_DIR=str(tmp_path / "chunks"),
        CPQ_TOOLSETS="docs,context",
    )


async def answer(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    assert result.is_error == ("error" in result.structured_content)
    return result.structured_content


async def until(is_so: Callable[[], Any]) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        while not await is_so():
            await anyio.sleep(0.05)


async def test_d3_28_the_docs_over_stdio_from_search_to_status(home: dict[str, str]):
    async with Client(server(home)) as client:
        offered = (await client.list_tools()).tools
        assert [tool.name for tool in offered] == [
            *("search_docs", "get_page", "get_section", "list_pages", "get_status", "cortex_search")
        ]
        assert all(tool.annotations.read_only_hint for tool in offered)  # type: ignore[union-attr]
        pages = await answer(client, "list_pages")
        assert pages["total_pages"] == 4
        found = await answer(client, "search_docs", query="is a backup ever restored", top_k=2)
        best = found["results"][0]["metadata"]
        assert best["heading_path"] == "Database > Backups"
        section = await answer(client, "get_section", file_path=best["file_path"], heading_path=best["heading_path"])
        assert section["content"] == found["results"][0]["content"]
        whole = await answer(
            client, "get_section", file_path="multi-part-section.md", heading_path="Manual > Commissioning"
        )
        assert "[part" not in str(whole)
        assert (await answer(client, "search_docs", query=" "))["error"]["code"] == "VALIDATION_ERROR"
        assert (await answer(client, "get_page", file_path="no.md"))["error"]["code"] == "NOT_FOUND"
        page = Path(home["CPQ_DOCS_DIR"]) / "fresh.md"
        page.write_text("# Fresh\n\nThe quokka arrives.\n")
        assert (await answer(client, "search_docs", query="quokka"))["results"][0]["metadata"][
            "file_path"
        ] == "fresh.md"

        async def has_all_vectors() -> bool:
            return (await answer(client, "get_status"))["embedding"]["waiting"] == 0

        await until(has_all_vectors)  # The watcher reckons them beside the calls.
        assert (await answer(client, "search_docs", query="marsupial"))["mode"] == "hybrid"


async def test_e3_11_chunk_files_are_taken_over_while_the_server_runs(home: dict[str, str]):
    root = Path(home["CPQ_CHUNKS_DIR"])
    async with Client(server(home)) as client:

        async def finds(id_: str) -> bool:
            found = await answer(client, "cortex_search", query="authentication", limit=100)
            return id_ in {hit["chunk"]["id"] for hit in found["results"]}

        assert await finds(AUTH["id"])
        write(root, "fresh", chunk("fresh"))
        await until(lambda: finds("fresh"))
        (root / "code-symbols.json").write_text("{")
        write(root, "more", chunk("more"))

        async def is_told() -> bool:
            return "code-symbols.json" in (await answer(client, "cortex_search", query="x")).get("warning", "")

        await until(is_told)
        assert await finds(HANDLER["id"])
        assert not await finds("more")
        write(root, "code-symbols", chunk("repaired", "symbols"))
        await until(lambda: finds("repaired"))
        assert await finds("more")


def test_e3_07_filters_limits_and_defaults_hold_over_stdio(home: dict[str, str]):
    """E3.01, E3.07, E3.09, E3.16, E3.20 and E3.23, on a folder found as Cortex finds it, with a file that is broken."""
    root = Path(home["CPQ_CHUNKS_DIR"])
    write(root, "many", *(chunk(f"n{number:03}", text="authentication handler login") for number in range(150)))
    write(root, "one", chunk("z-last", "data", text="nothing alike", tags=["rare"]))
    (root / "broken.json").write_text("[{")
    env = {**home, "CPQ_TOOLSETS": "context", "CPQ_CHUNKS_DIR": "", "CORTEX_CHUNKS_DIR": str(root)}
    query = "authentication handler login"
    with served(env) as remote:
        only = remote("cortex_search", query=query, limit=1, tags=["rare"])
        assert ([hit["chunk"]["id"] for hit in only["results"]], only["total"]) == (["z-last"], 1)
        counts = {
            limit: len(remote("cortex_search", query=query, limit=limit)["results"]) for limit in (-3, 1, 100, 500)
        }
        assert counts == {-3: 1, 1: 1, 100: 100, 500: 100}
        everything = remote("cortex_search", query=query)
        assert (len(everything["results"]), everything["total"]) == (15, 153)
    with served({**env, "CPQ_SEARCH_SCORE_MIN": "0.99"}) as remote:
        assert remote("cortex_search", query="nothing of the kind")["results"] == []


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_e3_24_a_signal_ends_the_server_and_its_watchers(home: dict[str, str], signal_: int):
    command = [sys.executable, "-m", "mcp_facade"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=home, **pipes) as process:  # type: ignore[call-overload]
        client = {"name": "raw", "version": "1"}
        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(signal_)
        _, said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert b"Traceback" not in said


def refused(home: dict[str, str]) -> str:
    """What a server says that does not start."""
    command = [sys.executable, "-m", "mcp_facade"]
    ran = subprocess.run(command, env=home, input=b"", capture_output=True, check=False, timeout=WAIT_SECONDS)
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr
    return ran.stderr.decode()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("CPQ_CHUNKS_DIR", "/nowhere", "CPQ_CHUNKS_DIR: the folder /nowhere cannot be opened"),
        ("CPQ_DOCS_DIR", "/nowhere", "CPQ_DOCS_DIR: there is no folder /nowhere"),
    ],
)
def test_e3_15_a_server_without_its_folder_does_not_start(home: dict[str, str], variable: str, value: str, said: str):
    assert said in refused({**home, variable: value})


def test_e3_18_a_server_does_not_start_with_the_vectors_of_another_model(home: dict[str, str]):
    write(Path(home["CPQ_CHUNKS_DIR"]), "other", chunk("other", embedding=[0.0] * 768))
    assert "other.json has vectors of 768 dimensions instead of 384" in refused(home)


async def test_all_toolsets_are_those_that_have_a_folder(home: dict[str, str]):
    settings = {**home, "CPQ_TOOLSETS": "all", "CPQ_CHUNKS_DIR": "", "CPQ_DOCS_DIR": str(SAMPLE / "handbook")}
    async with Client(server(settings)) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
    assert "search_docs" in listed
    assert "cortex_search" not in listed
