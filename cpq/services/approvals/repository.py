"""The rows of approvals: requests, votes, held decisions and delegations, read as typed objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_rights, recorded_state, tenant_registry
from cpq.app.access import Caller
from cpq.app.recorded_state import Part
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.domain.approvals.approval_request import (
    ApprovalRequest,
    HeldDecision,
    HoldState,
    Reason,
    RequestStatus,
    Vote,
)
from cpq.domain.approvals.delegation import Delegation
from cpq.domain.approvals.rounds import Round, Step
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.domain.quotes.quote import Quote
from cpq.services.quotes import repository as quote_rows
from cpq.storage.schema import tables
from cpq.storage.statements import among, listed

Chains = tuple[tuple[str, ...], ...]
REQUEST_COLUMNS = tuple(tables.approval.c[field.name] for field in fields(ApprovalRequest))


@dataclass(frozen=True)
class WaitingRequest:
    """A request that can still be answered, with the quote data that lists show."""

    request: ApprovalRequest
    account_id: str
    account_name: str
    currency: str
    number: str
    owner: str | None


def find(tx: Tx, approval_id: str) -> ApprovalRequest | None:
    return next(iter(_read(tx, _all(tx).where(tables.approval.c.id == approval_id))), None)


def of_quote(tx: Tx, quote_id: str, version: int | None = None) -> list[ApprovalRequest]:
    """The requests about a quote, or about one version of it, oldest first."""
    approval = tables.approval.c
    query = _all(tx).where(approval.quote_id == quote_id)
    if version is not None:
        query = query.where(approval.version == version)
    return _read(tx, query.order_by(approval.version, approval.requested_at, approval.id))


def rounds(tx: Tx, quote_ids: Collection[str]) -> dict[tuple[str, int], list[ApprovalRequest]]:
    """The requests about many quotes, by quote and version, oldest first."""
    approval = tables.approval.c
    query = sa.select(*REQUEST_COLUMNS).where(tx.own_among(approval.quote_id, quote_ids))
    found: dict[tuple[str, int], list[ApprovalRequest]] = defaultdict(list)
    for request in _read(tx, query.order_by(approval.requested_at, approval.id)):
        found[request.quote_id, request.version].append(request)
    return found


def waiting(tx: Tx, *, role: str | None, limit: int) -> tuple[list[WaitingRequest], int]:
    """Requests that can still be answered, oldest first, and their total number.

    For a role: its own requests, and those escalated to it.
    """
    approval = tables.approval.c
    query = live(tx, *WAITING_COLUMNS)
    if role is not None:
        escalated = (approval.escalates_to == role) & (approval.escalates_at <= tx.now)
        query = query.where((approval.role == role) | escalated)
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(query.subquery())) or 0
    chosen = query.order_by(approval.requested_at, approval.id).limit(limit)
    return [waiting_of(row) for row in tx.connection.execute(chosen).mappings()], total


def live(tx: Tx, *columns: Any) -> sa.Select[*tuple[Any, ...]]:
    """Columns of requests that can still be answered: not expired, on the current version of a waiting quote."""
    approval, quote, account = tables.approval, tables.quote, tables.account
    joined = approval.join(
        quote, (quote.c.tenant_id == approval.c.tenant_id) & (quote.c.id == approval.c.quote_id)
    ).join(account, (account.c.tenant_id == quote.c.tenant_id) & (account.c.id == quote.c.account_id))
    return (
        sa.select(*columns)
        .select_from(joined)
        .where(
            is_pending(tx),
            approval.c.expires_at > tx.now,
            quote.c.version == approval.c.version,
            quote.c.status == QuoteStatus.PENDING_APPROVAL.value,
            quote.c.lapses_at > tx.now,
        )
    )


WAITING_COLUMNS = (
    *REQUEST_COLUMNS,
    tables.quote.c.account_id,
    tables.account.c.name.label("account_name"),
    tables.quote.c.currency,
    tables.quote.c.number,
    tables.quote.c.owner,
)


def waiting_of(row: sa.RowMapping) -> WaitingRequest:
    return WaitingRequest(
        _request(row), row["account_id"], row["account_name"], row["currency"], row["number"], row["owner"]
    )


def is_pending(tx: Tx) -> sa.ColumnElement[bool]:
    """The condition for a request that is stored as pending."""
    approval = tables.approval.c
    return tx.own(tables.approval) & (approval.status == RequestStatus.PENDING.value)


def overdue(tx: Tx, limit: int, after: str = "") -> list[str]:
    """Quotes after this one with a request that is stored as pending but has ended, or that is due for escalation."""
    approval = tables.approval.c
    query = _overdue(tx, approval.quote_id).where(tx.own(tables.approval), approval.quote_id > after)
    return list(tx.connection.scalars(query.order_by(approval.quote_id).limit(limit)))


def tenants_overdue(tx: Tx) -> list[str]:
    """The tenants that have such quotes."""
    column = tables.approval.c.tenant_id
    return sorted(tx.connection.scalars(_overdue(tx, column).where(tenant_registry.is_served(column))))


def add(tx: Tx, request: ApprovalRequest) -> None:
    values = {**vars(request), "status": request.status.value}
    values["reasons"] = [reason._asdict() for reason in request.reasons]
    tx.connection.execute(sa.insert(tables.approval).values(tenant_id=tx.tenant_id, **values))
    recorded_state.note(tx, request.quote_id, "approval", request.id)


def close(tx: Tx, request: ApprovalRequest, status: RequestStatus, **changes: Any) -> None:
    """End a request that is open or expired; CONFLICT when somebody else has ended it meanwhile."""
    assert not request.status.is_answered, "an answered request is final"
    unchanged = _own(tx, request) & (tables.approval.c.status == request.status.value)
    done = tx.connection.execute(sa.update(tables.approval).where(unchanged).values(status=status.value, **changes))
    if done.rowcount != 1:
        raise CpqError(
            Code.CONFLICT,
            "Somebody else has just ended this request.",
            field="/approval_id",
            next_call=next_call("approval_status", quote_id=request.quote_id),
        )
    recorded_state.note(tx, request.quote_id, "approval", request.id)


def keep_open(tx: Tx, request: ApprovalRequest, until: datetime) -> None:
    """Let no open request about the same version expire before a moment."""
    approval = tables.approval.c
    same = is_pending(tx) & (approval.quote_id == request.quote_id) & (approval.version == request.version)
    tx.connection.execute(sa.update(tables.approval).where(same, approval.expires_at < until).values(expires_at=until))
    recorded_state.note(tx, request.quote_id, "approval")


def mark_escalated(tx: Tx, request: ApprovalRequest) -> None:
    tx.connection.execute(sa.update(tables.approval).where(_own(tx, request)).values(escalated_at=tx.now))
    recorded_state.note(tx, request.quote_id, "approval", request.id)


def votes(tx: Tx, approval_ids: Collection[str]) -> dict[str, list[Vote]]:
    """The votes on some requests, by request, in the order of voting."""
    vote = tables.approval_vote.c
    query = sa.select(*_VOTE_COLUMNS).where(tx.own_among(vote.approval_id, approval_ids))
    return {id_: [] for id_ in approval_ids} | _by_request(tx, query)


def votes_on_pending(tx: Tx) -> dict[str, list[Vote]]:
    """The votes on all requests that are stored as pending, by request, in the order of voting."""
    return _by_request(tx, sa.select(*_VOTE_COLUMNS).select_from(VOTES_OF_REQUESTS).where(is_pending(tx)))


def add_vote(tx: Tx, request: ApprovalRequest, vote: Vote) -> None:
    tx.connection.execute(sa.insert(tables.approval_vote).values(tenant_id=tx.tenant_id, **vars(vote)))
    recorded_state.note(tx, request.quote_id, "approval_vote", request.id)


def add_held(tx: Tx, held: HeldDecision) -> None:
    values = {**vars(held), "state": held.state.value}
    tx.connection.execute(sa.insert(tables.held_decision).values(tenant_id=tx.tenant_id, **values))
    recorded_state.note(tx, held.quote_id, "held_decision", held.id)


def end_held(tx: Tx, held: HeldDecision, state: HoldState, reason: str | None = None) -> bool:
    """End a held decision; False when it has ended already. Of undo and effect, the first one wins here."""
    # First the quote is locked, then the decision. A failure is stored whatever the record says.
    if state is HoldState.FAILED:
        recorded_state.lock(tx, held.quote_id)
    else:
        recorded_state.latest(tx, held.quote_id, for_update=True)
    row = tables.held_decision
    still = tx.own(row) & (row.c.id == held.id) & (row.c.state == HoldState.HELD.value)
    values = {"state": state.value, "reason": reason, "ended_at": tx.now}
    is_ended = tx.connection.execute(sa.update(row).where(still).values(values)).rowcount == 1
    if is_ended:
        recorded_state.note(tx, held.quote_id, "held_decision", held.id)
    return is_ended


def find_held(tx: Tx, held_id: str) -> HeldDecision | None:
    return next(iter(_held(tx, tables.held_decision.c.id == held_id)), None)


def held_by(tx: Tx, caller: str, *, since: datetime) -> list[HeldDecision]:
    """A caller's decisions that are still held or ended after `since`, newest first."""
    held = tables.held_decision.c
    return _held(tx, held.caller == caller, (held.ended_at > since) | (held.state == HoldState.HELD.value))


