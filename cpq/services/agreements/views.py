"""Views of agreements: what is owned on a day, lists of agreements, and a change before and after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.errors import next_call
from cpq.base.money import Amount, amount
from cpq.domain.agreements import effects
from cpq.domain.agreements.agreement import Agreement, AgreementLine, AgreementStatus
from cpq.domain.agreements.order import Phase
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.pricing.rate_cards import RateCard
from cpq.domain.pricing.selling_models import is_usage
from cpq.domain.quotes.lifecycle import local_day
from cpq.domain.quotes.quote import Quote, QuoteLine, line_id
from cpq.services import orders
from cpq.services.pagination import Pagination, pagination
from cpq.services.quotes import repository as quote_repository
from cpq.services.usage_views import CommitmentView, UsageView, commitment_view, usage_view
from cpq.storage.schema import tables

Arr = Annotated[Amount, Described("Annual recurring revenue at the prices of the day, net, in `currency`.")]


class OwnedLine(UsageView):
    line_id: str
    product_id: str
    product_name: str
    quantity: Amount
    selling_model: str
    billing_period: str
    billed: Annotated[str, Described("Each period is due in `advance`, at its start, or in `arrears`, at its end.")]
    cancellation_credit: Annotated[
        str,
        Described("What a cancellation gives back: `none`, `prorated` by days, or `full_periods` not begun."),
    ]
    unit_price_per_period: Annotated[
        Amount, Described("Net, for one unit and one period; of a purchase, for one unit.")
    ]
    discount_pct: Amount
    start_date: Annotated[date, Described("Since when it is as shown.")]
    end_date: Annotated[date | None, Described("Its last day; null without an end, or for a purchase.")]
    arr: Arr
    source_order_id: Annotated[str, Described("The order that says so, and the number of its line there.")]
    source_line: int
    attributes: dict[str, Any]


class NextBilling(TypedDict):
    due_date: date
    amount: Amount


class AgreementHeader(TypedDict):
    id: str
    account_id: str
    account_name: str
    currency: str
    status: Annotated[str, Described("`active`, `future`, `ended` or `cancelled`, on the day that was asked for.")]
    start_date: date
    end_date: Annotated[date | None, Described("The last day of its term; null where something has no end.")]
    arr: Arr
    order_count: int
    renewed_into: Annotated[str | None, Described("The agreement that goes on instead.")]


class OrderInAgreement(TypedDict):
    order_id: str
    number: str
    kind: str
    effective_date: date
    net: Amount


class AgreementDetail(TypedDict):
    agreement: AgreementHeader
    as_of: date
    mrr: Annotated[Amount, Described("Monthly recurring revenue: a twelfth of `arr`.")]
    next_billing: Annotated[NextBilling | None, Described("The next amount that is due after the day, before tax.")]
    next_renewal: Annotated[date | None, Described("The day on which a renewal would start.")]
    lines: list[OwnedLine]
    orders: list[OrderInAgreement]
    message: str


class AgreementPage(TypedDict):
    items: list[AgreementHeader]
    pagination: Pagination
    message: NotRequired[Annotated[str, Described("Says when accepted quotes are missing in the list.")]]


class ChangedLine(TypedDict):
    line_id: str
    agreement_line_id: Annotated[str | None, Described("Null for a line that is new.")]
    action: Annotated[str, Described("`add`, `change`, `remove` or `renew`.")]
    product_id: str
    product_name: str
    quantity_before: Amount | None
    quantity_after: Amount
    commitment: NotRequired[Annotated[CommitmentView, Described("Of a usage line, from now on.")]]
    start_date: date | None
    end_date: date | None
    price_after: Annotated[Amount, Described("What the line costs from its start date to its end, net.")]
    credit: Annotated[Amount, Described("Given back for the same days at the old price.")]
    difference: Annotated[Amount, Described("price_after less credit; negative where the customer gets money back.")]


class QuoteChange(TypedDict):
    """What a quote changes in an agreement, line by line."""

    kind: str
    agreement_id: str
    effective_date: date
    lines: list[ChangedLine]
    net: Amount
    tax_total: Amount
    total: Annotated[Amount, Described("The amount due; negative where the customer gets money back.")]


class ChangeView(TypedDict):
    quote_id: Annotated[str | None, Described("Null where nothing changes.")]
    number: str | None
    version: int | None
    status: str | None
    kind: str
    agreement_id: str
    effective_date: date
    currency: str
    lines: list[ChangedLine]
    net: Annotated[Amount, Described("The differences together, before tax.")]
    tax_total: Amount
    total: Amount
    arr_change: Annotated[Amount, Described("By how much annual recurring revenue changes.")]
    warnings: list[str]
    outcome: str
    message: str
    next_call: NotRequired[dict[str, Any]]


def get(tx: Tx, agreement_id: str, *, as_of: date | None = None) -> AgreementDetail:
    """What an account owns on a day, by default today where the account is."""
    return detail(tx, orders.load_agreement(tx, agreement_id), as_of=as_of)


def detail(tx: Tx, agreement: Agreement, *, as_of: date | None = None) -> AgreementDetail:
    name, zone = _account(tx, agreement.account_id)
    day = as_of or local_day(tx.now, zone)
    yearly, due, end = agreement.yearly(day), agreement.next_due(day), agreement.end
    return {
        "agreement": {
            "id": agreement.id,
            "account_id": agreement.account_id,
            "account_name": name,
            "currency": agreement.currency,
            "status": agreement.status(day),
            "start_date": agreement.starts_on,
            "end_date": end - timedelta(days=1) if end else None,
            "arr": amount(yearly),
            "order_count": agreement.sequence,
            "renewed_into": agreement.renewed_into,
        },
        "as_of": day,
        "mrr": amount(agreement.minor_unit.round(yearly, 1, 12)),
        "next_billing": {"due_date": due[0], "amount": amount(due[1])} if due else None,
        "next_renewal": end if end and day < end and not agreement.is_cancelled else None,
        "lines": _owned_lines(tx, agreement, day),
        "orders": [
            {
                "order_id": order.id,
                "number": order.number,
                "kind": order.kind,
                "effective_date": order.effective,
                "net": amount(order.net),
            }
            for order in agreement.orders
        ],
        "message": _in_words(agreement, day),
    }


def _in_words(agreement: Agreement, day: date) -> str:
    owned = len(agreement.on(day))
    if not owned:
        return f"Nothing of this agreement is owned on {day}: it is {agreement.status(day)}."
    return f"On {day} the account owns {owned} of {len(agreement.lines)} lines of this agreement."


def _owned_lines(tx: Tx, agreement: Agreement, day: date) -> list[OwnedLine]:
    """The lines of a day. The rate card of one that is charged by its use is that of the quote that says so."""
    quotes = {order.id: (order.quote_id, order.quote_version) for order in agreement.orders}
    cards: dict[tuple[str, int], dict[int, RateCard | None]] = {}
    found = []
    for line, phase in agreement.on(day):
        view = _owned(agreement, line, phase, day)
        if is_usage(phase.sold.selling_model):
            quote = quotes[view["source_order_id"]]
            if quote not in cards:
                cards[quote] = {one.number: one.usage for one in quote_repository.lines(tx, *quote)}
            view = {**view, **usage_view(cards[quote].get(view["source_line"]), agreement.currency)}
        if phase.sold.commitment:
            view["commitment"] = commitment_view(phase.sold.commitment)
        found.append(view)
    return found


def _owned(agreement: Agreement, line: AgreementLine, phase: Phase, day: date) -> OwnedLine:
    sold, last, source = phase.sold, line.last or phase, line.source_on(day)
    is_recurring = phase.calendar is not None
    stop = phase.stop if last is phase or not is_recurring else line.stop
    return {
        "line_id": line.id,
        "product_id": sold.product_id,
        "product_name": sold.product_name,
        "quantity": sold.quantity,
        "selling_model": sold.selling_model,
        "billing_period": sold.billing_period,
        "billed": sold.billed.value,
        "cancellation_credit": sold.credit.value,
        "unit_price_per_period": amount(phase.net_unit_price),
        "discount_pct": amount(sold.discount),
        "start_date": phase.start,
        "end_date": stop - timedelta(days=1) if stop else None,
        "arr": amount(agreement.minor_unit.round(phase.yearly)),
        "source_order_id": source.order_id,
        "source_line": source.number,
        "attributes": dict(sold.attributes),
    }


def list_agreements(
    tx: Tx,
    *,
    account_id: str | None,
    ends_before: date | None,
    status: AgreementStatus | None,
    limit: int,
    page: int,
) -> AgreementPage:
    """Agreements by the day on which they started, newest first; ties by id."""
    table, account = tables.agreement, tables.account
    today = tx.now.date()
    wanted = [tx.own(table)]
    if account_id is not None:
        wanted.append(table.c.account_id == account_id)
    if ends_before is not None:
        wanted.append(table.c.ends_on < ends_before)
    if status is not None:
        wanted.append(_has_status(status, today))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(table).where(*wanted)) or 0
    buyer = (account.c.tenant_id == table.c.tenant_id) & (account.c.id == table.c.account_id)
    query = sa.select(table, account.c.name.label("account_name")).join(account, buyer).where(*wanted)
    query = query.order_by(table.c.starts_on.desc(), table.c.id.desc()).limit(limit).offset((page - 1) * limit)
    items: list[AgreementHeader] = [
        {
            "id": row.id,
            "account_id": row.account_id,
            "account_name": row.account_name,
            "currency": row.currency,
            "status": _status(row.starts_on, row.ends_on, row.cancelled_on, today),
            "start_date": row.starts_on,
            "end_date": row.ends_on,
            "arr": amount(row.yearly),
            "order_count": row.sequence,
            "renewed_into": row.renewed_into,
        }
        for row in tx.connection.execute(query)
    ]
    found: AgreementPage = {"items": items, "pagination": pagination(total, page, limit)}
    if note := orders.waiting_note(tx, account_id):
        found["message"] = note
    return found


def _has_status(status: AgreementStatus, today: date) -> sa.ColumnElement[bool]:
    columns = tables.agreement.c
    is_cancelled = columns.cancelled_on.is_not(None) & (columns.cancelled_on <= today)
    is_over = columns.ends_on.is_not(None) & (columns.ends_on < today)
    is_future = columns.starts_on > today
    found: dict[AgreementStatus, sa.ColumnElement[bool]] = {
        AgreementStatus.CANCELLED: is_cancelled,
        AgreementStatus.FUTURE: ~is_cancelled & is_future,
        AgreementStatus.ENDED: ~is_cancelled & ~is_future & is_over,
        AgreementStatus.ACTIVE: ~is_cancelled & ~is_future & ~is_over,
    }
    return found[status]


def _status(starts_on: date, ends_on: date | None, cancelled_on: date | None, today: date) -> AgreementStatus:
    if cancelled_on is not None and cancelled_on <= today:
        return AgreementStatus.CANCELLED
    if starts_on > today:
        return AgreementStatus.FUTURE
    return AgreementStatus.ENDED if ends_on is not None and ends_on < today else AgreementStatus.ACTIVE


def change_view(tx: Tx, quote_id: str, agreement: Agreement) -> ChangeView:
    """A quote that changes an agreement, line by line: before, after, difference."""
    quote = quote_repository.load(tx, quote_id)
    version, change = quote.version, quote.version.agreement
    assert change is not None
    pricing = quote_repository.pricings(tx, quote)[0]
    return {
        "quote_id": quote.id,
        "number": quote.number,
        "version": version.number,
        "status": quote.status,
        "kind": change.kind,
        "agreement_id": agreement.id,
        "effective_date": change.effective,
        "currency": version.currency,
        "lines": changed_lines(quote, quote.lines),
        "net": amount(version.subtotal - version.discount_total),
        "tax_total": amount(version.tax_total),
        "total": amount(version.total),
        "arr_change": amount(effects.arr_change(quote.lines, pricing.request, pricing.result)),
        "warnings": list(version.warnings),
        "outcome": "created",
        "message": f"A draft {change.kind} was made. The agreement changes when the customer accepts it.",
        "next_call": next_call("quote_price", quote_id=quote.id),
    }


def change_of(tx: Tx, quote_id: str, version: int) -> QuoteChange | None:
    """What a version of a quote changes in an agreement; None for a first sale."""
    quote = quote_repository.load(tx, quote_id, version=version)
    change = quote.version.agreement
    if change is None:
        return None
    return {
        "kind": change.kind,
        "agreement_id": change.agreement_id,
        "effective_date": change.effective,
        "lines": changed_lines(quote, quote.lines),
        "net": amount(quote.version.subtotal - quote.version.discount_total),
        "tax_total": amount(quote.version.tax_total),
        "total": amount(quote.version.total),
    }


def changed_lines(quote: Quote, lines: Sequence[QuoteLine]) -> list[ChangedLine]:
    """The lines of a quote that changes an agreement: before, after, difference."""
    found: list[ChangedLine] = []
    for line in lines:
        special = line.special
        agreed = special.agreed if special else None
        if special is None or agreed is None:
            continue
        view: ChangedLine = {
            "line_id": line_id(quote.id, line.number),
            "agreement_line_id": agreed.line_id,
            "action": agreed.action,
            "product_id": line.product_id,
            "product_name": line.product_name,
            "quantity_before": Decimal(agreed.quantity_before) if agreed.quantity_before else None,
            "quantity_after": 0 if agreed.action == "remove" else line.quantity,
            "start_date": special.start_date,
            "end_date": special.end_date,
            "price_after": amount(line.net),
            "credit": amount(agreed.credit),
            "difference": amount(line.total),
        }
        if committed := usage_view(line.usage, quote.version.currency).get("commitment"):
            view["commitment"] = committed
        found.append(view)
    return found


def no_change(agreement: Agreement, kind: OrderKind, effective: date) -> ChangeView:
    """The answer where a change would change nothing; no quote was made."""
    return {
        "quote_id": None,
        "number": None,
        "version": None,
        "status": None,
        "kind": kind,
        "agreement_id": agreement.id,
        "effective_date": effective,
        "currency": agreement.currency,
        "lines": [],
        "net": 0,
        "tax_total": 0,
        "total": 0,
        "arr_change": 0,
        "warnings": [],
        "outcome": "no_change",
        "message": "Nothing would change, so no quote was made.",
        "next_call": next_call("agreement_get", agreement_id=agreement.id),
    }


def _account(tx: Tx, account_id: str) -> tuple[str, str]:
    account = tables.account
    query = sa.select(account.c.name, account.c.time_zone).where(tx.own(account), account.c.id == account_id)
    row = tx.connection.execute(query).one()
    return row.name, row.time_zone
