"""PURE. A round of approvals: which roles are still to be asked, whose turn it is, and when a version is approved."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.domain.policy.policy_set import Quorum, Roles


@dataclass(frozen=True)
class Step:
    """What one role is asked about the version."""

    id: str
    role: str
    status: RequestStatus
    expires_at: datetime

    @classmethod
    def of(cls, request: ApprovalRequest) -> Step:
        return cls(request.id, request.role, request.status, request.expires_at)

    def at(self, now: datetime, *, is_live: bool) -> Step:
        """As it is now, whether or not anybody swept: nothing is pending past its time, or on a quote that moved on."""
        if not self.status.is_open or (is_live and now < self.expires_at):
            return self
        return replace(self, status=RequestStatus.EXPIRED if is_live else RequestStatus.WITHDRAWN)


class RoundStatus(StrEnum):
    """All requests about a version in a word."""

    REJECTED = "rejected"
    PENDING = "pending_approval"
    APPROVED = "approved"
    NONE = "none"


@dataclass(frozen=True)
class Round:
    """All that was asked about one version, oldest first, and what the policies demand of it."""

    roles: Roles
    chains: tuple[tuple[str, ...], ...]
    steps: tuple[Step, ...]

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(role for chain in self.chains for role in chain)

    @property
    def pending(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.status.is_open)

    @property
    def is_rejected(self) -> bool:
        return any(step.status is RequestStatus.REJECTED for step in self.steps)

    @property
    def ungranted(self) -> tuple[str, ...]:
        """The roles that the policies ask for and that have not approved."""
        return tuple(role for role in self.required if not self._is_granted(role))

    @property
    def missing(self) -> tuple[str, ...]:
        """The roles that have to be asked: those of the policies that nobody has asked, and those out of time."""
        unasked = tuple(role for role in self.ungranted if not self._is_open(role))
        return (*unasked, *self.unanswered)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The roles beyond the policies that were asked and let their time run out: silence is no answer.

        They are asked again, or the request is withdrawn.
        """
        last = {step.role: step.status for step in self.steps}
        return tuple(
            role
            for role, status in last.items()
            if status is RequestStatus.EXPIRED and role not in self.required and not self._is_granted(role)
        )

    @property
    def is_settled(self) -> bool:
        """Nothing is open, unanswered or refused, and every role that the policies ask for has approved."""
        return not (self.is_rejected or self.pending or self.ungranted or self.unanswered)

    @property
    def is_approved(self) -> bool:
        """Settled, and not by silence: somebody has in fact approved."""
        return self.is_settled and any(step.status.is_granted for step in self.steps)

    @property
    def status(self) -> RoundStatus:
        """The first that applies, in the order of the statuses."""
        if self.is_rejected:
            return RoundStatus.REJECTED
        if self.pending:
            return RoundStatus.PENDING
        return RoundStatus.APPROVED if self.is_approved else RoundStatus.NONE

    def active_step(self, role: str) -> Step | None:
        """The step of a role that is pending or granted; there is one at most."""
        its_own = (step for step in self.steps if step.role == role)
        return next((step for step in its_own if step.status.is_open or step.status.is_granted), None)

    def waits_for(self, role: str) -> str | None:
        """The role whose turn comes before: of the commercial chain the lowest that is open, or needed and not granted.

        Roles beside the chain wait for nobody.
        """
        if role not in self.roles.commercial:
            return None
        lower = self.roles.commercial[: self.roles.commercial.index(role)]
        return next((other for other in lower if other in self.ungranted or self._is_open(other)), None)

    def with_step(self, changed: Step) -> Round:
        """The round with a step replaced, or added."""
        known = any(step.id == changed.id for step in self.steps)
        steps = tuple(changed if step.id == changed.id else step for step in self.steps)
        return replace(self, steps=steps if known else (*steps, changed))

    def _is_open(self, role: str) -> bool:
        return any(step.role == role and step.status.is_open for step in self.steps)

    def _is_granted(self, role: str) -> bool:
        return any(step.role == role and step.status.is_granted for step in self.steps)


def votes_needed(quorum: Quorum, people: int) -> int:
    """How many approvals a step takes when so many people could give one; never none."""
    if quorum == "one":
        return 1
    if quorum == "all":
        return max(1, people)
    return people // 2 + 1 if quorum == "majority" else quorum


def votes_given(quorum: Quorum, holders: Collection[str], able: Collection[str]) -> int:
    """How many approvals count: one for each holder of the role, given by themselves or by their delegate.

    Where all have to approve, nobody else's word makes up for theirs.
    """
    counted = set(holders)
    return len(counted.intersection(able) if quorum == "all" and able else counted)


def read_quorum(text: str) -> Quorum:
    """The quorum as it was stored."""
    words: dict[str, Quorum] = {"one": "one", "all": "all", "majority": "majority"}
    return words.get(text) or int(text)


def roles_to_ask(round_: Round, asked: str) -> tuple[str, ...]:
    """The asked role, and the roles that the policies want and nobody has asked yet; so it may be more, never less."""
    return (asked, *(role for role in round_.missing if role != asked))


def covers(roles: Roles, chains: Sequence[Sequence[str]], role: str) -> frozenset[str]:
    """The roles for whose concerns a step speaks: where only the highest is asked, it answers for those below it."""
    if role not in roles.commercial or roles.asks_each or not any(role in chain for chain in chains):
        return frozenset({role})
    return frozenset(roles.commercial[: roles.commercial.index(role) + 1])
