"""The web toolset on real servers, over stdio and HTTP, against a web site on this machine."""

import json
import logging
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters

from cpq.base.clock import Effects
from cpq.base.settings import Settings, read_settings
from mcp_facade.server import Facade
from mcp_facade.toolsets import tools_of
from tests.support import loopback
from tests.support.engine import Tools, bare_environment
from tests.support.website import Website, page, vendor
from tests.tools.test_server import http_server
from tests.tools.test_web import opened

ASK = "How often must the compressor oil be changed?"
WAIT_SECONDS = 60


@pytest.fixture
def site() -> Iterator[Website]:
    with Website(vendor()) as running:
        yield running


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    return read_settings({}, home=tmp_path, web_allowed_hosts="127.0.0.1", web_pause_seconds=0)


@pytest.fixture
def environment(settings: Settings, real_clock: Effects) -> dict[str, str]:
    return {
        **bare_environment(),
        "CPQ_HOME": str(settings.home),
        "CPQ_TOOLSETS": "web",
        "CPQ_WEB_ALLOWED_HOSTS": "127.0.0.1",
        "CPQ_WEB_PAUSE_SECONDS": "0",
    }


@pytest.mark.anyio
async def test_f3_15_f3_28_over_stdio_progress_comes_before_the_one_result(environment: dict[str, str], site: Website):
    said: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        said.append(message or "")

    parameters = StdioServerParameters(command=sys.executable, args=["-m", "mcp_facade"], env=environment)
    async with Client(parameters) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("answer", {"url": site.url("/"), "query": ASK}, progress_callback=note)
    assert listed == ["answer", "search", "status", "ingest"]
    assert len(result.content) == 1
    assert "Change the compressor oil every 4000 hours" in result.content[0].text  # type: ignore[union-attr]
    assert said[0].startswith("Checking if ")
    assert said[-1].startswith("Assembling results ")


def test_f3_32_f3_33_stdout_is_protocol_alone_and_stderr_tells_of_start_call_size_and_stop(
    environment: dict[str, str], site: Website
):
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    query = "How long is the warranty? " + "Say it in years. " * 20
    ask = {"name": "answer", "arguments": {"url": site.url("/warranty.html"), "query": query}}
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": ask},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in sent)
    more = {"MCP_LOG_LEVEL": "DEBUG", "MCP_LOG_FORMAT": "json"}
    ran = subprocess.run(
        [sys.executable, "-m", "mcp_facade"],
        input=lines,
        capture_output=True,
        text=True,
        env={**environment, **more},
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in ran.stdout.splitlines())
    logged = [json.loads(line) for line in ran.stderr.splitlines()]
    told = {(each["level"], each["event"]): each for each in logged}
    assert told["INFO", "server started"]["transport"] == "stdio"
    assert told["INFO", "tool called"]["tool"] == "answer"
    assert told["INFO", "brief written"]["tokens"] > 0
    assert told["INFO", "server stopped"]["transport"] == "stdio"
    assert told["INFO", "call received"]["url"] == f"['{site.url('/warranty.html')}']"
    assert len(told["INFO", "call received"]["query"]) == 200
    assert "How long is the warranty?" in told["DEBUG", "answer asked for"]["query"]
    assert len(told["DEBUG", "answer asked for"]["query"]) > 200
    assert "evidence" in str(told["DEBUG", "budget spent"])


