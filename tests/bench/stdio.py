"""Measures calls over stdio through a raw pipe: `catalog_get` beside an empty tool of one server, and the start."""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 2000
STARTS = 5


class RawClient:
    """A client without any work of its own: lines in, lines out."""

    def __init__(self, module: str, home: Path, **settings: str) -> None:
        env = {**os.environ, "CPQ_HOME": str(home), "MCP_LOG_LEVEL": "WARNING", "MCP_RATE_LIMIT_PER_MINUTE": "0"}
        env |= settings
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        assert self._process.stdin
        assert self._process.stdout
        self._to_server, self._from_server = self._process.stdin, self._process.stdout
        self._count = 0
        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", start)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict) -> dict:
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return json.loads(self._from_server.readline())

    def call(self, tool: str, **arguments: object) -> dict:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> dict[str, float]:
        """MB of the server's process: resident, the part of it that is mapped from files, and the most that it was.

        Pages that are mapped from files, libraries and indexes alike, belong to the system, which takes them back.
        """
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB", status, re.MULTILINE))
        names = {"MB": "VmRSS", "mapped MB": "RssFile", "at most MB": "VmHWM"}
        return {name: int(kilobytes[field]) / 1024 for name, field in names.items()}

    def close(self) -> None:
        self._to_server.close()
        self._process.wait(30)

    def _send(self, message: dict) -> None:
        self._to_server.write(json.dumps(message).encode() + b"\n")
        self._to_server.flush()


def measure(home: Path) -> dict[str, float]:
    """Calls alternate between the two tools, so that whatever else the machine does hits both alike."""
    client = RawClient("tests.bench.server", home)
    calls = {"nothing": {}, "catalog_get": {"product_id": "prod_pro_v2"}, "catalog_search": {"query": "pro plan"}}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(ROUNDS + 100):
        for name, arguments in calls.items():
            start = time.perf_counter()
            answer = client.call(name, **arguments)
            assert not answer.get("isError"), answer
            if round_ >= 100:
                times[name].append(time.perf_counter() - start)
    client.close()
    medians = {name: statistics.median(values) * 1000 for name, values in times.items()}
    return {
        **{f"{name} p50 ms": value for name, value in medians.items()},
        "catalog_get / empty tool": medians["catalog_get"] / medians["nothing"],
        "start to first answer s": statistics.median(_start_seconds(home) for _ in range(STARTS)),
    }


def _start_seconds(home: Path) -> float:
    client = RawClient("mcp_facade", home)
    client.call("catalog_get", product_id="prod_pro_v2")
    seconds = time.perf_counter() - client.started
    client.close()
    return seconds
