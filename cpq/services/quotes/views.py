"""Views of quotes: the answers of commands, and one quote in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.money import Amount, amount
from cpq.base.rounding import written
from cpq.domain.billing_periods import is_recurring
from cpq.domain.policy.evaluation import PolicyDecision
from cpq.domain.pricing.discounts import percent_off, together
from cpq.domain.pricing.overrides import has_own_price
from cpq.domain.pricing.period_prices import PeriodPrice, period_prices
from cpq.domain.pricing.rate_cards import rate_cards
from cpq.domain.pricing.request import Request, Segment
from cpq.domain.pricing.result import PricedLine, PricedQuote, TaxGroup
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.domain.quotes.quote import Pricing, Quote, QuoteVersion, line_id
from cpq.domain.quotes.quote import QuoteLine as StoredLine
from cpq.services.quotes import repository
from cpq.services.quotes.answer_fields import (
    ComponentsView,
    DiscountPct,
    DiscountView,
    LineDiscountPct,
    Number,
    OrderMade,
    RequestedDiscountAmount,
    RequestedDiscountPct,
    discount_view,
)
from cpq.services.quotes.composition import Composition
from cpq.services.quotes.policy_check import PolicyViolation, violations_view
from cpq.services.quotes.seller_views import NO_TERMS, InternalView, SpecialView, credit_of, internal_view, special_view
from cpq.services.usage_views import NOT_METERED, UsageView, usage_view


class PeriodView(TypedDict):
    """How a recurring price is made up; null where a line has no price for one billing period."""

    unit_price_per_period: Amount | None
    """`unit_price`, which is for the whole term, for one billing period."""
    billing_period: str
    periods: Amount | str | None
    """Exact: a number of up to 6 decimals, else a text such as `12 16/31`."""
    selling_model: str
    """Which of the product's prices it has: `monthly`, `monthly_evergreen`, `yearly:prepaid`."""


class CreatedLine(PeriodView, SpecialView, UsageView):
    line_id: str
    product_id: str
    product_name: str
    quantity: Amount
    unit_price: Amount
    discount_pct: DiscountPct
    line_discount_pct: LineDiscountPct
    subtotal: Amount


class CreatedQuote(DiscountView):
    quote_id: str
    number: Number
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


class QuoteHeader(InternalView):
    id: str
    number: Number
    version: int
    edit: int
    account_id: str
    account_name: str
    deal_id: str | None
    status: str
    reason: str | None
    """Why it was cancelled, declined or superseded, or expired as a draft, or which option sets are void."""
    currency: str
    term_months: int | None
    start_date: date | None
    end_date: date | None
    valid_until: date
    requested_valid_until: Annotated[
        date | None, Described("The day that was asked for; null where `valid_until` follows from the policies.")
    ]
    payment_terms: str
    notes: str | None
    option_set: str | None
    tax_note: str | None
    created_at: datetime
    created_by: str
    owner: Annotated[str | None, Described("The seller behind it, also when an agent made it.")]


class QuoteLine(CreatedLine, InternalView, ComponentsView):
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
    unit_price: NotRequired[Annotated[Amount, Described("Given instead of the regular price, for one period.")]]
    discount_pct: NotRequired[Amount]


class TotalsView(TypedDict):
    """The totals that every view of a price has."""

    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount


class TaxGroupView(TypedDict):
    """One tax of all lines with one category code and rate; the groups add up to `tax_total`."""

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
    tax_name: NotRequired[str]
    """Where lines bear several taxes, which one; its base may include another."""


class Totals(TotalsView):
    priced_at: datetime | None


class QuoteDetail(DiscountView):
    quote: QuoteHeader
    line_items: list[QuoteLine]
    warnings: list[str]
    pricing: NotRequired[Totals]
    tax_groups: NotRequired[list[TaxGroupView]]


class LinePrice(PeriodView, SpecialView, UsageView):
    line_id: str
    product_id: str
    product_name: str
    quantity: Amount
    base_unit_price: Amount
    unit_price: Amount
    base_unit_price_per_period: Amount | None
    subtotal_before_discount: Amount
    discount_pct: DiscountPct
    line_discount_pct: LineDiscountPct
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


class PricedQuoteView(DiscountView):
    quote_id: str
    number: Number
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
    warnings: list[str]
    stored: Annotated[bool, Described("Whether this price is the quote's price now.")]
    outcome: str
    message: str
    next_call: NotRequired[Annotated[dict[str, Any], Described("The call that leads to storing this price.")]]
    fingerprint: Annotated[str, Described("Of the price that is shown.")]
    option_sets: NotRequired[list[OptionSetTotals]]