def held_due(tx: Tx, limit: int) -> list[HeldDecision]:
    """Held decisions whose time to undo is over: the oldest of them, the newest of those first."""
    held = tables.held_decision.c
    return _held(tx, held.state == HoldState.HELD.value, held.due_at <= tx.now)[-limit:]


def tenants_with_held_due(tx: Tx) -> list[str]:
    """The tenants that have such decisions."""
    held = tables.held_decision.c
    is_due = (held.state == HoldState.HELD.value) & (held.due_at <= tx.now)
    query = sa.select(held.tenant_id).where(is_due, tenant_registry.is_served(held.tenant_id)).distinct()
    return sorted(tx.connection.scalars(query))


def delegations(tx: Tx, callers: Iterable[str], *, since: datetime) -> list[Delegation]:
    """Delegations to or from any of these callers that have begun and did not end before `since`.

    CONFLICT when one of them is not as the audit record has it: it gives somebody a role, or takes a decision away.
    """
    delegation = tables.delegation.c
    names = [name_of(caller) for caller in callers if is_person(caller)]
    if not names:
        return []
    bound: sa.BindParameter[Any] = sa.bindparam("names", listed(tx.connection, names))
    dialect = tx.connection.dialect.name
    query = sa.select(tables.delegation).where(
        tx.own(tables.delegation),
        delegation.starts_at <= tx.now,
        delegation.ends_at > since,
        among(dialect, delegation.from_name, bound) | among(dialect, delegation.to_name, bound),
    )
    rows = tx.connection.execute(query).all()
    recorded_rights.require(tx, tx.tenant_id, {Part("delegation", row.id): row for row in rows})
    return [_delegation(row._mapping) for row in rows]


