"""PURE. A round of approvals: which roles must still be asked, which is next, and when a version is approved."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.domain.policy.policy_set import Quorum, Roles


@dataclass(frozen=True)
class Step:
    """The request to one role about the version."""

    id: str
    role: str
    status: RequestStatus
    expires_at: datetime

    @classmethod
    def of(cls, request: ApprovalRequest) -> Step:
        return cls(request.id, request.role, request.status, request.expires_at)

    def at(self, now: datetime, *, is_live: bool, has_lapsed: bool = False) -> Step:
        """The step as of now, whether or not it was swept: none is pending after its expiry, or on a changed quote.

        With the first request of a round that expires the round lapses, and all its requests expire.
        """
        if not self.status.is_open or (is_live and now < self.expires_at):
            return self
        has_expired = is_live or has_lapsed
        return replace(self, status=RequestStatus.EXPIRED if has_expired else RequestStatus.WITHDRAWN)


class RoundStatus(StrEnum):
    """The status of all requests about a version together."""

    REJECTED = "rejected"
    PENDING = "pending_approval"
    APPROVED = "approved"
    NONE = "none"


@dataclass(frozen=True)
class Round:
    """All requests about one version, oldest first, and the roles that the policies require for it."""

    roles: Roles
    chains: tuple[tuple[str, ...], ...]
    steps: tuple[Step, ...]

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(role for chain in self.chains for role in chain)

    @property
    def pending(self) -> tuple[Step, ...]:
        """The open steps, in the order in which their roles decide."""
        return self._in_order(step for step in self.steps if step.status.is_open)

    @property
    def is_begun(self) -> bool:
        """Whether anybody was asked whose request did not just expire."""
        return any(step.status is not RequestStatus.EXPIRED for step in self.steps)

    @property
    def is_rejected(self) -> bool:
        return any(step.status is RequestStatus.REJECTED for step in self.steps)

    @property
    def ungranted(self) -> tuple[str, ...]:
        """The roles that the policies require and that have not approved."""
        return tuple(role for role in self.required if not self._is_granted(role))

    @property
    def missing(self) -> tuple[str, ...]:
        """The roles that must be asked: required roles without a request, and roles whose request expired."""
        unasked = tuple(role for role in self.ungranted if not self._is_open(role))
        return (*unasked, *(step.role for step in self.expired if step.role not in self.required))

    @property
    def expired(self) -> tuple[Step, ...]:
        """The last request to each role that has not approved, where nobody decided it in time."""
        last = {step.role: step for step in self.steps}
        silent = (step for step in last.values() if step.status is RequestStatus.EXPIRED)
        return self._in_order(step for step in silent if not self._is_granted(step.role))

    @property
    def lapses_at(self) -> datetime | None:
        """The moment at which the first open request expires, and with it the round."""
        return min((step.expires_at for step in self.pending), default=None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is open, expired or rejected, and every required role has approved."""
        return not (self.is_rejected or self.pending or self.ungranted or self.expired)

    @property
    def is_approved(self) -> bool:
        """Whether it is settled and at least one role has approved."""
        return self.is_settled and any(step.status.is_granted for step in self.steps)

    @property
    def status(self) -> RoundStatus:
        """The first status that applies, in the order of the enum."""
        if self.is_rejected:
            return RoundStatus.REJECTED
        if self.pending:
            return RoundStatus.PENDING
        return RoundStatus.APPROVED if self.is_approved else RoundStatus.NONE

    def active_step(self, role: str) -> Step | None:
        """The pending or granted step of a role; there is at most one."""
        its_own = (step for step in self.steps if step.role == role)
        return next((step for step in its_own if step.status.is_open or step.status.is_granted), None)

    def waits_for(self, role: str) -> str | None:
        """The role that decides first: the lowest of the commercial chain that is open, or required and not granted.

        Roles outside the chain wait for nobody.
        """
        if role not in self.roles.commercial:
            return None
        lower = self.roles.commercial[: self.roles.commercial.index(role)]
        return next((other for other in lower if other in self.ungranted or self._is_open(other)), None)

    def with_step(self, changed: Step) -> Round:
        """The round with one step replaced or added."""
        known = any(step.id == changed.id for step in self.steps)
        steps = tuple(changed if step.id == changed.id else step for step in self.steps)
        return replace(self, steps=steps if known else (*steps, changed))

    def _in_order(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(sorted(steps, key=lambda step: self.roles.rank(step.role)))

    def _is_open(self, role: str) -> bool:
        return any(step.role == role and step.status.is_open for step in self.steps)

    def _is_granted(self, role: str) -> bool:
        return any(step.role == role and step.status.is_granted for step in self.steps)


def votes_needed(quorum: Quorum, people: int) -> int:
    """The number of approvals that a step needs from `people` possible voters; at least one."""
    if quorum == "one":
        return 1
    if quorum == "all":
        return max(1, people)
    return people // 2 + 1 if quorum == "majority" else quorum


def votes_given(quorum: Quorum, holders: Collection[str], able: Collection[str]) -> int:
    """The number of approvals that count: one for each holder of the role, given by themselves or by their delegate.

    Where all must approve, other people's approvals do not replace theirs.
    """
    counted = set(holders)
    return len(counted.intersection(able) if quorum == "all" and able else counted)


def read_quorum(text: str) -> Quorum:
    """The stored quorum."""
    words: dict[str, Quorum] = {"one": "one", "all": "all", "majority": "majority"}
    return words.get(text) or int(text)


def roles_to_ask(round_: Round, besides: str | None) -> tuple[str, ...]:
    """The required roles that nobody has asked yet and a role besides them, in the order in which they decide."""
    wanted = {*round_.missing, besides}
    return tuple(role for role in round_.roles.known if role in wanted)
