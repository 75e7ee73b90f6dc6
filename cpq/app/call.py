"""One call: who calls, the command with its arguments and key, and the outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from cpq.app.access import Permission, Principal
from cpq.base.errors import Code, CpqError
from cpq.base.text import canonical_json

OUTCOME_OK = "OK"

Answer = dict[str, Any]


@dataclass(frozen=True)
class Command:
    """What is asked: its name, the permission it needs, its arguments, and the caller's idempotency key."""

    name: str
    needs: Permission
    arguments: Mapping[str, object] = field(default_factory=dict)
    idempotency_key: str | None = None
    subject: str | None = None

    @cached_property
    def written(self) -> dict[str, str]:
        """Each argument as canonical JSON, for the key and the audit entry."""
        return {name: canonical_json(value) for name, value in self.arguments.items()}

    def subject_of(self, answer: Answer) -> str | None:
        """The id of what the call was about, usually a quote: for a clone the new quote, for a decision its quote."""
        return answer.get("quote_id") or self.subject


@dataclass(frozen=True)
class Outcome:
    answer: Answer
    replayed: bool = False


@dataclass
class Record:
    """The audit data of a running call: its command, as far as it is known."""

    command: Command
    is_written: bool = False
    """True when the entry was written in one transaction with the change."""


@dataclass(frozen=True)
class Retrieval:
    """What a call searched for, and how well it found it; recorded for tuning, see `retrieval_queries`."""

    query: str
    hits: int
    mode: str
    score: Decimal | None
    """Of the best hit; None where hits have no score."""
    confidence: str | None
    """The band of the best hit."""
    is_failed: bool
    """Nothing was found, or nothing that is near."""


class Call:
    """One invocation: who asks, how to find it in the log, and whether it may still take effect."""

    def __init__(
        self,
        principal: Principal,
        trace_id: str,
        progress: Callable[..., None] = lambda _done, _total, _message, **_options: None,
    ) -> None:
        self.principal = principal
        self.trace_id = trace_id
        self.progress = progress
        self.retrieved: list[Retrieval] = []
        """The search of this call: the last one, when it searches several times."""
        self._lock = threading.Lock()
        self._state: str = "open"
        self._writes = 0

    def cancel(self) -> bool:
        """Stop the call. False when it is already committing, so its answer must be awaited."""
        with self._lock:
            if self._state == "open":
                self._state = "cancelled"
            return self._state == "cancelled"

    @property
    def is_cancelled(self) -> bool:
        return self._state == "cancelled"

    def check(self) -> None:
        """Raise when the call was cancelled. Long work calls this between its steps."""
        if self.is_cancelled:
            raise CpqError(Code.TIMEOUT, "The call was cancelled before it took effect; nothing changed.")

    def next_write(self) -> str:
        """A key for a write of this call that has none, so that its retries find their own answer."""
        self._writes += 1
        return f"call:{self.trace_id}:{self._writes}"

    def enter_commit(self) -> None:
        """Mark the point of no return: the change may now be kept, so the call can no longer be cancelled."""
        with self._lock:
            if self._state == "open":
                self._state = "committing"
        self.check()
