"""Outbox of events: written in the transaction of the change, and kept until every webhook has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import canonical_json, to_wire
from cpq.base.webhooks import Webhook
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant

BODY_BYTES_MAX = 64 * 1024


class EventName(StrEnum):
    """Every event that a receiver can get. The list is API: it may grow, never change."""

    QUOTE_SENT = "quote.sent"
    QUOTE_ACCEPTED = "quote.accepted"
    QUOTE_DECLINED = "quote.declined"
    QUOTE_CANCELLED = "quote.cancelled"
    QUOTE_EXPIRED = "quote.expired"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_ESCALATED = "approval.escalated"
    AUDIT_HEAD = "audit.head"
    ORDER_CREATED = "order.created"
    AGREEMENT_CHANGED = "agreement.changed"
    AGREEMENT_RENEWAL_DUE = "agreement.renewal_due"


@dataclass(frozen=True)
class Event:
    """An event of a subject; the events of a subject are numbered from 1."""

    id: str
    name: str
    subject: str
    number: int
    body: Mapping[str, Any]
    created_at: datetime


def publish(tx: Tx, name: EventName, subject: str, body: Mapping[str, object]) -> str:
    """Store an event of `subject` (a quote that the caller has locked) in the caller's transaction; returns its id.

    It is delivered after the commit, to every webhook that is configured now, after all earlier events of the subject.
    """
    plain = {key: to_wire(value) if isinstance(value, datetime) else value for key, value in body.items()}
    assert len(canonical_json(plain)) <= BODY_BYTES_MAX, "an event has the facts of the change, not the whole quote"
    event_id = tx.new_id("ev-")
    ((last,),) = _LAST.rows(tx.connection, tenant=tx.tenant_id, of_subject=subject)
    number = (last or 0) + 1
    row = {"id": event_id, "name": name.value, "subject": subject, "number": number, "body": plain}
    _ADD.run(tx.connection, tenant_id=tx.tenant_id, created_at=tx.now, **row)
    _add_deliveries(tx, event_id, subject, number, tx.settings.webhook_list)
    return event_id


def of_subject(tx: Tx, subject: str) -> list[Event]:
    """All events of a subject, in their order."""
    mine = _EVENTS.where(tx.own(tables.event), tables.event.c.subject == subject)
    return [Event(*row) for row in tx.connection.execute(mine.order_by(tables.event.c.number))]


def list_events(tx: Tx, *, limit: int, subject: str | None = None, status: str | None = None) -> list[dict[str, Any]]:
    """The newest events, latest first, each with its deliveries; only those with a delivery in `status`, if given."""
    wanted = [tx.own(tables.event)]
    if subject is not None:
        wanted.append(tables.event.c.subject == subject)
    if status is not None:
        theirs = sa.select(tables.event_delivery.c.event_id).where(
            tx.own(tables.event_delivery), tables.event_delivery.c.status == status
        )
        wanted.append(tables.event.c.id.in_(theirs))
    newest = _EVENTS.where(*wanted).order_by(tables.event.c.created_at.desc(), tables.event.c.id.desc())
    return _with_deliveries(tx, [Event(*row) for row in tx.connection.execute(newest.limit(limit))])


def get(tx: Tx, event_id: str) -> dict[str, Any]:
    """One event with its body and its deliveries."""
    return {**_with_deliveries(tx, [_find(tx, event_id)])[0]}


def replay(tx: Tx, event_id: str) -> list[str]:
    """Deliver an event once more to every webhook that is configured now, also to one that has it; returns their names.

    A claimed delivery is left alone: its receiver is about to get the event.
    """
    found = _find(tx, event_id)
    webhooks = tx.settings.webhook_list
    if not webhooks:
        raise CpqError(Code.CONFLICT, "No webhook is configured.", hint="Set CPQ_WEBHOOKS and CPQ_WEBHOOK_SECRET.")
    names = [webhook.name for webhook in webhooks]
    mine = tx.own(tables.event_delivery) & (tables.event_delivery.c.event_id == event_id)
    locked = sa.select(
        tables.event_delivery.c.webhook, tables.event_delivery.c.claim, tables.event_delivery.c.due_at
    ).where(mine)
    rows = {row.webhook: row for row in tx.connection.execute(locked.with_for_update())}
    under_way = {name for name, row in rows.items() if row.claim is not None and row.due_at > tx.now}
    again = [name for name in names if name in rows and name not in under_way]
    fresh = {"status": "waiting", "attempts": 0, "due_at": tx.now, "claim": None, "answer": None}
    if again:
        tx.connection.execute(
            sa.update(tables.event_delivery).where(mine, tables.event_delivery.c.webhook.in_(again)).values(fresh)
        )
    new = [webhook for webhook in webhooks if webhook.name not in rows]
    _add_deliveries(tx, event_id, found.subject, found.number, new)
    return names


def _add_deliveries(tx: Tx, event_id: str, subject: str, number: int, webhooks: Sequence[Webhook]) -> None:
    rows = [
        {
            "tenant_id": tx.tenant_id,
            "event_id": event_id,
            "webhook": webhook.name,
            "subject": subject,
            "number": number,
            "status": "waiting",
            "attempts": 0,
            "due_at": tx.now,
        }
        for webhook in webhooks
    ]
    if rows:
        tx.connection.execute(sa.insert(tables.event_delivery), rows)


def _last(_dialect: str) -> sa.Select[*tuple[Any, ...]]:
    mine = of_tenant(tables.event, sa.bindparam("tenant")), tables.event.c.subject == sa.bindparam("of_subject")
    return sa.select(sa.func.max(tables.event.c.number)).where(*mine)


_LAST = Statement(_last)
_ADD = Statement(lambda _dialect: sa.insert(tables.event))
_EVENTS = sa.select(*(tables.event.c[field.name] for field in fields(Event)))


def _find(tx: Tx, event_id: str) -> Event:
    row = tx.connection.execute(_EVENTS.where(tx.own(tables.event), tables.event.c.id == event_id)).one_or_none()
    if row is None:
        raise CpqError(Code.NOT_FOUND, f"There is no event {event_id!r}.", hint="`cpq events list` shows them.")
    return Event(*row)


def _with_deliveries(tx: Tx, events: Sequence[Event]) -> list[dict[str, Any]]:
    deliveries: dict[str, list[dict[str, Any]]] = {event.id: [] for event in events}
    theirs = tx.own(tables.event_delivery) & tables.event_delivery.c.event_id.in_(deliveries)
    query = sa.select(tables.event_delivery).where(theirs).order_by(tables.event_delivery.c.webhook)
    for row in tx.connection.execute(query):
        deliveries[row.event_id].append(
            {
                "webhook": row.webhook,
                "status": row.status,
                "attempts": row.attempts,
                "attempted_at": row.attempted_at,
                "due_at": row.due_at if row.status == "waiting" else None,
                "answer": row.answer,
            }
        )
    return [
        {
            "id": event.id,
            "name": event.name,
            "subject": event.subject,
            "number": event.number,
            "created_at": event.created_at,
            "data": event.body,
            "deliveries": deliveries[event.id],
        }
        for event in events
    ]
