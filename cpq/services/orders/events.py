"""Publishes webhook events for orders and for agreements that they change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.money import amount
from cpq.base.text import canonical_json
from cpq.domain.agreements import billing_schedule
from cpq.domain.agreements.agreement import Agreement
from cpq.domain.agreements.order import Order
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.orders.views import header, line_view, schedule_view

BODY_BYTES_MAX = 60_000
"""An order with more lines than fit is read with order_get; the event says how many there are."""


def publish(tx: Tx, order: Order, agreements: Iterable[Agreement]) -> None:
    """Publish an order with its lines, and what each of its agreements is now."""
    events.publish(tx, EventName.ORDER_CREATED, order.quote_id, _order_body(order))
    for agreement in sorted(agreements, key=lambda one: one.id):
        day = max(order.effective, agreement.starts_on)
        body = {
            "agreement_id": agreement.id,
            "account_id": agreement.account_id,
            "order_id": order.id,
            "kind": order.kind.value,
            "sequence": agreement.sequence,
            "effective_date": order.effective,
            "currency": agreement.currency,
            "arr": amount(agreement.yearly(day)),
            "renewed_into": agreement.renewed_into,
        }
        events.publish(tx, EventName.AGREEMENT_CHANGED, order.quote_id, body)


def _order_body(order: Order) -> dict[str, Any]:
    shown = dict(header(order))
    body = {
        "order_id": shown.pop("id"),
        **shown,
        "fingerprint": order.fingerprint,
        "evidence": order.evidence,
        "line_count": len(order.lines),
    }
    lines = [line_view(order, line) for line in order.lines]
    dues = billing_schedule.of_order(order.lines, order.minor_unit)
    whole = {"lines": lines, "schedule": schedule_view(dues)}
    return {**body, **whole} if len(canonical_json(whole)) <= BODY_BYTES_MAX else body
