"""The server as clients meet it: both protocol eras, in memory, over stdio and over HTTP, with a real MCP client."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import pytest
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import TypedDict

from cpq.app import App, Command, tokens
from cpq.app.access import OPERATOR, Permission
from cpq.app.health import readiness
from cpq.base.clock import Effects
from cpq.base.disk_space import DiskSpace
from cpq.base.settings import Settings, read_settings, shipped
from mcp_facade import http, http_protocol, prompts, registry, server
from mcp_facade.registry import Job, tool
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS, tools_of
from tests.support import loopback
from tests.support.console import WAIT_SECONDS, running
from tests.support.engine import StillEffects, Tools, bare_environment, open_app

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "auto")


class Slept(TypedDict):
    steps: int


@tool(title="Work long", toolset="insight", needs=Permission.READ)
def work_long(job: Job, *, steps: int, seconds: float = 0.02) -> Slept:
    """A long tool as later ones will be: it reports progress and stops when nobody waits any more."""
    BEGUN.append(steps)
    try:
        for step in range(steps):
            job.progress(step + 1, steps, f"step {step + 1}")
            time.sleep(seconds)
            DONE.append(step)
    finally:
        ENDED.append(steps)
    return {"steps": steps}


BEGUN: list[int] = []
DONE: list[int] = []
ENDED: list[int] = []
FOR_EVER = 50 * 2 * WAIT_SECONDS
"""So many steps of `work_long` end only because somebody stops them."""


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    for noted in (BEGUN, DONE, ENDED):
        noted.clear()


async def until(is_so: Callable[[], Any]) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        while not is_so():
            await anyio.sleep(0.01)


def text_of(content: Any) -> str:
    """The text of a content block that is known to be one of text."""
    return content.text


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def facade(sqlite_app: App) -> Facade:
    return Facade(sqlite_app, [*ALL_TOOLS, work_long])


KEYWORDS = set(jsonschema.Draft202012Validator.VALIDATORS) | {
    *("$defs", "title", "description", "default", "examples", "discriminator")
}


def _keywords(schema: Any) -> Iterator[str]:
    """Every keyword of a schema and its parts; names of properties are none."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword
        inner = value.values() if keyword in ("properties", "$defs") else value if isinstance(value, list) else [value]
        for part in inner if keyword not in ("default", "examples", "enum", "const") else ():
            yield from _keywords(part)


