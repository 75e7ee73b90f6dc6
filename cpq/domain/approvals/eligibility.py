"""PURE. The one rule of who may decide a request, for one request or for many, with a typed answer.

A person decides by their own role, by escalation, as the stand-in of a role whose holders may not decide, or by
delegation. Nobody decides what they made, nor what was made by somebody they share a role with; nobody votes twice.
People are named as callers, `human:dana`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from cpq.domain.approvals.approval_request import Decision, Vote
from cpq.domain.approvals.delegation import Delegation


class Basis(Enum):
    """The basis on which a person may decide a request."""

    OWN_ROLE = auto()
    ESCALATED = auto()
    STAND_IN = auto()
    DELEGATED = auto()


class Refusal(Enum):
    """Why a caller may not decide a request."""

    NOT_A_PERSON = auto()
    NOT_THIS_ROLE = auto()
    MAKER = auto()
    DELEGATED_TO_MAKER = auto()
    DELEGATED_BY_MAKER = auto()
    HAS_VOTED = auto()

    @property
    def is_own_doing(self) -> bool:
        """Whether the person's own action causes the conflict. A quorum does not count them and a stand-in does not
        wait for them. The delegate of a maker still counts, or makers could remove voters by delegating to them."""
        return self in (Refusal.MAKER, Refusal.DELEGATED_TO_MAKER)

    @property
    def may_reject(self) -> bool:
        """The delegate of a maker may still reject, or makers could silence opponents by delegating to them."""
        return self is Refusal.DELEGATED_BY_MAKER


class Allowed(NamedTuple):
    """How a person may decide a request."""

    basis: Basis
    role: str
    """The role by which they decide: the asked role, the role it was escalated to, or the stand-in role."""
    asked_role: str
    holder: str
    """The holder of the role for which the vote counts: the person, or the one who delegated the role to them."""


class Refused(NamedTuple):
    """Why the caller may not decide a request."""

    reason: Refusal
    otherwise: Allowed | None = None
    """How they could decide it without that reason; None when no role of theirs allows it."""
    vote: Vote | None = None
    """The existing vote, when it is the reason."""


class RequestFacts(NamedTuple):
    """The facts about a request that determine who may decide it."""

    id: str
    quote_id: str
    account_id: str
    role: str
    escalated_to: str | None
    requested_at: datetime
    makers: frozenset[str]
    """Callers who requested it, made the quote or this version of it, or changed it."""


class Conflicts(NamedTuple):
    """People with an interest in what the makers made: the makers, and all who share a role with them by delegation."""

    makers: frozenset[str]
    delegators: Mapping[str, datetime]
    """People who delegated a role to a maker, with the end of the last such delegation."""
    delegates: Mapping[str, datetime]
    """People who received a role from a maker, with the end of the last such delegation."""

    def of(self, person: str, since: datetime) -> Refusal | None:
        """The conflict of a person in a request made at `since`; a delegation that ended before does not count."""
        if person in self.makers:
            return Refusal.MAKER
        if person in self.delegators and self.delegators[person] > since:
            return Refusal.DELEGATED_TO_MAKER
        if person in self.delegates and self.delegates[person] > since:
            return Refusal.DELEGATED_BY_MAKER
        return None


def conflicts(makers: frozenset[str], delegations: Iterable[Delegation], now: datetime) -> Conflicts:
    """The conflicts that the makers cause, by delegations that have begun."""
    delegators: dict[str, datetime] = {}
    delegates: dict[str, datetime] = {}
    for one in delegations:
        if one.starts_at > now:
            continue
        if one.delegate in makers:
            delegators[one.delegator] = max(one.ends_at, delegators.get(one.delegator, one.ends_at))
        if one.delegator in makers:
            delegates[one.delegate] = max(one.ends_at, delegates.get(one.delegate, one.ends_at))
    return Conflicts(makers, delegators, delegates)


@dataclass(frozen=True)
class Facts:
    """A caller and the facts that determine which requests they may decide now, loaded once for all requests."""

    caller: str
    is_person: bool
    roles: frozenset[str]
    now: datetime
    holders: Mapping[str, Sequence[str]]
    """The people of each role, sorted."""
    backups: Mapping[str, str]
    """The stand-in role of each role."""
    delegations: Sequence[Delegation]
    """All delegations to or from the caller or a maker that did not end before the request."""
    votes: Mapping[str, Sequence[Vote]]
    """By request, in the order they were given."""
    acted_by: str | None = None
    """Who acts in the caller's name, with a secret of their own."""
    other_names: frozenset[str] = frozenset()
    """Of both, where they have several."""

    @cached_property
    def acting(self) -> tuple[str, ...]:
        """The people whose hand this is, by all their names."""
        return (self.caller, *([self.acted_by] if self.acted_by else []), *self.other_names)

    def counted_holders(self, request: RequestFacts) -> Iterator[str]:
        """The people of the role that a quorum counts and a stand-in waits for."""
        for name in self.holders[request.role]:
            conflict = self.conflict(request, name)
            if conflict is None or not conflict.is_own_doing:
                yield name

    def free_holders(self, request: RequestFacts) -> Iterator[str]:
        """The people of the role without a conflict in the request."""
        return (name for name in self.holders[request.role] if self.conflict(request, name) is None)

    def conflict(self, request: RequestFacts, person: str) -> Refusal | None:
        return self.conflicts[request.makers].of(person, request.requested_at)

    def conflict_of_caller(self, request: RequestFacts) -> Refusal | None:
        """The conflict of the caller, or else of the person who acts in the caller's name."""
        known = self.conflicts[request.makers]
        found = (known.of(person, request.requested_at) for person in self.acting)
        return next((one for one in found if one is not None), None)

    @cached_property
    def own(self) -> dict[str, Allowed]:
        """How the caller may decide by each of their own roles."""
        return {role: Allowed(Basis.OWN_ROLE, role, role, self.caller) for role in map(str, self.roles)}

    @cached_property
    def received(self) -> dict[str, list[Delegation]]:
        """By role, the active delegations to the caller from people who still hold it, sorted by name."""
        found: dict[str, list[Delegation]] = defaultdict(list)
        for one in sorted(self.delegations, key=lambda one: one.delegator):
            is_held = one.delegator in self.holders.get(one.role, ())
            if one.delegate == self.caller and one.is_active(self.now) and is_held:
                found[one.role].append(one)
        return found

    @cached_property
    def conflicts(self) -> Mapping[frozenset[str], Conflicts]:
        """The conflicts by makers; most of many requests have the same makers."""
        return _ConflictsByMakers(self.delegations, self.now)


