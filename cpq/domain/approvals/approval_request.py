"""PURE. A stored request for a role's approval of one version of a quote, and its votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

Decision = Literal["approve", "reject"]

CHANGE_REQUESTED = "Change requested: "
"""The start of a rejection's comment that asks for a change: a submitted version never changes itself."""


class RequestStatus(StrEnum):
    """The status of a request."""

    PENDING = "pending"
    APPROVED = "approved"
    KEPT = "kept"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"

    @property
    def is_open(self) -> bool:
        """Whether it can be decided."""
        return self is RequestStatus.PENDING

    @property
    def is_granted(self) -> bool:
        """Whether the role approved the version, now or by an earlier approval that is kept."""
        return self in (RequestStatus.APPROVED, RequestStatus.KEPT)

    @property
    def is_answered(self) -> bool:
        """Whether it is final. A request that only expired can still be withdrawn."""
        return self not in (RequestStatus.PENDING, RequestStatus.EXPIRED)


class Reason(NamedTuple):
    """A violation that required the role, in words."""

    policy_id: str
    text: str
    is_secret: bool
    """Whether the text reveals a cost or a margin."""


@dataclass(frozen=True)
class ApprovalRequest:
    """A request to one role about one version of a quote: the price it is bound to, and its outcome."""

    id: str
    quote_id: str
    version: int
    role: str
    status: RequestStatus
    """As stored; it may have expired since, see `Step.at`."""
    reason: str | None
    fingerprint: str
    total: int
    """In whole millionths."""
    policy_hash: str
    chains: tuple[tuple[str, ...], ...]
    """The roles that the policies require: parallel chains, the roles of each asked in turn."""
    grounds: Sequence[Mapping[str, Any]]
    """The facts that caused it, as `reapproval.dump` writes them."""
    reasons: tuple[Reason, ...]
    """Why the policies require it; empty when it was asked for besides them."""
    quorum: str
    justification: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    escalates_to: str | None
    escalates_at: datetime | None
    escalated_at: datetime | None
    """When the escalation was published; it takes effect at `escalates_at`."""
    holds_until: datetime
    kept_from: str | None
    """The request whose approval is kept."""
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None

    def is_escalated(self, now: datetime) -> bool:
        return self.escalates_at is not None and self.escalates_at <= now

    def escalated_to(self, now: datetime) -> str | None:
        """The role that may also decide it, because the asked role took too long."""
        return self.escalates_to if self.is_escalated(now) else None


@dataclass(frozen=True)
class Vote:
    """One person's decision on a request."""

    approval_id: str
    caller: str
    acted_as: str
    holder: str
    """The holder of the role for which it counts: the voter, or the person who delegated the role to the voter."""
    decision: Decision
    comment: str | None
    at: datetime


class HoldState(StrEnum):
    """The state of a decision that its maker could undo."""

    HELD = "held"
    TAKEN = "taken"
    UNDONE = "undone"
    FAILED = "failed"


@dataclass(frozen=True)
class HeldDecision:
    """A decision that a person confirmed. It takes effect at `due_at`, unless it is undone before."""

    id: str
    approval_id: str
    quote_id: str
    caller: str
    decision: Decision
    fingerprint: str
    comment: str | None
    made_at: datetime
    due_at: datetime
    state: HoldState
    reason: str | None
    """Why it failed."""
    ended_at: datetime | None

    @property
    def is_held(self) -> bool:
        """Whether it can still be undone."""
        return self.state is HoldState.HELD