class QuoteMoved(OrderMade):
    """The answer to every other change of a quote."""

    quote_id: str
    number: Number
    version: int
    edit: int
    status: str
    total: Amount
    currency: str
    valid_until: date
    requested_discount_pct: NotRequired[RequestedDiscountPct]
    """Absent when the version that the call is about is not the current one."""
    requested_discount_amount: NotRequired[RequestedDiscountAmount]
    outcome: str
    message: str
    warnings: NotRequired[list[str]]


@dataclass(frozen=True)
class Shown:
    """A price as an answer shows it, stored or not: the option sets, the selected one first."""

    draft: Draft
    names: Mapping[str, str]
    """The names of the products by their ids."""
    selling_models: Mapping[int, str]
    """By the numbers of the lines."""
    sets: Sequence[tuple[str, Request, PricedQuote]]
    warnings: Sequence[str]
    fingerprint: str

    @classmethod
    def of(cls, composed: Composition) -> Shown:
        names = {id_: product.name for id_, product in composed.products.items()}
        sets = [(one.name, one.request, one.priced) for one in composed.sets]
        models = composed.selling_models
        return cls(composed.draft, names, models, sets, composed.warnings, composed.fingerprint)


def get(tx: Tx, quote_id: str, *, include_pricing: bool, version: int | None = None) -> QuoteDetail:
    """One quote with its lines, by default its current version. Five queries at most, however many lines."""
    return detail(tx, repository.load(tx, quote_id, version=version), include_pricing=include_pricing)


def detail(tx: Tx, quote: Quote, *, include_pricing: bool, pricings: Sequence[Pricing] | None = None) -> QuoteDetail:
    """The full view of a loaded quote; `pricings` are its prices, if the caller has them already."""
    version = quote.version
    prices, of_usage = _stored_period_prices(tx, quote, pricings)
    view: QuoteDetail = {
        "quote": {
            "id": quote.id,
            "number": quote.number,
            "version": version.number,
            "edit": quote.edit,
            "account_id": quote.account_id,
            "account_name": quote.account_name,
            "deal_id": version.deal_id,
            "status": quote.status if quote.is_current else version.status_at(tx.now),
            "reason": version.reason or _lapsed(quote),
            "currency": version.currency,
            "term_months": version.term_months,
            "start_date": version.start_date,
            "end_date": quote.end_date,
            "valid_until": version.valid_until,
            "requested_valid_until": version.requested_valid_until,
            "payment_terms": version.payment_terms,
            "notes": version.notes,
            "option_set": version.option_set,
            "tax_note": version.tax_note,
            "created_at": quote.created_at,
            "created_by": quote.created_by,
            "owner": quote.owner,
            **internal_view(tx, version.internal),
        },
        "requested_discount_pct": amount(version.requested_discount),
        "line_items": [
            _line(tx, quote, line, prices.get(str(line.number)), of_usage.get(str(line.number))) for line in quote.lines
        ],
        "warnings": list(version.warnings),
    }
    if version.requested_amount:
        view["requested_discount_amount"] = amount(version.requested_amount)
    if include_pricing:
        view["pricing"] = {**totals_view(version), "priced_at": version.priced_at}
        stored = pricings[0].amounts.tax_groups if pricings else repository.tax_groups(tx, quote)
        view["tax_groups"] = tax_groups(stored)
    return view


def created(tx: Tx, quote_id: str, number: str, composed: Composition, idempotency_key: str | None) -> CreatedQuote:
    by_number = composed.priced_lines
    prices, cards = period_prices(composed.sets[0].request, by_number.values()), composed.rate_cards
    return {
        "quote_id": quote_id,
        "number": number,
        "version": 1,
        "edit": 1,
        "status": QuoteStatus.DRAFT,
        "account_id": composed.draft.account_id,
        "currency": composed.draft.currency,
        **discount_view(composed.draft.requested_discount, composed.draft.requested_amount),
        "idempotency_key": idempotency_key,
        "line_items": [
            {
                "line_id": line_id(quote_id, line.number),
                "product_id": line.product_id,
                "product_name": composed.products[line.product_id].name,
                "quantity": line.quantity,
                "unit_price": amount(by_number[line.number].base_unit_price),
                **period_view(
                    by_number[line.number].billing_period,
                    prices.get(str(line.number)),
                    composed.selling_models[line.number],
                ),
                "discount_pct": amount(by_number[line.number].discount),
                "line_discount_pct": amount(line.discount_pct),
                "subtotal": amount(by_number[line.number].regular - (credit_of(line.special) if line.special else 0)),
                **(special_view(line.special) if line.special else NO_TERMS),
                **(usage_view(cards.get(line.number), composed.draft.currency) if cards else NOT_METERED),
            }
            for line in composed.draft.lines
        ],
        "created_at": tx.now,
        "warnings": list(composed.warnings),
        "outcome": "created",
        "message": "Quote created successfully",
    }