async def test_q10_every_tool_is_described_with_schemas_and_annotations(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        listed = (await client.list_tools()).tools
    assert [described.name for described in listed][: len(ALL_TOOLS)] == [known.name for known in ALL_TOOLS]
    for described in listed:
        assert described.title
        assert len(described.description or "") > 60
        assert described.input_schema["additionalProperties"] is False
        assert (described.output_schema or {})["type"] == "object"
        for schema in (described.input_schema, described.output_schema or {}):
            assert set(_keywords(schema)) <= KEYWORDS
        hints = described.annotations
        assert hints
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    repeating = {
        described.name for described in listed if not (described.annotations and described.annotations.idempotent_hint)
    }
    assert repeating <= {"quote_create", "quote_clone", "approval_delegate"}
    assert "quote_create" in repeating


async def test_q10_structured_content_equals_the_text_and_fits_the_schema(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        schemas = {described.name: described.output_schema for described in (await client.list_tools()).tools}
        for name, arguments in (
            ("catalog_search", {"query": "air"}),
            ("catalog_search", {}),
            ("catalog_get", {"product_id": "prod_qmb30", "include_relationships": True}),
            ("catalog_get", {"product_id": "nothing"}),
        ):
            result = await client.call_tool(name, arguments)
            assert json.loads(text_of(result.content[0])) == result.structured_content
            jsonschema.validate(result.structured_content, schemas[name] or {})
            assert result.is_error == ("error" in result.structured_content)


async def test_q01_every_kind_of_failure_has_the_envelope(facade: Facade, era: Any, monkeypatch: pytest.MonkeyPatch):
    async def error(name: str, arguments: Any) -> dict:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert set(result.structured_content) == {"error"}
        assert set(result.structured_content["error"]) == {"code", "message", "details"}
        return result.structured_content["error"]

    async with Client(facade, mode=era) as client:
        assert (await error("catalog_get", {}))["code"] == "VALIDATION_ERROR"
        assert (await error("catalog_get", {"product_id": "x", "extra": 1}))["details"]["field"] == "/extra"
        assert (await error("catalog_get", {"product_id": "nothing"}))["code"] == "NOT_FOUND"
        assert (await error("catalog_gte", {}))["details"]["nearest"][0] == "catalog_get"
        monkeypatch.setattr("cpq.services.catalog.views._PRODUCT", None)
        crashed = await error("catalog_get", {"product_id": "prod_pro_v2"})
        assert crashed["code"] == "INTERNAL_ERROR"
        assert "_PRODUCT" not in str(crashed)


def test_q02_a_caller_that_calls_too_often_is_told_how_long_to_wait(sqlite_app: App, clock):
    app = open_app(sqlite_app.settings.model_copy(update={"rate_limit_per_minute": 3}), clock)
    tools = Tools(app)
    for _ in range(3):
        tools("catalog_search", query="air")
    limited = tools.error("catalog_search", query="air")
    assert (limited["code"], limited["details"]["retry_after_seconds"]) == ("RATE_LIMITED", 20)
    Tools(app, principal=OPERATOR)("catalog_search", query="air")
    clock.advance(seconds=20)
    tools("catalog_search", query="air")
    app.close()


async def test_progress_reaches_the_client_forward_only(facade: Facade, era: Any, monkeypatch: pytest.MonkeyPatch):
    """The first and the last step, and none of those that follow too soon."""
    monkeypatch.setattr(server, "PROGRESS_INTERVAL_SECONDS", 3600.0)
    seen: list[Any] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with Client(facade, mode=era) as client:
        result = await client.call_tool("work_long", {"steps": 12, "seconds": 0}, progress_callback=note)
    assert result.structured_content == {"steps": 12}
    assert seen == [(1, 12, "step 1"), (12, 12, "step 12")]


async def test_q02_a_call_over_the_time_limit_is_given_up_with_timeout(sqlite_app: App, era: Any):
    app = open_app(sqlite_app.settings.model_copy(update={"tool_timeout_seconds": 0.2}))
    async with Client(Facade(app, [work_long]), mode=era) as client:
        result = await client.call_tool("work_long", {"steps": FOR_EVER})
        assert result.structured_content["error"]["code"] == "TIMEOUT"
        await until(lambda: ENDED == BEGUN)
    assert len(DONE) < FOR_EVER
    app.close()


async def test_a_client_that_leaves_stops_the_work(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "work_long", {"steps": FOR_EVER})
            await until(lambda: DONE)
            calls.cancel_scope.cancel()
        await until(lambda: ENDED)
    assert len(DONE) < FOR_EVER


async def test_a_client_that_leaves_before_its_turn_gives_back_its_place(facade: Facade):
    for _ in range(server.RUNNING_MAX):
        with anyio.CancelScope() as call:
            call.cancel()
            await facade._answer("catalog_search", {"query": "air"}, None)
    assert not (await facade._answer("catalog_search", {"query": "air"}, None)).is_error


async def test_a_product_is_also_a_resource(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        content = (await client.read_resource("product://prod_pro_v2")).contents[0]
        assert json.loads(text_of(content))["sku"] == "PLAN-PRO-001"
        assert content.mime_type == "application/json"
        with pytest.raises(MCPError, match="nothing"):
            await client.read_resource("product://nothing")


async def test_the_prompt_names_the_tools_in_the_recommended_order(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        text = text_of((await client.get_prompt("recommended_order", {"wish": "two dryers"})).messages[0].content)
        with pytest.raises(MCPError):
            await client.get_prompt("no_such_prompt")
    order = ["two dryers", *(name for name, _ in prompts.STEPS if name in facade.registry.tools)]
    assert len(order) > 2
    assert [text.index(name) for name in order] == sorted(text.index(name) for name in order)


async def test_an_agent_is_told_only_of_tools_that_exist(facade: Facade, era: Any):
    async with Client(facade, mode=era) as client:
        told = client.instructions or ""
        told += text_of((await client.get_prompt("recommended_order")).messages[0].content)
        listed = {described.name for described in (await client.list_tools()).tools}
    assert {name for name, _ in prompts.STEPS if name in told} == {name for name, _ in prompts.STEPS} & listed


def test_a_toolset_that_is_off_does_not_exist(sqlite_app: App):
    assert {described.toolset for described in tools_of(("quotes",))} == {"quotes"}
    assert {described.toolset for described in tools_of(("deals",))} == {"deals"}
    tools = Tools(sqlite_app, tuple(tools_of(("deals",))))
    assert tools.error("catalog_search", query="air")["code"] == "NOT_FOUND"


@pytest.fixture
def home(store: Settings, tmp_path: Path, real_clock: Effects) -> dict[str, str]:
    """The environment of a server process on this test's store."""
    return {
        **bare_environment(),
        "CPQ_HOME": str(tmp_path),
        "CPQ_DATABASE_URL": store.database_url,
        "MCP_LOG_LEVEL": "WARNING",
    }


async def test_a_real_client_talks_to_the_real_server_over_stdio(home: dict[str, str], era: Any):
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "mcp_facade"], env=home)
    async with Client(parameters, mode=era) as client:
        found = await client.call_tool("catalog_search", {"query": "pro plan"})
        assert found.structured_content["items"][0]["id"] == "prod_pro_v2"
        assert (await client.call_tool("catalog_get", {})).is_error


RAW = [
    (rb'{"product_id":"\ud800"}', "VALIDATION_ERROR"),
    (rb'{"product_id":"a\u0000b"}', "VALIDATION_ERROR"),
    (b'{"product_id":' + b"[" * 5000 + b"]" * 5000 + b"}", "VALIDATION_ERROR"),
    (b'{"product_id":' + b"9" * 5000 + b"}", "VALIDATION_ERROR"),
    (b'{"product_id":NaN}', "VALIDATION_ERROR"),
    (b'{"product_id":1e400}', "VALIDATION_ERROR"),
    (b'{"product_id":"' + b"x" * 1_000_000 + b'"}', "VALIDATION_ERROR"),
    (b"[1,2]", "VALIDATION_ERROR"),
    (b'"text"', "VALIDATION_ERROR"),
    (b"7", "VALIDATION_ERROR"),
    (b'"{\\"product_id\\":\\"prod_pro_v2\\"}"', None),
]


def call_message(arguments: bytes, number: int = 7) -> bytes:
    head = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"catalog_get","arguments":' % number
    return head + arguments + b"}}"


def test_q01_hostile_bytes_over_stdio_get_the_envelope(home: dict[str, str]):
    with raw_stdio(home) as (send, receive):
        for arguments, code in RAW:
            send(call_message(arguments))
            answer = receive()
            assert answer["id"] == 7
            assert answer["result"].get("structuredContent", {}).get("error", {}).get("code") == code
        send(b"this is not JSON")
        unreadable = receive()
        assert (unreadable["id"], unreadable["error"]["code"]) == (None, -32700)
        assert unreadable["error"]["data"]["error"]["code"] == "VALIDATION_ERROR"
        send(call_message(b'{"product_id":"prod_pro_v2"}'))
        assert receive()["result"]["structuredContent"]["id"] == "prod_pro_v2"


@contextmanager
def raw_stdio(home: dict[str, str]) -> Iterator[tuple[Any, Any]]:
    command = [sys.executable, "-m", "mcp_facade"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home) as process:
        assert process.stdin
        assert process.stdout
        to_server, from_server = process.stdin, process.stdout

        def send(line: bytes) -> None:
            to_server.write(line + b"\n")
            to_server.flush()

        def receive() -> dict:
            return json.loads(from_server.readline())

        client = {"name": "raw", "version": "1"}
        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}).encode())
        receive()
        send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield send, receive
        to_server.close()
        assert process.wait(WAIT_SECONDS) == 0


