"""Views of quotes: the answers of commands, one quote in full, and pages of quotes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, nearest
from cpq.base.money import Amount, amount
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.pricing.period_prices import PeriodPrice, period_prices, written
from cpq.domain.pricing.request import PERIOD_MONTHS, Request
from cpq.domain.pricing.result import PricedLine, PricedQuote, TaxGroup
from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus, status_at
from cpq.domain.quotes.quote import Pricing, Quote, QuoteVersion, line_id
from cpq.domain.quotes.quote import QuoteLine as StoredLine
from cpq.services.catalog.accounts import account_has
from cpq.services.pagination import Pagination, pagination
from cpq.services.quotes import repository
from cpq.services.quotes.composition import Composition
from cpq.services.quotes.policy_check import PolicyViolation, violations_view
from cpq.storage.schema import tables


class PeriodView(TypedDict):
    """How a recurring price is made up; null where a line has no price for one billing period."""

    unit_price_per_period: Amount | None
    """`unit_price`, which is for the whole term, for one billing period."""
    billing_period: str
    periods: Amount | str | None
    """Exact: a number of up to 6 decimals, else a text such as `12 16/31`."""


class CreatedLine(PeriodView):
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
    attributes: dict[str, Any]
    notes: str | None
    option_set: str | None
    ramp: NotRequired[list[RampSegment]]


class RampSegment(TypedDict):
    months: int
    quantity: int | None
    uplift_pct: Amount


class TotalsView(TypedDict):
    """The totals that every view of a price has."""

    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount


class TaxGroupView(TypedDict):
    """The tax of all lines with one category code and rate; the groups add up to `tax_total`."""

    category_code: str | None
    """S, Z, E, AE, K, G or O, by EN 16931; None in prices that were stored before there were codes."""
    category: str
    """The seller's own tax categories in the group."""
    rate: Amount
    """In percent."""
    base: Amount
    tax: Amount
    reason: NotRequired[str]
    """Why no tax is charged."""


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
    tax_groups: NotRequired[list[TaxGroupView]]


class LinePrice(PeriodView):
    line_id: str
    product_id: str
    product_name: str
    quantity: int
    base_unit_price: Amount
    unit_price: Amount
    base_unit_price_per_period: Amount | None
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
    tax_groups: list[TaxGroupView]
    line_pricing: list[LinePrice]


class PricedQuoteView(TypedDict):
    quote_id: str
    version: int
    edit: int
    status: str
    pricing: Totals
    tax_groups: list[TaxGroupView]
    line_pricing: list[LinePrice]
    approval_required: bool
    required_roles: list[str]
    """The roles that approval_request asks, in the order in which they decide."""
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
    """The answer to every other change of a quote."""

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


class _Listed(NamedTuple):
    """The columns that a page of quotes reads."""

    id: str
    version: int
    account_id: str
    status: str
    currency: str
    total: int
    valid_until: date
    expires_at: datetime
    lapses_at: datetime | None
    created_at: datetime


def get(tx: Tx, quote_id: str, *, include_pricing: bool, version: int | None = None) -> QuoteDetail:
    """One quote with its lines, by default its current version. Five queries at most, however many lines."""
    return detail(tx, repository.load(tx, quote_id, version=version), include_pricing=include_pricing)


def detail(tx: Tx, quote: Quote, *, include_pricing: bool, pricings: Sequence[Pricing] | None = None) -> QuoteDetail:
    """The full view of a loaded quote; `pricings` are its prices, if the caller has them already."""
    version = quote.version
    prices = _stored_period_prices(tx, quote, pricings)
    view: QuoteDetail = {
        "quote": {
            "id": quote.id,
            "version": version.number,
            "edit": quote.edit,
            "account_id": quote.account_id,
            "account_name": quote.account_name,
            "deal_id": version.deal_id,
            "status": quote.status if quote.is_current else version.status_at(tx.now),
            "reason": version.reason or _lapsed(quote),
            "currency": quote.currency,
            "term_months": version.term_months,
            "start_date": version.start_date,
            "end_date": version.end_date,
            "valid_until": version.valid_until,
            "payment_terms": version.payment_terms,
            "notes": version.notes,
            "option_set": version.option_set,
            "tax_note": version.tax_note,
            "created_at": quote.created_at,
            "created_by": quote.created_by,
        },
        "line_items": [_line(quote.id, line, prices.get(str(line.number))) for line in quote.lines],
    }
    if include_pricing:
        view["pricing"] = {**totals_view(version), "priced_at": version.priced_at}
        stored = pricings[0].amounts.tax_groups if pricings else repository.tax_groups(tx, quote)
        view["tax_groups"] = tax_groups(stored)
    return view


