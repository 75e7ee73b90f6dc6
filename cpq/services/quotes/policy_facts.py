"""What the policies read of a quote: facts known before it has a price, and those that its price adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.money import from_micro
from cpq.domain.policy.facts import LineFacts, Part, QuoteFacts, QuoteInputs
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.services.catalog import repository
from cpq.services.catalog.option_models import model_of
from cpq.services.catalog.repository import AccountFacts, ProductFacts


def quote_inputs(draft: Draft, buyer: AccountFacts, *, payment_terms: str) -> QuoteInputs:
    """What is known of a quote without its price."""
    months = draft.running_months
    return QuoteInputs(
        currency=draft.currency,
        term_months=None if months is None else Decimal(months),
        payment_terms=payment_terms,
        segment=buyer.segment,
        region=buyer.region,
        country=buyer.country,
    )


def payment_terms_of(tx: Tx, draft: Draft) -> str:
    return draft.payment_terms or tx.policies.terms.standard_payment_terms[0]


def line_inputs(line: DraftLine, products: Mapping[str, ProductFacts], period: str) -> dict[str, Any]:
    product = products[line.product_id]
    parts = tuple(map(_as_part, repository.all_parts(product, products))) if product.parts else ()
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
    }


def _as_part(product: ProductFacts) -> Part:
    """What is inside a bundle comes as the catalogue has it, its options at their default."""
    return Part(product.id, product.sku, product.category, product.product_type, _attributes({}, product, ()))


def _attributes(said: Mapping[str, Any], product: ProductFacts, parts: Sequence[Part]) -> Mapping[str, Any]:
    """What the catalogue says of a product, its options as they were chosen or left at their default, and its parts.

    A note on a line is no fact: it can neither unsay what the catalogue says nor add to it. A bundle is whatever one of
    its parts is, at any depth: export-controlled when one of them is.
    """
    if not product.options and not parts:
        return product.attributes
    chosen = model_of(product).check(said).choices if product.options else {}
    inside = {name: True for part in parts for name, value in part.attributes.items() if value is True}
    return {**chosen, **product.attributes, **inside}


def facts_of(
    inputs: QuoteInputs,
    asked: Mapping[str, DraftLine],
    products: Mapping[str, ProductFacts],
    priced: PricedQuote,
    *,
    validity_days: int,
) -> QuoteFacts:
    """What the policies read of a priced quote; `asked` are its lines by their number as text."""
    return QuoteFacts(
        **vars(inputs),
        gross=from_micro(priced.subtotal),
        net=from_micro(priced.net),
        total=from_micro(priced.total),
        discount=from_micro(priced.discount),
        discount_off_list=from_micro(priced.discount_off_list),
        margin=_known(priced.margin),
        validity_days=Decimal(validity_days),
        lines=tuple(_line_facts(line, asked[line.id], products) for line in priced.lines),
    )


def _line_facts(line: PricedLine, asked: DraftLine, products: Mapping[str, ProductFacts]) -> LineFacts:
    return LineFacts(
        **line_inputs(asked, products, line.billing_period),
        unit_price=from_micro(line.unit_price),
        regular=from_micro(line.regular),
        net=from_micro(line.net),
        discount=from_micro(line.discount),
        discount_off_list=from_micro(line.discount_off_list),
        margin=_known(line.margin),
        cost=_known(line.cost),
    )


def _known(micro: int | None) -> Decimal | None:
    return None if micro is None else from_micro(micro)
