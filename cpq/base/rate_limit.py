"""The rate limit: a token bucket per caller, in the memory of one process."""

from __future__ import annotations

import math
import threading

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError

CALLERS_MAX = 10_000
"""Number of buckets at which full ones are dropped."""


class RateLimiter:
    """A token bucket per caller: one minute's calls may come at once, later calls at an even rate."""

    def __init__(self, per_minute: int, effects: Effects) -> None:
        self._per_minute = per_minute
        self._effects = effects
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Let one call pass, or raise RATE_LIMITED with the seconds to wait."""
        if not self._per_minute:
            return
        with self._lock:
            now = self._effects.monotonic()
            if len(self._buckets) >= CALLERS_MAX:
                # Any bucket is full after a minute, and a full bucket means the same as no bucket.
                self._buckets = {who: was for who, was in self._buckets.items() if now - was[1] < 60}
            left, since = self._buckets.get(caller, (self._per_minute, now))
            left = min(self._per_minute, left + (now - since) * self._per_minute / 60)
            self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        if left < 1:
            raise too_many(self._per_minute, (1 - left) * 60 / self._per_minute)


def too_many(per_minute: int, seconds: float) -> CpqError:
    """The refusal of a call for which there is room after this time."""
    wait = max(0.1, math.ceil(seconds * 10) / 10)
    return CpqError(
        Code.RATE_LIMITED,
        f"More than {per_minute} calls in a minute.",
        retry_after_seconds=wait,
        hint=f"Wait {wait} seconds, then repeat the same call.",
    )
