"""How a quote looks from outside: the answers of its commands, one quote in full, and pages of quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, nearest
from cpq.base.money import Amount, amount
from cpq.domain.pricing.request import Segment, mean_quantity
from cpq.domain.pricing.result import PricedLine, PricedQuote, unit_price
from cpq.domain.quotes.draft_changes import line_id
from cpq.domain.quotes.lifecycle import MORTAL, status_at
from cpq.services.catalog.accounts import account_has
from cpq.services.paging import Pagination, pagination
from cpq.services.quotes import repository
from cpq.services.quotes.composition import Composition
from cpq.services.quotes.policy_check import PolicyViolation, Verdict
from cpq.services.quotes.repository import Quote
from cpq.storage.schema import QUOTE_STATUSES, account, quote
from cpq.storage.statements import AnyRow


class CreatedLine(TypedDict):
    line_id: str
    product_id: str
    product_name: str
    quantity: int
    unit_price: Amount
    discount_pct: Amount
    subtotal: Amount


class CreatedQuote(TypedDict):
    quote_id: str
    version: int
    edit: int
    status: str
    account_id: str
    currency: str
    idempotency_key: str | None
    line_items: list[CreatedLine]
    created_at: datetime
    warnings: list[str]
    outcome: str
    message: str


class QuoteHeader(TypedDict):
    id: str
    version: int
    edit: int
    account_id: str
    account_name: str
    deal_id: str | None
    status: str
    reason: str | None
    """Why it was cancelled, declined or superseded, or which option sets are void."""
    currency: str
    term_months: int | None
    start_date: date | None
    end_date: date | None
    valid_until: date
    payment_terms: str
    notes: str | None
    option_set: str | None
    tax_note: str | None
    created_at: datetime
    created_by: str


class QuoteLine(CreatedLine):
    discount_amount: Amount
    line_total: Amount
    billing_period: str
    attributes: dict[str, Any]
    notes: str | None
    option_set: str | None
    ramp: NotRequired[list[RampSegment]]


class RampSegment(TypedDict):
    months: int
    quantity: int | None
    uplift_pct: Amount


class Totals(TypedDict):
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    priced_at: datetime | None


class QuoteDetail(TypedDict):
    quote: QuoteHeader
    line_items: list[QuoteLine]
    pricing: NotRequired[Totals]


class LinePrice(TypedDict):
    line_id: str
    product_id: str
    product_name: str
    quantity: int
    base_unit_price: Amount
    unit_price: Amount
    subtotal_before_discount: Amount
    discount_pct: Amount
    discount_amount: Amount
    line_total: Amount


class OptionSetTotals(TypedDict):
    option_set: str
    is_selected: bool
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    line_pricing: list[LinePrice]


class PricedQuoteView(TypedDict):
    quote_id: str
    version: int
    edit: int
    status: str
    pricing: Totals
    line_pricing: list[LinePrice]
    approval_required: bool
    policy_violations: list[PolicyViolation]
    stored: bool
    outcome: str
    fingerprint: str
    option_sets: NotRequired[list[OptionSetTotals]]


class QuoteSummary(TypedDict):
    id: str
    version: int
    account_id: str
    account_name: str
    status: str
    currency: str
    total: Amount
    valid_until: date
    created_at: datetime


class QuotePage(TypedDict):
    items: list[QuoteSummary]
    pagination: Pagination


class QuoteMoved(TypedDict):
    """What every other change of a quote answers."""

    quote_id: str
    version: int
    edit: int
    status: str
    total: Amount
    currency: str
    valid_until: date
    outcome: str
    message: str
    warnings: NotRequired[list[str]]


def get(tx: Tx, quote_id: str, *, include_pricing: bool, version: int | None = None) -> QuoteDetail:
    """One quote with its lines, the current version unless another is asked for. Three queries, however many lines."""
    return detail(tx, repository.load(tx, quote_id, version=version), include_pricing=include_pricing)


def detail(tx: Tx, found: Quote, *, include_pricing: bool) -> QuoteDetail:
    """A quote that was loaded already, in full."""
    root, chosen = found.root, found.version
    is_current = chosen.version == root.version
    status = found.status if is_current else status_at(chosen.status, chosen.expires_at, tx.now)
    view: QuoteDetail = {
        "quote": {
            "id": root.id,
            "version": chosen.version,
            "edit": root.edit,
            "account_id": root.account_id,
            "account_name": root.account_name,
            "deal_id": chosen.deal_id,
            "status": status,
            "reason": chosen.reason,
            "currency": root.currency,
            "term_months": chosen.term_months,
            "start_date": chosen.start_date,
            "end_date": chosen.end_date,
            "valid_until": chosen.valid_until,
            "payment_terms": chosen.payment_terms,
            "notes": chosen.notes,
            "option_set": chosen.option_set,
            "tax_note": chosen.tax_note,
            "created_at": root.created_at,
            "created_by": root.created_by,
        },
        "line_items": [_line(root.id, row) for row in found.lines],
    }
    if include_pricing:
        view["pricing"] = {
            "subtotal": amount(chosen.subtotal),
            "discount_total": amount(chosen.discount_total),
            "tax_total": amount(chosen.tax_total),
            "total": amount(chosen.total),
            "priced_at": chosen.priced_at,
        }
    return view


def list_quotes(
    tx: Tx, *, account_id: str | None, status: str | None, limit: int, page: int, query: str | None = None
) -> QuotePage:
    """One page of quotes, newest first; `query` is the beginning of an id, a deal, or words of the account's name."""
    if status is not None and status not in QUOTE_STATUSES:
        raise bad_field(
            "/status",
            f"{status!r} is not a status of a quote.",
            allowed=list(QUOTE_STATUSES),
            nearest=nearest(status, QUOTE_STATUSES) or None,
        )
    mine = [tx.own(quote)]
    if account_id is not None:
        mine.append(quote.c.account_id == account_id)
    if status is not None:
        mine.append(_has_status(tx, status))
    if query:
        named = sa.select(account.c.id).where(tx.own(account), *account_has(query))
        mine.append(_starts_with(tx, query) | (quote.c.deal_id == query) | quote.c.account_id.in_(named))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(quote).where(*mine)) or 0
    chosen = sa.select(quote).where(*mine).order_by(quote.c.created_at.desc(), quote.c.id)
    rows = tx.connection.execute(chosen.limit(limit).offset((page - 1) * limit)).all()
    names = _account_names(tx, {row.account_id for row in rows})
    items = [_summary(tx, row, names[row.account_id]) for row in rows]
    return {"items": items, "pagination": pagination(total, page, limit)}


