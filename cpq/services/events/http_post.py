"""One HTTP request to a webhook, bounded in time and size; it follows no redirect and uses no proxy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from cpq import __version__

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""From the first byte we send to the last one we read, however slowly they come."""

ANSWER_BYTES_MAX = 4096
SAID_MAX = 200


@dataclass(frozen=True)
class Answer:
    """What came back. `status` is None when nothing did that we could read; `said` is for the operator."""

    status: int | None
    said: str
    retry_after_seconds: int = 0

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, headers: Mapping[str, str], body: bytes, *, may_send: Callable[[], bool] = lambda: True) -> Answer:
    """Send the body once. Whatever goes wrong is an answer too, because the caller tries again either way.

    `may_send` is asked once more when the connection stands: finding an address has no time limit of its own.
    """
    parts = urlsplit(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        if not may_send():
            return Answer(None, "it took too long to connect")
        return _exchange(connection, target, headers, body)
    except (OSError, HTTPException, UnicodeError) as error:  # The last of a host that cannot be looked up.
        return Answer(None, _reason(error))
    finally:
        connection.close()


def _exchange(connection: HTTPConnection, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
    is_late = threading.Event()

    def hang_up() -> None:
        # A time limit on the socket starts anew with every byte, so a receiver that drips could hold us for ever.
        is_late.set()
        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    connection.sock.settimeout(ANSWER_SECONDS)
    watch = threading.Timer(ANSWER_SECONDS, hang_up)
    watch.daemon = True
    watch.start()
    try:
        fixed = {"user-agent": f"Quotewright/{__version__}", "connection": "close"}
        connection.request("POST", target, body, {**headers, **fixed})
        return _read(connection.getresponse())
    except (OSError, HTTPException) as error:
        return Answer(None, f"no answer within {ANSWER_SECONDS:g} s" if is_late.is_set() else _reason(error))
    finally:
        watch.cancel()


def _read(response: HTTPResponse) -> Answer:
    """The status decides; a body that breaks off changes nothing about it."""
    try:
        said = response.read(ANSWER_BYTES_MAX).decode(errors="replace")
    except (OSError, HTTPException):
        said = ""
    wanted = response.getheader("retry-after", "").strip()
    retry_after = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else 0
    told = "" if 200 <= response.status < 300 else said
    return Answer(response.status, _line(f"{response.status} {told}"), retry_after)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _line(f"{type(error).__name__}: {said}")


def _line(text: str) -> str:
    """One short line that every database can store and every terminal can show: it comes from outside."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:SAID_MAX]
