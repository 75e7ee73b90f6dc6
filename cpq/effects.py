"""Time, identity and chance: the only place they come from, so that tests can hold them still."""

from __future__ import annotations

import random
import secrets
import time
from datetime import UTC, datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that reads like another."""


class Effects:
    """The real ones. A test subclasses it and overrides what must stand still."""

    def now(self) -> datetime:
        """The current moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only go forward; for waiting and measuring, never for storing."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def jitter(self, seconds: float) -> float:
        """Somewhere between nothing and `seconds`, so that rivals do not meet again."""
        return random.uniform(0, seconds)  # noqa: S311 - spreads retries, guards nothing

    def new_id(self, prefix: str) -> str:
        """`prefix` and 20 characters: milliseconds first, so that ids sort by age, then 55 random bits."""
        milliseconds = int(self.now().timestamp() * 1000)
        return prefix + _base32((milliseconds << 55) | secrets.randbits(55), 20)

    def new_secret(self) -> str:
        """256 random bits for a bearer token."""
        return secrets.token_urlsafe(32)


def _base32(number: int, length: int) -> str:
    return "".join([_ALPHABET[(number >> (5 * place)) & 31] for place in reversed(range(length))])
