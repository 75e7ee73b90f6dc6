"""`cpq serve --workers N`: several processes on one listening socket, which are replaced one after the other."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from types import FrameType

import uvicorn
from sse_starlette.sse import AppStatus

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from mcp_facade import http
from mcp_facade.http_protocol import PatientProtocol

log = logging.getLogger("cpq.server")

BACKLOG = 2048
START_SECONDS = 120.0
LOOK_SECONDS = 0.5
PAUSE_SECONDS = 1.0
"""Before a worker that has ended by itself is replaced."""

LAST_ANSWERS_SECONDS = 1.0
"""How long a worker that ends answers on its open connections, and asks each client to open a new one."""


class WorkerServer(uvicorn.Server):
    """A server that says when it answers, and takes leave of its clients before it ends."""

    def __init__(self, config: uvicorn.Config, ready: int) -> None:
        super().__init__(config)
        self._effects = Effects()
        self._ready = ready
        AppStatus.enable_automatic_graceful_drain = False  # It would cut answers that are being sent as streams.

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            os.write(self._ready, b"\n")
            threading.Thread(target=_end_with_the_supervisor, daemon=True).start()
        os.close(self._ready)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """New connections go to the other workers. Each answer now ends its connection; then idle ones are closed."""
        for server in self.servers:
            server.close()
        end = self._effects.monotonic() + LAST_ANSWERS_SECONDS
        while self.server_state.connections and self._effects.monotonic() < end:
            for connection in list(self.server_state.connections):
                if isinstance(connection, PatientProtocol):
                    connection.take_leave()
            await asyncio.sleep(0.02)
        await super().shutdown(sockets=sockets)


def _end_with_the_supervisor() -> None:
    """However the process that keeps the workers ends, the pipe from it ends, too."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


class Workers:
    """The processes, and the signals that the operator sends: SIGHUP replaces all, SIGTERM ends all."""

    def __init__(self, settings: Settings, arguments: Sequence[str], listener: socket.socket) -> None:
        self._settings = settings
        self._effects = Effects()
        self._listener = listener
        safe = ["-P"] if sys.flags.safe_path else []
        self._command = [sys.executable, *safe, "-m", "mcp_facade", *arguments]
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._running: list[subprocess.Popen[bytes]] = []
        self._leaving: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        for one in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(one, self._note)
        try:
            for _ in range(self._settings.workers):
                self._running.append(self._start())
            log.info("workers started", extra={"processes": self._processes()})
            while (number := self._next_signal()) not in (signal.SIGTERM, signal.SIGINT):
                if number == signal.SIGHUP:
                    self._replace_all()
        finally:
            self._stop()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.put(number)

    def _next_signal(self) -> int:
        while True:
            with suppress(Empty):
                return self._signals.get(timeout=LOOK_SECONDS)
            self._leaving = [one for one in self._leaving if one.poll() is None]
            for place, worker in enumerate(self._running):
                if worker.poll() is not None:
                    log.error("a worker has ended", extra={"worker": worker.pid, "code": worker.returncode})
                    self._effects.sleep(PAUSE_SECONDS)
                    with suppress(CpqError):  # It is in the log; the others serve, and the next look tries again.
                        self._running[place] = self._start()

    def _replace_all(self) -> None:
        """A new worker answers before an old one goes. Where none starts, the old ones stay."""
        for place, old in enumerate(self._running):
            try:
                self._running[place] = self._start()
            except CpqError as error:
                log.error("the workers stay as they are", extra={"reason": error.message})
                return
            old.send_signal(signal.SIGTERM)
            self._leaving.append(old)
        log.info("workers replaced", extra={"processes": self._processes()})

    def _processes(self) -> list[int]:
        return [worker.pid for worker in self._running]

    def _start(self) -> subprocess.Popen[bytes]:
        """A worker that answers."""
        receiver, sender = os.pipe()
        fds = (self._listener.fileno(), sender)
        with os.fdopen(receiver, "rb", buffering=0) as pipe:
            try:
                command = [*self._command, "--inherited", ",".join(map(str, fds))]
                # Any worker answers any call, so that clients of older protocol revisions get no session either.
                environment = {**os.environ, "MCP_STATELESS": "true"}
                worker = subprocess.Popen(  # noqa: S603 - ourselves
                    command, pass_fds=fds, stdin=subprocess.PIPE, env=environment
                )
            finally:
                os.close(sender)
            is_ready = bool(select.select([pipe], [], [], START_SECONDS)[0]) and bool(pipe.read(1))
        if not is_ready:
            worker.kill()
            worker.wait()
            raise CpqError(Code.UNAVAILABLE, "A worker did not start.", hint="The log says why.")
        return worker

    def _stop(self) -> None:
        """End all; a call that takes longer than others get at the end of a server is given up."""
        every = [*self._running, *self._leaving]
        for worker in every:
            worker.send_signal(signal.SIGTERM)
        end = self._effects.monotonic() + LAST_ANSWERS_SECONDS + http.GRACE_SECONDS
        for number in (signal.SIGINT, signal.SIGKILL):
            for worker in every:
                with suppress(subprocess.TimeoutExpired):
                    worker.wait(max(0.0, end - self._effects.monotonic()))
            for worker in every:
                if worker.poll() is None:
                    worker.send_signal(number)
            end = self._effects.monotonic() + http.GRACE_SECONDS
        for worker in every:
            worker.wait()


def supervise(settings: Settings, arguments: Sequence[str], say_where: Callable[[Settings], None]) -> None:
    """Listen, and let the workers answer until the process is stopped."""
    with closing(http.listener(settings)) as listener:
        listener.listen(BACKLOG)
        say_where(settings.model_copy(update={"port": listener.getsockname()[1]}))
        Workers(settings, arguments, listener).run()
