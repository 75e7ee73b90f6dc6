"""Claims on deliveries: a delivery is claimed for a while in one transaction, and settled in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa

from cpq.app import tenant_registry
from cpq.app.transaction import Tx
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant

CLAIM_SECONDS = 120
"""Longer than an attempt can take. If the claiming process was killed, another takes the delivery after this time."""


class Status(StrEnum):
    """The status of a delivery. A failed one has no attempts left, and is kept for a replay."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True)
class Claimed:
    """An event that this process may deliver once, until the claim ends."""

    webhook: str
    claim: str
    attempt: int
    event_id: str
    name: str
    subject: str
    number: int
    created_at: datetime
    body: Mapping[str, object]


def is_due(tx: Tx, webhook: str, due_by: datetime) -> bool:
    """Whether the tenant has events that are due. It is a read, so that polling takes no write lock."""
    due = sa.select(sa.exists().where(tx.own(tables.event_delivery), *_due(due_by, webhook)))
    return bool(tx.connection.scalar(due))


def due_elsewhere(tx: Tx, due_by: datetime) -> tuple[str, str] | None:
    """Another tenant whose events are due, and the name of the webhook that they are for, if there is one."""
    delivery = tables.event_delivery.c
    is_other = (delivery.tenant_id != tx.tenant_id) & tenant_registry.is_served(delivery.tenant_id)
    due = sa.select(delivery.tenant_id, delivery.webhook).where(is_other, *_due(due_by))
    row = tx.connection.execute(due.order_by(delivery.due_at).limit(1)).one_or_none()
    return None if row is None else (row.tenant_id, row.webhook)


def claim(tx: Tx, webhook: str, due_by: datetime) -> Claimed | None:
    """Claim the delivery that has been due for longest, if any; nobody else gets it while the claim lasts."""
    chosen = (
        sa.select(tables.event_delivery.c.event_id, tables.event_delivery.c.attempts)
        .where(tx.own(tables.event_delivery), *_due(due_by, webhook))
        .order_by(tables.event_delivery.c.due_at, tables.event_delivery.c.event_id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    found = tx.connection.execute(chosen).one_or_none()
    if found is None:
        return None
    mark, attempt = tx.new_id("cl-"), found.attempts + 1
    lasting = {"claim": mark, "due_at": tx.now + timedelta(seconds=CLAIM_SECONDS)}
    tx.connection.execute(
        sa.update(tables.event_delivery)
        .where(*_one(tx, found.event_id, webhook))
        # Counted now, so that an event that crashes its sender is also given up at some time.
        .values(attempts=attempt, attempted_at=tx.now, **lasting)
    )
    row = tx.connection.execute(
        sa.select(tables.event).where(tx.own(tables.event), tables.event.c.id == found.event_id)
    ).one()
    return Claimed(webhook, mark, attempt, row.id, row.name, row.subject, row.number, row.created_at, row.body)


def settle(tx: Tx, claimed: Claimed, *, status: Status, answer: str, pause_seconds: float = 0) -> bool:
    """Store the outcome and the time of the next attempt. False when the claim had ended and another process has it."""
    mine = (*_one(tx, claimed.event_id, claimed.webhook), tables.event_delivery.c.claim == claimed.claim)
    due_at = tx.now + timedelta(seconds=pause_seconds)
    change = (
        sa.update(tables.event_delivery)
        .where(*mine)
        .values(status=status.value, answer=answer, due_at=due_at, claim=None)
    )
    return tx.connection.execute(change).rowcount == 1


def _due(due_by: datetime, webhook: str | None = None) -> tuple[sa.ColumnElement[bool], ...]:
    """Due, and first of its subject: a delivery that waits for a retry holds back later events of its subject."""
    earlier = tables.event_delivery.alias("earlier")
    is_held = sa.exists().where(
        of_tenant(earlier, tables.event_delivery.c.tenant_id),
        earlier.c.webhook == tables.event_delivery.c.webhook,
        earlier.c.subject == tables.event_delivery.c.subject,
        earlier.c.number < tables.event_delivery.c.number,
        earlier.c.status == sa.literal_column("'waiting'"),
    )
    return (
        sa.true() if webhook is None else tables.event_delivery.c.webhook == webhook,
        # A literal, because a partial index is used only if the condition is part of the statement.
        tables.event_delivery.c.status == sa.literal_column("'waiting'"),
        tables.event_delivery.c.due_at <= due_by,
        ~is_held,
    )


def _one(tx: Tx, event_id: str, webhook: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        tx.own(tables.event_delivery),
        tables.event_delivery.c.event_id == event_id,
        tables.event_delivery.c.webhook == webhook,
    )
