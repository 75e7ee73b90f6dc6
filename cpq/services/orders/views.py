"""Views of orders: one order with its lines and its billing schedule, and lists of orders."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Annotated, Any, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.money import Amount, amount
from cpq.base.rounding import written
from cpq.domain.agreements import billing_schedule
from cpq.domain.agreements.billing_schedule import Due
from cpq.domain.agreements.order import Order, OrderLine, Phase
from cpq.services.orders import repository
from cpq.services.pagination import Pagination, pagination
from cpq.services.usage_views import CommitmentView, commitment_view
from cpq.storage.schema import tables

SCHEDULE_MAX = 2_000
"""Amounts of single lines in one answer; all of them are in the export."""


class PhaseView(TypedDict):
    """Days with one quantity and one price."""

    start_date: date
    end_date: Annotated[date | None, Described("Its last day; null without an end, or for a purchase.")]
    quantity: Amount
    net: Annotated[Amount, Described("For all its days; without an end for one period.")]
    unit_price_per_period: Annotated[
        Amount, Described("Net, for one unit and one period; of a purchase, for one unit.")
    ]
    periods: Annotated[Amount | str, Described("Exact: a number, or a text such as `12 16/31`.")]


class OrderLineView(TypedDict):
    line_id: Annotated[str, Described("The line of the agreement: the same in every order that changes it.")]
    number: Annotated[int, Described("Of the line in the quote.")]
    agreement_id: str
    product_id: str
    product_name: str
    selling_model: str
    billing_period: str
    billed: Annotated[str, Described("Each period is due in `advance`, at its start, or in `arrears`, at its end.")]
    cancellation_credit: Annotated[
        str,
        Described("What a cancellation gives back: `none`, `prorated` by days, or `full_periods` not begun."),
    ]
    attributes: dict[str, Any]
    commitment: NotRequired[Annotated[CommitmentView, Described("Of a usage line.")]]
    effective_date: date
    phases: Annotated[list[PhaseView], Described("What holds from that day on; none where the line ends.")]
    credit: Annotated[Amount, Described("Given back for what held before.")]
    net: Annotated[Amount, Described("The phases less the credit.")]


class DueView(TypedDict):
    line_id: str
    start_date: date
    end_date: Annotated[date, Described("The last day of the period; of a purchase its only day.")]
    due_date: date
    amount: Amount


class DueOnView(TypedDict):
    due_date: date
    amount: Amount


class OrderHeader(TypedDict):
    id: str
    number: str
    kind: Annotated[str, Described("`new`, `amendment`, `renewal` or `cancellation`.")]
    account_id: str
    agreement_id: str
    quote_id: str
    quote_number: str
    version: int
    currency: str
    effective_date: date
    net: Amount
    tax_total: Amount
    total: Amount
    accepted_at: datetime
    accepted_by: str


class OrderDetail(TypedDict):
    order: OrderHeader
    evidence: str | None
    fingerprint: str
    lines: list[OrderLineView]
    schedule_by_day: Annotated[list[DueOnView], Described("What is due on each day, before tax; adds up to `net`.")]
    schedule: NotRequired[Annotated[list[DueView], Described("The same for each line and period.")]]
    schedule_total: Annotated[int, Described("The number of amounts of single lines.")]


class OrderPage(TypedDict):
    items: list[OrderHeader]
    pagination: Pagination
    message: NotRequired[Annotated[str, Described("Says when accepted quotes are missing in the list.")]]


def get(tx: Tx, order_id: str, *, include_schedule: bool = False) -> OrderDetail:
    """One order by its id or number, as it was accepted."""
    return detail(repository.load_order(tx, order_id), include_schedule=include_schedule)


def detail(order: Order, *, include_schedule: bool = False, schedule_max: int | None = SCHEDULE_MAX) -> OrderDetail:
    dues = billing_schedule.of_order(order.lines, order.minor_unit)
    view: OrderDetail = {
        "order": header(order),
        "evidence": order.evidence,
        "fingerprint": order.fingerprint,
        "lines": [line_view(order, line) for line in order.lines],
        "schedule_by_day": by_day(dues),
        "schedule_total": len(dues),
    }
    if include_schedule:
        view["schedule"] = schedule_view(dues[:schedule_max])
    return view


def list_orders(tx: Tx, *, account_id: str | None, agreement_id: str | None, limit: int, page: int) -> OrderPage:
    """The newest orders first, ties by id; counted and read without their lines."""
    order, quote = tables.sales_order, tables.quote
    wanted = [tx.own(order)]
    if account_id is not None:
        wanted.append(order.c.account_id == account_id)
    if agreement_id is not None:
        place = tables.agreement_order
        mine = sa.select(place.c.order_id).where(tx.own(place), place.c.agreement_id == agreement_id)
        wanted.append(order.c.id.in_(mine))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(order).where(*wanted)) or 0
    together = (quote.c.tenant_id == order.c.tenant_id) & (quote.c.id == order.c.quote_id)
    names = ("id", "number", "kind", "account_id", "agreement_id", "quote_id", "version", "currency")
    more = ("net", "tax_total", "total", "accepted_at", "accepted_by")
    query = sa.select(
        *(order.c[name] for name in (*names, *more)), order.c.effective_on, quote.c.number.label("quote_number")
    ).join(quote, together)
    query = query.where(*wanted).order_by(order.c.accepted_at.desc(), order.c.id.desc())
    rows = tx.connection.execute(query.limit(limit).offset((page - 1) * limit))
    items: list[OrderHeader] = [
        {
            "id": row.id,
            "number": row.number,
            "kind": row.kind,
            "account_id": row.account_id,
            "agreement_id": row.agreement_id,
            "quote_id": row.quote_id,
            "quote_number": row.quote_number,
            "version": row.version,
            "currency": row.currency,
            "effective_date": row.effective_on,
            "net": amount(row.net),
            "tax_total": amount(row.tax_total),
            "total": amount(row.total),
            "accepted_at": row.accepted_at,
            "accepted_by": row.accepted_by,
        }
        for row in rows
    ]
    found: OrderPage = {"items": items, "pagination": pagination(total, page, limit)}
    if note := repository.waiting_note(tx, account_id):
        found["message"] = note
    return found


def header(order: Order) -> OrderHeader:
    return {
        "id": order.id,
        "number": order.number,
        "kind": order.kind,
        "account_id": order.account_id,
        "agreement_id": order.agreement_id,
        "quote_id": order.quote_id,
        "quote_number": order.quote_number,
        "version": order.quote_version,
        "currency": order.currency,
        "effective_date": order.effective,
        "net": amount(order.net),
        "tax_total": amount(order.tax_total),
        "total": amount(order.total),
        "accepted_at": order.accepted_at,
        "accepted_by": order.accepted_by,
    }


def line_view(order: Order, line: OrderLine) -> OrderLineView:
    sold = (line.phases or line.replaced)[0].sold
    view: OrderLineView = {
        "line_id": line.id,
        "number": line.number,
        "agreement_id": line.agreement_id,
        "product_id": sold.product_id,
        "product_name": sold.product_name,
        "selling_model": sold.selling_model,
        "billing_period": sold.billing_period,
        "billed": sold.billed.value,
        "cancellation_credit": sold.credit.value,
        "attributes": dict(sold.attributes),
        "effective_date": line.effective,
        "phases": [phase_view(phase) for phase in line.phases],
        "credit": amount(line.credit(order.minor_unit)),
        "net": amount(line.net(order.minor_unit)),
    }
    if sold.commitment:
        view["commitment"] = commitment_view(sold.commitment)
    return view


def phase_view(phase: Phase) -> PhaseView:
    return {
        "start_date": phase.start,
        "end_date": phase.stop - timedelta(days=1) if phase.stop else None,
        "quantity": phase.sold.quantity,
        "net": amount(phase.value),
        "unit_price_per_period": amount(phase.net_unit_price),
        "periods": written(phase.periods),
    }


def schedule_view(dues: Iterable[Due]) -> list[DueView]:
    return [
        {
            "line_id": due.line_id,
            "start_date": due.start,
            "end_date": max(due.start, due.end - timedelta(days=1)),
            "due_date": due.due_on,
            "amount": amount(due.amount),
        }
        for due in dues
    ]


def by_day(dues: Iterable[Due]) -> list[DueOnView]:
    """What is due on each day; a day on which all cancels out is left out."""
    amounts: dict[date, int] = {}
    for due in dues:
        amounts[due.due_on] = amounts.get(due.due_on, 0) + due.amount
    return [{"due_date": day, "amount": amount(total)} for day, total in sorted(amounts.items()) if total]
