"""The servers that run on this home: each leaves a note there with its address while it lives."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cpq.base.private_folder import make_private

FOLDER = "servers"
NOTE_BYTES_MAX = 10_000


@dataclass(frozen=True)
class RunningServer:
    """One server over HTTP: where browsers reach it, and since when."""

    address: str
    port: int
    process: int
    started_at: str


@contextmanager
def announced(home: Path, server: RunningServer) -> Iterator[None]:
    """Keep the note of a server while it runs.

    The process holds a lock on its note: the system drops the lock however the process ends, so that a note that
    nobody holds is known to be old, even when another process has the same number now.
    """
    path = home / FOLDER / f"{server.process}-{server.port}.json"
    make_private(path.parent)
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(asdict(server)).encode())
        fresh.rename(path)  # Nobody sees the note before it is complete and held.
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def running(home: Path) -> list[RunningServer]:
    """The servers that run on this home now, the newest first. Notes of servers that are gone are removed."""
    found = []
    for path in sorted((home / FOLDER).glob("*.json")):
        with suppress(FileNotFoundError, PermissionError), path.open("rb") as note:
            if _is_held(note.fileno()):
                found += _read(note.read(NOTE_BYTES_MAX))
            else:
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda one: (one.started_at, one.port), reverse=True)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(text: bytes) -> list[RunningServer]:
    """The server of a note; nothing while the note is being written."""
    try:
        return [RunningServer(**json.loads(text))]
    except (ValueError, TypeError):
        return []
