"""The HTTP protocol of our server: a connection that does not send its request in time gives up its place."""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""Time for the head of a request, from its first byte or from the opening of the connection."""

CONNECTIONS_MAX = 800
CLOSE = (b"connection", b"close")


class PatientProtocol(H11Protocol):
    """Uvicorn's protocol with a deadline for the head of a request, and a limit of connections.

    Uvicorn waits for the rest of a request for as long as the client likes, so that some hundred half-sent ones would
    use up the files that the process may open. When too many connections are open, the one that has waited longest
    without a request makes room, also an idle one that is kept alive. Only connections whose requests are being
    answered are never ended; bodies have a deadline of their own.
    """

    _waiting: ClassVar[OrderedDict[PatientProtocol, None]] = OrderedDict()
    """The connections without a request, oldest first; the server has one loop, and one thread runs it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # As uvicorn has it.
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > connections_max():
            next(iter(self._waiting))._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request.
        if self._is_last:
            self.take_leave()  # Its answer has not begun: the application runs in the next turn of the loop.
        if cycle is None or cycle.response_complete:
            self._wait()
        else:
            self._end_wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # No further request was waiting already.
            self._wait()

    def take_leave(self) -> None:
        """Let the answer of the current request, or of the next one, end the connection, with a header that says so."""
        self._is_last = True
        cycle: RequestResponseCycle | None = self.cycle
        headers: Any = cycle.scope["headers"] if cycle else [CLOSE]
        if CLOSE not in headers:
            headers.append(CLOSE)  # Then uvicorn answers with it.

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        """End the connection. It is forgotten at once, because the loop ends it only in its next turn."""
        self._end_wait()
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
            self._waiting[self] = None

    def _end_wait(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def connections_max() -> int:
    """The limit of connections: the rest of the files that may be open is for the database and documents."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(CONNECTIONS_MAX, soft - 224))