def created(tx: Tx, quote_id: str, composed: Composition, idempotency_key: str | None) -> CreatedQuote:
    by_number = composed.priced_lines
    return {
        "quote_id": quote_id,
        "version": 1,
        "edit": 1,
        "status": "draft",
        "account_id": composed.draft.account_id,
        "currency": composed.draft.currency,
        "idempotency_key": idempotency_key,
        "line_items": [
            {
                "line_id": line_id(quote_id, line.number),
                "product_id": line.product_id,
                "product_name": composed.products[line.product_id].name,
                "quantity": line.quantity,
                "unit_price": amount(by_number[line.number].base_unit_price),
                "discount_pct": amount(line.discount_pct),
                "subtotal": amount(by_number[line.number].regular),
            }
            for line in composed.draft.lines
        ],
        "created_at": tx.now,
        "warnings": list(composed.advice),
        "outcome": "created",
        "message": "Quote created successfully",
    }


def priced(
    tx: Tx, found: Quote, composed: Composition, verdict: Verdict, *, priced_at: datetime, outcome: str
) -> PricedQuoteView:
    """The answer to a price that is stored."""
    names = {id_: product.name for id_, product in composed.products.items()}
    sets = [(one.name, one.priced) for one in composed.sets]
    view = _priced(tx, found, names, sets, verdict, priced_at)
    return {**view, "stored": True, "outcome": outcome, "fingerprint": composed.fingerprint}


def evaluated(
    tx: Tx, found: Quote, names: Sequence[str], priced_sets: Sequence[PricedQuote], verdict: Verdict
) -> PricedQuoteView:
    """The answer to a price that is not stored: the fingerprint is that of what stays stored."""
    products = {row.product_id: row.product_name for row in found.lines}
    sets = list(zip(names, priced_sets, strict=True))
    view = _priced(tx, found, products, sets, verdict, found.version.priced_at)
    return {**view, "stored": False, "outcome": "no_change", "fingerprint": found.version.fingerprint}


def moved(found: Quote, message: str, *, outcome: str = "changed", warnings: Sequence[str] | None = None) -> QuoteMoved:
    root = found.root
    view: QuoteMoved = {
        "quote_id": root.id,
        "version": root.version,
        "edit": root.edit,
        "status": found.status,
        "total": amount(root.total),
        "currency": root.currency,
        "valid_until": root.valid_until,
        "outcome": outcome,
        "message": message,
    }
    if warnings is not None:
        view["warnings"] = list(warnings)
    return view