def list_quotes(
    tx: Tx, *, account_id: str | None, status: str | None, limit: int, page: int, query: str | None = None
) -> QuotePage:
    """One page of quotes, newest first; `query` is the start of an id, a deal, or words of the account's name."""
    known = [word.value for word in QuoteStatus]
    if status is not None and status not in known:
        raise bad_field(
            "/status",
            f"{status!r} is not a status of a quote.",
            allowed=known,
            nearest=nearest(status, known) or None,
        )
    mine = [tx.own(tables.quote)]
    if account_id is not None:
        mine.append(tables.quote.c.account_id == account_id)
    if status is not None:
        mine.append(_has_status(tx, QuoteStatus(status)))
    if query:
        named = sa.select(tables.account.c.id).where(tx.own(tables.account), *account_has(query))
        mine.append(_starts_with(tx, query) | (tables.quote.c.deal_id == query) | tables.quote.c.account_id.in_(named))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.quote).where(*mine)) or 0
    listed = sa.select(*(tables.quote.c[name] for name in _Listed._fields)).where(*mine)
    listed = listed.order_by(tables.quote.c.created_at.desc(), tables.quote.c.id)
    rows = list(map(_Listed._make, tx.connection.execute(listed.limit(limit).offset((page - 1) * limit))))
    names = _account_names(tx, {row.account_id for row in rows})
    items = [_summary(tx, row, names[row.account_id]) for row in rows]
    return {"items": items, "pagination": pagination(total, page, limit)}


def created(tx: Tx, quote_id: str, composed: Composition, idempotency_key: str | None) -> CreatedQuote:
    by_number = composed.priced_lines
    prices = period_prices(composed.sets[0].request, by_number.values())
    return {
        "quote_id": quote_id,
        "version": 1,
        "edit": 1,
        "status": QuoteStatus.DRAFT,
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
                **period_view(by_number[line.number].billing_period, prices.get(str(line.number))),
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
    tx: Tx, quote: Quote, composed: Composition, decision: PolicyDecision, *, priced_at: datetime, outcome: str
) -> PricedQuoteView:
    """The answer to a price that is stored."""
    names = {id_: product.name for id_, product in composed.products.items()}
    sets = [(one.name, one.request, one.priced) for one in composed.sets]
    view = _priced(tx, quote, names, sets, decision, priced_at)
    return {**view, "stored": True, "outcome": outcome, "fingerprint": composed.fingerprint}


def evaluated(
    tx: Tx, quote: Quote, stored: Sequence[Pricing], priced_sets: Sequence[PricedQuote], decision: PolicyDecision
) -> PricedQuoteView:
    """The answer to a price that is not stored; the fingerprint is that of the stored price."""
    products = {row.product_id: row.product_name for row in quote.lines}
    sets = [(one.option_set, one.request, priced) for one, priced in zip(stored, priced_sets, strict=True)]
    view = _priced(tx, quote, products, sets, decision, quote.version.priced_at)
    return {**view, "stored": False, "outcome": "no_change", "fingerprint": quote.version.fingerprint}


def moved(quote: Quote, message: str, *, outcome: str = "changed", warnings: Sequence[str] | None = None) -> QuoteMoved:
    view: QuoteMoved = {
        "quote_id": quote.id,
        "version": quote.current_version,
        "edit": quote.edit,
        "status": quote.status,
        "total": amount(quote.total),
        "currency": quote.currency,
        "valid_until": quote.valid_until,
        "outcome": outcome,
        "message": message,
    }
    if warnings is not None:
        view["warnings"] = list(warnings)
    return view


def totals_view(price: PricedQuote | QuoteVersion) -> TotalsView:
    return {
        "subtotal": amount(price.subtotal),
        "discount_total": amount(price.discount_total),
        "tax_total": amount(price.tax_total),
        "total": amount(price.total),
    }


def period_view(billing_period: str, price: PeriodPrice | None) -> PeriodView:
    return {
        "unit_price_per_period": None if price is None else amount(price.unit_price),
        "billing_period": billing_period,
        "periods": None if price is None else written(price.periods),
    }


def tax_groups(groups: Iterable[TaxGroup]) -> list[TaxGroupView]:
    """The tax groups as every answer, document and page shows them."""
    return [_tax_group(group) for group in groups]


def _tax_group(group: TaxGroup) -> TaxGroupView:
    view: TaxGroupView = {
        "category_code": group.code,
        "category": group.category,
        "rate": amount(group.rate),
        "base": amount(group.base),
        "tax": amount(group.tax),
    }
    if group.reason:
        view["reason"] = group.reason
    return view


def _stored_period_prices(tx: Tx, quote: Quote, pricings: Sequence[Pricing] | None) -> dict[str, PeriodPrice]:
    """By line number as text. The stored prices are read only where a line recurs."""
    if all(line.billing_period not in PERIOD_MONTHS for line in quote.lines):
        return {}
    pricings = pricings or repository.pricings(tx, quote)
    lines: dict[str, PricedLine] = {}
    for pricing in pricings:  # The selected option set first.
        for line in pricing.result.lines:
            lines.setdefault(line.id, line)
    return period_prices(pricings[0].request, lines.values())


