"""Who may decide: the people of a role, whoever stands in for them, and nobody who has a hand in the request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import tokens
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest
from cpq.services.quotes.repository import Quote
from cpq.storage.schema import account, delegation, quote
from cpq.storage.statements import AnyRow

HUMAN = "human:"
WINDOW_DAYS_MAX = 366
LOANS_MAX = 100


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


def makers_of(found: Quote, requested_by: str) -> frozenset[str]:
    """Those whose own the request is: who asked, who made the quote and this version of it, and whoever changed it."""
    version = found.version
    return frozenset({requested_by, found.root.created_by, version.created_by, *version.edited_by})


class Barred(NamedTuple):
    """Who cannot decide a request, and which of them a quorum and a stand-in do without."""

    people: frozenset[str]
    uncounted: frozenset[str]
    """Those who have a hand in it by their own doing. Whom a maker has lent a role did nothing: a quorum waits for
    them, or a maker could choose by lending whose word is needed."""


def barred_by(tx: Tx, makers: frozenset[str], since: datetime) -> Barred:
    """Who cannot decide what these have made: they themselves, and whoever has lent one of them a role, or borrowed
    one from them, since then: one would decide for the other."""
    names = [maker.removeprefix(HUMAN) for maker in makers if maker.startswith(HUMAN)]
    at_work = (delegation.c.starts_at <= tx.now) & (delegation.c.ends_at > since)
    shared = delegation.c.from_name.in_(names) | delegation.c.to_name.in_(names)
    query = sa.select(delegation.c.from_name, delegation.c.to_name)
    pairs = tx.connection.execute(query.where(tx.own(delegation), at_work, shared)).all()
    lenders = {f"{HUMAN}{pair.from_name}" for pair in pairs}
    borrowers = {f"{HUMAN}{pair.to_name}" for pair in pairs}
    return Barred(makers | lenders | borrowers, makers | lenders)


def able(tx: Tx, role: str, barred: frozenset[str]) -> list[str]:
    """The people of a role who are not barred."""
    return [name for name in tokens.holders(tx, role) if f"{HUMAN}{name}" not in barred]


def gone(tx: Tx, callers: Collection[str]) -> frozenset[str]:
    """Those of them who may no longer decide anything."""
    return frozenset(callers) - {f"{HUMAN}{name}" for name in tokens.people(tx, Permission.DECIDE)}


class Capacity(NamedTuple):
    """As what somebody decides, and whose word it is: their own, or the lender's of a role that was lent to them."""

    acted_as: str
    holder: str


def capacity(tx: Tx, row: AnyRow, found: Quote, barred: Barred, spoken: Collection[str] = ()) -> Capacity | None:
    """As what the caller may decide a request; None when not at all. Of several lenders one who has not `spoken`."""
    if not tx.caller.startswith(HUMAN):
        return None
    if row.role in tx.roles:
        return Capacity(str(row.role), tx.caller)
    if row.escalates_to in tx.roles and row.escalates_at <= tx.now:
        return Capacity(f"{row.escalates_to}, to whom {row.role} was escalated", tx.caller)
    backup = tx.policies.roles.backup.get(row.role)
    if backup in tx.roles and not able(tx, row.role, barred.uncounted):
        return Capacity(f"{backup}, in place of {row.role}", tx.caller)
    lenders = sorted(_lenders(tx, row.role, found, barred), key=lambda name: name in spoken)
    return Capacity(f"{row.role}, lent by {lenders[0]}", lenders[0]) if lenders else None


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
    """Lend a role that the caller holds to another person for a while. Nobody can lend on what is lent to them."""
    if not tx.caller.startswith(HUMAN) or role not in tx.roles:
        raise CpqError(
            Code.FORBIDDEN,
            f"Only a person who holds the role {role} can lend it.",
            roles=sorted(tx.roles),
            hint="A role that was lent to you is not yours to lend.",
        )
    _require_window(tx, starts_at, ends_at)
    _require_scope(tx, account_id, quote_id)
    own = tx.caller.removeprefix(HUMAN)
    _require_borrower(tx, own, to)
    row = {
        "id": tx.new_id("dlg-"),
        "role": role,
        "from_name": own,
        "to_name": to,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "account_id": account_id,
        "quote_id": quote_id,
        "created_at": tx.now,
    }
    tx.connection.execute(sa.insert(delegation).values(tenant_id=tx.tenant_id, **row))
    message = f"{to} may decide as {role} until then, but nothing that either of you has made."
    return _told(row, "created", message)


