"""Prices of a quote that changes an agreement: its lines keep the prices at which they were sold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.domain.agreements.kept_prices import with_kept_prices
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.request import Product, Request
from cpq.domain.quotes.draft import Draft
from cpq.domain.quotes.special_terms import CUSTOM
from cpq.services import orders
from cpq.services.catalog.repository import AccountFacts, ProductFacts
from cpq.storage.schema import tables


def kept_products(draft: Draft, products: Mapping[str, ProductFacts]) -> dict[str, ProductFacts]:
    """Products of an agreement that the catalogue does not have: items of no catalogue, with their names of then."""
    return {
        line.product_id: _gone(line.product_id, line.agreed.name or line.product_id)
        for line in draft.lines
        if line.agreed and line.agreed.basis and line.product_id not in products
    }


def _gone(product_id: str, name: str) -> ProductFacts:
    return ProductFacts(
        id=product_id,
        sku="",
        name=name,
        names={},
        product_type="simple",
        category=CUSTOM,
        active=True,
        attributes={},
        options=[],
        rules={},
        bundle=None,
        content_hash="",
        default_selling_model=None,
        quantity_decimals=3,
        relations=(),
        parts=(),
        for_pricing=Product(()),
    )


def with_agreed_prices(tx: Tx, draft: Draft, request: Request, buyer: AccountFacts) -> Request:
    """The request of a quote that changes an agreement as it still is, with the prices that its lines keep."""
    assert draft.agreement is not None
    orders.require_base(tx, draft.agreement)
    return with_kept_prices(draft, request, buyer.price_books[0], partial(_stored_request, tx))


def _stored_request(tx: Tx, quote_id: str, version: int) -> Request:
    """Of the option set that was accepted."""
    prices, versions = tables.quote_pricing.c, tables.quote_version.c
    own = (prices.tenant_id == versions.tenant_id) & (prices.quote_id == versions.quote_id)
    own &= (prices.version == versions.version) & (prices.option_set == sa.func.coalesce(versions.option_set, ""))
    query = sa.select(prices.request).join_from(tables.quote_pricing, tables.quote_version, own)
    mine = tx.own(tables.quote_pricing), prices.quote_id == quote_id, prices.version == version
    return pricing_request.load(tx.connection.execute(query.where(*mine)).scalar_one())


def without_contract(products: Mapping[str, ProductFacts], ids: set[str]) -> dict[str, ProductFacts]:
    """Products at their list prices, although the account has prices of its own."""
    return {
        id_: product._replace(
            for_pricing=product.for_pricing._replace(
                rows=tuple(row for row in product.for_pricing.rows if row.account_id is None)
            )
        )
        if id_ in ids
        else product
        for id_, product in products.items()
    }
