"""Loads the facts for `eligibility`, the same way for one request and for many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from cpq.app import tokens
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.domain.approvals import eligibility
from cpq.domain.approvals.approval_request import ApprovalRequest, Vote
from cpq.domain.approvals.eligibility import Conflicts, Facts, RequestFacts
from cpq.domain.quotes.quote import Quote
from cpq.services.approvals import repository
from cpq.services.quotes import repository as quote_rows


def load(tx: Tx, requests: Collection[RequestFacts], votes: Mapping[str, Sequence[Vote]]) -> Facts:
    """The facts that determine which of these requests the caller may decide."""
    acted_by = tx.principal.acted_by
    callers = frozenset({tx.caller, acted_by or tx.caller}).union(*{one.makers for one in requests})
    since = min((one.requested_at for one in requests), default=tx.now)
    return Facts(
        caller=tx.caller,
        other_names=other_names(tx, (tx.caller, acted_by or tx.caller)),
        is_person=repository.is_person(tx.caller),
        roles=tx.roles,
        now=tx.now,
        holders={role: _holders(tx, role) for role in {one.role for one in requests}},
        backups=tx.policies.roles.backup,
        delegations=repository.delegations(tx, callers, since=since),
        votes=votes,
        acted_by=acted_by,
    )


def request_facts(tx: Tx, request: ApprovalRequest, quote: Quote) -> RequestFacts:
    """The facts about one request; `quote` may be loaded with another version than the request's."""
    of_version = quote
    if quote.version.number != request.version:
        of_version = quote_rows.load(tx, request.quote_id, version=request.version, with_lines=False)
    return RequestFacts(
        id=request.id,
        quote_id=request.quote_id,
        account_id=quote.account_id,
        role=request.role,
        escalated_to=request.escalated_to(tx.now),
        requested_at=request.requested_at,
        makers=makers_of(tx, of_version, request.requested_by),
    )


def imagined_facts(tx: Tx, quote: Quote, role: str) -> RequestFacts:
    """The facts about a request that the caller would make now."""
    return RequestFacts("", quote.id, quote.account_id, role, None, tx.now, makers_of(tx, quote, tx.caller))


def makers_of(tx: Tx, quote: Quote, requested_by: str) -> frozenset[str]:
    made_by = makers(requested_by, quote.created_by, quote.version.created_by, quote.version.edited_by)
    return made_by | other_names(tx, made_by)


def makers(requested_by: str, quote_by: str, version_by: str, editors: Iterable[str]) -> frozenset[str]:
    """Callers who requested the approval, made the quote or this version of it, or changed it."""
    return frozenset({requested_by, quote_by, version_by, *editors})


def other_names(tx: Tx, callers: Iterable[str], known: Mapping[str, str] | None = None) -> frozenset[str]:
    """All names of the people among these callers, where they have several."""
    known = tokens.other_names(tx) if known is None else known
    if not known:
        return frozenset()
    people = {known.get(name, name) for name in map(repository.name_of, filter(repository.is_person, callers))}
    others = {name for name, person in known.items() if person in people}
    return frozenset(map(repository.caller_of, people | others))


def conflicts(tx: Tx, made_by: frozenset[str], *, since: datetime) -> Conflicts:
    """The conflicts that these callers cause, by delegations that did not end before `since`."""
    return eligibility.conflicts(made_by, repository.delegations(tx, made_by, since=since), tx.now)


def unheld(tx: Tx, roles: Iterable[str]) -> list[str]:
    """A warning for each of these roles that nobody holds, with the roles that have people."""
    empty = [role for role in roles if not tokens.holders(tx, role)]
    if not empty:
        return []
    held = ", ".join(role for role in tx.policies.roles.known if tokens.holders(tx, role))
    people = f"people hold {held}" if held else "nobody holds any role that approves"
    backup = {role: f"; {other} decides in its place" for role, other in tx.policies.roles.backup.items()}
    return [f"Nobody holds the role {role}{backup.get(role, '')}; {people}." for role in empty]


def without_permission(tx: Tx, callers: Collection[str]) -> frozenset[str]:
    """The callers who may no longer decide anything."""
    able = (repository.caller_of(name) for name in tokens.people(tx, Permission.DECIDE))
    return frozenset(callers).difference(able)


def _holders(tx: Tx, role: str) -> list[str]:
    return [repository.caller_of(name) for name in tokens.holders(tx, role)]
