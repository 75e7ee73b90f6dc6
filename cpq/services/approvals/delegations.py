"""Commands and views of delegations: a person delegates a role to another person for a period."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import tokens
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field
from cpq.domain.approvals.delegation import Delegation
from cpq.services.approvals import repository
from cpq.storage.schema import tables

WINDOW_DAYS_MAX = 366
SHOWN_MAX = 100


class DelegationView(TypedDict):
    delegation_id: str
    role: str
    from_principal: str
    to_principal: str
    starts_at: datetime
    ends_at: datetime
    account_id: str | None
    quote_id: str | None
    outcome: str
    message: str


def delegate(
    tx: Tx,
    role: str,
    *,
    to: str,
    starts_at: datetime,
    ends_at: datetime,
    account_id: str | None,
    quote_id: str | None,
) -> DelegationView:
    """Delegate a role that the caller holds to another person. A delegated role cannot be delegated again."""
    if not repository.is_person(tx.caller) or role not in tx.roles:
        raise CpqError(
            Code.FORBIDDEN,
            f"Only a person who holds the role {role} can delegate it.",
            roles=sorted(tx.roles),
            hint="A role that was delegated to you cannot be delegated again.",
        )
    _require_window(tx, starts_at, ends_at)
    _require_scope(tx, account_id, quote_id)
    _require_delegate(tx, to)
    id_, delegate = tx.new_id("dlg-"), repository.caller_of(to)
    made = Delegation(id_, role, tx.caller, delegate, starts_at, ends_at, account_id, quote_id)
    repository.add_delegation(tx, made)
    message = f"{to} may decide as {role} until then, but nothing that either of you has made."
    return _view(made, "created", message)


def end_delegation(tx: Tx, role: str, *, to: str, account_id: str | None, quote_id: str | None) -> DelegationView:
    """End a delegation early. Decisions made by it stay, and so do the conflicts it caused."""
    given = repository.given_delegations(tx, role, to, account_id=account_id, quote_id=quote_id)
    if not given:
        raise CpqError(
            Code.NOT_FOUND,
            f"You have not delegated {role} to {to}, or the delegation has ended.",
            field="/to",
            hint="To delegate it, give `until`.",
        )
    repository.end_delegations(tx, role, to, account_id=account_id, quote_id=quote_id)
    return _view(replace(given[-1], ends_at=tx.now), "ended", f"{to} can no longer decide as {role} for you.")


def given_delegations(tx: Tx) -> list[DelegationView]:
    """The caller's delegations that have not ended, ordered by their end."""
    return [_view(one, "created", "") for one in repository.given_delegations(tx)[:SHOWN_MAX]]


def _view(delegation: Delegation, outcome: str, message: str) -> DelegationView:
    return {
        "delegation_id": delegation.id,
        "role": delegation.role,
        "from_principal": delegation.delegator,
        "to_principal": delegation.delegate,
        "starts_at": delegation.starts_at,
        "ends_at": delegation.ends_at,
        "account_id": delegation.account_id,
        "quote_id": delegation.quote_id,
        "outcome": outcome,
        "message": message,
    }


def _require_window(tx: Tx, starts_at: datetime, ends_at: datetime) -> None:
    earliest = max(starts_at, tx.now)
    latest = earliest + timedelta(days=WINDOW_DAYS_MAX)
    if not earliest < ends_at <= latest:
        raise bad_field("/until", "until must be after from, by at most a year.", minimum=earliest, maximum=latest)


def _require_scope(tx: Tx, account_id: str | None, quote_id: str | None) -> None:
    for table, field, wanted in ((tables.account, "account_id", account_id), (tables.quote, "quote_id", quote_id)):
        mine = tx.own(table) & (table.c.id == wanted)
        if wanted is not None and tx.connection.scalar(sa.select(table.c.id).where(mine)) is None:
            raise CpqError(Code.NOT_FOUND, f"There is no {table.name} {wanted!r}.", field=f"/{field}")


def _require_delegate(tx: Tx, to: str) -> None:
    try:
        principal = tokens.find_principal(tx, to)
    except CpqError:
        raise bad_field("/to", f"There is no person {to!r} who may decide anything.") from None
    if principal.kind != "human" or not principal.may(Permission.DECIDE):
        raise bad_field("/to", f"There is no person {to!r} who may decide anything.")
    if repository.caller_of(to) == tx.caller:
        raise bad_field("/to", "Delegate the role to somebody else.")
