"""What the rules need to know of an account and of products, gathered in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.db import AnyRow, Tx, among
from cpq.money import to_micro
from cpq.pricing.request import Component, PriceRow, Product, Tier
from cpq.schema import account, price, price_book, product, product_relation
from cpq.text import read_json


class AccountFacts(NamedTuple):
    """The buyer, as far as prices, taxes, dates and policies depend on it."""

    id: str
    name: str
    segment: str
    region: str
    country: str
    tax_zone: str
    tax_status: str
    tax_note: str | None
    time_zone: str
    currency: str
    active: bool
    content_hash: str
    price_books: tuple[str, ...]


class Relation(NamedTuple):
    kind: str
    product_id: str
    quantity: int


class ProductFacts(NamedTuple):
    """One product with its candidate prices in one currency for one account."""

    id: str
    sku: str
    name: str
    product_type: str
    category: str
    active: bool
    attributes: Mapping[str, Any]
    options: list[dict[str, Any]]
    rules: Mapping[str, Any]
    bundle: Mapping[str, Any] | None
    content_hash: str
    relations: tuple[Relation, ...]
    rows: tuple[PriceRow, ...]

    @property
    def for_pricing(self) -> Product:
        """A bundle that has a price of its own is priced like any product."""
        pricing = (self.bundle or {}).get("pricing", "own")
        if pricing == "own":
            return Product(self.rows)
        parts = tuple(Component(r.product_id, r.quantity) for r in self.relations if r.kind == "component")
        return Product(self.rows, parts, to_micro(Decimal((self.bundle or {}).get("discount_percent", 0))))


def account_facts(tx: Tx, account_id: str) -> AccountFacts | None:
    """The account with its price books in the order they are looked into: its own, its region's, the default one."""
    row = tx.connection.execute(_ACCOUNT, {"tenant": tx.tenant_id, "id": account_id}).one_or_none()
    if row is None:
        return None
    books = dict.fromkeys(book for book in row[-3:] if book is not None)
    return AccountFacts._make((*row[:-3], tuple(books)))


def product_facts(
    tx: Tx, product_ids: Collection[str], *, currency: str, buyer: AccountFacts | None
) -> dict[str, ProductFacts]:
    """The products that exist, and the components of bundles among them, each with its candidate prices for a buyer."""
    rows = _products(tx, product_ids)
    relations = _relations(tx, [row.id for row in rows])
    parts = {r.product_id for found in relations.values() for r in found if r.kind == "component"}
    if missing := parts.difference(row.id for row in rows):
        rows += _products(tx, missing)
        relations |= _relations(tx, missing)
    prices = _prices(tx, [row.id for row in rows], currency, buyer) if buyer else {}
    return {
        row.id: ProductFacts._make((*row, tuple(relations.get(row.id, ())), tuple(prices.get(row.id, ()))))
        for row in rows
    }


def currencies_of(tx: Tx, product_ids: Collection[str]) -> dict[str, list[str]]:
    """In which currencies the products have a price at all, for the message that one is missing."""
    query = sa.select(price.c.product_id, price.c.currency).distinct()
    found: dict[str, list[str]] = {}
    for product_id, currency in tx.connection.execute(query.where(*_among(tx, price.c.product_id, product_ids))):
        found.setdefault(product_id, []).append(currency)
    return {product_id: sorted(currencies) for product_id, currencies in found.items()}


def _books(condition: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    mine = price_book.c.tenant_id == account.c.tenant_id
    return sa.select(sa.func.min(price_book.c.id)).where(mine, condition).correlate(account).scalar_subquery()


_ACCOUNT = sa.select(
    account.c.id,
    account.c.name,
    account.c.segment,
    account.c.region,
    account.c.country,
    account.c.tax_zone,
    account.c.tax_status,
    account.c.tax_note,
    account.c.time_zone,
    account.c.currency,
    account.c.active,
    account.c.content_hash,
    account.c.price_book_id,
    _books(price_book.c.region == account.c.region).label("regional"),
    _books(price_book.c.is_default == sa.literal(True, price_book.c.is_default.type)).label("fallback"),
).where(account.c.tenant_id == sa.bindparam("tenant"), account.c.id == sa.bindparam("id"))

_PRODUCT = sa.select(
    product.c.id,
    product.c.sku,
    product.c.name,
    product.c.product_type,
    product.c.category_id,
    product.c.active,
    product.c.attributes,
    product.c.options,
    product.c.rules,
    product.c.bundle,
    product.c.content_hash,
)

# Amounts stay whole millionths, as the pricer takes them; payloads are read only where there is something in them.
_PRICE = sa.select(
    price.c.product_id,
    price.c.id,
    sa.type_coerce(price.c.unit_price, sa.BigInteger),
    price.c.price_book_id,
    price.c.account_id,
    price.c.billing_period,
    price.c.tier_mode,
    sa.type_coerce(price.c.tiers, sa.Text),
    price.c.quantity_scope,
    price.c.package_size,
    price.c.free_quantity,
    price.c.priority,
    price.c.valid_from,
    price.c.valid_to,
    sa.type_coerce(price.c.cost, sa.BigInteger),
    price.c.tax_category,
    price.c.tax_included,
    sa.type_coerce(price.c.surcharges, sa.Text),
)


def _among(tx: Tx, column: sa.Column[str], values: Collection[str]) -> tuple[sa.ColumnElement[bool], ...]:
    return column.table.c.tenant_id == tx.tenant_id, among(tx.connection, column, values)


def _products(tx: Tx, ids: Collection[str]) -> list[AnyRow]:
    return list(tx.connection.execute(_PRODUCT.where(*_among(tx, product.c.id, ids))))


def _relations(tx: Tx, ids: Collection[str]) -> dict[str, list[Relation]]:
    columns = product_relation.c
    query = sa.select(columns.product_id, columns.kind, columns.other_id, columns.quantity)
    found: dict[str, list[Relation]] = {}
    ordered = query.where(*_among(tx, columns.product_id, ids)).order_by(columns.product_id, columns.position)
    for product_id, *relation in tx.connection.execute(ordered):
        found.setdefault(product_id, []).append(Relation(*relation))
    return found


def _prices(tx: Tx, ids: Collection[str], currency: str, buyer: AccountFacts) -> dict[str, list[PriceRow]]:
    query = _PRICE.where(
        *_among(tx, price.c.product_id, ids),
        price.c.currency == currency,
        sa.or_(price.c.price_book_id.in_(buyer.price_books), price.c.account_id == buyer.id),
    ).order_by(price.c.id)
    found: dict[str, list[PriceRow]] = {}
    for product_id, *values in tx.connection.execute(query):
        values[6] = _tiers(values[6]) if values[6] != "[]" else ()
        values[11], values[12] = _iso(values[11]), _iso(values[12])
        values[16] = _surcharges(values[16]) if values[16] != "{}" else {}
        found.setdefault(product_id, []).append(PriceRow(*values))
    return found


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _tiers(text: str) -> tuple[Tier, ...]:
    return tuple(
        Tier(tier.get("up_to"), _micro(tier["unit_price"]), _micro(tier.get("flat_fee", 0))) for tier in read_json(text)
    )


def _surcharges(text: str) -> dict[str, dict[str, int]]:
    return {
        option: {value: _micro(amount) for value, amount in amounts.items()}
        for option, amounts in read_json(text).items()
    }


def _micro(number: Any) -> int:
    return to_micro(Decimal(number))