def priced(
    tx: Tx, quote: Quote, composed: Composition, decision: PolicyDecision, *, priced_at: datetime, outcome: str
) -> PricedQuoteView:
    """The answer to a price that is stored."""
    return _priced(
        tx,
        quote,
        Shown.of(composed),
        decision,
        priced_at=priced_at,
        stored=True,
        outcome=outcome,
        message="This price is stored.",
    )


def evaluated(
    tx: Tx, quote: Quote, shown: Shown, decision: PolicyDecision, *, message: str, next_call: dict[str, Any]
) -> PricedQuoteView:
    """The answer to a price that is not stored; the message says so, and the next call leads to storing it."""
    is_stored_price = shown.fingerprint == quote.version.fingerprint
    priced_at = quote.version.priced_at if is_stored_price else None
    view = _priced(tx, quote, shown, decision, priced_at=priced_at, stored=False, outcome="no_change", message=message)
    return {**view, "next_call": next_call}


def moved(quote: Quote, message: str, *, outcome: str = "changed", warnings: Sequence[str] | None = None) -> QuoteMoved:
    view: QuoteMoved = {
        "quote_id": quote.id,
        "number": quote.number,
        "version": quote.current_version,
        "edit": quote.edit,
        "status": quote.status,
        "total": amount(quote.total),
        "currency": quote.currency,
        "valid_until": quote.valid_until,
        "outcome": outcome,
        "message": message,
    }
    if quote.is_current:
        view.update(discount_view(quote.version.requested_discount, quote.version.requested_amount))  # type: ignore[typeddict-item] # A part of it.
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