@pytest.mark.anyio
async def test_f3_28_the_flag_starts_the_server_over_http(environment: dict[str, str]):
    command = [sys.executable, "-m", "mcp_facade", "--transport", "streamable-http"]
    with (
        loopback.kept_port() as port,
        subprocess.Popen(command, env={**environment, "MCP_PORT": str(port)}, stderr=subprocess.DEVNULL) as server,
    ):
        try:
            with anyio.fail_after(WAIT_SECONDS):
                while not _is_listening(port):
                    await anyio.sleep(0.05)
                async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                    status: Any = await client.call_tool("status", {})
        finally:
            server.terminate()
    assert status.structured_content["documents"] == 0


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_f3_28_f3_30_settings_have_their_names_and_defaults():
    plain = read_settings({})
    assert (plain.transport, plain.host, plain.port, plain.auth_token) == ("stdio", "127.0.0.1", 8765, "")
    assert (plain.response_token_budget, plain.tool_timeout_seconds, plain.log_level) == (30_000, 120, "INFO")
    given = read_settings(
        {
            "MCP_TRANSPORT": "streamable-http",
            "MCP_HOST": "0.0.0.0",
            "MCP_PORT": "9000",
            "MCP_AUTH_TOKEN": "secret",
            "MCP_RESPONSE_TOKEN_BUDGET": "5000",
            "MCP_TOOL_TIMEOUT": "7",
            "MCP_LOG_LEVEL": "DEBUG",
        }
    )
    assert (given.transport, given.host, given.port) == ("streamable-http", "0.0.0.0", 9000)
    assert given.auth_token == "secret"
    assert (given.response_token_budget, given.tool_timeout_seconds, given.log_level) == (5000, 7, "DEBUG")


def test_f3_29_a_token_is_asked_for_only_where_one_is_set(settings: Settings):
    def status(url: str, **headers: str) -> int:
        return httpx2.post(f"{url}/mcp", json={}, headers=headers, timeout=WAIT_SECONDS).status_code

    with http_server(settings) as url:
        assert status(url) != 401
    with http_server(settings.model_copy(update={"auth_token": "secret"})) as url:
        assert status(url) == 401
        assert status(url, Authorization="Bearer wrong") == 401
        assert status(url, Authorization="Bearer secret") != 401


@pytest.mark.anyio
async def test_f3_31_f3_34_many_clients_share_one_engine(settings: Settings, site: Website):
    """What a site allows is asked once, by the first call; nothing of one answer gets into another."""
    for n in range(6):
        site.pages[f"/part/{n}"] = page(f"Part {n}", f"<p>The gasket number {n} weighs {n + 10} grams.</p>")
    briefs: dict[int, str] = {}

    async def ask(url: str, n: int) -> None:
        async with Client(f"{url}/mcp") as client:
            arguments = {"url": site.url(f"/part/{n}"), "query": f"weight of gasket number {n}", "expansion_budget": 0}
            result: Any = await client.call_tool("answer", arguments)
            briefs[n] = result.structured_content["brief"]

    with http_server(settings) as url, anyio.fail_after(WAIT_SECONDS):
        await ask(url, 0)
        async with anyio.create_task_group() as group:
            for n in range(1, 6):
                group.start_soon(ask, url, n)
    assert site.asked.count("/robots.txt") == 1
    assert all(f"> The gasket number {n} weighs {n + 10} grams." in briefs[n] for n in range(6))
    assert site.count() == {f"/part/{n}": 1 for n in range(6)}


