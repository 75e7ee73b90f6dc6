"""Everything on record about one version of a quote: each option set with its taxes and waterfall, and the hashes."""

from __future__ import annotations

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.request import Line
from cpq.domain.pricing.result import PricedLine, PricedQuote, Stage, Step
from cpq.services.quotes import repository, views
from cpq.services.quotes.repository import Quote
from cpq.services.quotes.views import QuoteDetail


class WaterfallStep(TypedDict):
    """What a stage did to a line: the amount after it, what decided, and by how much of which unit."""

    stage: str
    part: str | None
    source: str | None
    value: Amount | None
    unit: str | None
    amount: Amount


class TracedLine(TypedDict):
    number: int
    product_id: str
    product_name: str
    quantity: int
    billing_period: str
    unit_price: Amount
    subtotal: Amount
    discount_pct: Amount
    discount_amount: Amount
    line_total: Amount
    steps: list[WaterfallStep]


class TaxGroupView(TypedDict):
    category: str
    rate_pct: Amount
    base: Amount
    tax: Amount


class PricedSet(TypedDict):
    """One alternative of a quote, or the whole of it: lines, taxes and totals, which add up."""

    option_set: str | None
    is_selected: bool
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    tax_groups: list[TaxGroupView]
    lines: list[TracedLine]


class QuoteRecord(QuoteDetail):
    """A version of a quote with all that is on record about its price."""

    latest_version: int
    version_status: str
    reason: str | None
    requested_discount_pct: Amount
    fingerprint: str
    hashes: dict[str, str]
    option_sets: list[PricedSet]


def record_of(tx: Tx, quote_id: str, *, version: int | None = None) -> QuoteRecord:
    """A version as it is stored, the current one unless another is asked for. Nothing is reckoned again."""
    found = repository.load(tx, quote_id, version=version)
    chosen = found.version
    rows = repository.pricings(tx, quote_id, chosen.version)
    rows.sort(key=lambda row: row.option_set != (chosen.option_set or ""))
    detail = views.detail(tx, found, include_pricing=True)
    return {
        **detail,
        "latest_version": found.root.version,
        "version_status": chosen.status,
        "reason": chosen.reason,
        "requested_discount_pct": amount(chosen.requested_discount),
        "fingerprint": chosen.fingerprint,
        "hashes": dict(chosen.hashes),
        "option_sets": [
            _priced_set(found, row.option_set, repository.result_of(row), pricing_request.load(row.request).lines)
            for row in rows
        ],
    }


def tax_groups(priced: PricedQuote) -> list[TaxGroupView]:
    return [
        {
            "category": group.category,
            "rate_pct": amount(group.rate),
            "base": amount(group.base),
            "tax": amount(group.tax),
        }
        for group in priced.tax_groups
    ]


def _priced_set(found: Quote, name: str, priced: PricedQuote, asked: tuple[Line, ...]) -> PricedSet:
    names = {row.number: row.product_name for row in found.lines}
    lines_asked = {line.id: line for line in asked}
    return {
        "option_set": name or None,
        "is_selected": name == (found.version.option_set or ""),
        "subtotal": amount(priced.subtotal),
        "discount_total": amount(priced.discount_total),
        "tax_total": amount(priced.tax_total),
        "total": amount(priced.total),
        "tax_groups": tax_groups(priced),
        "lines": [_traced(line, names[int(line.id)], lines_asked[line.id]) for line in priced.lines],
    }


def _traced(line: PricedLine, name: str, asked: Line) -> TracedLine:
    return {
        "number": int(line.id),
        "product_id": line.product_id,
        "product_name": name,
        "quantity": line.quantity,
        "billing_period": line.billing_period,
        "unit_price": amount(line.base_unit_price),
        "subtotal": amount(line.regular),
        "discount_pct": amount(line.discount),
        "discount_amount": amount(line.discount_amount),
        "line_total": amount(line.net),
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
    """What the value of a step counts; None where it has none to tell."""
    if step.value is None:
        return None
    if step.stage == Stage.OPTIONS and step.source == "bundle":
        return "percent" if step.value else None
    if step.stage == Stage.ADJUSTMENT:
        kind = next((rule.kind for rule in asked.adjustments if rule.rule_id == step.source), None)
        return None if kind is None else "amount" if kind == "amount" else "percent"
    return _UNITS[step.stage]


_UNITS = {
    Stage.LIST: "amount",
    Stage.CONTRACTED: "amount",
    Stage.TIER: "units",
    Stage.OPTIONS: "amount",
    Stage.TERM: "periods",
    Stage.LINE_DISCOUNT: "percent",
    Stage.QUOTE_DISCOUNT: "percent",
    Stage.TAX: "percent",
}
