"""Links by which a customer accepts the version that was sent to them, without an account.

A code is in the address only; its hash is stored, with the version and the fingerprint that it is for.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.app import recorded_state
from cpq.app.access import Principal
from cpq.app.sessions import derived
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.money import Amount, amount
from cpq.domain.quotes.lifecycle import Move, VersionStatus
from cpq.services.quotes import commands, repository, views
from cpq.services.quotes.views import QuoteMoved
from cpq.storage.schema import tables
from cpq.storage.statements import AnyRow


class LinkState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    OVER = "over"
    """The version is expired, superseded, declined or cancelled, or it is not the one that was sent."""


class NewLink(NamedTuple):
    id: str
    code: str
    """The end of the address; it is shown once."""
    version: int
    expires_at: datetime


class OpenLink(NamedTuple):
    """A link that can still be used, as long as its version can be accepted."""

    id: str
    version: int
    created_at: datetime
    created_by: str
    expires_at: datetime


class Offer(NamedTuple):
    """What the customer sees of the version that the link is for."""

    link_id: str
    state: LinkState
    quote_id: str
    version: int
    fingerprint: str
    accepted_at: datetime | None
    accepted_by: str | None
    details: Any
    """The quote as `quote_get` shows it."""
    totals: dict[str, Amount]
    """By option set, when there are several."""


def make(tx: Tx, quote_id: str, *, expected_version: int) -> NewLink:
    """A new link for the version that was sent, until its last valid day. Only a person makes one: an agent that had a
    link could accept for the customer."""
    _require_person(tx, "makes")
    quote = commands.customer_decides(tx, quote_id, expected_version, Move.ACCEPT)
    made = NewLink(
        tx.new_id("LNK-"), f"{tx.tenant_id}.{tx.effects.new_secret()}", quote.version.number, quote.version.expires_at
    )
    tx.connection.execute(
        sa.insert(tables.acceptance_link).values(
            tenant_id=tx.tenant_id,
            id=made.id,
            quote_id=quote.id,
            version=made.version,
            fingerprint=quote.version.fingerprint,
            code_hash=_hash(made.code),
            created_at=tx.now,
            created_by=tx.caller,
            expires_at=made.expires_at,
        )
    )
    recorded_state.note(tx, quote.id, "acceptance_link", made.id)
    return made


def unused(tx: Tx, quote_id: str) -> list[OpenLink]:
    """The links of a quote that were neither used nor revoked and whose time is not over, newest first."""
    link = tables.acceptance_link
    query = sa.select(*(link.c[name] for name in OpenLink._fields)).where(
        tx.own(link), link.c.quote_id == quote_id, *_is_unused(), link.c.expires_at > tx.now
    )
    return [OpenLink(*row) for row in tx.connection.execute(query.order_by(link.c.created_at.desc(), link.c.id))]


def revoke(tx: Tx, quote_id: str, link_id: str | None = None) -> list[str]:
    """Make a link useless, or all links of the quote that were not used; returns which.

    Revoking twice changes nothing.
    """
    _require_person(tx, "revokes")
    repository.load(tx, quote_id, for_update=True, with_lines=False)
    recorded_state.require(tx, quote_id, also=["acceptance_link"], for_update=True)
    link = tables.acceptance_link
    mine = tx.own(link) & (link.c.quote_id == quote_id) & (link.c.id == link_id if link_id else sa.true())
    found = tx.connection.execute(sa.select(link.c.id, link.c.used_at, link.c.revoked_at).where(mine)).all()
    if link_id and not found:
        raise CpqError(Code.NOT_FOUND, f"Quote {quote_id} has no link {link_id!r}.", field="/link_id")
    if link_id and found[0].used_at is not None:
        raise CpqError(Code.CONFLICT, f"The customer has accepted by link {link_id}.", field="/link_id")
    ids = sorted(row.id for row in found if row.used_at is None and row.revoked_at is None)
    if ids:
        change = sa.update(link).where(tx.own(link), link.c.id.in_(ids), *_is_unused())
        tx.connection.execute(change.values(revoked_at=tx.now, revoked_by=tx.caller))
    for id_ in ids:
        recorded_state.note(tx, quote_id, "acceptance_link", id_)
    return ids


def look(tx: Tx, code: str) -> Offer:
    """The version that a link is for; NOT_FOUND for a code that is not ours or was revoked."""
    link = _find(tx, code)
    quote = repository.load(tx, link.quote_id, version=link.version, with_lines=False)
    status, is_same = quote.version.status_at(tx.now), quote.version.fingerprint == link.fingerprint
    if link.used_at is not None or status is VersionStatus.ACCEPTED:
        state = LinkState.ACCEPTED
    else:
        state = LinkState.OPEN if status is VersionStatus.SENT and is_same else LinkState.OVER
    priced = repository.pricings(tx, quote)
    return Offer(
        link.id,
        state,
        quote.id,
        link.version,
        link.fingerprint,
        link.used_at,
        link.used_by,
        views.get(tx, quote.id, version=link.version, include_pricing=True),
        {one.option_set: amount(one.amounts.total) for one in priced} if len(priced) > 1 else {},
    )


def customer(tenant_id: str, link_id: str) -> Principal:
    """The caller who holds the link, as the record names them. They have no role: the link is their right."""
    return Principal(link_id, "customer", frozenset(), tenant_id)


def accept(
    tx: Tx, code: str, *, name: str, fingerprint: str, option_set: str | None, address: str
) -> QuoteMoved | None:
    """The holder of the link accepts what they saw; None when the link was used before, which changes nothing."""
    link = _find(tx, code)
    recorded_state.require(tx, link.quote_id, also=["acceptance_link"], for_update=True)
    link = _find(tx, code)  # Somebody may have revoked it before the quote was locked.
    mine = tx.own(tables.acceptance_link) & (tables.acceptance_link.c.id == link.id)
    evidence = {"used_at": tx.now, "used_by": name, "address_hash": derived("address", f"{code}\0{address}")}
    use = sa.update(tables.acceptance_link).where(mine, *_is_unused())
    if tx.connection.execute(use.values(evidence)).rowcount != 1:
        return None
    recorded_state.note(tx, link.quote_id, "acceptance_link", link.id)
    quote = commands.customer_decides(tx, link.quote_id, link.version, Move.ACCEPT)
    if not quote.version.fingerprint == link.fingerprint == fingerprint:
        raise CpqError(Code.CONFLICT, "This is not the offer that was sent. Nothing was accepted.")
    proof = f"{name} accepted by link {link.id}"
    return commands.accept(tx, link.quote_id, expected_version=link.version, option_set=option_set, evidence=proof)


def _find(tx: Tx, code: str) -> AnyRow:
    mine = tx.own(tables.acceptance_link) & (tables.acceptance_link.c.code_hash == _hash(code))
    row = tx.connection.execute(sa.select(tables.acceptance_link).where(mine)).one_or_none()
    if row is None or row.revoked_at is not None:
        raise CpqError(Code.NOT_FOUND, "There is no such link.")
    return row


def _is_unused() -> tuple[sa.ColumnElement[bool], ...]:
    return tables.acceptance_link.c.used_at.is_(None), tables.acceptance_link.c.revoked_at.is_(None)


def _require_person(tx: Tx, does: str) -> None:
    if not tx.principal.is_person:
        raise CpqError(Code.FORBIDDEN, f"A person {does} the link by which a customer accepts.", field="/quote_id")


def _hash(code: str) -> str:
    return derived("accept", code)
