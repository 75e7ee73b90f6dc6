"""One HTTP request to a webhook, bounded in time and size; it follows no redirect and uses no proxy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from cpq import __version__

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""From the first byte we send to the last one we read."""

ANSWER_BYTES_MAX = 4096
TEXT_MAX = 200


@dataclass(frozen=True)
class Answer:
    """The receiver's answer. `status` is None when there was no readable answer; `text` is for the operator."""

    status: int | None
    text: str
    retry_after_seconds: int = 0

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, headers: Mapping[str, str], body: bytes, *, may_send: Callable[[], bool] = lambda: True) -> Answer:
    """Send the body once. A failure is an answer too, because the caller tries again either way.

    `may_send` is checked again once connected, because a name lookup has no time limit of its own.
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
    except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: a host name that cannot be encoded.
        return Answer(None, _reason(error))
    finally:
        connection.close()


def _exchange(connection: HTTPConnection, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
    is_late = threading.Event()

    def hang_up() -> None:
        # A time limit on the socket restarts with every byte, so a slow receiver could hold us without end.
        is_late.set()
        with suppress(OSError):  # It may be closed by now.
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
    """The status decides, even if the body breaks off."""
    try:
        body = response.read(ANSWER_BYTES_MAX).decode(errors="replace")
    except (OSError, HTTPException):
        body = ""
    wanted = response.getheader("retry-after", "").strip()
    retry_after = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else 0
    shown = "" if 200 <= response.status < 300 else body
    return Answer(response.status, _line(f"{response.status} {shown}"), retry_after)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _line(f"{type(error).__name__}: {reason}")


def _line(text: str) -> str:
    """One short line that every database can store and every terminal can show: the text comes from outside."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:TEXT_MAX]