def _line(quote_id: str, row: AnyRow) -> QuoteLine:
    line: QuoteLine = {
        "line_id": line_id(quote_id, row.number),
        "product_id": row.product_id,
        "product_name": row.product_name,
        "quantity": row.quantity,
        "unit_price": amount(unit_price(row.regular, *_mean(row))),
        "discount_pct": amount(row.discount_pct),
        "discount_amount": amount(row.regular - row.net),
        "subtotal": amount(row.regular),
        "line_total": amount(row.net),
        "billing_period": row.billing_period,
        "attributes": row.attributes,
        "notes": row.notes,
        "option_set": row.option_set,
    }
    if row.ramp:
        line["ramp"] = [
            {"months": months, "quantity": quantity, "uplift_pct": amount(uplift)}
            for months, quantity, _, uplift in row.ramp
        ]
    return line


def _mean(row: AnyRow) -> tuple[int, int]:
    return mean_quantity(row.quantity, [Segment(*segment) for segment in row.ramp])


def _has_status(tx: Tx, status: str) -> sa.ColumnElement[bool]:
    is_over = quote.c.expires_at <= tx.now
    if status == "expired":
        return (quote.c.status == "expired") | (quote.c.status.in_(MORTAL) & is_over)
    is_status = quote.c.status == status
    return is_status & ~is_over if status in MORTAL else is_status


def _starts_with(tx: Tx, query: str) -> sa.ColumnElement[bool]:
    """Whether the id begins so; by the order of the key on SQLite, which has no use of it for LIKE."""
    if tx.connection.dialect.name == "sqlite":
        return (quote.c.id >= query) & (quote.c.id < f"{query}\uffff")
    return quote.c.id.startswith(query, autoescape=True)


def _account_names(tx: Tx, ids: set[str]) -> dict[str, str]:
    query = sa.select(account.c.id, account.c.name)
    rows = tx.connection.execute(query.where(tx.own(account), account.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


def _summary(tx: Tx, row: AnyRow, account_name: str) -> QuoteSummary:
    return {
        "id": row.id,
        "version": row.version,
        "account_id": row.account_id,
        "account_name": account_name,
        "status": status_at(row.status, row.expires_at, tx.now),
        "currency": row.currency,
        "total": amount(row.total),
        "valid_until": row.valid_until,
        "created_at": row.created_at,
    }


def _priced(
    tx: Tx,
    found: Quote,
    names: Mapping[str, str],
    sets: Sequence[tuple[str, PricedQuote]],
    verdict: Verdict,
    priced_at: datetime | None,
) -> PricedQuoteView:
    selected = sets[0][1]
    view: PricedQuoteView = {
        "quote_id": found.id,
        "version": found.root.version,
        "edit": found.root.edit,
        "status": found.status,
        "pricing": _totals(selected, priced_at),
        "line_pricing": [_line_price(found.id, line, names) for line in selected.lines],
        "approval_required": verdict.approval_required,
        "policy_violations": verdict.view(tx),
        "stored": False,
        "outcome": "no_change",
        "fingerprint": "",
    }
    if len(sets) > 1:
        view["option_sets"] = [
            {
                "option_set": name,
                "is_selected": position == 0,
                "subtotal": amount(one.subtotal),
                "discount_total": amount(one.discount_total),
                "tax_total": amount(one.tax_total),
                "total": amount(one.total),
                "line_pricing": [_line_price(found.id, line, names) for line in one.lines],
            }
            for position, (name, one) in enumerate(sets)
        ]
    return view


def _totals(one: PricedQuote, priced_at: datetime | None) -> Totals:
    return {
        "subtotal": amount(one.subtotal),
        "discount_total": amount(one.discount_total),
        "tax_total": amount(one.tax_total),
        "total": amount(one.total),
        "priced_at": priced_at,
    }


def _line_price(quote_id: str, line: PricedLine, names: Mapping[str, str]) -> LinePrice:
    return {
        "line_id": line_id(quote_id, int(line.id)),
        "product_id": line.product_id,
        "product_name": names[line.product_id],
        "quantity": line.quantity,
        "base_unit_price": amount(line.base_unit_price),
        "unit_price": amount(line.unit_price),
        "subtotal_before_discount": amount(line.regular),
        "discount_pct": amount(line.discount),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net),
    }
