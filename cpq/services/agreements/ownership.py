"""Ownership: what an account owns today in all its agreements, over time, and by which orders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.agreements.agreement import Agreement, AgreementStatus
from cpq.domain.agreements.revenue import revenue_on
from cpq.domain.pricing.terms import add_months
from cpq.services import orders
from cpq.services.agreements import renewals, views
from cpq.services.agreements.renewals import DuePage
from cpq.services.agreements.views import AgreementDetail
from cpq.services.orders import views as order_views
from cpq.services.orders.views import OrderPage
from cpq.storage.schema import tables

AGREEMENTS_MAX = 25
"""Agreements that one page folds; the others are in the list of the tool and of the command line."""

ORDERS_SHOWN = 20

MONTHS = 12
"""So far back the recurring revenue of today is compared."""


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


class YearlyRevenue(TypedDict):
    """Annual recurring revenue (ARR) in one currency; currencies are never added."""

    currency: str
    arr: Amount
    arr_before: Amount | None
    """That of a year ago; None where too many agreements would have to be folded."""


class Ownership(TypedDict):
    agreements: list[AgreementDetail]
    agreement_total: int
    recurring: list[YearlyRevenue]
    """Of the agreements above, today and on `since`."""
    since: date
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
    today = details[0]["as_of"] if details else tx.now.date()
    since = add_months(today, -MONTHS)
    return {
        "agreements": details,
        "agreement_total": active["pagination"]["total"] + future["pagination"]["total"],
        "recurring": _recurring(tx, account_id, found, since, today),
        "since": since,
        "due": renewals.due(tx, account_id=account_id),
        "orders": order_views.list_orders(tx, account_id=account_id, agreement_id=None, limit=ORDERS_SHOWN, page=1),
        "spans": [span for one in found for span in spans_of(one)],
        "marks": [mark for one in found for mark in marks_of(one)],
    }


def _recurring(tx: Tx, account_id: str, owned: Sequence[Agreement], since: date, today: date) -> list[YearlyRevenue]:
    table = tables.agreement
    had = tx.own(table) & (table.c.account_id == account_id) & (table.c.starts_on <= since)
    had &= table.c.ends_on.is_(None) | (table.c.ends_on >= since)
    ids = list(tx.connection.scalars(sa.select(table.c.id).where(had).order_by(table.c.id).limit(AGREEMENTS_MAX + 1)))
    is_known = len(ids) <= AGREEMENTS_MAX
    loaded = {one.id: one for one in owned}
    past = [loaded.get(id_) or orders.load_agreement(tx, id_) for id_ in ids] if is_known else []
    now, before = revenue_on(owned, today), revenue_on(past, since)
    return [
        {
            "currency": currency,
            "arr": amount(now.get(currency, 0)),
            "arr_before": amount(before.get(currency, 0)) if is_known else None,
        }
        for currency in sorted({*now, *before})
    ]


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
