"""Places for running calls, shared fairly: a caller who sends many waits for its own calls, not others for them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass

import anyio

from cpq.base.errors import Code, CpqError


@dataclass
class _Turn:
    """A call that waits for a place."""

    event: asyncio.Event
    loop: asyncio.AbstractEventLoop
    is_given: bool = False


REFUSALS_FREE = 10
"""Refusals of one caller in a second that are answered at once."""

REFUSALS_HELD = 64
"""Refusals of one caller that wait at once. Beyond it they are answered, so that they do not hold all connections."""

REFUSAL_SECONDS = 1.0
"""How long the first refusal waits; each one that waits already adds a little, so that they do not end together."""


class RefusalPause:
    """Answers a caller later who goes on after many refusals. At once, each would be followed by the next, and others
    would wait for the server to read and refuse them. Used by one event loop."""

    def __init__(self) -> None:
        self._second = 0
        self._refused: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

    async def wait(self, caller: str) -> None:
        second = int(anyio.current_time())
        if second != self._second:
            self._second = second
            self._refused.clear()
        self._refused[caller] += 1
        if self._refused[caller] <= REFUSALS_FREE or self._held[caller] >= REFUSALS_HELD:
            return
        seconds = REFUSAL_SECONDS * (1 + self._held[caller] / REFUSALS_HELD)
        self._held[caller] += 1
        try:
            await anyio.sleep(seconds)
        finally:
            self._held[caller] -= 1
            self._held += Counter()  # Forgets callers who wait for nothing.


class FairShares:
    """At most `places` calls run, at most `per_caller` of one caller; freed places go to the callers in turn."""

    def __init__(self, *, places: int, per_caller: int, waiting_max: int, wait_seconds: float) -> None:
        self._places = places
        self._per_caller = per_caller
        self._waiting_max = waiting_max
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Turn]] = OrderedDict()

    @property
    def running(self) -> int:
        return self._running.total()

    async def take(self, caller: str) -> None:
        """Return when the caller has a place; UNAVAILABLE when too many of its calls wait, or for too long."""
        turn = self._queue(caller)
        if turn is None:
            return
        try:
            with anyio.move_on_after(self._wait_seconds):
                await turn.event.wait()
                return
        except BaseException:
            self._leave(caller, turn)
            raise
        self._leave(caller, turn)
        raise _too_busy("No place became free for this call.")

    def give_back(self, caller: str) -> None:
        """Free a place, from any thread."""
        with self._lock:
            self._running[caller] -= 1
            self._running += Counter()  # Forgets callers without a call.
            turn = self._next()
        _begin(turn)

    def _queue(self, caller: str) -> _Turn | None:
        """The turn to wait for; None when there is a place at once."""
        with self._lock:
            if caller not in self._waiting and self._has_place(caller):
                self._running[caller] += 1
                return None
            turns = self._waiting.setdefault(caller, deque())
            if len(turns) >= self._waiting_max:
                raise _too_busy(f"{self._running[caller]} calls of this caller run and {len(turns)} wait already.")
            turn = _Turn(asyncio.Event(), asyncio.get_running_loop())
            turns.append(turn)
            return turn

    def _leave(self, caller: str, turn: _Turn) -> None:
        """Give up waiting. A place that was given in the same moment is passed on."""
        with self._lock:
            if not turn.is_given:
                self._waiting[caller].remove(turn)
                self._forget_if_empty(caller)
                return
        self.give_back(caller)

    def _next(self) -> _Turn | None:
        for caller, turns in self._waiting.items():
            if self._has_place(caller):
                turn = turns.popleft()
                turn.is_given = True
                self._running[caller] += 1
                self._waiting.move_to_end(caller)
                self._forget_if_empty(caller)
                return turn
        return None

    def _has_place(self, caller: str) -> bool:
        return self._running.total() < self._places and self._running[caller] < self._per_caller

    def _forget_if_empty(self, caller: str) -> None:
        if not self._waiting[caller]:
            del self._waiting[caller]


def _begin(turn: _Turn | None) -> None:
    if turn is not None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            turn.loop.call_soon_threadsafe(turn.event.set)


def _too_busy(message: str) -> CpqError:
    return CpqError(Code.UNAVAILABLE, message, hint="Send fewer calls at a time; try again.", retry_after_seconds=2)
