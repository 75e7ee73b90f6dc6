"""The order of an accepted quote, as JSON values of its confirmation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, next_call
from cpq.base.money import amount
from cpq.base.text import to_wire
from cpq.domain.agreements import billing_schedule
from cpq.domain.agreements.order import Order
from cpq.domain.quotes.lifecycle import local_day
from cpq.domain.quotes.quote import Quote
from cpq.services.documents.design import TEMPLATES
from cpq.services.orders import repository as order_repository

Content = dict[str, Any]


def of_quote(tx: Tx, found: Quote) -> Content:
    """The order of the loaded version; VALIDATION_ERROR when the customer has not accepted it."""
    order_id = order_repository.of_quote(tx, found.id)
    order = order_repository.load_order(tx, order_id) if order_id else None
    if order is None or order.quote_version != found.version.number:
        raise bad_field(
            "/template",
            f"There is no order to confirm: version {found.version.number} was not accepted.",
            allowed=list(TEMPLATES),
            hint="Record the customer's acceptance with quote_accept, or use another template.",
            next_call=next_call("quote_pdf", quote_id=found.id, template="standard"),
        )
    return of_order(order, found.time_zone)


def of_order(order: Order, time_zone: str) -> Content:
    """With its whole billing schedule; the amounts of the schedule add up to the net."""
    names = {line.id: (line.phases or line.replaced)[0].sold.product_name for line in order.lines}
    return {
        "id": order.id,
        "number": order.number,
        "kind": order.kind.value,
        "agreement_id": order.agreement_id,
        "effective_date": to_wire(order.effective),
        "accepted_at": to_wire(order.accepted_at),
        "accepted_on": local_day(order.accepted_at, time_zone).isoformat(),
        "accepted_by": order.accepted_by,
        "evidence": order.evidence,
        "net": amount(order.net),
        "tax_total": amount(order.tax_total),
        "total": amount(order.total),
        "schedule": [
            {
                "line_id": due.line_id,
                "product_name": names[due.line_id],
                "start_date": to_wire(due.start),
                "end_date": to_wire(max(due.start, due.end - timedelta(days=1))),
                "is_period": due.end > due.start,
                "due_date": to_wire(due.due_on),
                "amount": amount(due.amount),
            }
            for due in billing_schedule.of_order(order.lines, order.minor_unit)
        ],
    }
