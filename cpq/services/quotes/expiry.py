"""Expiry of quotes whose last valid day is over: reads see it at once, a sweep stores and publishes it."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from cpq.app import Answer, App, Command
from cpq.app.access import ENGINE, Permission, Principal
from cpq.app.transaction import Tx
from cpq.domain.quotes.lifecycle import EXPIRING
from cpq.domain.quotes.quote import Quote
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes import events as quote_events
from cpq.services.quotes import repository, transitions
from cpq.storage.schema import tables

SWEEP_MAX = 200
"""Quotes in one transaction, so that a sweep after a long pause does not block other writers."""


def sweep(app: App) -> int:
    """Expire every quote whose last valid day is over; returns how many. Any number of processes may do it at once."""
    tenants = app.read_unaudited(app.new_call(ENGINE), _tenants_over)
    return sum(_sweep_tenant(app, replace(ENGINE, tenant_id=tenant_id)) for tenant_id in tenants)


def expire(tx: Tx, *, limit: int = SWEEP_MAX) -> Answer:
    """Store which quotes have expired, the oldest first, and publish it."""
    columns = tables.quote.c
    over = sa.select(columns.id).where(tx.own(tables.quote), *_over(tx))
    over = over.order_by(columns.expires_at, columns.id).limit(limit)
    ids = list(tx.connection.scalars(over.with_for_update(skip_locked=True)))
    for quote_id in ids:
        quote = repository.load(tx, quote_id, with_lines=False)
        transitions.expire(tx, quote)
        if not _is_published(tx, quote):
            quote_events.publish(tx, EventName.QUOTE_EXPIRED, quote)
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
    """Tenants with quotes to expire. It is a read, so that a sweep that finds nothing leaves no audit entry."""
    return sorted(tx.connection.scalars(sa.select(tables.quote.c.tenant_id).where(*_over(tx)).distinct()))


def _over(tx: Tx) -> tuple[sa.ColumnElement[bool], ...]:
    return tables.quote.c.status.in_(EXPIRING), tables.quote.c.expires_at <= tx.now


def _is_published(tx: Tx, quote: Quote) -> bool:
    """A version expires once, even if a revision of it was opened and cancelled since."""
    known = [row for row in events.of_subject(tx, quote.id) if row.name == EventName.QUOTE_EXPIRED]
    return any(row.body["version"] == quote.current_version for row in known)