def period_view(billing_period: str, price: PeriodPrice | None, selling_model: str) -> PeriodView:
    return {
        "unit_price_per_period": None if price is None else amount(price.unit_price),
        "billing_period": billing_period,
        "periods": None if price is None else written(price.periods),
        "selling_model": selling_model,
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
    if group.name:
        view["tax_name"] = group.name
    return view


def _stored_period_prices(
    tx: Tx, quote: Quote, pricings: Sequence[Pricing] | None
) -> tuple[dict[str, PeriodPrice], dict[str, PricedLine]]:
    """By line number as text, and the prices of usage lines. The stored prices are read only where a line recurs."""
    if all(not is_recurring(line.billing_period) for line in quote.lines):
        return {}, {}
    pricings = pricings or repository.pricings(tx, quote)
    lines: dict[str, PricedLine] = {}
    for pricing in pricings:  # The selected option set first.
        for line in pricing.result.lines:
            lines.setdefault(line.id, line)
    of_usage = {id_: lines[id_] for line in quote.lines if line.usage and (id_ := str(line.number))}
    return period_prices(pricings[0].request, lines.values()), of_usage


def _line(tx: Tx, quote: Quote, line: StoredLine, price: PeriodPrice | None, priced: PricedLine | None) -> QuoteLine:
    recurring = period_view(line.billing_period, price, line.sold_as)
    view: QuoteLine = {
        "line_id": line_id(quote.id, line.number),
        "product_id": line.product_id,
        "product_name": line.product_name,
        "quantity": line.quantity,
        "unit_price": amount(line.unit_price),
        "unit_price_per_period": recurring["unit_price_per_period"],
        "billing_period": line.billing_period,
        "periods": recurring["periods"],
        "selling_model": recurring["selling_model"],
        "discount_pct": amount(_discount_of(quote, line, priced)),
        "line_discount_pct": amount(line.discount_pct),
        "discount_amount": amount(line.regular - line.net),
        "subtotal": amount(line.regular - line.credit),
        "line_total": amount(line.total),
        "attributes": dict(line.attributes),
        "notes": line.notes,
        "option_set": line.option_set,
    }
    if line.internal:
        view.update(internal_view(tx, line.internal))  # type: ignore[typeddict-item] # A part of it.
    if line.special:
        view.update(special_view(line.special, with_cost=tx.sees_margin))  # type: ignore[typeddict-item] # A part of it.
    if line.usage:
        view.update(usage_view(line.usage, quote.version.currency))  # type: ignore[typeddict-item] # A part of it.
    if line.components:
        view["components"] = [*line.components]  # type: ignore[list-item] # As stored.
    if line.ramp:
        view["ramp"] = [_segment(segment) for segment in line.ramp]
    return view


def _segment(segment: Segment) -> RampSegment:
    view: RampSegment = {
        "months": segment.months,
        "quantity": segment.quantity,
        "uplift_pct": amount(segment.uplift),
    }
    if segment.override is not None:
        view["unit_price"] = amount(segment.override)
    if segment.discount:
        view["discount_pct"] = amount(segment.discount)
    return view


def _discount_of(quote: Quote, line: StoredLine, priced: PricedLine | None) -> int:
    """As `line_discount_percents` has it, from what is stored of a line."""
    if priced is not None:
        return priced.discount
    own = line.special
    is_in_money = own and ((own.unit_price is not None and not own.custom) or own.discount_amount)
    if is_in_money or quote.version.requested_amount or any(has_own_price(one) for one in line.ramp):
        return percent_off(line.regular, line.net)
    return together(line.discount_pct, quote.version.requested_discount)


def _lapsed(quote: Quote) -> str | None:
    at = quote.version.lapses_at
    if at is None or not quote.has_lapsed:
        return None
    return f"Nobody decided by {at:%Y-%m-%d %H:%M} UTC; the quote is a draft again, and nothing was approved."


def _priced(
    tx: Tx,
    quote: Quote,
    shown: Shown,
    decision: PolicyDecision,
    *,
    priced_at: datetime | None,
    stored: bool,
    outcome: str,
    message: str,
) -> PricedQuoteView:
    _, asked, selected = shown.sets[0]
    view: PricedQuoteView = {
        "quote_id": quote.id,
        "number": quote.number,
        "version": quote.current_version,
        "edit": quote.edit,
        "status": quote.status,
        "requested_discount_pct": amount(shown.draft.requested_discount),
        "pricing": {**totals_view(selected), "priced_at": priced_at},
        "tax_groups": tax_groups(selected.tax_groups),
        "line_pricing": _line_prices(quote.id, asked, selected, shown),
        "approval_required": decision.approval_required,
        "required_roles": list(decision.required_roles),
        "policy_violations": violations_view(tx, decision),
        "warnings": list(shown.warnings),
        "stored": stored,
        "outcome": outcome,
        "message": message,
        "fingerprint": shown.fingerprint,
    }
    if shown.draft.requested_amount:
        view["requested_discount_amount"] = amount(shown.draft.requested_amount)
    if len(shown.sets) > 1:
        view["option_sets"] = [
            {
                "option_set": name,
                "is_selected": position == 0,
                **totals_view(one),
                "tax_groups": tax_groups(one.tax_groups),
                "line_pricing": _line_prices(quote.id, request, one, shown),
            }
            for position, (name, request, one) in enumerate(shown.sets)
        ]
    return view


def _line_prices(quote_id: str, request: Request, priced: PricedQuote, shown: Shown) -> list[LinePrice]:
    prices, cards = period_prices(request, priced.lines), rate_cards(request)
    own = {line.number: line for line in shown.draft.lines}
    return [
        _line_price(
            quote_id,
            line,
            shown.names[line.product_id],
            shown.selling_models[int(line.id)],
            prices.get(line.id),
            asked=own[int(line.id)],
            usage=usage_view(cards.get(line.id), priced.currency),
        )
        for line in priced.lines
    ]


def _line_price(
    quote_id: str,
    line: PricedLine,
    name: str,
    model: str,
    price: PeriodPrice | None,
    *,
    asked: DraftLine,
    usage: UsageView,
) -> LinePrice:
    return {
        "line_id": line_id(quote_id, int(line.id)),
        "product_id": line.product_id,
        "product_name": name,
        "quantity": line.quantity,
        "base_unit_price": amount(line.base_unit_price),
        "unit_price": amount(line.unit_price),
        "base_unit_price_per_period": None if price is None else amount(price.unit_price),
        **period_view(line.billing_period, price and price._replace(unit_price=price.net_unit_price), model),
        "subtotal_before_discount": amount(line.regular - credit_of(asked.special)),
        "discount_pct": amount(line.discount),
        "line_discount_pct": amount(asked.discount_pct),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net - credit_of(asked.special)),
        **special_view(asked.special),
        **usage,
    }
