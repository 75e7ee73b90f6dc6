"""Floods of one caller through the real server: others are answered meanwhile, and what is held stays bounded."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from cpq.app import App
from cpq.services.documents import commands
from mcp_facade import http, server
from tests.support.approvals import priced_quote
from tests.support.console import WAIT_SECONDS
from tests.support.engine import Tools
from tests.tools.test_server import browser, http_server, new_token, until

pytestmark = pytest.mark.anyio

PDF_CALLS = 60
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def message(name: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": name, "arguments": arguments, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def headers(token: str, name: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }


async def ask(client: httpx2.AsyncClient, url: str, token: str, name: str, **arguments: Any) -> str:
    answer = await client.post(f"{url}/mcp", content=message(name, arguments), headers=headers(token, name))
    assert answer.status_code == 200, answer.text
    return answer.text


@contextmanager
def slow_documents(monkeypatch: pytest.MonkeyPatch, quote_id: str) -> Iterator[list[str]]:
    """Documents of this quote are not ready before the end; those that were begun."""
    begun, end, render = list[str](), threading.Event(), commands._render

    def slow(app: App, design: Any, key: Any, *rest: Any) -> Any:
        if key.quote_id == quote_id:
            begun.append(key.locale)
            assert end.wait(WAIT_SECONDS)
        return render(app, design, key, *rest)

    monkeypatch.setattr(commands, "_render", slow)
    try:
        yield begun
    finally:
        end.set()


async def test_sixty_documents_of_one_caller_leave_room_for_the_calls_and_documents_of_another(
    sqlite_app: App, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "PLACE_SECONDS", 10 * WAIT_SECONDS)  # On a busy machine documents take long.
    tools = Tools(sqlite_app)
    flooded, other = priced_quote(tools, 0), priced_quote(tools, 0)
    greedy, honest = (new_token(sqlite_app.settings, name, "agent") for name in ("greedy", "honest"))
    answers: list[str] = []
    limits = httpx2.Limits(max_connections=None)
    patient = {"transport": "streamable-http", "tool_timeout_seconds": 10 * WAIT_SECONDS}
    with http_server(sqlite_app.settings.model_copy(update=patient)) as url:
        async with httpx2.AsyncClient(timeout=10 * WAIT_SECONDS, limits=limits) as client:

            async def flood() -> None:
                answers.append(await ask(client, url, greedy, "quote_pdf", quote_id=flooded))

            async with anyio.create_task_group() as tasks:
                with slow_documents(monkeypatch, flooded) as begun:
                    for _ in range(PDF_CALLS):
                        tasks.start_soon(flood)
                    await until(lambda: len(begun) == server.CALLER_JOBS_MAX)
                    for _ in range(5):
                        assert '"isError":false' in await ask(client, url, honest, "quote_get", quote_id=other)
                    assert '"isError":false' in await ask(client, url, honest, "quote_pdf", quote_id=other)
                    assert (len(begun), answers) == (server.CALLER_JOBS_MAX, []), "the flood waits for its own turn"
    assert len(answers) == PDF_CALLS
    assert {'"isError":false' in one for one in answers} == {True}


async def test_slow_bodies_hold_a_bounded_memory_and_small_calls_pass(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    """150 bodies of 4 MB that never end would hold 600 MB; here all sizes are a tenth."""
    part, most = b" " * 400_000, 6_400_000
    monkeypatch.setattr(http, "BUFFERED_BYTES_MAX", most)
    monkeypatch.setattr(http, "BODY_SECONDS", 10 * WAIT_SECONDS)
    token = new_token(sqlite_app.settings, "greedy", "agent")
    ended: list[bytes] = []

    async def post(host: str, port: int) -> None:
        lines = {**headers(token, "catalog_get"), "Host": f"{host}:{port}", "Content-Length": str(len(part) + 1)}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        answer = b"closed"
        async with await anyio.connect_tcp(host, port) as stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + part)
                answer = await stream.receive(12)
        ended.append(answer)

    with http_server(sqlite_app.settings.model_copy(update={"transport": "streamable-http"})) as url:
        parts = urlsplit(url)
        async with anyio.create_task_group() as tasks:
            for _ in range(150):
                tasks.start_soon(post, str(parts.hostname), parts.port or 0)
            await until(lambda: len(ended) >= 150 - most // len(part))
            assert {*ended} <= {b"HTTP/1.1 503", b"closed"}
            async with browser() as client:
                found = await ask(client, url, token, "catalog_get", product_id="prod_pro_v2")
            assert '"isError":false' in found, "a small call passes"
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("body", [b'{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}', b"[", b"{}"])
async def test_requests_that_are_no_calls_are_limited_too(sqlite_app: App, body: bytes):
    """Nobody can refuse a notification in the protocol, nor count the method of what has none."""
    settings = sqlite_app.settings.model_copy(update={"transport": "streamable-http", "rate_limit_per_minute": 2})
    greedy, honest = (new_token(settings, name, "agent") for name in ("greedy", "honest"))
    with http_server(settings) as url:
        async with httpx2.AsyncClient(timeout=WAIT_SECONDS) as client:
            sent = {**headers(greedy, ""), "MCP-Protocol-Version": "2025-06-18"}
            answers = [await client.post(f"{url}/mcp", content=body, headers=sent) for _ in range(12)]
            assert 429 not in [one.status_code for one in answers[:10]]
            assert answers[-1].status_code == 429
            assert answers[-1].json()["error"]["code"] == "RATE_LIMITED"
            assert answers[-1].json()["error"]["details"]["retry_after_seconds"] > 0
            assert int(answers[-1].headers["Retry-After"]) > 0
            assert '"isError":false' in await ask(client, url, honest, "catalog_search", query="suite")


async def test_requests_that_are_none_leave_few_lines_in_the_log(sqlite_app: App, caplog: pytest.LogCaptureFixture):
    with http_server(sqlite_app.settings) as url:
        parts = urlsplit(url)
        for _ in range(150):
            async with await anyio.connect_tcp(str(parts.hostname), parts.port or 0) as stream:
                await stream.send(b"no request\r\n\r\n")
                assert b"400" in await stream.receive(40)
    lines = [one for one in caplog.records if one.getMessage() == "Invalid HTTP request received."]
    assert 0 < len(lines) <= 120, "60 in a minute, and the test may see the next one begin"
