"""Floods of one caller against a real server, while a second caller lists quotes: its p95 beside that without a flood.

Before each flood the second caller is measured alone, in the same run: only the ratio of the two says something.
"""

import http.client
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cpq.app import Command, open_app, tokens
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base.settings import read_settings
from tests.support import engine

CALLS = 60
"""Of the second caller, alone and during each flood."""

PAUSE_SECONDS = 0.05
"""Between two of its calls, as of somebody who works; without it, it would be a flood itself."""

NOTE = "A long note. " * 150
PROTOCOL = "2025-06-18"


def measure(home: Path, floods: tuple[str, ...] = ()) -> dict[str, float]:
    """For each flood the p95 of the second caller in ms alone and meanwhile, their ratio, and its refusals."""
    engine.fill_with_sample(read_settings({}, home=home))
    secrets = make_tokens(home, "flooder", "second")
    figures: dict[str, float] = {}
    with server(home) as port:
        second = Client(port, secrets["second"])
        quote_id = large_quote(Client(port, secrets["flooder"]))
        listed(second)  # The first calls load modules.
        for name, flood in FLOODS.items():
            if floods and name not in floods:
                continue
            alone, _ = listed(second)
            with flooding(flood, port, secrets["flooder"], quote_id):
                loaded, refused = listed(second)
            figures |= {
                f"{name}: p95 alone ms": alone,
                f"{name}: p95 meanwhile ms": loaded,
                f"{name}: p95 meanwhile / alone": loaded / alone,
                f"{name}: refusals of the second caller": refused,
            }
    return figures


class Client:
    """One session over one connection that is kept."""

    def __init__(self, port: int, secret: str) -> None:
        self.port, self.secret = port, secret
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.session: str | None = None
        asked = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.post("initialize", asked)
        self.post("notifications/initialized", {}, is_request=False)

    def post(self, method: str, params: dict[str, Any], *, is_request: bool = True) -> dict[str, Any]:
        """The answer; `refused` where the server or the tool refused it."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if is_request:
            body["id"] = 1
        headers = {
            "Authorization": f"Bearer {self.secret}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": PROTOCOL,
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        try:
            self.connection.request("POST", "/mcp", json.dumps(body), headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self.connection.close()  # A server may end a connection that is idle; a client then opens the next one.
            self.connection.request("POST", "/mcp", json.dumps(body), headers)
            answer = self.connection.getresponse()
        text = answer.read().decode()
        self.session = answer.headers.get("Mcp-Session-Id", self.session)
        if answer.status >= 400:
            return {"refused": text}
        if not is_request:
            return {}
        found = next(line for line in text.splitlines() if '"jsonrpc"' in line).removeprefix("data:")
        reply = json.loads(found)
        if "error" in reply or reply["result"].get("isError"):
            return {"refused": found}
        return dict(reply["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.post("tools/call", {"name": tool, "arguments": arguments})


def listed(client: Client) -> tuple[float, int]:
    """The p95 in ms of a page of quotes, and how many were refused."""
    times, refused = [], 0
    for _ in range(CALLS):
        start = time.perf_counter()
        try:
            answer = client.call("quote_list", limit=20)
        except (OSError, http.client.HTTPException):
            client = Client(client.port, client.secret)
            answer = {"refused": "the connection ended"}
        times.append(1000 * (time.perf_counter() - start))
        if "refused" in answer:
            refused += 1
            print(f"refused: {answer['refused'][:300]}", file=sys.stderr)
        time.sleep(PAUSE_SECONDS)
    return statistics.quantiles(times, n=20)[18], refused


def many_sessions(port: int, secret: str, _quote_id: str, started: Callable[[], None]) -> None:
    """999 sessions of one caller, opened again and again."""
    opened: list[Client] = []
    while True:
        with suppress(OSError, http.client.HTTPException):
            opened.append(Client(port, secret))
        if len(opened) == 20:
            started()
        if len(opened) == 999:
            opened.clear()


def many_documents(port: int, secret: str, quote_id: str, started: Callable[[], None]) -> None:
    """60 calls for a PDF at once; other locales and templates, because the same one is made once."""
    locales = ["en_US", "de_DE", "fr_FR", "es_ES", "it_IT", "en_GB"]

    def ask(number: int) -> None:
        client = Client(port, secret)
        while True:
            changed = {"quote_id": quote_id, "expected_version": 1, "notes": f"{number} {time.monotonic()}"}
            require_flood(client.call("quote_update", **changed))
            require_flood(client.call("quote_pdf", quote_id=quote_id, locale=locales[number % len(locales)]))

    at_once(60, ask, started)


def many_lists(port: int, secret: str, _quote_id: str, started: Callable[[], None]) -> None:
    """A storm of tools/list."""

    def ask(_: int) -> None:
        client = Client(port, secret)
        while True:
            client.post("tools/list", {})

    at_once(30, ask, started)


def many_clones(port: int, secret: str, quote_id: str, started: Callable[[], None]) -> None:
    """Clones of a quote of 500 lines with long notes."""

    def ask(_: int) -> None:
        client = Client(port, secret)
        while True:
            require_flood(client.call("quote_clone", quote_id=quote_id))

    at_once(10, ask, started)


def half_sent(port: int, _secret: str, _quote_id: str, started: Callable[[], None]) -> None:
    """1,100 requests without a token of which only a half is sent; what the server ends is sent again."""
    open_: list[socket.socket] = []
    while True:
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
            open_.append(one)
        if len(open_) == 1100:
            started()
        if len(open_) > 1100:
            open_.pop(0).close()
            time.sleep(0.01)


def slow_bodies(port: int, secret: str, _quote_id: str, started: Callable[[], None]) -> None:
    """150 requests of 4 MB that are sent slowly."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {4 * 1024 * 1024 - 1}\r\n\r\n"
    )

    def send(_: int) -> None:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as one:
                one.sendall(head.encode())
                for _part in range(60):
                    one.sendall(b" " * 65_536)
                    time.sleep(0.4)

    at_once(150, send, started)


