"""What the rules need to know of an account and of products, gathered in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.db import Statement, Tx, among, listed
from cpq.errors import Code, CpqError
from cpq.money import to_micro
from cpq.pricing.request import Component, PriceRow, Product, Tier
from cpq.schema import account, price, price_book, product, product_relation
from cpq.text import read_json

KNOWN_MAX = 20_000
"""How many products, and how many prices, are kept at hand."""

PARTS_MAX = 10_000
"""Of everything inside the bundles of one quote. A catalogue in which there is more is refused, not read in part."""


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
    rows = _ACCOUNT.rows(tx.connection, tenant=tx.tenant_id, id=account_id)
    if not rows:
        return None
    *known, own, regional, default = rows[0]
    books = dict.fromkeys(book for book in (own, regional, default) if book is not None)
    return AccountFacts._make((*known, tuple(books)))


def product_facts(
    tx: Tx, product_ids: Collection[str], *, currency: str, buyer: AccountFacts | None
) -> dict[str, ProductFacts]:
    """The products that exist and all that is inside the bundles among them, each with its prices for a buyer.

    A bundle may hold bundles, to any depth: what is three boxes down is sold as well.
    """
    found = _products(tx, product_ids)
    asked, missing = set(found), _components(found.values()).difference(found)
    while missing:
        asked |= missing
        if len(asked) > PARTS_MAX:
            raise CpqError(
                Code.CONFIGURATION_INVALID, f"The bundles of this quote hold more than {PARTS_MAX:,} products."
            )
        inner = _products(tx, missing)
        found |= inner
        missing = _components(inner.values()) - asked
    prices = _prices(tx, list(found), currency, buyer) if buyer else {}
    return {id_: product._replace(rows=tuple(prices.get(id_, ()))) for id_, product in found.items()}


def all_parts(product: ProductFacts, products: Mapping[str, ProductFacts]) -> list[ProductFacts]:
    """Everything inside a bundle, each product once, the outer ones first; nothing for what is no bundle."""
    parts: dict[str, ProductFacts] = {}
    boxes = [product]
    for box in boxes:
        for id_ in (r.product_id for r in box.relations if r.kind == "component"):
            if id_ in products and id_ != product.id and id_ not in parts:
                parts[id_] = products[id_]
                boxes.append(products[id_])
    return list(parts.values())


def currencies_of(tx: Tx, product_ids: Collection[str]) -> dict[str, list[str]]:
    """In which currencies the products have a price at all, for the message that one is missing."""
    found: dict[str, list[str]] = {}
    for product_id, currency in _CURRENCIES.rows(tx.connection, **_mine(tx, product_ids)):
        found.setdefault(product_id, []).append(currency)
    return {product_id: sorted(currencies) for product_id, currencies in found.items()}


def _components(products: Iterable[ProductFacts]) -> set[str]:
    return {r.product_id for product in products for r in product.relations if r.kind == "component"}


def _among_mine(dialect: str, column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return (column.table.c.tenant_id == sa.bindparam("tenant")) & among(dialect, column, sa.bindparam("ids"))


def _mine(tx: Tx, ids: Collection[str]) -> dict[str, Any]:
    return {"tenant": tx.tenant_id, "ids": listed(tx.connection, ids)}


def _book(condition: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    mine = price_book.c.tenant_id == account.c.tenant_id
    return sa.select(sa.func.min(price_book.c.id)).where(mine, condition).correlate(account).scalar_subquery()


_ACCOUNT = Statement(
    lambda _dialect: sa.select(
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
        _book(price_book.c.region == account.c.region),
        _book(price_book.c.is_default),
    ).where(account.c.tenant_id == sa.bindparam("tenant"), account.c.id == sa.bindparam("id"))
)

_PRODUCT_HASHES = Statement(lambda dialect: sa.select(product.c.content_hash).where(_among_mine(dialect, product.c.id)))

_PRODUCTS = Statement(
    lambda dialect: sa.select(
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
    ).where(_among_mine(dialect, product.c.id))
)

_RELATIONS = Statement(
    lambda dialect: (
        sa.select(
            product_relation.c.product_id,
            product_relation.c.kind,
            product_relation.c.other_id,
            product_relation.c.quantity,
        )
        .where(_among_mine(dialect, product_relation.c.product_id))
        .order_by(product_relation.c.product_id, product_relation.c.position)
    )
)


def _of_price(dialect: str, *columns: Any) -> sa.Select[*tuple[Any, ...]]:
    """The candidate prices of products. Without the hint SQLite walks the whole table."""
    is_theirs = price.c.account_id == sa.bindparam("account")
    return (
        sa.select(price.c.content_hash, *columns)
        .with_hint(price, "INDEXED BY ix_price_tenant_id_product_id_currency", "sqlite")
        .where(
            _among_mine(dialect, price.c.product_id),
            price.c.currency == sa.bindparam("currency"),
            among(dialect, price.c.price_book_id, sa.bindparam("books")) | is_theirs,
        )
    )


_PRICE_HASHES = Statement(_of_price)

# Amounts stay whole millionths, as the pricer takes them; payloads are read only where there is something in them.
_PRICES = Statement(
    lambda dialect: _of_price(
        dialect,
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
        sa.cast(price.c.valid_from, sa.Text),
        sa.cast(price.c.valid_to, sa.Text),
        sa.type_coerce(price.c.cost, sa.BigInteger),
        price.c.tax_category,
        price.c.tax_included,
        sa.type_coerce(price.c.surcharges, sa.Text),
    )
)

_CURRENCIES = Statement(
    lambda dialect: (
        sa.select(price.c.product_id, price.c.currency).where(_among_mine(dialect, price.c.product_id)).distinct()
    )
)


class _Known(dict[str, Any]):
    """What was read before, by the hash of its content: as long as the hash is the same, so is the content."""

    def all_of(self, hashes: Iterable[str]) -> list[Any] | None:
        """Everything under these hashes, or None when something was never read."""
        try:
            return [self[hash_] for hash_ in hashes]
        except KeyError:
            return None

    def keep(self, found: Mapping[str, Any]) -> None:
        if len(self) + len(found) > KNOWN_MAX:
            self.clear()
        self.update(found)


_KNOWN_PRODUCTS = _Known()
_KNOWN_PRICES = _Known()


def _products(tx: Tx, ids: Collection[str]) -> dict[str, ProductFacts]:
    """The products without their prices. Their relationships are part of the content that is hashed."""
    mine = _mine(tx, ids)
    hashes = {row[0] for row in _PRODUCT_HASHES.rows(tx.connection, **mine)}
    known = _KNOWN_PRODUCTS.all_of(hashes)
    while known is None:
        relations: dict[str, list[Relation]] = {}
        for product_id, *relation in _RELATIONS.rows(tx.connection, **mine):
            relations.setdefault(product_id, []).append(Relation._make(relation))
        rows = _PRODUCTS.rows(tx.connection, **mine)
        found = [ProductFacts._make((*row, tuple(relations.get(row[0], ())), ())) for row in rows]
        # Each statement may see what others committed meanwhile; relationships belong to the hashes around them.
        before, hashes = hashes, {product.content_hash for product in found}
        if before == hashes:
            _KNOWN_PRODUCTS.keep({product.content_hash: product for product in found})
            known = found
    return {product.id: product for product in known}


def _prices(tx: Tx, ids: Collection[str], currency: str, buyer: AccountFacts) -> dict[str, list[PriceRow]]:
    asked = {**_mine(tx, ids), "currency": currency, "account": buyer.id}
    asked["books"] = listed(tx.connection, buyer.price_books)
    known = _KNOWN_PRICES.all_of(row[0] for row in _PRICE_HASHES.rows(tx.connection, **asked))
    if known is None:
        rows = {hash_: _price(*values) for hash_, *values in _PRICES.rows(tx.connection, **asked)}
        _KNOWN_PRICES.keep(rows)
        known = list(rows.values())
    known.sort(key=itemgetter(1))  # By id, as bytes, on every database.
    found: dict[str, list[PriceRow]] = {}
    for product_id, _, row in known:
        found.setdefault(product_id, []).append(row)
    return found


def _price(product_id: str, *values: Any) -> tuple[str, str, PriceRow]:
    row = PriceRow._make(values)
    tiers, surcharges = values[6], values[16]
    row = row._replace(
        tiers=() if tiers == "[]" else _tiers(tiers), surcharges={} if surcharges == "{}" else _surcharges(surcharges)
    )
    return product_id, row.id, row


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