def test_f3_33_what_goes_wrong_is_logged_by_how_bad_it_is(
    settings: Settings, site: Website, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    app = opened(settings, site)
    tools = Tools(app)
    caplog.set_level(logging.INFO, "cpq")
    tools("search", query="zebra migration patterns")
    site.pages["/deep"] = "<div>" * 3000 + "deep"
    tools("ingest", url=site.url("/deep"))
    assert "[read in part: The page is nested" in tools("status")["text"]
    monkeypatch.setattr("cpq.retrieval.web.answers.TIME_SHARE", 0.0)
    tools("ingest", url=[site.url("/warranty.html"), site.url("/models/1.html")])
    monkeypatch.setattr("cpq.retrieval.web.repository.totals", None)
    assert tools.error("status")["code"] == "INTERNAL_ERROR"
    app.close()
    assert [(each.levelname, each.getMessage()) for each in caplog.records if each.levelno > logging.INFO] == [
        ("WARNING", "nothing relevant was found"),
        ("WARNING", "page read in part"),
        ("WARNING", "time limit is near"),
        ("ERROR", "tool crashed"),
    ]


@pytest.mark.anyio
async def test_f3_24_a_failure_is_told_in_words_and_as_the_envelope(settings: Settings, site: Website):
    """Q-01: the second text is the JSON of the structured content, as with every other tool."""
    app = opened(settings, site)
    async with Client(Facade(app, tools_of(("web",)))) as client:
        for name, arguments in (("answer", {"url": site.url("/gone"), "query": "x"}), ("search", {"query": " "})):
            failed: Any = await client.call_tool(name, arguments)
            prose, envelope = (part.text for part in failed.content)
            assert failed.is_error
            assert prose.startswith("[ERROR]\n")
            assert f"Error type: {failed.structured_content['error']['code']}\nDetails: " in prose
            assert "Possible causes:\n- " in prose
            assert "Do not attempt to answer from memory" in prose
            assert json.loads(envelope) == failed.structured_content
    app.close()


@pytest.mark.anyio
async def test_f3_33_every_web_tool_tells_of_its_call_its_parameters_and_the_size_of_its_text(
    settings: Settings, site: Website, caplog: pytest.LogCaptureFixture
):
    app = opened(settings, site)
    caplog.set_level(logging.DEBUG, "cpq.web")
    async with Client(Facade(app, tools_of(("web",)))) as client:
        await client.call_tool("ingest", {"url": site.url("/warranty.html")})
        await client.call_tool("status", {"include_urls": False})
        await client.call_tool("search", {"query": "warranty", "top_k": 3})
        await client.call_tool("answer", {"url": "http://10.0.0.1/", "query": "x"})
    app.close()
    names = ("ingest", "status", "search", "answer")
    told = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [each.tool for each in caplog.records if each.getMessage() == "call received"] == list(names)  # type: ignore[attr-defined] # An extra.
    assert [name for level, name in told if level == "DEBUG" and name.endswith("asked for")] == [
        f"{name} asked for" for name in names
    ]
    sizes = [each.tokens for each in caplog.records if each.getMessage() in ("text written", "brief written")]  # type: ignore[attr-defined] # An extra.
    assert len(sizes) == 4
    assert all(sizes)


@pytest.mark.anyio
async def test_f3_33_a_call_that_hangs_is_warned_of_before_it_is_given_up(
    settings: Settings, site: Website, caplog: pytest.LogCaptureFixture
):
    """F3.33: at four fifths of its time, also when it waits for a page that does not come."""
    site.pages["/slow"] = (200, {"Content-Type": "text/html", "X-How": "hang", "Content-Length": "9"}, b"")
    app = opened(settings, site, tool_timeout_seconds=0.5)
    async with Client(Facade(app, tools_of(("web",)))) as client:
        with anyio.fail_after(WAIT_SECONDS):
            await client.call_tool("answer", {"url": site.url("/slow"), "query": "x"})
    app.close()
    told = [(each.levelname, each.getMessage()) for each in caplog.records if each.levelno > logging.INFO]
    assert told == [("WARNING", "time limit is near"), ("ERROR", "call given up")]


def test_f3_33_a_server_that_cannot_start_is_an_error_in_the_log(environment: dict[str, str], tmp_path: Path):
    broken = {
        **environment,
        "CPQ_TOOLSETS": "docs",
        "CPQ_DOCS_DIR": str(tmp_path / "missing"),
        "MCP_LOG_FORMAT": "json",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "mcp_facade"],
        input="",
        capture_output=True,
        text=True,
        env=broken,
        timeout=WAIT_SECONDS,
        check=False,
    )
    logged = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert ran.returncode == 1
    assert [(each["level"], each["event"]) for each in logged if each["level"] == "ERROR"] == [
        ("ERROR", "server failed")
    ]
