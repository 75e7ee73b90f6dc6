"""`cpq serve --workers`: several processes on one socket, replaced while clients call."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cpq.base.clock import Effects
from tests.support import loopback
from tests.support.engine import bare_environment
from tests.tools.test_server import browser

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parent.parent.parent
NEW = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}


class Supervisor:
    """A server of two workers in processes of their own."""

    def __init__(self, home: Path, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/mcp"
        command = [sys.executable, "-m", "mcp_facade", "--transport", "streamable-http", "--workers", "2"]
        own = {"CPQ_HOME": str(home), "PYTHONPATH": str(ROOT), "MCP_RATE_LIMIT_PER_MINUTE": "0"}
        environment = {**bare_environment(), **own}
        self.process = subprocess.Popen(
            [*command, "--port", str(port)], env=environment, stderr=subprocess.PIPE, text=True, cwd=home
        )
        self.lines: list[str] = []

    def workers(self, said: str) -> set[int]:
        """The processes, once the supervisor says that they are started or replaced."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if said in line:
                return {int(number) for number in re.findall(r"\d+", line.partition("processes=")[2])}
        raise AssertionError("".join(self.lines))


@contextmanager
def supervisor(home: Path) -> Iterator[Supervisor]:
    with loopback.kept_port() as port:
        made = Supervisor(home, port)
        try:
            yield made
        finally:
            made.process.send_signal(signal.SIGTERM)
            assert made.process.stderr is not None
            with made.process.stderr as rest:
                made.lines += rest
            assert made.process.wait(timeout=60) == 0, "".join(made.lines)


async def test_workers_are_replaced_one_after_the_other_and_no_call_is_refused(
    sqlite_template: Path, tmp_path: Path, real_clock: Effects
):
    """Clients keep their connections open and call all the time; one of each era, one with pauses."""
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    with supervisor(tmp_path) as server:
        first = await anyio.to_thread.run_sync(server.workers, "workers started")
        called, is_over = {"auto": 0, "legacy": 0}, anyio.Event()

        async def call(era: str, pause: float) -> None:
            async with (
                browser() as connection,
                Client(streamable_http_client(server.address, http_client=connection), mode=era) as client,
            ):
                while not is_over.is_set():
                    made = await client.call_tool("quote_create", NEW)
                    assert not made.is_error, made
                    called[era] += 1
                    await anyio.sleep(pause)

        async with anyio.create_task_group() as callers:
            for era, pause in (("auto", 0.0), ("legacy", 0.0), ("auto", 1.2)):
                callers.start_soon(call, era, pause)
            while min(called.values()) < 3:
                await anyio.sleep(0.05)
            server.process.send_signal(signal.SIGHUP)
            second = await anyio.to_thread.run_sync(server.workers, "workers replaced")
            assert (len(first), len(second), first & second) == (2, 2, set())
            before = dict(called)
            while min(called[era] - before[era] for era in called) < 5 or any(map(is_alive, first)):
                await anyio.sleep(0.05)
            is_over.set()
    assert not any(map(is_alive, first | second))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
