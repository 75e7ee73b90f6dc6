"""Background loops of a server: recurring work, each in its own thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

import sqlalchemy as sa

from cpq.base.errors import CpqError

log = logging.getLogger("cpq.background")

PAUSE_SECONDS_MAX = 60.0
STOP_SECONDS = 20.0
LEAVE_SECONDS = 3.0
"""For the current work of all loops of a server that ends; what is not done by then ends with the process."""


class Loop:
    """Calls `work` until it is stopped. `work` returns the seconds to wait before its next call.

    After any error it calls `work` again after a pause, longer each time, because nothing else would restart it.
    """

    def __init__(self, name: str, work: Callable[[], float]) -> None:
        self.name = name
        self._work = work
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._stop_by = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self, seconds: float) -> None:
        if not self._stopping.is_set():
            self._stop_by = time.monotonic() + seconds
            self._stopping.set()

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._stop_by - time.monotonic()))

    @property
    def problem(self) -> str | None:
        """What is wrong with the loop, or None. Without the error's text, which may contain an address."""
        if self._thread.ident is not None and not self._thread.is_alive() and not self._stopping.is_set():
            return "has stopped"
        failure = self._failure
        return None if failure is None else f"fails: {type(failure).__name__}"

    def _run(self) -> None:
        pause = 0.0
        failures = 0
        while not self._stopping.wait(pause):
            try:
                pause, failures = self._work(), 0
                self._failure = None
            except Exception as error:
                failures += 1
                pause = min(2.0**failures, PAUSE_SECONDS_MAX)
                self._failure = error
                is_known = isinstance(error, CpqError | sa.exc.SQLAlchemyError | OSError)
                extra = {"loop": self.name, "reason": str(error).split("\n")[0]}
                log.warning("background work failed", extra=extra, exc_info=None if is_known else error)


def stop(loops: Iterable[Loop], seconds: float = STOP_SECONDS) -> None:
    """Stop all loops at once, and return when their current work is done, or has had these seconds in all.

    Stopping twice changes nothing, and does not wait twice.
    """
    loops = list(loops)
    for loop in loops:
        loop.request_stop(seconds)
    for loop in loops:
        loop.join()
