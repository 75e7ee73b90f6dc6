"""The processes that render documents: kept warm, supervised, and killed when a call is cancelled."""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cpq.base import traces
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.services.documents import worker_messages

log = logging.getLogger("cpq.documents")

WORKERS_MAX = 2
"""Workers that render at a time; each uses a whole processor."""

FOLDERS_MAX = 4
"""Folders of templates whose workers are kept warm; each tenant may have one."""

DOCUMENTS_MAX = 200
"""Documents per worker before it is replaced, because its libraries leak memory."""

LOOK_SECONDS = 0.05
APT_LINE = "apt-get install -y --no-install-recommends libpango-1.0-0 libpangoft2-1.0-0"
INHERITED = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "PYTHONPATH")
"""Environment variables passed to a worker: paths of programs and libraries, no secrets."""

Progress = Callable[[int, str], None]
"""Called often with the pages done and the current stage; raises when the call is cancelled."""


@dataclass(frozen=True)
class Made:
    pdf: bytes
    pages: int
    missing: str


class WorkerEndedError(Exception):
    """A worker ended without an answer: somebody killed it, or the system did for want of memory."""


class Workers:
    """The workers for one folder of templates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(WORKERS_MAX)
        self._is_closed = False

    def render(self, job: bytes, *, effects: Effects, seconds_max: float, progress: Progress) -> Made:
        """Render the job; TIMEOUT after `seconds_max`. An error raised by `progress` cancels the job."""
        deadline = effects.monotonic() + seconds_max
        while not self._free.acquire(timeout=LOOK_SECONDS):
            progress(0, "waiting")
            if effects.monotonic() > deadline:
                raise CpqError(
                    Code.UNAVAILABLE, "Other documents are being rendered.", hint="Try again.", retry_after_seconds=5
                )
        try:
            try:
                with traces.span("render document"):
                    return self._render(job, effects, deadline, progress)
            except WorkerEndedError as error:
                log.warning("a worker ended while it rendered; its job is tried again", extra={"reason": str(error)})
                return self._render(job, effects, deadline, progress)
        except (WorkerEndedError, OSError) as error:
            log.error("documents cannot be rendered", extra={"reason": str(error)})
            raise CpqError(
                Code.UNAVAILABLE,
                "The process that renders documents ended before it was done; nothing was stored.",
                hint="Try again. If it fails again, the operator looks for memory or a limit that ends the process.",
                retry_after_seconds=5,
            ) from error
        finally:
            self._free.release()

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for worker in idle:
            worker.kill()

    def _render(self, job: bytes, effects: Effects, deadline: float, progress: Progress) -> Made:
        worker = self._take()
        try:
            made = worker.do(job, effects, deadline, progress)
        except BaseException:
            worker.kill()
            raise
        self._give_back(worker)
        return made

    def _take(self) -> _Worker:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return _Worker(self._folder)
            if worker.is_alive():
                return worker
            worker.kill()  # It has ended already; this frees its resources.

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            is_kept = worker.documents < DOCUMENTS_MAX and not self._is_closed
            if is_kept:
                self._idle.append(worker)
        if not is_kept:
            worker.kill()


_ALL: dict[Path, Workers] = {}
_ALL_LOCK = threading.Lock()


def workers_for(folder: Path) -> Workers:
    """The workers of a folder, of the few that were used last."""
    with _ALL_LOCK:
        workers = _ALL.pop(folder, None) or Workers(folder)
        _ALL[folder] = workers  # As the last one: the folder that was used longest ago makes room.
        for other in list(_ALL)[:-FOLDERS_MAX]:
            _ALL.pop(other).close()
        return workers


@atexit.register
def close_all() -> None:
    with _ALL_LOCK:
        for workers in _ALL.values():
            workers.close()
        _ALL.clear()


class _Worker:
    def __init__(self, folder: Path) -> None:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment |= {
            "FONTCONFIG_FILE": str(folder / "fonts" / "fonts.conf"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
        }
        self.documents = 0
        # -P: a file in the current folder must not shadow a module of the product.
        self._process = subprocess.Popen(  # noqa: S603 - our own module in our own interpreter
            [sys.executable, "-P", "-m", "cpq.services.documents.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._answers: queue.SimpleQueue[tuple[bytes, bytes] | None] = queue.SimpleQueue()
        self._errors = bytearray()
        self._sender: threading.Thread | None = None
        self._listeners = [
            threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]
        for listener in self._listeners:
            listener.start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def do(self, job: bytes, effects: Effects, deadline: float, progress: Progress) -> Made:
        self.documents += 1
        # Sent from a thread: a hanging worker reads nothing, and a long job does not fit into the pipe.
        self._sender = threading.Thread(target=self._send, args=(job,), daemon=True)
        self._sender.start()
        pages, what = 0, "starting"
        while True:
            progress(pages, what)
            if effects.monotonic() > deadline:
                raise CpqError(
                    Code.TIMEOUT,
                    "The document took too long and was cancelled; nothing was stored.",
                    hint="Use the template executive_summary or compact, or split the quote.",
                )
            try:
                answer = self._answers.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if answer is None:
                raise self._died()
            kind, body = answer
            if kind == worker_messages.PROGRESS:
                pages, what = json.loads(body)
            elif kind == worker_messages.DONE:
                about, _, pdf = body.partition(b"\n")
                return Made(pdf, **json.loads(about))
            elif kind == worker_messages.REFUSED:
                raise _refusal(json.loads(body))
            elif kind == worker_messages.FAILED:
                raise RuntimeError(f"a document could not be rendered:\n{body.decode(errors='replace')}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for thread in (*self._listeners, *filter(None, [self._sender])):
            thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    log.debug("a worker ended with part of a job unread")

    def _send(self, job: bytes) -> None:
        try:
            worker_messages.send(self._stdin, worker_messages.JOB, job)
        except OSError:
            log.debug("a worker ended before it had read its job")  # The listener notices.

    def _listen(self, stream: IO[bytes]) -> None:
        while message := worker_messages.receive(stream):
            self._answers.put(message)
        self._answers.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        """Keep the end of the stderr of a worker, for the log."""
        while line := stream.readline():
            self._errors += line
            del self._errors[:-4000]

    def _died(self) -> Exception:
        self._process.wait()
        self._listeners[1].join()
        errors = self._errors.decode(errors="replace")
        if "cannot load library" in errors:
            return CpqError(
                Code.UNAVAILABLE,
                "The libraries for PDFs are not installed.",
                hint=f"The operator runs: {APT_LINE}",
            )
        return WorkerEndedError(f"it ended with {self._process.returncode}: {errors}")


def _refusal(body: Mapping[str, str]) -> CpqError:
    if body["reason"] == "templates":
        return CpqError(Code.UNAVAILABLE, body["message"], hint=body["hint"])
    too = f"it has {body['found']}" if "found" in body else "it needs too much memory"
    return CpqError(
        Code.VALIDATION_ERROR,
        f"The document is too large: {too}. Nothing was stored.",
        field="/quote_id",
        hint="Use the template executive_summary or compact, or split the quote.",
    )
