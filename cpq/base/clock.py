"""`Effects`: time, identity and chance come from here alone, so that tests can hold them still."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

from cpq.base import ids


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
        return ids.new_id(prefix, self.now())

    def new_secret(self) -> str:
        return ids.new_secret()
