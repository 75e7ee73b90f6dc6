"""`Effects`: the only source of time, ids and randomness, so that tests can control them."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from datetime import UTC, datetime


class Effects:
    """The real clock and random source. A test subclasses it and overrides what must not vary."""

    def now(self) -> datetime:
        """The current moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back; for waiting and measuring, never for storing."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def jitter(self, seconds: float) -> float:
        """A random time up to `seconds`, so that rivals do not retry at the same moment."""
        return random.uniform(0, seconds)  # noqa: S311 - spreads retries, guards nothing

    def new_id(self, prefix: str) -> str:
        """`prefix` and 20 characters: milliseconds first, so that ids sort by age, then 55 random bits."""
        milliseconds = int(self.now().timestamp() * 1000)
        return prefix + _base32((milliseconds << 55) | _CHANCE.bits(55), 20)

    def new_secret(self) -> str:
        """256 random bits for a bearer token."""
        return secrets.token_urlsafe(32)


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: without letters that look like another."""


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
