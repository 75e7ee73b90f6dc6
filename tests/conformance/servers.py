"""Starts our server as its own process on a free port, on a sample database, away from the operator's settings."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpq.app import Command, open_app
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base.settings import read_settings
from cpq.services import catalog
from cpq.storage import migrations

ROOT = Path(__file__).parents[2]
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30


def prepare(home: Path) -> None:
    """Create the database with the sample catalogue."""
    settings = read_settings({}, home=home)
    migrations.upgrade(settings)
    app = open_app(settings)

    def work(tx: Tx) -> dict[str, Any]:
        catalog.import_rows(tx, catalog.read_rows(ROOT / "cpq" / "sample" / "catalog.yaml", "products"))
        return {}

    try:
        app.write(app.new_call(OPERATOR), Command("import", Permission.ADMINISTER), work)
    finally:
        app.close()


def environment(home: Path) -> dict[str, str]:
    """What a server needs to know; every toolset is on, so that every tool is looked at."""
    return {"CPQ_HOME": str(home), "CPQ_TOOLSETS": "all", "PYTHONPATH": str(ROOT)}


@contextmanager
def serving(home: Path, module: str, *arguments: str) -> Iterator[str]:
    """The address of the MCP endpoint that `python -m module arguments… port` serves."""
    port = _free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CPQ_", "MCP_"))}
    log_path = home / f"{module}.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, str(port)],
            cwd=home,
            env=inherited | environment(home),
            stdout=log,
            stderr=log,
        )
    try:
        _await_health(process, f"http://127.0.0.1:{port}/healthz", log_path)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_health(process: subprocess.Popen[bytes], url: str, log_path: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise RuntimeError(f"The server did not start:\n{log_path.read_text(errors='replace')[-4000:]}")