def _line(quote_id: str, line: StoredLine, price: PeriodPrice | None) -> QuoteLine:
    recurring = period_view(line.billing_period, price)
    view: QuoteLine = {
        "line_id": line_id(quote_id, line.number),
        "product_id": line.product_id,
        "product_name": line.product_name,
        "quantity": line.quantity,
        "unit_price": amount(line.unit_price),
        "unit_price_per_period": recurring["unit_price_per_period"],
        "billing_period": line.billing_period,
        "periods": recurring["periods"],
        "discount_pct": amount(line.discount_pct),
        "discount_amount": amount(line.regular - line.net),
        "subtotal": amount(line.regular),
        "line_total": amount(line.net),
        "attributes": dict(line.attributes),
        "notes": line.notes,
        "option_set": line.option_set,
    }
    if line.ramp:
        view["ramp"] = [
            {"months": segment.months, "quantity": segment.quantity, "uplift_pct": amount(segment.uplift)}
            for segment in line.ramp
        ]
    return view


def _lapsed(quote: Quote) -> str | None:
    at = quote.version.lapses_at
    if at is None or not quote.has_lapsed:
        return None
    return f"Nobody decided by {at:%Y-%m-%d %H:%M} UTC; the quote is a draft again, and nothing was approved."


def _has_status(tx: Tx, status: QuoteStatus) -> sa.ColumnElement[bool]:
    is_over = tables.quote.c.expires_at <= tx.now
    is_status = tables.quote.c.status == status
    lapses_at = tables.quote.c.lapses_at
    if status.is_draft:
        return is_status | ((tables.quote.c.status == QuoteStatus.PENDING_APPROVAL) & (lapses_at <= tx.now))
    if status.awaits_approval:
        return is_status & (lapses_at.is_(None) | (lapses_at > tx.now))
    if status is QuoteStatus.EXPIRED:
        return is_status | (tables.quote.c.status.in_(EXPIRING) & is_over)
    return is_status & ~is_over if status.can_expire else is_status


def _starts_with(tx: Tx, query: str) -> sa.ColumnElement[bool]:
    """Whether the id starts with the text; by a range on SQLite, which does not use the index for LIKE."""
    if tx.connection.dialect.name == "sqlite":
        return (tables.quote.c.id >= query) & (tables.quote.c.id < f"{query}\uffff")
    return tables.quote.c.id.startswith(query, autoescape=True)


def _account_names(tx: Tx, ids: set[str]) -> dict[str, str]:
    query = sa.select(tables.account.c.id, tables.account.c.name)
    rows = tx.connection.execute(query.where(tx.own(tables.account), tables.account.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


def _summary(tx: Tx, row: _Listed, account_name: str) -> QuoteSummary:
    return {
        "id": row.id,
        "version": row.version,
        "account_id": row.account_id,
        "account_name": account_name,
        "status": status_at(QuoteStatus(row.status), row.expires_at, tx.now, row.lapses_at),
        "currency": row.currency,
        "total": amount(row.total),
        "valid_until": row.valid_until,
        "created_at": row.created_at,
    }


def _priced(
    tx: Tx,
    quote: Quote,
    names: Mapping[str, str],
    sets: Sequence[tuple[str, Request, PricedQuote]],
    decision: PolicyDecision,
    priced_at: datetime | None,
) -> PricedQuoteView:
    _, asked, selected = sets[0]
    view: PricedQuoteView = {
        "quote_id": quote.id,
        "version": quote.current_version,
        "edit": quote.edit,
        "status": quote.status,
        "pricing": {**totals_view(selected), "priced_at": priced_at},
        "tax_groups": tax_groups(selected.tax_groups),
        "line_pricing": _line_prices(quote.id, asked, selected, names),
        "approval_required": decision.approval_required,
        "required_roles": list(decision.required_roles),
        "policy_violations": violations_view(tx, decision),
        "stored": False,
        "outcome": "no_change",
        "fingerprint": "",
    }
    if len(sets) > 1:
        view["option_sets"] = [
            {
                "option_set": name,
                "is_selected": position == 0,
                **totals_view(one),
                "tax_groups": tax_groups(one.tax_groups),
                "line_pricing": _line_prices(quote.id, request, one, names),
            }
            for position, (name, request, one) in enumerate(sets)
        ]
    return view


def _line_prices(quote_id: str, request: Request, priced: PricedQuote, names: Mapping[str, str]) -> list[LinePrice]:
    prices = period_prices(request, priced.lines)
    return [_line_price(quote_id, line, names, prices.get(line.id)) for line in priced.lines]


def _line_price(quote_id: str, line: PricedLine, names: Mapping[str, str], price: PeriodPrice | None) -> LinePrice:
    return {
        "line_id": line_id(quote_id, int(line.id)),
        "product_id": line.product_id,
        "product_name": names[line.product_id],
        "quantity": line.quantity,
        "base_unit_price": amount(line.base_unit_price),
        "unit_price": amount(line.unit_price),
        "base_unit_price_per_period": None if price is None else amount(price.unit_price),
        **period_view(line.billing_period, price and price._replace(unit_price=price.net_unit_price)),
        "subtotal_before_discount": amount(line.regular),
        "discount_pct": amount(line.discount),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net),
    }
