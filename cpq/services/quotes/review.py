"""A version of a quote for an approver, in few queries: the waterfall, the violations, and what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, takewhile
from typing import Any

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT
from cpq.domain.pricing.result import PricedLine, PricedQuote, Stage
from cpq.domain.quotes.lifecycle import Move, can
from cpq.services.quotes import repository, views
from cpq.services.quotes.answer_fields import DiscountPct
from cpq.services.quotes.policy_check import PolicyViolation, judge, violations_view
from cpq.services.quotes.readiness import may_be_sent
from cpq.services.quotes.views import QuoteDetail

TAX_INCLUDED = "tax included"
"""The step that takes included tax out of the regular price."""

MARKUP = "markup"
"""A price above the regular one that a seller gave: it is the regular one."""

STAGES = (*takewhile(lambda stage: stage is not Stage.OVERRIDE, Stage), MARKUP, TAX_INCLUDED)
"""The stages between the list price and the regular price, in the order of the waterfall."""

LINE_CHANGES_MAX = 200

_TERMS = (
    "account_name", "currency", "term_months", "start_date", "end_date", "requested_valid_until", "payment_terms",
    "notes", "option_set",
)  # fmt: skip
_DISCOUNT = ("requested_discount_pct", "requested_discount_amount")
_TOTALS = ("subtotal", "discount_total", "tax_total", "total")
_LINE_FIELDS = (
    "product_name", "quantity", "selling_model", "unit_price", "override_unit_price", "price_reason",
    "line_discount_pct", "line_discount_amount", "start_date", "term_months", "end_date", "ramp", "line_total",
    "option_set", "notes", "rate_card", "commitment", "expected_quantity",
)  # fmt: skip

_ITEM_FIELDS = ("description", "unit", "category", "tax_category", "cost")


class WaterfallStage(TypedDict):
    """The effect of a stage on the whole quote. A level is the amount itself, a step is its change."""

    stage: str
    is_level: bool
    amount: Amount


class QuoteReview(QuoteDetail):
    """Everything an approver needs to know about a version."""

    fingerprint: str
    latest_version: int
    discount_pct: DiscountPct
    margin_pct: Amount | None
    """None when a cost is unknown, and for callers who may not see margins."""
    waterfall: list[WaterfallStage]
    option_sets: list[str]
    other_totals: list[Amount]
    """Totals of the option sets that are not selected."""
    required_roles: list[str]
    policy_violations: list[PolicyViolation]
    policy_hash: str
    versions: dict[int, str]
    has_current_price: bool
    """Whether it is priced, and the price is still valid."""
    may_be_submitted: bool
    """Whether a draft is in a state in which people can be asked to approve it."""
    may_be_sent: bool
    open_marks: list[str]
    """What a person must look at before the customer gets the version."""


class FieldChange(TypedDict):
    field: str
    before: object
    after: object


class LineChange(TypedDict):
    """A line that was added, removed or changed, with the changed fields."""

    number: int
    product_name: str
    kind: str
    changes: list[FieldChange]


class VersionComparison(TypedDict):
    quote_id: str
    number: str
    before: int
    after: int
    currency: str
    terms: list[FieldChange]
    totals: list[FieldChange]
    lines: list[LineChange]
    lines_total: int


def review_version(tx: Tx, quote_id: str, *, version: int | None = None) -> QuoteReview:
    """Everything an approver needs, at the stored price, under the current policies."""
    quote = repository.load(tx, quote_id, version=version)
    pricings = repository.pricings(tx, quote)
    sets = [pricing.result for pricing in pricings]
    selected = sets[0]
    decision = judge(tx, quote, [(one.request, one.result) for one in pricings])
    has_current_price = quote.version.priced_at is not None and quote.expires_at > tx.now and not quote.is_rejected
    is_stopped = quote.status.is_draft and (decision.approval_required or decision.is_blocked)
    return {
        **views.detail(tx, quote, include_pricing=True, pricings=pricings),
        "fingerprint": quote.version.fingerprint,
        "latest_version": quote.current_version,
        "discount_pct": amount(selected.discount),
        "margin_pct": amount(selected.margin) if selected.margin is not None and tx.sees_margin else None,
        "waterfall": list(waterfall(selected)),
        "option_sets": [pricing.option_set for pricing in pricings if pricing.option_set],
        "other_totals": [amount(one.total) for one in sets[1:]],
        "required_roles": list(decision.required_roles),
        "policy_violations": violations_view(tx, decision),
        "policy_hash": tx.policies.content_hash,
        "versions": dict(repository.statuses(tx, quote.id)),
        "has_current_price": has_current_price,
        "may_be_submitted": quote.status.is_draft and has_current_price and not decision.is_blocked,
        "may_be_sent": can(quote.status, Move.SEND) and not is_stopped and may_be_sent(tx, quote),
        "open_marks": [text for _, text in quote.open_marks],
    }


def compare(tx: Tx, quote_id: str, *, before: int, after: int) -> VersionComparison:
    """The differences between two versions of a quote: terms, totals, and lines by their number."""
    earlier, later = (repository.load(tx, quote_id, version=version) for version in (before, after))
    old, new = (views.detail(tx, quote, include_pricing=True) for quote in (earlier, later))
    lines = list(_line_changes(old, new))
    return {
        "quote_id": later.id,
        "number": later.number,
        "before": before,
        "after": after,
        "currency": new["quote"]["currency"],
        "terms": [*_changes(old, new, _DISCOUNT), *_changes(old["quote"], new["quote"], _TERMS)],
        "totals": _changes(old["pricing"], new["pricing"], _TOTALS),
        "lines": lines[:LINE_CHANGES_MAX],
        "lines_total": len(lines),
    }


def waterfall(priced: PricedQuote) -> Iterator[WaterfallStage]:
    """From the list price of all lines down to the total, without the steps that changed nothing."""
    moved: Counter[str] = Counter()
    minor_unit = MinorUnit(priced.currency)
    for line in priced.lines:
        is_included = any(step.stage == Stage.TAX for step in line.steps[-2:])
        for stage, change in chain(_moves(line), _moves_of_tax(line, minor_unit) if is_included else ()):
            moved[MARKUP if stage == Stage.OVERRIDE and change > 0 else stage] += change
    yield _level(Stage.LIST, moved[Stage.LIST])
    for stage in STAGES[1:]:
        yield from _step(stage, moved[stage])
    # The sum of the roundings of all lines. What a change of an agreement gives back comes after the price.
    regular = priced.subtotal - moved[Stage.CREDIT]
    yield from _step("rounding", regular - sum(moved[stage] for stage in STAGES))
    yield _level("regular", regular)
    quote_discount = moved[Stage.QUOTE_DISCOUNT]
    of_lines = -priced.discount_total - quote_discount
    # Roundings belong to the line discounts, where there are some.
    override = moved[Stage.OVERRIDE] if any(map(_has_line_discount, priced.lines)) else of_lines
    yield from _step(Stage.OVERRIDE, override)
    yield from _step(Stage.LINE_DISCOUNT, of_lines - override)
    yield from _step(Stage.QUOTE_DISCOUNT, quote_discount)
    yield _level("net", priced.net - moved[Stage.CREDIT])
    yield from _step(Stage.CREDIT, moved[Stage.CREDIT])
    yield from _step(Stage.TAX, priced.tax_total)
    yield _level("total", priced.total)


def _has_line_discount(line: PricedLine) -> bool:
    """Also one without any, whose step only rounds, as long as no price was given instead of the regular one."""
    stages = {step.stage: step.value for step in line.steps}
    return bool(stages.get(Stage.LINE_DISCOUNT)) or (Stage.LINE_DISCOUNT in stages and Stage.OVERRIDE not in stages)


def _moves(line: PricedLine) -> Iterator[tuple[str, int]]:
    """The change of the line by each stage. A step of the whole line after steps of its parts sums the parts."""
    standing: dict[str, int] = {}
    for step in line.steps:
        if step.part:
            before = standing.get(step.part, 0)
        else:
            before = sum(standing.values())
            standing.clear()
        standing[step.part] = step.amount
        yield step.stage, step.amount - before


def _moves_of_tax(line: PricedLine, minor_unit: MinorUnit) -> Iterator[tuple[str, int]]:
    """The change by taking the included tax out of the regular price and of the quote discount."""

    def before(*stages: Stage) -> int:
        return next(step.amount for step in reversed(line.steps) if step.stage not in (*stages, Stage.CREDIT))

    is_raised = line.regular == line.net and any(step.stage == Stage.OVERRIDE for step in line.steps)
    regular = before(Stage.TAX, Stage.QUOTE_DISCOUNT, Stage.LINE_DISCOUNT, *(() if is_raised else (Stage.OVERRIDE,)))
    customer, paid = before(Stage.TAX, Stage.QUOTE_DISCOUNT), before(Stage.TAX)
    rate = next(step.value or 0 for step in reversed(line.steps) if step.stage == Stage.TAX)
    if rate:
        yield TAX_INCLUDED, line.regular - minor_unit.round(regular)
    if paid != customer:
        without_tax = minor_unit.round(customer, ONE_HUNDRED_PERCENT, ONE_HUNDRED_PERCENT + rate)
        yield Stage.QUOTE_DISCOUNT, (customer - paid) - (min(without_tax, line.regular) - line.net)


def _level(stage: str, micro: int) -> WaterfallStage:
    return {"stage": stage, "is_level": True, "amount": amount(micro)}


def _step(stage: str, micro: int) -> Iterator[WaterfallStage]:
    if micro:
        yield {"stage": stage, "is_level": False, "amount": amount(micro)}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], names: Sequence[str]) -> list[FieldChange]:
    return [
        {"field": name, "before": old.get(name), "after": new.get(name)}
        for name in names
        if _differs(old.get(name), new.get(name))
    ]


def _item_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    """Of an item of no catalogue; its name and price are fields of the line."""
    return _changes(old.get("custom") or {}, new.get("custom") or {}, _ITEM_FIELDS)


def _differs(before: object, after: object) -> bool:
    if isinstance(before, Decimal | int) and isinstance(after, Decimal | int):
        return Decimal(before) != Decimal(after)
    return before != after


def _in_words(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The line with its rate card and its commitment as text."""
    if "rate_card" not in line:
        return line
    found = {**line, "rate_card": line["rate_card"]["rates"]}
    if commitment := line.get("commitment"):
        committed = commitment.get("quantity", commitment.get("amount"))
        unit = line["rate_card"]["unit"] if "quantity" in commitment else "as an amount"
        found["commitment"] = f"{committed:,} {unit}, per {commitment['per']}"
    return found


def _line_changes(old: QuoteDetail, new: QuoteDetail) -> Iterator[LineChange]:
    """Lines keep their ids from version to version, so equal ids are the same line."""
    earlier, later = ({line["line_id"]: line for line in one["line_items"]} for one in (old, new))
    for id_ in dict.fromkeys((*earlier, *later)):
        number = int(id_.rpartition("-")[2])
        if id_ not in later or id_ not in earlier:
            line, kind = (earlier[id_], "removed") if id_ not in later else (later[id_], "added")
            totals: list[FieldChange] = [{"field": "line_total", "before": None, "after": line["line_total"]}]
            yield {"number": number, "product_name": line["product_name"], "kind": kind, "changes": totals}
        elif changes := [
            *_changes(_in_words(earlier[id_]), _in_words(later[id_]), _LINE_FIELDS),
            *_item_changes(earlier[id_], later[id_]),
        ]:
            name = later[id_]["product_name"]
            yield {"number": number, "product_name": name, "kind": "changed", "changes": changes}
