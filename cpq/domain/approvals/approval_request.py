"""PURE. A request for approval as it is stored: what a role is asked about one version of a quote, and its votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Decision = Literal["approve", "reject"]


class RequestStatus(StrEnum):
    """What became of a request."""

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
        """Whether the role approves of the version: it decided so, or its earlier approval is kept."""
        return self in (RequestStatus.APPROVED, RequestStatus.KEPT)

    @property
    def is_answered(self) -> bool:
        """Whether it stays as it is. What ended by time alone can still be withdrawn."""
        return self not in (RequestStatus.PENDING, RequestStatus.EXPIRED)


@dataclass(frozen=True)
class ApprovalRequest:
    """What one role is asked about one version of a quote, what it is bound to, and what became of it."""

    id: str
    quote_id: str
    version: int
    role: str
    status: RequestStatus
    """As stored: time may have ended it since, see `Step.at`."""
    reason: str | None
    fingerprint: str
    total: int
    """In whole millionths."""
    policy_hash: str
    chains: tuple[tuple[str, ...], ...]
    """What the policies ask for: chains of roles side by side, each asked in turn."""
    grounds: Sequence[Mapping[str, Any]]
    """The facts that it rests on, as `reapproval.dump` writes them."""
    quorum: str
    justification: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    escalates_to: str | None
    escalates_at: datetime | None
    escalated_at: datetime | None
    """When the escalation was published; it holds from `escalates_at`."""
    holds_until: datetime
    kept_from: str | None
    """The request whose approval is kept."""
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None

    def is_escalated(self, now: datetime) -> bool:
        return self.escalates_at is not None and self.escalates_at <= now

    def escalated_to(self, now: datetime) -> str | None:
        """The role that may decide it, too, because the one that is asked took long."""
        return self.escalates_to if self.is_escalated(now) else None


@dataclass(frozen=True)
class Vote:
    """One person's decision on a request."""

    approval_id: str
    caller: str
    acted_as: str
    holder: str
    """The holder of the role that it counts for: the voter, or the person who delegated the role to the voter."""
    decision: Decision
    comment: str | None
    at: datetime
