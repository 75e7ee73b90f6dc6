"""The messages between a server and its rendering workers: a kind, a length, and that many bytes."""

from __future__ import annotations

import struct
from typing import IO

HEAD = struct.Struct("!cQ")
JOB, PROGRESS, DONE, REFUSED, FAILED = b"J", b"P", b"D", b"X", b"F"


def send(stream: IO[bytes], kind: bytes, body: bytes) -> None:
    stream.write(HEAD.pack(kind, len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """The next message; None when the other side has ended."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, length = HEAD.unpack(head)
    body = stream.read(length)
    return (kind, body) if len(body) == length else None
