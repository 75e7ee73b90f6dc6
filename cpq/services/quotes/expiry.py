"""Quotes whose last valid day is over: reads know it anyway, a sweep writes it down and tells it, once a version."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from cpq.app import Answer, App, Command
from cpq.app.access import ENGINE, Permission, Principal
from cpq.app.transaction import Tx
from cpq.domain.quotes.lifecycle import MORTAL
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes import events as quote_events
from cpq.storage.schema import quote

SWEEP_MAX = 200
"""Quotes in one transaction, so that a sweep after a long pause holds up nobody."""


def sweep(app: App) -> int:
    """Expire every quote whose time is over; how many there were. Any number of processes may do it at once."""
    tenants = app.read_unaudited(app.new_call(ENGINE), _tenants_over)
    return sum(_sweep_tenant(app, replace(ENGINE, tenant_id=tenant_id)) for tenant_id in tenants)


def expire(tx: Tx, *, limit: int = SWEEP_MAX) -> Answer:
    """Write down which quotes have expired, the oldest first, and publish it.

    Only the root is changed: a version stays what it was when its time ended, because a revision that is cancelled
    leads back to it. The edit is not counted: whoever read the quote since its last day saw it expired.
    """
    mine = tx.own(quote)
    over = sa.select(quote.c.id).where(mine, *_over(tx)).order_by(quote.c.expires_at, quote.c.id).limit(limit)
    ids = list(tx.connection.scalars(over.with_for_update(skip_locked=True)))
    for quote_id in ids:
        tx.connection.execute(sa.update(quote).where(mine, quote.c.id == quote_id).values(status="expired"))
        if not _is_told(tx, quote_id):
            quote_events.tell(tx, EventName.QUOTE_EXPIRED, quote_id)
    return {"expired": ids}


def _sweep_tenant(app: App, principal: Principal) -> int:
    swept = 0
    while True:
        command = Command("quote_sweep", Permission.ADMINISTER)
        expired = app.write(app.new_call(principal), command, expire).answer["expired"]
        swept += len(expired)
        if len(expired) < SWEEP_MAX:
            return swept


def _tenants_over(tx: Tx) -> list[str]:
    """A read first, so that a sweep that finds nothing leaves no entry in the audit."""
    return sorted(tx.connection.scalars(sa.select(quote.c.tenant_id).where(*_over(tx)).distinct()))


def _over(tx: Tx) -> tuple[sa.ColumnElement[bool], ...]:
    return quote.c.status.in_(MORTAL), quote.c.expires_at <= tx.now


def _is_told(tx: Tx, quote_id: str) -> bool:
    """A version expires once, even when a revision of it was opened and cancelled since."""
    version = tx.connection.scalar(sa.select(quote.c.version).where(tx.own(quote), quote.c.id == quote_id))
    known = [row for row in events.of_subject(tx, quote_id) if row.name == EventName.QUOTE_EXPIRED]
    return any(row.body["version"] == version for row in known)
