"""Traces as a collector on this machine gets them from a real server."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from cpq.base import traces
from tests.support.stdio_server import environment

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LINE = {"product_id": "prod_pro_v2", "quantity": 3}


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


@pytest.mark.anyio
async def test_a_call_over_http_is_a_trace_from_the_caller_down_to_the_transaction(
    sqlite_template: Path, tmp_path: Path, real_clock: None
):
    os.link(sqlite_template, tmp_path / "quotewright.db")
    with collector() as (endpoint, bodies):
        env = environment(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, MCP_LOG_FORMAT="json")
        command = [sys.executable, "-m", "mcp_facade", "--transport", "streamable-http", "--port", "0"]
        server = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            lines = (json.loads(line) for line in server.stderr)
            address = next(line["mcp"] for line in lines if "mcp" in line)
            while not is_listening(urlsplit(address).port):
                await anyio.sleep(0.05)
            header = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            async with (
                httpx2.AsyncClient(headers=header) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                wishes = {"account_id": "acct_acme_001", "line_items": [LINE], "notes": "A secret wish"}
                created = await client.call_tool("quote_create", wishes)
                refused = await client.call_tool("quote_get", {"quote_id": "Q-none"})
        finally:
            server.terminate()
            _, log = server.communicate()
    assert not created.is_error
    assert refused.is_error
    spans = spans_of(bodies)
    create = next(one for one in spans.values() if one.name == "tools/call quote_create")
    assert create.trace_id.hex() == TRACE
    assert create.parent_span_id.hex() == PARENT
    below = {one.name for one in spans.values() if one.parent_span_id == create.span_id}
    assert "transaction" in below
    price = next(one for one in spans.values() if one.name == "price")
    assert spans[price.parent_span_id].name == "transaction"
    assert attributes(price) == {"cpq.lines": 1}
    assert attributes(spans[price.parent_span_id])["db.system.name"] == "sqlite"
    get = next(one for one in spans.values() if one.name == "tools/call quote_get")
    assert attributes(get)["cpq.code"] == "NOT_FOUND"
    called = next(json.loads(line) for line in log.splitlines() if '"tool called"' in line)
    assert called["otel_trace_id"] == TRACE
    assert attributes(create)["cpq.trace_id"] == called["trace_id"]
    assert b"secret wish" not in b"".join(bodies)


def test_without_a_collector_a_span_is_nothing_and_no_package_is_loaded(monkeypatch: pytest.MonkeyPatch):
    for name in traces.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert not traces.start()
    assert traces.current_id() is None
    with traces.span("price", lines=1) as span, traces.joined({"traceparent": f"00-{TRACE}-{PARENT}-01"}):
        traces.annotate(code="OK")
    assert span is None
    code = "import sys, mcp_facade.__main__; print(any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def is_listening(port: int | None) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def spans_of(bodies: list[bytes]) -> dict[bytes, Span]:
    requests = map(ExportTraceServiceRequest.FromString, bodies)
    groups = (scope.spans for request in requests for sent in request.resource_spans for scope in sent.scope_spans)
    return {span.span_id: span for spans in groups for span in spans}


def attributes(span: Span) -> dict[str, object]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
