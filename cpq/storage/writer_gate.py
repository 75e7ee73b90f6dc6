"""The queue of SQLite's writers: one writes at a time, across threads and processes, in a fair order."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError


def gate_of(path: Path, effects: Effects) -> WriterGate:
    return WriterGate(path.with_name(path.name + ".writer"), effects)


class WriterGate:
    """A queue for the writers of all processes, because SQLite's own busy handler starves some of them for seconds.

    Two locks make the queue fair: a writer first takes the lock of the next in line, so that one that has just
    finished cannot write again while others wait.
    """

    def __init__(self, path: Path, effects: Effects) -> None:
        self._paths = (path.with_suffix(".next"), path)
        self._effects = effects
        self.on_wait: Callable[[float], None] = lambda _seconds: None
        """Gets the seconds that each writer waited; a server measures them."""
        self._threads = threading.Lock()
        self._open: tuple[int, tuple[int, int]] | None = None

    @contextmanager
    def held(self, deadline: float) -> Iterator[None]:
        started = self._effects.monotonic()
        if not self._threads.acquire(timeout=max(0.0, deadline - started)):
            raise _busy()
        try:
            coming, writer = self._descriptors()
            self._lock(coming, deadline, pause_max=0.002)
            try:
                self._lock(writer, deadline, pause_max=0.0002)
            finally:
                fcntl.flock(coming, fcntl.LOCK_UN)
            try:
                self.on_wait(self._effects.monotonic() - started)
                yield
            finally:
                fcntl.flock(writer, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        with self._threads:
            known, self._open = self._open, None
            for descriptor in known[1] if known else ():
                os.close(descriptor)

    def _descriptors(self) -> tuple[int, int]:
        """The lock files, opened once for each process: a child must not hold the locks of its parent."""
        process = os.getpid()
        if self._open is None or self._open[0] != process:
            coming, writer = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for path in self._paths)
            self._open = process, (coming, writer)
        return self._open[1]

    def _lock(self, descriptor: int, deadline: float, *, pause_max: float) -> None:
        pause = pause_max / 8
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if self._effects.monotonic() > deadline:
                    raise _busy() from None
            self._effects.sleep(pause)
            pause = min(pause * 1.5, pause_max)


def _busy() -> CpqError:
    return CpqError(
        Code.UNAVAILABLE,
        "The database is busy with other writes.",
        hint="Try again in a few seconds; nothing was changed.",
        retry_after_seconds=2,
    )