@contextmanager
def http_server(settings: Settings) -> Iterator[str]:
    """Our whole HTTP application on a free port of this machine."""
    with loopback.kept_port() as port, closing(open_app(settings.model_copy(update={"port": port}))) as app:
        endpoint = Facade(app, list(ALL_TOOLS)).http_endpoint(
            http.allowed_hosts(app.settings), http.allowed_origins(app.settings)
        )
        with running(
            uvicorn.Config(
                http.build(app, endpoint), port=port, log_config=None, http=http_protocol.PatientProtocol, lifespan="on"
            )
        ):
            yield f"http://127.0.0.1:{port}"


def browser(**headers: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=WAIT_SECONDS)


def new_token(settings: Settings, name: str, role: str) -> str:
    app = open_app(settings)
    secrets: list[str] = []

    def create(tx) -> dict:
        secrets.append(tokens.create_token(tx, name=name, role=role)[1])
        return {}

    app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), create)
    app.close()
    return secrets[0]


async def test_a_real_client_talks_to_the_real_server_over_http(store: Settings, era: Any):
    with http_server(store) as url:
        async with Client(f"{url}/mcp", mode=era) as client:
            found = await client.call_tool("catalog_search", {"query": "pro plan"})
            assert found.structured_content["items"][0]["id"] == "prod_pro_v2"


