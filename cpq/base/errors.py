"""`CpqError`, the only failure meant for callers: a code from a short list, a message, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from typing import cast


class Code(StrEnum):
    """Every failure code a caller can get. The list is API: it may grow, never change."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    CURRENCY_MISMATCH = "CURRENCY_MISMATCH"
    CONFIGURATION_INVALID = "CONFIGURATION_INVALID"
    POLICY_BLOCKED = "POLICY_BLOCKED"
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMITED = "RATE_LIMITED"
    TIMEOUT = "TIMEOUT"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL_ERROR = "INTERNAL_ERROR"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Code.VALIDATION_ERROR: "An argument has the wrong shape or value; `details` names it and what is allowed.",
    Code.NOT_FOUND: "Nothing with that identifier exists, or the caller may not see it.",
    Code.CONFLICT: "The current state does not allow this, or another call came first.",
    Code.CURRENCY_MISMATCH: "A product has no price in the quote's currency.",
    Code.CONFIGURATION_INVALID: "The chosen options violate a rule of the product.",
    Code.POLICY_BLOCKED: "A policy forbids this outright; no approval can allow it.",
    Code.FORBIDDEN: "The caller's role does not allow this.",
    Code.RATE_LIMITED: "Too many calls; wait `retry_after_seconds`.",
    Code.TIMEOUT: "The call took too long and was rolled back; nothing changed.",
    Code.UNAVAILABLE: "A part that the call needs is busy or down; try again, a write with the same `idempotency_key`.",
    Code.INTERNAL_ERROR: "An error on our side; `trace_id` finds it in the log.",
}


class Later:
    """Details that take long to find, as the detail `later`: found once, when the refused transaction has ended."""

    def __init__(self, find: Callable[[], Mapping[str, object]]) -> None:
        self._find = find

    @cached_property
    def found(self) -> Mapping[str, object]:
        return self._find()


class CpqError(Exception):
    """A failure the caller can act on. `details` are JSON values: the field, its bounds, the next call."""

    def __init__(self, code: Code, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: dict[str, object] = {name: value for name, value in details.items() if value is not None}

    def complete(self) -> None:
        """Find what was left for later. No transaction may be open, because others would wait for it."""
        for part in (self.details, *cast("list[dict[str, object]]", self.details.get("problems", []))):
            if isinstance(later := part.get("later"), Later):
                del part["later"]
                part |= later.found


def next_call(tool: str, **arguments: object) -> dict[str, object]:
    """The call that repairs the failure, ready to send."""
    return {"tool": tool, "arguments": arguments}


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Up to three known words that resemble `word`, best first."""
    return get_close_matches(word, sorted(known), n=3, cutoff=0.6)


def bad_field(field: str, message: str, **details: object) -> CpqError:
    """A refused argument; `field` is its JSON pointer."""
    return CpqError(Code.VALIDATION_ERROR, message, field=field, **details)