def given_delegations(tx: Tx, role: str | None = None, to: str | None = None, **scope: str | None) -> list[Delegation]:
    """The caller's delegations that have not ended, ordered by their end; all, or those that match the arguments."""
    query = sa.select(*_DELEGATION_COLUMNS).where(_given(tx, role, to, scope))
    return [_delegation(row) for row in tx.connection.execute(query.order_by(tables.delegation.c.ends_at)).mappings()]


def end_delegations(tx: Tx, role: str, to: str, **scope: str | None) -> None:
    """End the delegations that `given_delegations` finds; those that have not begun are deleted."""
    delegation, given = tables.delegation, _given(tx, role, to, scope)
    tx.connection.execute(sa.delete(delegation).where(given, delegation.c.starts_at >= tx.now))
    tx.connection.execute(sa.update(delegation).where(given).values(ends_at=tx.now))
    recorded_state.note(tx, recorded_state.RIGHTS, "delegation")


def add_delegation(tx: Tx, delegation: Delegation) -> None:
    values = {**vars(delegation), "created_at": tx.now}
    values["from_name"], values["to_name"] = name_of(values.pop("delegator")), name_of(values.pop("delegate"))
    tx.connection.execute(sa.insert(tables.delegation).values(tenant_id=tx.tenant_id, **values))
    recorded_state.note(tx, recorded_state.RIGHTS, "delegation", delegation.id)


def round_of(tx: Tx, quote: Quote, requests: Sequence[ApprovalRequest]) -> Round:
    """The last round of one version as of now, from all its requests; the round of an old version is over.

    A version that lapsed can be asked for again: what was granted counts unless the policies have changed since.
    """
    if not requests:
        return Round(tx.policies.roles, (), ())
    last = requests[-1]
    of_round = [one for one in requests if one.policy_hash == last.policy_hash]
    return Round(tx.policies.roles, last.chains, tuple(steps(tx, quote, of_round)))


def next_round(tx: Tx, quote: Quote, chains: Chains, policy_hash: str, requests: Sequence[ApprovalRequest]) -> Round:
    """The round that a draft begins: without what is over, and with what came of the same version before it lapsed.

    That is what was granted under the same policies, and what nobody decided in time: silence answers nothing.
    """
    known = [one for one in requests if one.role in tx.policies.roles.known]
    last = {one.role: one.id for one in known}
    carried = [
        step
        for one, step in zip(known, steps(tx, quote, known), strict=True)
        if (step.status.is_granted and one.policy_hash == policy_hash)
        or (step.status is RequestStatus.EXPIRED and last[one.role] == one.id)
    ]
    return Round(tx.policies.roles, chains, tuple(carried))


