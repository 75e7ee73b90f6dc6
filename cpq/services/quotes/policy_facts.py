"""The facts of a quote that policies read: those known before pricing, and those that the price adds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cpq.app.access import Caller
from cpq.app.transaction import Tx
from cpq.base.late_modules import LateModule
from cpq.base.money import from_micro, to_micro
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.policy.facts import (
    NO_CHANGE,
    NO_OTHERS,
    ChangeFacts,
    LineFacts,
    OtherQuotes,
    Part,
    QuoteFacts,
    QuoteInputs,
)
from cpq.domain.policy.free_text import NO_FREE_TEXT, ClauseLibrary, FreeTextFacts
from cpq.domain.pricing import Costs
from cpq.domain.pricing.margin import margin, margin_with_rates
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.special_terms import CUSTOM
from cpq.services.catalog import repository
from cpq.services.catalog.repository import AccountFacts, ProductFacts, model_of

if TYPE_CHECKING:
    from cpq.domain.agreements import effects
else:
    effects = LateModule("cpq.domain.agreements.effects")


def quote_inputs(draft: Draft, buyer: AccountFacts, *, payment_terms: str) -> QuoteInputs:
    """The facts of a quote that are known before pricing."""
    months = draft.running_months
    return QuoteInputs(
        currency=draft.currency,
        term_months=None if months is None else Decimal(months),
        payment_terms=payment_terms,
        segment=buyer.segment,
        region=buyer.region,
        country=buyer.country,
        kind=draft.agreement.kind if draft.agreement else "new",
    )


def free_text_facts(
    library: ClauseLibrary,
    notes: str | None,
    deal_id: str | None,
    lines: Iterable[DraftLine],
    products: Mapping[str, ProductFacts],
    written_by: Iterable[str],
) -> FreeTextFacts:
    """The facts of the texts for the customer: notes, the deal's reference, names of option sets, and free attributes.

    A text counts as an agent's unless only people have made and changed the version.
    """
    if all(Caller.parse(caller).is_person for caller in written_by):
        return NO_FREE_TEXT
    texts = [notes] if notes else []
    values = library.spoken(deal_id)
    for line in lines:
        if line.notes:
            texts.append(line.notes)
        if line.special and line.special.custom:
            item = line.special.custom
            texts += filter(None, (item.name, item.description, item.category, item.unit))
        if line.attributes:
            free = products[line.product_id].free_values(line.attributes)
            values += [f"{name.replace('_', ' ')}: {value}" for name, value in free.items()]
    values += dict.fromkeys(line.option_set for line in lines if line.option_set)
    return library.facts(texts, values)


def payment_terms_of(tx: Tx, draft: Draft) -> str:
    return draft.payment_terms or tx.policies.terms.standard_payment_terms[0]


def line_inputs(
    line: DraftLine, products: Mapping[str, ProductFacts], period: str, *, is_usage: bool
) -> dict[str, Any]:
    product = products[line.product_id]
    inside = repository.all_parts(product, products, line.attributes) if product.parts or product.choosable else ()
    parts = tuple(map(_as_part, inside))
    return {
        "line_id": str(line.number),
        "product_id": product.id,
        "sku": product.sku,
        "category": product.category,
        "product_type": product.product_type,
        "quantity": Decimal(line.quantity),
        "billing_period": period,
        "attributes": _attributes(line.attributes, product, parts),
        "parts": parts,
        "is_custom": line.custom is not None or (line.product_id.startswith(f"{CUSTOM}:") and not _is_end(line)),
        "is_usage": is_usage,
    }


def _as_part(product: ProductFacts) -> Part:
    """A part of a bundle has the attributes of the catalogue, its options at their default."""
    return Part(product.id, product.sku, product.category, product.product_type, _attributes({}, product, ()))


def _attributes(choices: Mapping[str, Any], product: ProductFacts, parts: Sequence[Part]) -> Mapping[str, Any]:
    """Attributes of a product from the catalogue, its options as chosen or by default, and its parts.

    A note on a line is no fact: it neither replaces nor extends what the catalogue has. A bundle has every attribute
    that one of its parts has, at any depth: it is export-controlled if one of them is.
    """
    if not product.options and not parts:
        return product.attributes
    chosen = model_of(product).check(choices).choices if product.options else {}
    inside = {name: True for part in parts for name, value in part.attributes.items() if value is True}
    return {**chosen, **product.attributes, **inside}


def facts_of(
    inputs: QuoteInputs,
    asked: Mapping[str, DraftLine],
    products: Mapping[str, ProductFacts],
    priced: PricedQuote,
    *,
    validity_days: int,
    texts: FreeTextFacts = NO_FREE_TEXT,
    others: OtherQuotes = NO_OTHERS,
    costs: Costs | None = None,
    change: ChangeFacts = NO_CHANGE,
    usage: Collection[str] = (),
) -> QuoteFacts:
    """The facts of a priced quote; `asked` are its lines by their number as text, `usage` those charged by their use.

    Costs and margins are by the costs of lines that are given, where some are; a line that has none is of unknown cost.
    """
    of_lines, of_rates = costs or _known_costs(priced)
    rates = {line.id: of_rates[line.id] for line in priced.lines if line.id in of_rates and not line.regular}
    total = sum(of_lines.values()) if len(of_lines) == len(priced.lines) else None
    credit = sum([line.agreed.credit for line in asked.values() if line.agreed])
    net = priced.net + credit
    whole = margin_with_rates(net, total, rates.values(), is_all_use=len(rates) == len(priced.lines))
    return QuoteFacts(
        **vars(inputs),
        gross=from_micro(priced.subtotal + credit),
        net=from_micro(net),
        total=from_micro(max(0, priced.total + credit)),
        discount=from_micro(priced.discount),
        discount_off_list=from_micro(priced.discount_off_list),
        margin=_NOTHING_SOLD if all(map(_is_end, asked.values())) else _known(whole),
        validity_days=Decimal(validity_days),
        **others._asdict(),
        **texts._asdict(),
        **change._asdict(),
        lines=tuple(
            _line_facts(
                line, asked[line.id], products, of_lines.get(line.id), rates.get(line.id), is_usage=line.id in usage
            )
            for line in priced.lines
        ),
    )


def _known_costs(priced: PricedQuote) -> Costs:
    """As they are stored: only a line of rates alone has a margin without a price."""
    return Costs(
        {line.id: line.cost for line in priced.lines if line.cost is not None},
        {line.id: line.margin for line in priced.lines if not line.net and line.margin is not None},
    )


def _line_facts(
    line: PricedLine,
    asked: DraftLine,
    products: Mapping[str, ProductFacts],
    cost: int | None,
    margin_of_rates: int | None,
    *,
    is_usage: bool,
) -> LineFacts:
    known = margin(line.net, cost) if margin_of_rates is None else margin_of_rates
    return LineFacts(
        **line_inputs(asked, products, line.billing_period, is_usage=is_usage),
        unit_price=from_micro(line.unit_price),
        regular=from_micro(line.regular),
        net=from_micro(line.net),
        discount=from_micro(line.discount),
        discount_off_list=from_micro(line.discount_off_list),
        margin=_NOTHING_SOLD if _is_end(asked) else _known(known),
        cost=_known(cost),
        tax_category=line.tax_category,
    )


_NOTHING_SOLD = Decimal(100)
"""The margin of a line that ends."""


def _is_end(line: DraftLine) -> bool:
    return line.agreed is not None and line.agreed.action == "remove"


def change_facts(draft: Draft, request: Request, priced: PricedQuote, standard_uplift: Decimal) -> ChangeFacts:
    """What a quote changes in an agreement; the day of its price is that of the request."""
    change = draft.agreement
    if change is None:
        return NO_CHANGE
    return ChangeFacts(
        delta=from_micro(priced.net),
        credit=from_micro(effects.given_back(draft, priced)),
        arr_change=from_micro(effects.arr_change(draft.lines, request, priced)),
        uplift_pct=from_micro(effects.uplift(draft, request, priced) if change.kind == OrderKind.RENEWAL else 0),
        days_before_end=None if change.end is None else Decimal((change.end - change.effective).days + 1),
        credit_beyond_terms=from_micro(effects.given_back_beyond_terms(draft, priced)),
        missing_uplift_pct=from_micro(effects.missing_uplift(draft, request, priced, to_micro(standard_uplift))),
        backdated_days=Decimal(max(0, (date.fromisoformat(request.as_of) - change.effective).days)),
    )


def _known(micro: int | None) -> Decimal | None:
    return None if micro is None else from_micro(micro)
