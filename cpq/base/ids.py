"""Ids that sort by age, and secrets, both from the system's random bits; used through `Effects`."""

from __future__ import annotations

import os
import secrets
import threading
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: without letters that look like another."""


def new_id(prefix: str, at: datetime) -> str:
    """`prefix` and 20 characters: milliseconds first, so that ids sort by age, then 55 random bits."""
    milliseconds = int(at.timestamp() * 1000)
    return prefix + _base32((milliseconds << 55) | _CHANCE.bits(55), 20)


def new_secret() -> str:
    """256 random bits for a bearer token."""
    return secrets.token_urlsafe(32)


class _Chance:
    """The system's random bits, fetched for many ids at once: fetching takes longer than the rest of making an id."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop the bits in a child process, which would otherwise make the ids of its parent."""
        self._bytes, self._place = b"", 0
        self._lock = threading.Lock()

    def bits(self, count: int) -> int:
        length = (count + 7) // 8
        with self._lock:
            if self._place + length > len(self._bytes):
                self._bytes, self._place = secrets.token_bytes(4096), 0
            taken = self._bytes[self._place : self._place + length]
            self._place += length
        return int.from_bytes(taken) >> (8 * length - count)


_CHANCE = _Chance()
if hasattr(os, "register_at_fork"):  # Platforms without fork have no such children.
    os.register_at_fork(after_in_child=_CHANCE.forget)


_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


def _base32(number: int, length: int) -> str:
    """The last `length` digits; `length` is even."""
    return "".join([_PAIRS[(number >> place) & 1023] for place in range(5 * length - 10, -1, -10)])