def require_flood(answer: dict[str, Any]) -> None:
    """A flood of calls that the server does not know would be none; calls beyond a share or a limit are refused."""
    refused = answer.get("refused", "")
    if refused and not any(code in refused for code in ("RATE_LIMITED", "UNAVAILABLE", "TIMEOUT", "CONFLICT")):
        print(f"the flood is none: {refused[:300]}", file=sys.stderr)
        os._exit(1)


FLOODS = {
    "999 sessions": many_sessions,
    "60 PDFs at once": many_documents,
    "tools/list storm": many_lists,
    "clones of 500 lines": many_clones,
    "1,100 half-sent requests": half_sent,
    "150 slow bodies": slow_bodies,
}


def at_once(count: int, work: Callable[[int], None], started: Callable[[], None]) -> None:
    """Run the work so many times at once, again after each refused connection, until the process is ended."""

    def run(number: int) -> None:
        while True:
            with suppress(OSError, http.client.HTTPException):
                work(number)

    for number in range(count):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    time.sleep(2)
    started()
    threading.Event().wait()


@contextmanager
def flooding(flood: Callable[..., None], port: int, secret: str, quote_id: str) -> Iterator[None]:
    """The flood in a process of its own, from its beginning on."""
    spawn = multiprocessing.get_context("spawn")
    is_started = spawn.Event()
    process = spawn.Process(target=run_flood, args=(flood, port, secret, quote_id, is_started), daemon=True)
    process.start()
    try:
        is_started.wait(60)
        yield
        assert process.is_alive(), "the flood ended by itself"
    finally:
        process.kill()
        process.join()


def run_flood(flood: Callable[..., None], port: int, secret: str, quote_id: str, is_started: Any) -> None:
    flood(port, secret, quote_id, is_started.set)


@contextmanager
def server(home: Path) -> Iterator[int]:
    """The product's own server on a free port, which this yields."""
    environment = {**os.environ, "CPQ_HOME": str(home), "MCP_RATE_LIMIT_PER_MINUTE": "600", "CPQ_TOOLSETS": "all"}
    command = [sys.executable, "-m", "mcp_facade", "--transport", "streamable-http", "--port", "0"]
    with (home / "server.log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            yield port_of(home / "server.log", process)
        finally:
            process.kill()


def port_of(log: Path, process: "subprocess.Popen[bytes]") -> int:
    while process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("mcp "):
                port = urlsplit(line.split()[1]).port
                assert port is not None
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                    return port
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def make_tokens(home: Path, *names: str) -> dict[str, str]:
    app = open_app(read_settings({}, home=home))
    secrets: dict[str, str] = {}

    def work(tx: Tx) -> dict[str, Any]:
        for name in names:
            secrets[name] = tokens.create_token(tx, name=name, role="agent")[1]
        return {}

    app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), work)
    app.close()
    return secrets


def large_quote(client: Client) -> str:
    lines = [{"product_id": "prod_pro_v2", "quantity": number + 1, "notes": NOTE[:400]} for number in range(500)]
    answer = client.call("quote_create", account_id="acct_acme_001", line_items=lines, term_months=12)
    assert "refused" not in answer, answer
    return str(answer["structuredContent"]["quote_id"])
