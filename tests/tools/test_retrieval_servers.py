"""Docs and context through a real MCP client and the real server over stdio, with its watchers running."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.make import SAMPLE
from tests.tools.test_context import AUTH, HANDLER, chunk, write

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parent.parent / "search" / "docs"
WAIT_SECONDS = 60


@pytest.fixture
def home(sqlite_template: Path, tmp_path: Path) -> dict[str, str]:
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    (tmp_path / "chunks").mkdir()
    write(tmp_path / "chunks", "doc-chunks", AUTH)
    write(tmp_path / "chunks", "code-symbols", HANDLER)
    shutil.copytree(FIXTURES / "search-relevance", tmp_path / "docs")
    shutil.copy(FIXTURES / "multi-part-section.md", tmp_path / "docs")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CPQ_", "MCP_", "CORTEX_"))}
    return {
        **env,
        "CPQ_HOME": str(tmp_path),
        "CPQ_DOCS_DIR": str(tmp_path / "docs"),
        "CPQ_CHUNKS_DIR": str(tmp_path / "chunks"),
        "CPQ_TOOLSETS": "docs,context",
    }


def server(home: dict[str, str]) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "mcp_facade"], env=home)


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
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["search_docs", "get_page", "get_section", "list_pages", "get_status", "cortex_search"]
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


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("CPQ_CHUNKS_DIR", "/nowhere", "CPQ_CHUNKS_DIR: the folder /nowhere cannot be opened"),
        ("CPQ_DOCS_DIR", "", "CPQ_DOCS_DIR is not set"),
    ],
)
def test_e3_15_a_server_without_its_folder_does_not_start(home: dict[str, str], variable: str, value: str, said: str):
    ran = subprocess.run(
        [sys.executable, "-m", "mcp_facade"],
        env={**home, variable: value},
        input=b"",
        capture_output=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert ran.returncode == 1
    assert said in ran.stderr.decode()
    assert b"Traceback" not in ran.stderr


async def test_all_toolsets_are_those_that_have_a_folder(home: dict[str, str]):
    settings = {**home, "CPQ_TOOLSETS": "all", "CPQ_CHUNKS_DIR": "", "CPQ_DOCS_DIR": str(SAMPLE / "handbook")}
    async with Client(server(settings)) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
    assert "search_docs" in listed
    assert "cortex_search" not in listed