class _ConflictsByMakers(dict[frozenset[str], Conflicts]):
    """Conflicts, computed on first use."""

    def __init__(self, delegations: Iterable[Delegation], now: datetime) -> None:
        self._now = now
        self._by_person: dict[str, list[Delegation]] = defaultdict(list)
        for one in delegations:
            self._by_person[one.delegator].append(one)
            self._by_person[one.delegate].append(one)

    def __missing__(self, makers: frozenset[str]) -> Conflicts:
        touched = [one for maker in makers for one in self._by_person.get(maker, ())]
        found = self[makers] = conflicts(makers, touched, self._now)
        return found


def eligibility(facts: Facts, request: RequestFacts, decision: Decision) -> Allowed | Refused:
    """Whether and how the caller may decide the request, without regard to its time, turn or price."""
    if not facts.is_person:
        return _NOT_A_PERSON
    votes = facts.votes.get(request.id, ())
    allowed = facts.own.get(request.role) or _allowed_otherwise(facts, request, votes)
    if allowed is None:
        return _NOT_THIS_ROLE
    conflict = facts.conflict_of_caller(request)
    if conflict is not None and not (conflict.may_reject and decision == "reject"):
        return Refused(conflict, allowed)
    for vote in votes:
        if vote.caller in facts.acting or allowed.holder == vote.holder:
            return Refused(Refusal.HAS_VOTED, allowed, vote)
    return allowed


_NOT_A_PERSON = Refused(Refusal.NOT_A_PERSON)
_NOT_THIS_ROLE = Refused(Refusal.NOT_THIS_ROLE)


def _allowed_otherwise(facts: Facts, request: RequestFacts, votes: Sequence[Vote]) -> Allowed | None:
    """How the caller could decide without the asked role."""
    role = request.role
    if request.escalated_to is not None and request.escalated_to in facts.own:
        return Allowed(Basis.ESCALATED, request.escalated_to, role, facts.caller)
    backup = facts.backups.get(role)
    if backup is not None and backup in facts.own and not any(facts.counted_holders(request)):
        return Allowed(Basis.STAND_IN, backup, role, facts.caller)
    return _delegated(facts, request, votes)


def _delegated(facts: Facts, request: RequestFacts, votes: Sequence[Vote]) -> Allowed | None:
    """The delegation from a holder without a conflict; of several, the first without a vote."""
    role, repeated = request.role, None
    for one in facts.received.get(role, ()):
        if one.covers(request.quote_id, request.account_id) and facts.conflict(request, one.delegator) is None:
            allowed = Allowed(Basis.DELEGATED, role, role, one.delegator)
            if not any(one.delegator == vote.holder for vote in votes):
                return allowed
            repeated = repeated or allowed
    return repeated