async def test_a_named_token_names_the_caller_and_others_are_turned_away(store: Settings, era: Any):
    token = new_token(store, "robo", "agent")
    with http_server(store) as url:
        async with (
            browser(Authorization=f"Bearer {token}") as connection,
            Client(streamable_http_client(f"{url}/mcp", http_client=connection), mode=era) as client,
        ):
            assert not (await client.call_tool("catalog_search", {"query": "air"})).is_error
        async with browser() as stranger:
            for wrong in ({}, {"Authorization": "Bearer qw_tok-x_y"}, {"Authorization": "Basic abc"}):
                refused = await stranger.post(f"{url}/mcp", json={}, headers=wrong)
                assert (refused.status_code, refused.json()["error"]["code"]) == (401, "FORBIDDEN")
                assert refused.headers["www-authenticate"].startswith("Bearer")
    app = open_app(store)
    with app.database.reading() as reading:
        callers = set(reading.exec_driver_sql("SELECT caller FROM audit_entry").scalars())
    app.close()
    assert {"agent:robo", "agent:anonymous"} <= callers


async def test_a_token_that_somebody_changed_in_the_database_is_refused_with_the_reason(sqlite_app: App):
    token = new_token(sqlite_app.settings, "robo", "agent")
    with sqlite_app.database.writing(sqlite_app.effects.monotonic() + 10) as connection:
        connection.exec_driver_sql("UPDATE token SET role = 'admin'")
    with http_server(sqlite_app.settings) as url:
        async with browser(Authorization=f"Bearer {token}") as client:
            refused = await client.post(f"{url}/mcp", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "CONFLICT")
    assert "somebody changed them in the database" in refused.json()["error"]["message"]


async def test_the_shared_token_opens_as_the_local_agent(store: Settings):
    with http_server(store.model_copy(update={"auth_token": "s3cret"})) as url:
        async with browser() as client:
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            headers = {"Accept": "application/json, text/event-stream"}
            assert (await client.post(f"{url}/mcp", json=body, headers=headers)).status_code == 401
            headers["Authorization"] = "Bearer s3cret"
            assert (await client.post(f"{url}/mcp", json=body, headers=headers)).status_code != 401


async def test_hosts_and_origins_that_are_not_ours_are_refused(sqlite_app: App):
    with http_server(sqlite_app.settings) as url:
        async with browser() as client:
            for path in ("/mcp", "/healthz", "/metrics"):
                assert (await client.get(url + path, headers={"Host": "evil.example"})).status_code == 421
                assert (await client.get(url + path, headers={"Origin": "http://evil.example"})).status_code == 403
            assert (await client.get(f"{url}/healthz", headers={"Origin": url})).status_code == 200
            assert (await client.get(f"{url}/healthz")).status_code == 200


