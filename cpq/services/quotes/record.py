"""The full record of one version of a quote: each option set with its taxes and waterfall, and the hashes."""

from __future__ import annotations

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.pricing.period_prices import PeriodPrice, period_prices
from cpq.domain.pricing.request import Line
from cpq.domain.pricing.result import PricedLine, Stage, Step
from cpq.domain.quotes.quote import Pricing, Quote, QuoteLine
from cpq.services.quotes import repository, views
from cpq.services.quotes.answer_fields import DiscountPct, LineDiscountPct
from cpq.services.quotes.seller_views import SpecialView, special_view
from cpq.services.quotes.views import PeriodView, QuoteDetail, TaxGroupView, period_view, tax_groups, totals_view
from cpq.services.usage_views import UsageView, usage_view


class WaterfallStep(TypedDict):
    """The effect of a stage on a line: the amount after it, its source, and the size of the change with its unit."""

    stage: str
    part: str | None
    source: str | None
    value: Amount | None
    unit: str | None
    amount: Amount


class TracedLine(PeriodView, SpecialView, UsageView):
    number: int
    product_id: str
    product_name: str
    quantity: Amount
    unit_price: Amount
    subtotal: Amount
    discount_pct: DiscountPct
    line_discount_pct: LineDiscountPct
    discount_amount: Amount
    line_total: Amount
    steps: list[WaterfallStep]


class PricedSet(TypedDict):
    """One option set of a quote, or the whole quote: lines, taxes and totals, which add up."""

    option_set: str | None
    is_selected: bool
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    tax_groups: list[TaxGroupView]
    lines: list[TracedLine]


class QuoteRecord(QuoteDetail):
    """A version of a quote with the full record of its price."""

    latest_version: int
    version_status: str
    reason: str | None
    fingerprint: str
    hashes: dict[str, str]
    option_sets: list[PricedSet]


def record_of(tx: Tx, quote_id: str, *, version: int | None = None) -> QuoteRecord:
    """A version as it is stored, by default the current one. Nothing is priced again."""
    quote = repository.load(tx, quote_id, version=version)
    stored = quote.version
    pricings = repository.pricings(tx, quote)
    detail = views.detail(tx, quote, include_pricing=True, pricings=pricings)
    return {
        **detail,
        "latest_version": quote.current_version,
        "version_status": stored.status,
        "reason": stored.reason,
        "fingerprint": stored.fingerprint,
        "hashes": dict(stored.hashes),
        "option_sets": [_priced_set(quote, pricing) for pricing in pricings],
    }


def _priced_set(quote: Quote, pricing: Pricing) -> PricedSet:
    rows = {line.number: line for line in quote.lines}
    priced, asked = pricing.result, {line.id: line for line in pricing.request.lines}
    prices = period_prices(pricing.request, priced.lines)
    return {
        "option_set": pricing.option_set or None,
        "is_selected": pricing.option_set == (quote.version.option_set or ""),
        **totals_view(priced),
        "tax_groups": tax_groups(priced.tax_groups),
        "lines": [
            _traced(line, rows[int(line.id)], asked[line.id], prices.get(line.id), priced.currency)
            for line in priced.lines
        ],
    }


def _traced(line: PricedLine, row: QuoteLine, asked: Line, price: PeriodPrice | None, currency: str) -> TracedLine:
    return {
        "number": int(line.id),
        "product_id": line.product_id,
        "product_name": row.product_name,
        "quantity": line.quantity,
        "unit_price": amount(line.base_unit_price),
        **period_view(line.billing_period, price, row.sold_as),
        "subtotal": amount(line.regular - row.credit),
        "discount_pct": amount(line.discount),
        "line_discount_pct": amount(asked.discount),
        **special_view(row.special),
        **usage_view(row.usage, currency),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net - row.credit),
        "steps": [_step(step, asked) for step in line.steps],
    }


def _step(step: Step, asked: Line) -> WaterfallStep:
    unit = _unit(step, asked)
    value = None if step.value is None or unit is None else step.value if unit == "units" else amount(step.value)
    return {
        "stage": step.stage,
        "part": step.part or None,
        "source": step.source or None,
        "value": value,
        "unit": unit,
        "amount": amount(step.amount),
    }


def _unit(step: Step, asked: Line) -> str | None:
    """The unit of a step's value; None where it has no value."""
    if step.value is None:
        return None
    if step.stage == Stage.OPTIONS and step.source == "bundle":
        return "percent" if step.value else None
    if step.source in ("discount_amount", "requested_discount_amount"):
        return "amount"
    if step.stage == Stage.ADJUSTMENT:
        kind = next((rule.kind for rule in asked.adjustments if rule.rule_id == step.source), None)
        return None if kind is None else "amount" if kind == "amount" else "percent"
    return _UNITS[step.stage]


_UNITS = {
    Stage.LIST: "amount",
    Stage.CURRENCY: "rate",
    Stage.CONTRACTED: "amount",
    Stage.TIER: "units",
    Stage.USAGE: "amount",
    Stage.OPTIONS: "amount",
    Stage.TERM: "periods",
    Stage.OVERRIDE: "amount",
    Stage.LINE_DISCOUNT: "percent",
    Stage.QUOTE_DISCOUNT: "percent",
    Stage.TAX: "percent",
    Stage.CREDIT: "amount",
}
