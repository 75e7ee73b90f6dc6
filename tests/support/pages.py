"""Runs a page of the guide as a reader would: its blocks in order, in a new folder with a home of its own.

A block is fenced. Its language says what becomes of it: `sh` is run by bash, `text` must be in the output of the last
command, and any other language with a name after it is written to a file of that name. A block that cannot run here has
`<!-- not run: REASON -->` above it.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.support.loopback import kept_port

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 400
PORT = "8765"
"""The port that pages name; each run has another one in its place."""

REASONS = {
    "container engine": "its files are read by tests/test_packages.py",
    "set-up of a checkout": "tests/test_packages.py",
    "package index": "the wheel is built in tests/test_packages.py",
    "program of another vendor": "its file of settings is read and its server started, where the page has one",
    "service manager": "its file is read by tests/test_packages.py",
    "server of PostgreSQL": "tests/cli/test_backup.py copies to one",
    "shape, not a command": "it shows what a call answers, or how a text is written",
}
"""Why a block is not run, and what shows that it is true nevertheless. A closed list."""

FENCE = re.compile(r"^```(\w*) ?(.*)$")
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    name: str
    text: str
    reason: str


@dataclass
class Run:
    """What a page has come to: its folder, its variables, its servers and the last output."""

    folder: Path
    port: int
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    output: str = ""


@contextmanager
def reader(folder: Path) -> Iterator[Run]:
    """Somebody who follows a page in this folder; their servers end with them."""
    with kept_port() as port:
        here = Run(folder, port)
        try:
            yield here
        finally:
            for server in here.servers:
                with suppress(ProcessLookupError):
                    os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, with the reason why it is not run."""
    found: list[Block] = []
    reason, opened = "", None
    text: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if opened is None:
            if fence := FENCE.match(line):
                opened, text = (number, fence[1], fence[2].strip()), []
            elif line.strip():
                reason = said[1] if (said := NOT_RUN.match(line)) else ""
        elif line == "```":
            found.append(Block(str(page.relative_to(ROOT)), *opened, "\n".join(text) + "\n", reason))
            opened, reason = None, ""
        else:
            text.append(line)
    assert opened is None, f"{page}: the block of line {opened} does not end"
    return found


def run(block: Block, here: Run) -> None:
    """Do what a reader does with the block; the failure has its page and line."""
    place, text = f"{block.page}:{block.line}", block.text.replace(PORT, str(here.port))
    if block.language == "sh":
        _run_commands(place, text, here, is_server=block.name == "server")
    elif block.language == "text":
        missing = [line for line in text.splitlines() if line.strip() and not _is_shown(line, here.output)]
        assert not missing, f"{place}: not in the output: {missing}\n{here.output}"
    else:
        _read(place, block.language, text)
        if block.language == "json" and not block.name:
            return
        assert block.name, f"{place}: a block is a command, its output, or has the name of a file"
        (here.folder / block.name).parent.mkdir(parents=True, exist_ok=True)
        (here.folder / block.name).write_text(text, encoding="utf-8")
        here.output = ""


def _run_commands(place: str, text: str, here: Run, *, is_server: bool) -> None:
    """Commands keep the folder and the variables of those before them; a server stays, and has answered once."""
    state, output = here.folder.parent / "state.sh", here.folder.parent / "output.txt"
    script = f"set -euo pipefail\n{state.read_text() if state.exists() else ''}\n{text}\n"
    script += f'{{ export -p; echo "cd $(printf %q "$PWD")"; }} >{shlex.quote(str(state))}\n'
    with output.open("w") as written:
        ran = subprocess.Popen(
            ["bash", "-c", script],
            cwd=here.folder,
            env=_variables(here),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if is_server:
            here.servers.append(ran)
            assert _answers(ran, here.port), f"{place}: the server does not answer\n{output.read_text()}"
            return
        code = ran.wait(PATIENCE_SECONDS)
    here.output = output.read_text(encoding="utf-8")
    assert code == 0, f"{place}: exit code {code}\n{here.output}"


def _variables(here: Run) -> dict[str, str]:
    """Only what a reader's shell has: none of our settings, this checkout's code, and its programs."""
    own = here.folder.parent
    programs = own / "programs"
    if not programs.exists():
        programs.mkdir()
        _program(programs / "cpq", "-c", "import sys; from cpq.cli import main; sys.exit(main())")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CPQ_", "MCP_", "CORTEX_"))}
    path = f"{programs}:{Path(sys.executable).parent}:{kept['PATH']}"
    return {
        **kept,
        "PATH": path,
        "HOME": str(own),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "110",
        "MCP_PORT": str(here.port),
        "NO_COLOR": "1",
    }


def _program(path: Path, *arguments: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *arguments])} "$@"\n')
    path.chmod(0o755)


def _answers(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it does within the time that a reader would wait."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and server.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
            return True
        time.sleep(0.2)
    return False


def _is_shown(line: str, output: str) -> bool:
    """Whether a line of the output is this one; `…` stands for anything, and spaces count as one."""
    parts = (re.escape(" ".join(part.split())) for part in line.split("…"))
    wanted = re.compile(r"\s*.*?\s*".join(parts))
    return any(wanted.fullmatch(" ".join(one.split())) for one in output.splitlines())


def _read(place: str, language: str, text: str) -> None:
    """A file has the form that its language says."""
    readers: dict[str, Callable[[str], object]] = {
        "json": json.loads,
        "yaml": yaml.safe_load,
        "toml": tomllib.loads,
        "python": _compiled,
    }
    try:
        readers.get(language, str)(text)
    except Exception as error:
        raise AssertionError(f"{place}: no {language}: {error}") from error


def _compiled(text: str) -> object:
    return compile(text, "block", "exec", dont_inherit=True)