async def test_health_readiness_and_metrics_are_served(store: Settings):
    with http_server(store) as url:
        async with Client(f"{url}/mcp") as client:
            await client.call_tool("catalog_search", {"query": "air"})
        async with browser() as client:
            assert (await client.get(f"{url}/healthz")).json()["status"] == "ok"
            ready = await client.get(f"{url}/readyz")
            assert (ready.status_code, ready.json()["parts"]) == (
                200,
                dict.fromkeys(("database", "migrations", "disk", "policies", "pages", "background", "index"), "ok"),
            )
            metrics = (await client.get(f"{url}/metrics")).text
    assert 'cpq_tool_calls_total{code="OK",tool="catalog_search"}' in metrics
    assert "cpq_build_info" in metrics


async def test_a_flood_of_readyz_writes_one_row_and_healthz_none(
    store: Settings, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    tried: list[float] = []
    with closing(open_app(store, clock)) as app:
        monkeypatch.setattr(app.database, "try_write", tried.append)
        endpoint = Facade(app, list(ALL_TOOLS)).http_endpoint([], [])
        transport = httpx2.ASGITransport(app=http.build(app, endpoint))
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{store.port}") as client:
            for _ in range(30):
                assert (await client.get("/readyz")).json()["status"] == "ok"
                assert (await client.get("/healthz")).status_code == 200
            assert len(tried) == 1
            clock.advance(seconds=http.READY_SECONDS)
            app.disk = DiskSpace(store.home, 200, clock, look=lambda _folder: 150_000_000)
            ready = await client.get("/readyz")
    assert len(tried) == 2
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert ready.json()["parts"]["disk"].startswith("150 MB of the disk are free, fewer than 200 MB")


async def test_metrics_from_another_machine_need_a_token_once_there_are_any(store: Settings):
    token = new_token(store, "robo", "agent")
    with closing(open_app(store)) as app:
        endpoint = Facade(app, list(ALL_TOOLS)).http_endpoint([], [])
        url = f"http://127.0.0.1:{store.port}/metrics"
        codes = {}
        for peer in ("127.0.0.1", "192.0.2.1"):
            transport = httpx2.ASGITransport(app=http.build(app, endpoint), client=(peer, 1234))
            async with httpx2.AsyncClient(transport=transport) as client:
                codes[peer] = (
                    (await client.get(url)).status_code,
                    (await client.get(url, headers={"Authorization": f"Bearer {token}"})).status_code,
                )
    assert codes == {"127.0.0.1": (200, 200), "192.0.2.1": (401, 200)}


async def test_a_request_with_two_lengths_is_refused_and_the_connection_closed(sqlite_app: App):
    with http_server(sqlite_app.settings) as url:
        host, port = url.removeprefix("http://").split(":")
        stream = await anyio.connect_tcp(host, int(port))
        async with stream:
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            await stream.send(head.encode() + b"0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
            received = b"".join([part async for part in stream])  # Ends because the server closes.
    assert received.startswith(b"HTTP/1.1 400")
    assert received.count(b"HTTP/1.1") == 1
    assert b"VALIDATION_ERROR" in received


async def test_a_half_sent_request_is_ended_and_makes_room_for_others(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    """Enough of them once stopped the server for good."""
    monkeypatch.setattr(http_protocol, "CONNECTIONS_MAX", 16)
    with http_server(sqlite_app.settings) as url:
        host, port = url.removeprefix("http://").split(":")
        halves = [await anyio.connect_tcp(host, int(port)) for _ in range(40)]
        for half in halves:
            await half.send(b"GET /healthz HTT")
        async with browser() as client:
            assert (await client.get(f"{url}/healthz")).status_code == 200
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await halves[0].receive()
        for half in halves:
            await half.aclose()


async def test_a_request_that_never_comes_is_ended(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(http, "BODY_SECONDS", 0.05)
    with http_server(sqlite_app.settings) as url:
        host, port = url.removeprefix("http://").split(":")
        for sent in (
            b"GET /healthz HTT",
            f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 9\r\n\r\n{{".encode(),
        ):
            async with await anyio.connect_tcp(host, int(port)) as slow:
                await slow.send(sent)
                with suppress(anyio.BrokenResourceError):
                    assert b"200 OK" not in b"".join([part async for part in slow])  # Ends because the server closes.


async def test_a_server_whose_tables_are_missing_is_not_ready(tmp_path: Path, clock: StillEffects):
    app = App(read_settings({}, home=tmp_path), clock)
    assert readiness(app)["migrations"] != "ok"
    app.close()


async def test_broken_policies_show_while_the_last_good_ones_decide(
    sqlite_app: App, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = shutil.copytree(shipped("policies"), tmp_path / "policies")
    with http_server(sqlite_app.settings.model_copy(update={"policies_dir": folder})) as url:
        async with Client(f"{url}/mcp") as client, browser() as visitor:
            assert (await visitor.get(f"{url}/readyz")).json()["status"] == "ok"
            (folder / "terms.yaml").write_text("validity_days: [")
            with anyio.fail_after(WAIT_SECONDS):
                while (ready := await visitor.get(f"{url}/readyz")).json()["status"] == "ok":
                    await anyio.sleep(0.05)
            listed = await client.call_tool("quote_list", {})
    told = ready.json()["parts"]["policies"]
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert told.startswith("broken, the last good ones are in use: terms.yaml, line 2")
    assert str(tmp_path) not in told
    assert not listed.is_error
    assert "policies are broken, the last good ones stay in use" in caplog.text


@pytest.mark.parametrize(("arguments", "code"), RAW)
async def test_q01_hostile_bytes_over_http_get_the_envelope(sqlite_app: App, arguments: bytes, code: str | None):
    with http_server(sqlite_app.settings) as url:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        async with browser(**headers) as client:
            client_info = {"name": "raw", "version": "1"}
            start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
            message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}
            opened = await client.post(f"{url}/mcp", json=message)
            session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await client.post(f"{url}/mcp", json=done, headers=session)
            answer = await client.post(f"{url}/mcp", content=call_message(arguments), headers=session)
    data = next(line for line in answer.text.splitlines() if line.startswith("data: {"))
    result = json.loads(data.removeprefix("data: "))["result"]
    assert result.get("structuredContent", {}).get("error", {}).get("code") == code


def test_logs_go_to_stderr_as_single_json_lines_without_secrets(home: dict[str, str]):
    code = (
        "from cpq.base import logs; import logging; logs.configure('INFO', 'json');"
        "logging.getLogger('x').info('Bearer abc.def and qw_tok-12_sEcret\\nfaked line', extra={'tool': 'a\\nb'})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home, check=True)
    assert run.stdout == ""
    line = json.loads(run.stderr)
    assert "abc.def" not in run.stderr
    assert "sEcret" not in run.stderr
    assert line["tool"] == "a\\u000ab"


def test_a_server_tells_at_its_start_where_home_database_and_policies_are(
    store: Settings, home: dict[str, str], tmp_path: Path
):
    """Started in a hostile folder, it shows itself at once, and takes nothing from there."""
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / ".env").write_text("CPQ_POLICIES_DIR=policies\nCPQ_HOME=/elsewhere\n")
    run = subprocess.run(
        [sys.executable, "-m", "mcp_facade"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**home, "MCP_LOG_LEVEL": "INFO"},
        cwd=tmp_path / "hostile",
        check=True,
    )
    [started] = [line for line in run.stderr.splitlines() if "policy_hash" in line]
    assert home["CPQ_HOME"] in started
    assert store.database_name in started
    assert str(shipped("policies")) in started
    assert "hostile" not in started


def test_the_server_does_not_start_on_an_unknown_toolset(home: dict[str, str]):
    run = subprocess.run(
        [sys.executable, "-m", "mcp_facade", "--toolsets", "quotes,dealz"],
        capture_output=True,
        text=True,
        env=home,
        check=False,
    )
    assert run.returncode == 1
    assert "dealz" in run.stderr
    assert "Traceback" not in run.stderr


async def test_a_session_belongs_to_the_principal_that_opened_it(store: Settings):
    tokens = [new_token(store, name, "agent") for name in ("ann", "bob")]
    with http_server(store) as url:
        headers = {"Accept": "application/json, text/event-stream"}
        async with browser(**headers) as client:
            client_info = {"name": "raw", "version": "1"}
            start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
            message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}
            ann, bob = ({"Authorization": f"Bearer {token}"} for token in tokens)
            opened = await client.post(f"{url}/mcp", json=message, headers=ann)
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert (await client.post(f"{url}/mcp", json=ping, headers={**session, **bob})).status_code == 404
            assert (await client.post(f"{url}/mcp", json=ping, headers={**session, **ann})).status_code == 200


async def test_a_body_that_comes_in_pieces_is_healed_and_a_huge_one_refused(sqlite_app: App):
    async def pieces(body: bytes):
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    with http_server(sqlite_app.settings) as url:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": "catalog_get", "arguments": {"product_id": "HERE"}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "catalog_get"}
        async with browser(**headers) as client:
            hostile = json.dumps(message).replace("HERE", "x" * 1990 + "\\ud800").encode()
            answer = await client.post(f"{url}/mcp", content=pieces(hostile))
            assert '"VALIDATION_ERROR"' in answer.text
            refused = await client.post(f"{url}/mcp", content=pieces(b" " * 5_000_000))
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "VALIDATION_ERROR")


@pytest.mark.parametrize("params", [{}, {"name": None, "arguments": {}}, {"name": 7}])
def test_q01_a_call_without_a_name_gets_the_envelope(home: dict[str, str], params: dict):
    with raw_stdio(home) as (send, receive):
        send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode())
        assert receive()["result"]["structuredContent"]["error"]["code"] == "NOT_FOUND"
        send(b'{"jsonrpc":"2.0","id":2,"method":"no/such/method"}')
        assert receive()["error"]["data"]["error"]["code"] == "VALIDATION_ERROR"


def test_a_line_that_is_too_long_is_refused_as_a_whole_and_the_next_one_answered(home: dict[str, str]):
    with raw_stdio(home) as (send, receive):
        send(b'{"x":"' + b"y" * 4_300_000 + call_message(b'{"product_id":"prod_pro_v2"}', 666))
        assert receive()["error"]["code"] == -32700
        send(b"")
        send(call_message(b'{"product_id":"prod_pro_v2"}', 8))
        assert receive()["id"] == 8


def test_everything_asked_before_the_end_of_input_is_answered(home: dict[str, str], tmp_path: Path):
    client = {"name": "raw", "version": "1"}
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    lines = [json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}).encode()]
    lines += [b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    lines += [call_message(b'{"product_id":"prod_pro_v2"}', number) for number in range(1, 31)]
    command = [sys.executable, "-m", "mcp_facade"]
    piped = subprocess.run(
        command, input=b"\n".join(lines), capture_output=True, env=home, check=True, timeout=WAIT_SECONDS
    )
    answers = [json.loads(line) for line in piped.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(31))
    assert all("result" in answer for answer in answers)
    (tmp_path / "input").write_bytes(b"\n".join(lines[:1]) + b"\n")
    with (tmp_path / "input").open("rb") as file:
        ran = subprocess.run(command, stdin=file, capture_output=True, env=home, check=False, timeout=WAIT_SECONDS)
    assert ran.returncode == 0
    assert json.loads(ran.stdout.splitlines()[0])["id"] == 0


async def test_more_calls_than_the_server_can_hold_are_told_to_come_back(
    facade: Facade, era: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(facade.places, "_wait_seconds", 0.01)
    for _ in range(server.RUNNING_MAX):
        await facade.places.take("others")
    async with Client(facade, mode=era) as client:
        busy = await client.call_tool("catalog_search", {"query": "air"})
        assert busy.structured_content["error"]["code"] == "UNAVAILABLE"
        assert busy.structured_content["error"]["details"]["retry_after_seconds"] == 2
        for _ in range(server.RUNNING_MAX):
            facade.places.give_back("others")
        assert not (await client.call_tool("catalog_search", {"query": "air"})).is_error


async def test_a_flood_of_lists_is_limited_like_calls(store: Settings, era: Any):
    with closing(open_app(store.model_copy(update={"rate_limit_per_minute": 3}))) as app:
        async with Client(Facade(app, list(ALL_TOOLS)), mode=era) as client:
            for _ in range(3):
                with suppress(MCPError):  # The handshake of one era takes a turn, too.
                    await client.session.list_tools()
            with pytest.raises(MCPError, match="More than 3 calls in a minute") as limited:
                await client.session.list_tools()
    assert limited.value.data["error"]["code"] == "RATE_LIMITED"
    assert limited.value.data["error"]["details"]["retry_after_seconds"] > 0


async def test_every_method_is_limited(sqlite_app: App):
    settings = sqlite_app.settings.model_copy(update={"rate_limit_per_minute": 4})
    with closing(open_app(settings)) as app:
        async with Client(Facade(app, list(ALL_TOOLS)), mode="legacy") as client:
            session = client.session
            for _ in range(3):  # The handshake was the first.
                await session.send_ping()
            asked = [session.send_ping(), session.list_tools(), session.list_prompts(), session.list_resources()]
            asked += [session.list_resource_templates(), session.read_resource("catalog://products/prod_pro_v2")]
            for ask in (*asked, session.get_prompt("quote_a_deal")):
                with pytest.raises(MCPError, match="More than 4 calls in a minute") as limited:
                    await ask
                assert limited.value.data["error"]["details"]["retry_after_seconds"] > 0


async def test_lists_have_a_smaller_limit_and_leave_calls_alone(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "LISTS_PER_MINUTE", 5)
    async with Client(Facade(sqlite_app, list(ALL_TOOLS))) as client:
        for _ in range(5):
            with suppress(MCPError):  # The handshake may take a turn, too.
                await client.session.list_tools()
        with pytest.raises(MCPError, match="More than 5 calls in a minute"):
            await client.session.list_tools()
        assert not (await client.call_tool("catalog_search", {"query": "air"})).is_error


async def test_the_list_of_tools_is_made_once_for_all_callers(sqlite_app: App, era: Any):
    made = []

    class Seen(Facade):
        async def list_tools(self) -> list[Any]:
            made.append(era)
            return await super().list_tools()

    facade, lists = Seen(sqlite_app, list(ALL_TOOLS)), []
    for _ in range(3):
        async with Client(facade, mode=era) as client:
            lists += [await client.session.list_tools() for _ in range(2)]
    assert len(made) == 1
    assert {tool.name for tool in lists[0].tools} == {tool.name for tool in ALL_TOOLS}
    assert all(one == lists[0] for one in lists)


async def test_one_caller_cannot_take_all_sessions(store: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "CALLER_SESSIONS_MAX", 2)
    greedy, other = (new_token(store, name, "agent") for name in ("greedy", "other"))
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
    codes = []
    with http_server(store) as url:
        for token in (greedy, greedy, greedy, other):
            headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
            async with browser(**headers) as client:
                answer = await client.post(f"{url}/mcp", json=body)
                codes.append(answer.status_code)
                if answer.status_code == 503:
                    assert answer.json()["error"]["details"]["retry_after_seconds"] == 60
    assert codes == [200, 200, 503, 200]


@tool(title="Look twice", toolset="insight", needs=Permission.READ)
def look_twice(job: Job) -> Slept:
    """A job that reads several times and is still one call."""
    for _ in range(2):
        job.app.read_unaudited(job.call, lambda tx: tx.now)
    return {"steps": 2}


def test_q12_a_job_is_one_call_however_often_it_reads(app: App):
    tools = Tools(app, (*ALL_TOOLS, look_twice))
    tools("look_twice")
    app.flush_audit()
    with app.database.reading() as connection:
        operations = list(connection.exec_driver_sql("SELECT operation FROM audit_entry").scalars())
    assert operations.count("look_twice") == 1
