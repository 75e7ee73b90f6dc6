"""Ownership: what an account owns today in all its agreements, over time, and by which orders."""

from __future__ import annotations

from datetime import date
from functools import partial

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount
from cpq.domain.agreements.agreement import Agreement, AgreementStatus
from cpq.services import orders
from cpq.services.agreements import renewals, views
from cpq.services.agreements.renewals import DuePage
from cpq.services.agreements.views import AgreementDetail
from cpq.services.orders import views as order_views
from cpq.services.orders.views import OrderPage

AGREEMENTS_MAX = 25
"""Agreements that one page folds; the others are in the list of the tool and of the command line."""

ORDERS_SHOWN = 20


class Span(TypedDict):
    """Days in which a line has one quantity; `end` is the first day after, None without an end or for a purchase."""

    line_id: str
    label: str
    quantity: Amount
    start: date
    end: date | None
    is_recurring: bool


class OrderMark(TypedDict):
    number: str
    kind: str
    effective_date: date


class Ownership(TypedDict):
    agreements: list[AgreementDetail]
    agreement_total: int
    recurring: dict[str, Amount]
    """Annual recurring revenue of today by currency."""
    due: DuePage
    orders: OrderPage
    spans: list[Span]
    marks: list[OrderMark]


def of_account(tx: Tx, account_id: str) -> Ownership:
    """What an account owns, for its page."""
    find = partial(views.list_agreements, tx, account_id=account_id, ends_before=None, limit=AGREEMENTS_MAX, page=1)
    active, future = find(status=AgreementStatus.ACTIVE), find(status=AgreementStatus.FUTURE)
    ids = [one["id"] for one in (*active["items"], *future["items"])][:AGREEMENTS_MAX]
    found = [orders.load_agreement(tx, id_) for id_ in ids]
    details = [views.detail(tx, one) for one in found]
    recurring: dict[str, Amount] = {}
    for one in details:
        currency = one["agreement"]["currency"]
        recurring[currency] = recurring.get(currency, 0) + one["agreement"]["arr"]
    return {
        "agreements": details,
        "agreement_total": active["pagination"]["total"] + future["pagination"]["total"],
        "recurring": recurring,
        "due": renewals.due(tx, account_id=account_id),
        "orders": order_views.list_orders(tx, account_id=account_id, agreement_id=None, limit=ORDERS_SHOWN, page=1),
        "spans": [span for one in found for span in spans_of(one)],
        "marks": [mark for one in found for mark in marks_of(one)],
    }


def spans_of(agreement: Agreement) -> list[Span]:
    """The lines of an agreement over time."""
    return [
        {
            "line_id": line.id,
            "label": phase.sold.product_name,
            "quantity": phase.sold.quantity,
            "start": phase.start,
            "end": phase.stop,
            "is_recurring": phase.calendar is not None,
        }
        for line in agreement.lines
        for phase in line.phases
        if phase.stop is None or phase.stop > phase.start
    ]


def marks_of(agreement: Agreement) -> list[OrderMark]:
    return [
        {"number": order.number, "kind": order.kind.value, "effective_date": order.effective}
        for order in agreement.orders
    ]


def timeline(tx: Tx, agreement_id: str) -> tuple[list[Span], list[OrderMark]]:
    """The lines of one agreement over time, and its orders."""
    agreement = orders.load_agreement(tx, agreement_id)
    return spans_of(agreement), marks_of(agreement)
