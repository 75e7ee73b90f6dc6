"""`Effects`: the only source of time, ids and randomness, so that tests can control them."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

from cpq.base import ids


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
        return ids.new_id(prefix, self.now())

    def new_secret(self) -> str:
        return ids.new_secret()