def end_delegation(tx: Tx, role: str, *, to: str, account_id: str | None, quote_id: str | None) -> DelegationView:
    """Take a lent role back before its time. What was decided with it stays, and so do the ties it made."""
    own = tx.caller.removeprefix(HUMAN)
    scope = {name: id_ for name, id_ in (("account_id", account_id), ("quote_id", quote_id)) if id_ is not None}
    lent = (
        tx.own(delegation)
        & (delegation.c.role == role)
        & (delegation.c.from_name == own)
        & (delegation.c.to_name == to)
        & (delegation.c.ends_at > tx.now)
        & sa.and_(sa.true(), *(delegation.c[name] == id_ for name, id_ in scope.items()))
    )
    found = tx.connection.execute(sa.select(delegation).where(lent).order_by(delegation.c.ends_at.desc())).all()
    if not found:
        raise CpqError(
            Code.NOT_FOUND,
            f"You have not lent {role} to {to}, or it has ended.",
            field="/to",
            hint="To lend it, say `until` when.",
        )
    tx.connection.execute(sa.delete(delegation).where(lent, delegation.c.starts_at >= tx.now))
    tx.connection.execute(sa.update(delegation).where(lent).values(ends_at=tx.now))
    return _told({**found[0]._mapping, "ends_at": tx.now}, "ended", f"{to} can no longer decide as {role} for you.")


def lent_by(tx: Tx) -> list[DelegationView]:
    """What the caller has lent and not had back, what ends first first."""
    mine = tx.own(delegation) & (delegation.c.from_name == tx.caller.removeprefix(HUMAN))
    query = sa.select(delegation).where(mine, delegation.c.ends_at > tx.now).order_by(delegation.c.ends_at)
    return [_told({**row._mapping}, "created", "") for row in tx.connection.execute(query.limit(LOANS_MAX))]


def _told(row: Mapping[str, Any], outcome: str, message: str) -> DelegationView:
    return {
        "delegation_id": row["id"],
        "role": row["role"],
        "from_principal": f"{HUMAN}{row['from_name']}",
        "to_principal": f"{HUMAN}{row['to_name']}",
        "starts_at": row["starts_at"],
        "ends_at": row["ends_at"],
        "account_id": row["account_id"],
        "quote_id": row["quote_id"],
        "outcome": outcome,
        "message": message,
    }


def require_role(tx: Tx, role: str, field: str) -> None:
    """VALIDATION_ERROR with what is meant when the policies know no such role."""
    known = tx.policies.roles.known
    if role not in known:
        raise bad_field(
            field, f"{role!r} is not a role that approves.", allowed=list(known), nearest=nearest(role, known) or None
        )


def _lenders(tx: Tx, role: str, found: Quote, barred: Barred) -> list[str]:
    """Who has lent the caller the role for this quote, still holds it, and has no hand in the request; in order."""
    of_quote = delegation.c.quote_id.is_(None) | (delegation.c.quote_id == found.id)
    of_account = delegation.c.account_id.is_(None) | (delegation.c.account_id == found.root.account_id)
    names = tx.connection.scalars(
        sa.select(delegation.c.from_name)
        .where(
            tx.own(delegation),
            delegation.c.to_name == tx.caller.removeprefix(HUMAN),
            delegation.c.role == role,
            delegation.c.starts_at <= tx.now,
            delegation.c.ends_at > tx.now,
            of_quote,
            of_account,
        )
        .order_by(delegation.c.from_name)
    ).all()
    still_able = able(tx, role, barred.people) if names else []
    return [f"{HUMAN}{name}" for name in dict.fromkeys(names) if name in still_able]


def _require_window(tx: Tx, starts_at: datetime, ends_at: datetime) -> None:
    earliest = max(starts_at, tx.now)
    latest = earliest + timedelta(days=WINDOW_DAYS_MAX)
    if not earliest < ends_at <= latest:
        raise bad_field("/until", "until lies after from, at most a year.", minimum=earliest, maximum=latest)


def _require_scope(tx: Tx, account_id: str | None, quote_id: str | None) -> None:
    for table, field, wanted in ((account, "account_id", account_id), (quote, "quote_id", quote_id)):
        mine = tx.own(table) & (table.c.id == wanted)
        if wanted is not None and tx.connection.scalar(sa.select(table.c.id).where(mine)) is None:
            raise CpqError(Code.NOT_FOUND, f"There is no {table.name} {wanted!r}.", field=f"/{field}")


def _require_borrower(tx: Tx, own: str, to: str) -> None:
    try:
        principal = tokens.find_principal(tx, to)
    except CpqError:
        raise bad_field("/to", f"There is no person {to!r} who may decide anything.") from None
    if principal.kind != "human" or not principal.may(Permission.DECIDE):
        raise bad_field("/to", f"There is no person {to!r} who may decide anything.")
    if to == own:
        raise bad_field("/to", "Lend the role to somebody else.")