def steps(tx: Tx, quote: Quote, requests: Sequence[ApprovalRequest]) -> list[Step]:
    """Requests about any versions of a quote as of now."""
    lapsed = quote_rows.lapses(tx, quote.id) if any(one.status.is_open for one in requests) else {}
    return [
        Step.of(one).at(tx.now, is_live=is_awaited(quote, one), has_lapsed=one.version in lapsed) for one in requests
    ]


def is_awaited(quote: Quote, request: ApprovalRequest) -> bool:
    """Whether the quote waits for approval of the request's version."""
    return quote.status.awaits_approval and quote.current_version == request.version


def is_person(caller: str) -> bool:
    return Caller.parse(caller).is_person


def name_of(caller: str) -> str:
    parsed = Caller.parse(caller)
    return parsed.name if parsed.is_person else caller


def caller_of(name: str) -> str:
    return str(Caller.person(name))


VOTES_OF_REQUESTS = tables.approval_vote.join(
    tables.approval,
    (tables.approval_vote.c.tenant_id == tables.approval.c.tenant_id)
    & (tables.approval_vote.c.approval_id == tables.approval.c.id),
)

_VOTE_COLUMNS = tuple(tables.approval_vote.c[field.name] for field in fields(Vote))
_HELD_COLUMNS = tuple(tables.held_decision.c[field.name] for field in fields(HeldDecision))
_DELEGATION_COLUMNS = tuple(
    tables.delegation.c[name]
    for name in ("id", "role", "from_name", "to_name", "starts_at", "ends_at", "account_id", "quote_id")
)


def _given(tx: Tx, role: str | None, to: str | None, scope: Mapping[str, str | None]) -> sa.ColumnElement[bool]:
    delegation = tables.delegation.c
    wanted = {"role": role, "to_name": to, **scope}
    own = tx.own(tables.delegation) & (delegation.from_name == name_of(tx.caller))
    named = (delegation[name] == value for name, value in wanted.items() if value is not None)
    return sa.and_(own, delegation.ends_at > tx.now, *named)


def _overdue(tx: Tx, column: sa.Column[str]) -> sa.Select[str]:
    approval, quote = tables.approval.c, tables.quote.c
    joined = (quote.tenant_id == approval.tenant_id) & (quote.id == approval.quote_id)
    is_due = (
        (approval.expires_at <= tx.now)
        | (quote.version != approval.version)
        | (quote.status != QuoteStatus.PENDING_APPROVAL.value)
        | (approval.escalated_at.is_(None) & (approval.escalates_at <= tx.now))
    )
    is_stored_pending = approval.status == RequestStatus.PENDING.value
    return (
        sa.select(column).join_from(tables.approval, tables.quote, joined).where(is_stored_pending, is_due).distinct()
    )


def _all(tx: Tx) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*REQUEST_COLUMNS).where(tx.own(tables.approval))


def _own(tx: Tx, request: ApprovalRequest) -> sa.ColumnElement[bool]:
    return tx.own(tables.approval) & (tables.approval.c.id == request.id)


def _read(tx: Tx, query: sa.Select[*tuple[Any, ...]]) -> list[ApprovalRequest]:
    return [_request(row) for row in tx.connection.execute(query).mappings()]


def _request(row: sa.RowMapping) -> ApprovalRequest:
    values = {column.name: row[column.name] for column in REQUEST_COLUMNS}
    values["status"] = RequestStatus(values["status"])
    values["chains"] = tuple(tuple(chain) for chain in values["chains"])
    values["reasons"] = tuple(Reason(**reason) for reason in values["reasons"])
    return ApprovalRequest(**values)


def _held(tx: Tx, *conditions: sa.ColumnElement[bool]) -> list[HeldDecision]:
    held = tables.held_decision
    query = sa.select(*_HELD_COLUMNS).where(tx.own(held), *conditions).order_by(held.c.made_at.desc(), held.c.id)
    rows = tx.connection.execute(query).mappings()
    return [HeldDecision(**{**row, "state": HoldState(row["state"])}) for row in rows]


def _by_request(tx: Tx, query: sa.Select[*tuple[Any, ...]]) -> dict[str, list[Vote]]:
    vote = tables.approval_vote.c
    found: dict[str, list[Vote]] = defaultdict(list)
    for row in tx.connection.execute(query.order_by(vote.at, vote.caller)).mappings():
        found[row["approval_id"]].append(Vote(**row))
    return found


def _delegation(row: sa.RowMapping) -> Delegation:
    return Delegation(
        id=row["id"],
        role=row["role"],
        delegator=caller_of(row["from_name"]),
        delegate=caller_of(row["to_name"]),
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        account_id=row["account_id"],
        quote_id=row["quote_id"],
    )
