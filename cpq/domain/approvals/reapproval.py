"""PURE. Re-approval: whether a role's approval of the last version is kept for this one, by the facts it rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from cpq.base.money import plain
from cpq.domain.policy.evaluation import (
    Each,
    FactRead,
    FactValue,
    LinesPast,
    Safe,
    Violation,
    is_each,
    is_no_worse,
    worse_lines,
)
from cpq.domain.policy.policy_set import Roles

Grounds = Mapping[str, tuple[FactRead, ...]]
"""The facts that each policy read when it required a role, by the policy's id."""


@dataclass(frozen=True)
class Earlier:
    """A role's approval of the previous version."""

    id: str
    version: int
    voters: tuple[str, ...]
    """All who gave it, in order, on any earlier version."""
    asked_at: datetime
    """When they were asked."""
    decided_by: str
    decided_at: datetime
    policy_hash: str
    holds_until: datetime
    grounds: Grounds


class Answer(NamedTuple):
    """Whether the earlier approval is kept, and the reason as a sentence."""

    is_kept: bool
    reason: str


def grounds_of(violations: Iterable[Violation]) -> Grounds:
    """The facts behind these violations."""
    return {found.policy_id: found.facts_read for found in violations}


def is_kept(
    role: str,
    roles: Roles,
    earlier: Earlier,
    grounds: Grounds,
    *,
    policy_hash: str,
    now: datetime,
    barred: Collection[str],
    gone: Collection[str] = (),
) -> Answer:
    """Whether `earlier` covers a version with these grounds.

    `barred` are people who may not decide on this version, `gone` those who may no longer decide anything.
    """
    if not roles.keep.get(role, True):
        return Answer(False, f"Asked again: {role} looks at every version.")
    if earlier.policy_hash != policy_hash:
        return Answer(False, f"Asked again: the policies have changed since version {earlier.version}.")
    if earlier.holds_until <= now:
        return Answer(False, f"Asked again: version {earlier.version}, which was approved, is no longer valid.")
    if given := next((voter for voter in earlier.voters if voter in barred), None):
        return Answer(False, f"Asked again: {given}, who approved before, had a hand in this version.")
    if given := next((voter for voter in earlier.voters if voter in gone), None):
        return Answer(False, f"Asked again: {given}, who approved before, may no longer decide.")
    for policy_id, reads in grounds.items():
        if policy_id not in earlier.grounds:
            return Answer(False, f"Asked again: {policy_id} did not apply to version {earlier.version}.")
        before = {read.name: read for read in earlier.grounds[policy_id]}
        for read in reads:
            if read.name not in before or not is_no_worse(before[read.name], read):
                return Answer(False, f"Asked again: {_moved(before.get(read.name), read)}.")
    return Answer(True, f"Kept from version {earlier.version}: nothing that {role} approved got worse.")


def dump(grounds: Grounds) -> list[dict[str, Any]]:
    """The grounds as stored; values keep their types."""
    return [
        {
            "policy_id": id_,
            "reads": [[read.name, _dump_value(read.value), read.safe.value, read.is_secret] for read in reads],
        }
        for id_, reads in grounds.items()
    ]


def load(stored: Sequence[Mapping[str, Any]]) -> Grounds:
    return {
        part["policy_id"]: tuple(
            FactRead(name, _load_value(value), Safe(safe), *more) for name, value, safe, *more in part["reads"]
        )
        for part in stored
    }


def _dump_value(value: FactValue) -> Any:
    """Numbers are written as text, so that 5 and 5.5 are read as the same type."""
    if isinstance(value, LinesPast):
        return {"past": _dump_each(value.values)}
    if is_each(value):
        return {"each": _dump_each(value)}
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    return {"number": str(value)} if isinstance(value, Decimal) else value


def _dump_each(values: Each) -> list[Any]:
    return [[id_, _dump_value(part)] for id_, part in values]


def _load_value(stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        return stored
    if "past" in stored:
        return LinesPast(_load_value({"each": stored["past"]}))
    if "each" in stored:
        return tuple((id_, _load_value(part)) for id_, part in stored["each"])
    return frozenset(stored["set"]) if "set" in stored else Decimal(stored["number"])


def _moved(before: FactRead | None, after: FactRead) -> str:
    """How a fact changed. The sentence is stored and shown to all, so it shows no number of a secret fact."""
    if before is not None and isinstance(before.value, LinesPast) and isinstance(after.value, LinesPast):
        return f"{after.name} got worse at {', '.join(worse_lines(before, after))}"
    if after.is_secret:
        return f"{after.name} got worse"
    if after.value is None:
        return f"{after.name} is unknown"
    if before is None or not all(_is_readable(read.value) for read in (before, after)):
        return f"{after.name} changed"
    return f"{after.name} went from {_readable(before.value)} to {_readable(after.value)}"


def _is_readable(value: FactValue) -> bool:
    return value is None or isinstance(value, bool | Decimal | str)


def _readable(value: FactValue) -> str:
    if value is None:
        return "unknown"
    return f"{plain(value):f}" if isinstance(value, Decimal) else str(value)
