"""Expiry of quotes whose last valid day is over: reads see it at once, a sweep stores and publishes it.

Of drafts that nobody has touched for as long as the policies say: a sweep alone makes them expire."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import sqlalchemy as sa

from cpq.app import Answer, App, Command, recorded_state, tenant_registry
from cpq.app.access import ENGINE, Permission, Principal
from cpq.app.recorded_state import BASELINE, StateDiffersError
from cpq.app.transaction import Tx
from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus
from cpq.domain.quotes.quote import Quote
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes import events as quote_events
from cpq.services.quotes import repository, transitions
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant

log = logging.getLogger("cpq.quotes")

SWEEP_MAX = 200
"""Quotes in one transaction, so that a sweep after a long pause does not block other writers."""


_Condition = Callable[[Tx], tuple[sa.ColumnElement[bool], ...]]
_Place = Sequence[str]
"""Where a sweep goes on: the last valid moment and the id of a quote."""


def sweep(app: App) -> int:
    """Expire every quote whose last valid day is over; returns how many. Any number of processes may do it at once."""
    return _sweep(app, _over, expire)


def sweep_drafts(app: App) -> int:
    """Expire every draft that nobody has touched for so long; returns how many."""
    return _sweep(app, _untouched, expire_drafts)


def expire(tx: Tx, *, limit: int = SWEEP_MAX, after: _Place | None = None) -> Answer:
    """Store which quotes have expired, the oldest first, and publish it."""

    def store(quote: Quote) -> None:
        transitions.expire(tx, quote)
        if not _is_published(tx, quote):
            quote_events.publish(tx, EventName.QUOTE_EXPIRED, quote)

    return _each(tx, (*_over(tx), _behind(after)), store, limit)


def expire_drafts(tx: Tx, *, limit: int = SWEEP_MAX, after: _Place | None = None) -> Answer:
    """End drafts that nobody has touched for so long, the oldest first, and publish it."""

    def store(quote: Quote) -> None:
        reason = f"nobody touched it for {tx.policies.terms.draft_days} days after {quote.valid_until}"
        quote_events.publish(tx, EventName.QUOTE_EXPIRED, transitions.expire_draft(tx, quote, reason))

    return _each(tx, (*_untouched(tx), _behind(after)), store, limit)


def _sweep(app: App, condition: _Condition, work: Callable[..., Answer]) -> int:
    found = app.read_unaudited(app.new_call(ENGINE), lambda tx: _tenants_over(tx, condition))
    return sum(_sweep_tenant(app, replace(ENGINE, tenant_id=tenant_id), work) for tenant_id in found)


def _tenants_over(tx: Tx, condition: _Condition) -> list[str]:
    """Tenants with quotes to expire. It is a read, so that a sweep that finds nothing leaves no audit entry."""
    column = tables.quote.c.tenant_id
    query = sa.select(column).where(*condition(tx), tenant_registry.is_served(column)).distinct()
    return sorted(tx.connection.scalars(query))


def _sweep_tenant(app: App, principal: Principal, work: Callable[..., Answer]) -> int:
    swept, after = 0, None
    while True:
        command = Command("quote_sweep", Permission.ADMINISTER)
        step = partial(work, limit=SWEEP_MAX, after=after)
        answer = app.write(app.new_call(principal), command, step).answer
        swept, after = swept + len(answer["expired"]), answer["after"]
        if not after:
            return swept


def _each(tx: Tx, conditions: tuple[sa.ColumnElement[bool], ...], store: Callable[[Quote], None], limit: int) -> Answer:
    columns = tables.quote.c
    found = sa.select(columns.id, columns.expires_at).where(tx.own(tables.quote), *conditions)
    found = found.order_by(columns.expires_at, columns.id).limit(limit)
    rows = tx.connection.execute(found.with_for_update(skip_locked=True)).all()
    expired = []
    for quote_id, _ in rows:
        quote = repository.load(tx, quote_id, with_lines=False)
        try:
            recorded_state.require(tx, quote_id, quote.version.number, for_update=True)
        except StateDiffersError as error:  # The other quotes must not wait for it.
            log.error("a quote is not expired", extra={"reason": error.message})
        else:
            store(quote)
            expired.append(quote_id)
    last = rows[-1] if len(rows) == limit else None
    return {"expired": expired, "after": [last.expires_at.isoformat(), last.id] if last else None}


def _behind(place: _Place | None) -> sa.ColumnElement[bool]:
    """Quotes that come after this one: those that were passed over are not found again by the same sweep."""
    if place is None:
        return sa.true()
    at, quote_id = datetime.fromisoformat(place[0]), place[1]
    columns = tables.quote.c
    return (columns.expires_at > at) | ((columns.expires_at == at) & (columns.id > quote_id))


def _over(tx: Tx) -> tuple[sa.ColumnElement[bool], ...]:
    return tables.quote.c.status.in_(EXPIRING), tables.quote.c.expires_at <= tx.now


def _untouched(tx: Tx) -> tuple[sa.ColumnElement[bool], ...]:
    """Drafts of long ago: every change and every price of a draft sets its last valid day again.

    What else happened to a quote, such as a change of notes for the seller, is on record; to record it is no change.
    """
    days = tx.policies.terms.draft_days
    if not days:
        return (sa.false(),)
    quote, entry, since = tables.quote, tables.audit_entry, tx.now - timedelta(days=days)
    touched = sa.exists().where(
        of_tenant(entry, quote.c.tenant_id),
        entry.c.subject == quote.c.id,
        entry.c.state.is_not(None),
        entry.c.at > since,
        entry.c.operation != BASELINE,
    )
    return quote.c.status == QuoteStatus.DRAFT, quote.c.expires_at <= since, ~touched.correlate(quote)


def _is_published(tx: Tx, quote: Quote) -> bool:
    """A version expires once, even if a revision of it was opened and cancelled since."""
    known = [row for row in events.of_subject(tx, quote.id) if row.name == EventName.QUOTE_EXPIRED]
    return any(row.body["version"] == quote.current_version for row in known)
