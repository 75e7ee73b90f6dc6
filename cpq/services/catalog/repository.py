"""Facts of accounts and products that pricing and policies need, read in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.late_modules import LateModule
from cpq.base.money import to_micro
from cpq.base.rounding import PriceRounding
from cpq.base.text import read_json
from cpq.domain import configuration
from cpq.domain.catalog.words import compact
from cpq.domain.pricing.request import ChosenComponent, Component, PriceRow, Product, Tier
from cpq.storage.schema import tables
from cpq.storage.statements import Statement, among, listed
from cpq.storage.tenants import of_tenant

if TYPE_CHECKING:
    from cpq.domain.configuration import components, declarations, model_compiler, quote_rules
    from cpq.domain.configuration.declarations import GroupRow
    from cpq.domain.configuration.quote_rules import QuoteRule
else:
    declarations = LateModule("cpq.domain.configuration.declarations")
    components = LateModule("cpq.domain.configuration.components")
    quote_rules = LateModule("cpq.domain.configuration.quote_rules")
    model_compiler = LateModule("cpq.domain.configuration.model_compiler")

KNOWN_MAX = 50_000
"""Accounts, and products for each of them, in one cache."""

SHELVES_MAX = 8
"""Cached revisions of catalogues, over all tenants."""

MODELS_MAX = 2_000
"""Compiled options and rules of products, over all tenants."""


class ConvertingBook(NamedTuple):
    """A price book that converts its prices in one currency into others."""

    id: str
    base_currency: str
    rounding: PriceRounding


class AccountFacts(NamedTuple):
    """The facts of a buyer that prices, taxes, dates and policies depend on."""

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
    converting: tuple[ConvertingBook, ...] = ()
    """Those of its price books that convert prices into other currencies."""


class Relation(NamedTuple):
    kind: str
    product_id: str
    quantity: int


class ProductFacts(NamedTuple):
    """One product with its candidate prices in one currency for one account."""

    id: str
    sku: str
    name: str
    names: Mapping[str, str]
    product_type: str
    category: str
    active: bool
    attributes: Mapping[str, Any]
    options: list[dict[str, Any]]
    rules: Mapping[str, Any]
    bundle: Mapping[str, Any] | None
    content_hash: str
    default_selling_model: str | None
    quantity_decimals: int
    relations: tuple[Relation, ...]
    parts: tuple[str, ...]
    """The ids of the bundle's components."""
    for_pricing: Product
    base_rows: tuple[PriceRow, ...] = ()
    """Prices in other currencies that their books convert, where they lack one in the quote's."""
    choosable: tuple[str, ...] = ()
    """The ids of the components that a buyer of the bundle may choose."""
    specs: Mapping[str, Any] = {}

    def priced_by(self, rows: Iterable[PriceRow]) -> ProductFacts:
        """A bundle with its own price is priced like any product."""
        pricing = (self.bundle or {}).get("pricing", "own")
        if pricing == "own":
            return self._replace(for_pricing=Product(tuple(rows)))
        parts = tuple(Component(r.product_id, r.quantity) for r in self.relations if r.kind == "component")
        discount = to_micro(Decimal((self.bundle or {}).get("discount_percent", 0)))
        return self._replace(for_pricing=Product(tuple(rows), parts, discount))

    def free_values(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Of a line's attributes those that somebody wrote: what no option is, and options that are a text."""
        chosen = {option["name"] for option in self.options if option["type"] != "text"}
        return {name: value for name, value in attributes.items() if name not in chosen}


class Facts(NamedTuple):
    """The facts for a quote: its buyer, if that account exists, its products with their parts, and the rules."""

    buyer: AccountFacts | None
    products: dict[str, ProductFacts]
    rules: tuple[QuoteRule, ...] = ()
    """Over the lines of a quote."""


def gather(tx: Tx, product_ids: Collection[str], *, account_id: str | None = None, currency: str = "") -> Facts:
    """Read the account, the products that exist, the components of bundles, and their candidate prices.

    Price books are in the order of preference: the account's own, its region's, the default one. Without an account
    there are no prices; without a currency they are in the account's own. Everything comes from one revision of the
    catalogue.
    """
    while True:
        revision = revision_of(tx)
        known = _shelf(tx.tenant_id, revision)
        buyer = known.accounts.get(account_id) if account_id else None
        is_known = buyer is not None or not account_id
        buyer = buyer or (_read_account(tx, account_id) if account_id else None)
        paid_in = currency or (buyer.currency if buyer else "")
        offers = known.offers.get((account_id, paid_in), {})
        found, missing = _with_parts(product_ids, offers)
        if not missing and is_known and known.rules is not None:
            return Facts(buyer, found, known.rules)
        found = _read_offers(tx, product_ids, offers, paid_in, buyer)
        rules = _quote_rules(tx) if known.rules is None else known.rules
        # Each statement may see later commits, but cached and quoted facts must come from one revision.
        if revision_of(tx) == revision:
            known.rules = rules
            known.keep(buyer, account_id, paid_in, found)
            return Facts(buyer, found, rules)


def ids_by_sku(tx: Tx, names: Collection[str]) -> dict[str, str]:
    """The product ids of SKUs, as far as they are SKUs. People and price lists know a product by its SKU."""
    product, keys = tables.product, {name: name.casefold() for name in names}
    query = sa.select(product.c.sku_key, product.c.id).where(tx.own_among(product.c.sku_key, sorted(keys.values())))
    ids = {row.sku_key: row.id for row in tx.connection.execute(query)}
    return {name: ids[key] for name, key in keys.items() if key in ids}


def ids_by_model(tx: Tx, models: Collection[str]) -> dict[str, str]:
    """The ids of the products that are sold under these models, or have them as SKU; without a model of several."""
    revision = revision_of(tx)
    kept: tuple[str, dict[str, str | None]] | None = tx.kept.get((tx.tenant_id, "models"))
    if kept is None or kept[0] != revision:
        product, known = tables.product, dict[str, str | None]()
        query = sa.select(product.c.id, product.c.sku, product.c.attributes).where(tx.own(product), product.c.active)
        for row in tx.connection.execute(query):
            for code in {compact(row.sku), compact(str(row.attributes.get("model") or ""))} - {""}:
                known[code] = None if code in known else row.id
        tx.kept[tx.tenant_id, "models"] = kept = (revision, known)
    ids = {model: kept[1].get(compact(model)) for model in models}
    return {model: id_ for model, id_ in ids.items() if id_ is not None}


def revision_of(tx: Tx) -> str:
    """The revision of the catalogue, which changes with every product, price or account."""
    revisions = [str(revision) for (revision,) in _REVISION.rows(tx.connection, tenant=tx.tenant_id)]
    return revisions[0] if revisions else ""


def chosen_components(product: ProductFacts, choices: Mapping[str, Any]) -> tuple[ChosenComponent, ...]:
    """The components that a buyer of one piece of a bundle chose, or gets by default."""
    if not product.choosable:
        return ()
    groups = _GROUPS.get(product.content_hash)
    if groups is None:
        if len(_GROUPS) >= MODELS_MAX:
            _GROUPS.clear()
        assert product.bundle is not None, "only bundles have groups"
        groups = _GROUPS[product.content_hash] = components.read_groups(product.bundle)
    return components.chosen(groups, model_of(product).check(choices).choices)


def all_parts(
    product: ProductFacts, products: Mapping[str, ProductFacts], choices: Mapping[str, Any]
) -> list[ProductFacts]:
    """All components of a bundle at any depth, each product once, the outer ones first; empty for other products.

    What a buyer may choose counts as these choices have it.
    """
    parts: dict[str, ProductFacts] = {}
    chosen = [part.product_id for part in chosen_components(product, choices)]
    boxes = [product]
    for box in boxes:
        for id_ in (*box.parts, *(chosen if box is product else ())):
            if id_ in products and id_ != product.id and id_ not in parts:
                parts[id_] = products[id_]
                boxes.append(products[id_])
    return list(parts.values())


def currencies_of(tx: Tx, product_ids: Collection[str]) -> dict[str, list[str]]:
    """The currencies in which each product has a price, for the message that one is missing."""
    found: dict[str, list[str]] = {}
    for product_id, currency in _CURRENCIES.rows(tx.connection, **_mine(tx, product_ids)):
        found.setdefault(product_id, []).append(currency)
    return {product_id: sorted(currencies) for product_id, currencies in found.items()}


def _among_mine(dialect: str, column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return of_tenant(column.table, sa.bindparam("tenant")) & among(dialect, column, sa.bindparam("ids"))


def _mine(tx: Tx, ids: Collection[str]) -> dict[str, Any]:
    return {"tenant": tx.tenant_id, "ids": listed(tx.connection, ids)}


def _book(dialect: str, condition: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    """The first in the order of character codes, on both databases."""
    mine = of_tenant(tables.price_book, tables.account.c.tenant_id)
    id_ = tables.price_book.c.id if dialect == "sqlite" else sa.collate(tables.price_book.c.id, "C")
    return sa.select(sa.func.min(id_)).where(mine, condition).correlate(tables.account).scalar_subquery()


_ACCOUNT = Statement(
    lambda dialect: sa.select(
        tables.account.c.id,
        tables.account.c.name,
        tables.account.c.segment,
        tables.account.c.region,
        tables.account.c.country,
        tables.account.c.tax_zone,
        tables.account.c.tax_status,
        tables.account.c.tax_note,
        tables.account.c.time_zone,
        tables.account.c.currency,
        tables.account.c.active,
        tables.account.c.content_hash,
        tables.account.c.price_book_id,
        _book(dialect, tables.price_book.c.region == tables.account.c.region),
        _book(dialect, tables.price_book.c.is_default),
    ).where(of_tenant(tables.account, sa.bindparam("tenant")), tables.account.c.id == sa.bindparam("id"))
)

_REVISION = Statement(
    lambda _dialect: sa.select(tables.catalog_revision.c.revision).where(
        of_tenant(tables.catalog_revision, sa.bindparam("tenant"))
    )
)

_PRODUCTS = Statement(
    lambda dialect: sa.select(
        tables.product.c.id,
        tables.product.c.sku,
        tables.product.c.name,
        tables.product.c.names,
        tables.product.c.product_type,
        tables.product.c.category_id,
        tables.product.c.active,
        tables.product.c.attributes,
        tables.product.c.options,
        tables.product.c.rules,
        tables.product.c.bundle,
        tables.product.c.content_hash,
        tables.product.c.default_selling_model,
        tables.product.c.quantity_decimals,
        tables.product.c.specs,
    ).where(_among_mine(dialect, tables.product.c.id))
)

_RELATIONS = Statement(
    lambda dialect: (
        sa.select(
            tables.product_relation.c.product_id,
            tables.product_relation.c.kind,
            tables.product_relation.c.other_id,
            tables.product_relation.c.quantity,
        )
        .where(_among_mine(dialect, tables.product_relation.c.product_id))
        .order_by(tables.product_relation.c.product_id, tables.product_relation.c.position)
    )
)


_RULES = Statement(
    lambda _dialect: sa.select(tables.quote_rule.c.id, tables.quote_rule.c.declared).where(
        of_tenant(tables.quote_rule, sa.bindparam("tenant")), tables.quote_rule.c.active
    )
)


def _of_price(dialect: str, *columns: Any) -> sa.Select[*tuple[Any, ...]]:
    """The candidate prices of products. Without the hint SQLite scans the whole table."""
    is_theirs = tables.price.c.account_id == sa.bindparam("account")
    return (
        sa.select(*columns)
        .with_hint(tables.price, "INDEXED BY ix_price_tenant_id_product_id_currency", "sqlite")
        .where(
            _among_mine(dialect, tables.price.c.product_id),
            tables.price.c.currency == sa.bindparam("currency"),
            among(dialect, tables.price.c.price_book_id, sa.bindparam("books")) | is_theirs,
        )
    )


# Amounts stay whole millionths, as the pricer takes them; payloads are parsed only if they are not empty.
_PRICE_COLUMNS: dict[str, sa.ColumnElement[Any]] = {
    "id": tables.price.c.id,
    "unit_price": sa.type_coerce(tables.price.c.unit_price, sa.BigInteger),
    "price_book_id": tables.price.c.price_book_id,
    "account_id": tables.price.c.account_id,
    "billing_period": tables.price.c.billing_period,
    "tier_mode": tables.price.c.tier_mode,
    "tiers": sa.type_coerce(tables.price.c.tiers, sa.Text),
    "quantity_scope": tables.price.c.quantity_scope,
    "package_size": tables.price.c.package_size,
    "free_quantity": tables.price.c.free_quantity,
    "priority": tables.price.c.priority,
    "valid_from": sa.cast(tables.price.c.valid_from, sa.Text),
    "valid_to": sa.cast(tables.price.c.valid_to, sa.Text),
    "cost": sa.type_coerce(tables.price.c.cost, sa.BigInteger),
    "tax_category": tables.price.c.tax_category,
    "tax_included": tables.price.c.tax_included,
    "surcharges": sa.type_coerce(tables.price.c.surcharges, sa.Text),
    "is_evergreen": tables.price.c.selling_model == "evergreen",
    "name": sa.func.coalesce(tables.price.c.name, ""),
    "is_usage": tables.price.c.selling_model == "usage",
    "unit": sa.func.coalesce(tables.price.c.unit, ""),
    "minimum_spend": sa.type_coerce(tables.price.c.minimum_spend, sa.BigInteger),
    "maximum_spend": sa.type_coerce(tables.price.c.maximum_spend, sa.BigInteger),
    "billed": sa.func.coalesce(tables.price.c.billed, "advance"),
    "cancellation_credit": sa.func.coalesce(tables.price.c.cancellation_credit, "prorated"),
}
"""By the field name of `PriceRow`."""

_PRICES = Statement(lambda dialect: _of_price(dialect, tables.price.c.product_id, *_PRICE_COLUMNS.values()))

_CONVERTING = Statement(
    lambda dialect: sa.select(
        tables.price_book.c.id, tables.price_book.c.base_currency, tables.price_book.c.price_rounding
    ).where(_among_mine(dialect, tables.price_book.c.id), tables.price_book.c.base_currency.is_not(None))
)

_CURRENCIES = Statement(
    lambda dialect: (
        sa.select(tables.price.c.product_id, tables.price.c.currency)
        .where(_among_mine(dialect, tables.price.c.product_id))
        .distinct()
    )
)


class _Shelf:
    """Cache of one revision of a tenant's catalogue, one for each process."""

    def __init__(self) -> None:
        self.accounts: dict[str | None, AccountFacts] = {}
        self.rules: tuple[QuoteRule, ...] | None = None
        self.offers: dict[tuple[str | None, str], dict[str, ProductFacts]] = {}
        self._count = 0

    def keep(
        self, buyer: AccountFacts | None, account_id: str | None, currency: str, found: Mapping[str, ProductFacts]
    ) -> None:
        if account_id and buyer is None:
            return  # The account does not exist yet, so the products were read without prices.
        self._count += len(found) + 1
        if self._count > KNOWN_MAX:
            self.accounts, self.offers, self._count = {}, {}, len(found)
        if buyer is not None:
            self.accounts[account_id] = buyer
        self.offers.setdefault((account_id, currency), {}).update(found)


_SHELVES: dict[tuple[str, str], _Shelf] = {}


def _shelf(tenant_id: str, revision: str) -> _Shelf:
    """The cache of this revision; before the first import, an empty one that is not kept."""
    shelf = _SHELVES.get((tenant_id, revision))
    if shelf is None:
        shelf = _Shelf()
        if revision:
            for other in list(_SHELVES):  # Drop the tenant's older revisions, and the oldest of the others.
                if other[0] == tenant_id or len(_SHELVES) >= SHELVES_MAX:
                    _SHELVES.pop(other, None)
            _SHELVES[tenant_id, revision] = shelf
    return shelf


def _with_parts(ids: Collection[str], offers: Mapping[str, ProductFacts]) -> tuple[dict[str, ProductFacts], list[str]]:
    """The products with the components of bundles, at any depth, and the ids that are missing."""
    found: dict[str, ProductFacts] = {}
    missing: list[str] = []
    waiting = list(ids)
    for id_ in waiting:  # The list grows during the loop.
        product = offers.get(id_)
        if product is None:
            missing.append(id_)
        elif id_ not in found:
            found[id_] = product
            waiting += (*product.parts, *product.choosable)
    return found, missing


def _read_offers(
    tx: Tx, ids: Collection[str], offers: Mapping[str, ProductFacts], currency: str, buyer: AccountFacts | None
) -> dict[str, ProductFacts]:
    """Read the products that are not cached, bundles level by level; unknown ids are left out."""
    read = dict(offers)
    absent: set[str] = set()
    while True:
        found, missing = _with_parts(ids, read)
        wanted = set(missing) - absent
        if not wanted:
            return found
        prices = _prices(tx, wanted, currency, buyer.price_books, buyer.id) if buyer else {}
        bases = _base_prices(tx, wanted, currency, buyer) if buyer and buyer.converting else {}
        for product in _products(tx, wanted):
            priced = product.priced_by(prices.get(product.id, ()))
            read[product.id] = priced._replace(base_rows=tuple(bases[product.id])) if product.id in bases else priced
        absent |= wanted.difference(read)


def _read_account(tx: Tx, account_id: str) -> AccountFacts | None:
    rows = _ACCOUNT.rows(tx.connection, tenant=tx.tenant_id, id=account_id)
    if not rows:
        return None
    *known, own, regional, default = rows[0]
    books = tuple(dict.fromkeys(book for book in (own, regional, default) if book is not None))
    mine = {"tenant": tx.tenant_id, "ids": listed(tx.connection, books)}
    converting = [
        ConvertingBook(id_, base, PriceRounding(rounding or PriceRounding.MINOR_UNIT))
        for id_, base, rounding in _CONVERTING.rows(tx.connection, **mine)
    ]
    return AccountFacts._make((*known, books, tuple(sorted(converting))))


def _products(tx: Tx, ids: Collection[str]) -> list[ProductFacts]:
    """The products without their prices."""
    mine = _mine(tx, ids)
    relations: dict[str, list[Relation]] = {}
    for product_id, *relation in _RELATIONS.rows(tx.connection, **mine):
        relations.setdefault(product_id, []).append(Relation._make(relation))
    found = []
    for id_, *others, specs in _PRODUCTS.rows(tx.connection, **mine):
        related = tuple(relations.get(id_, ()))
        parts = tuple(relation.product_id for relation in related if relation.kind == "component")
        product = ProductFacts._make((id_, *others, related, parts, Product(()), (), (), specs))
        if product.bundle and "groups" in product.bundle:
            groups = components.read_groups(product.bundle)
            product = product._replace(choosable=components.products_within(groups))
        found.append(product)
    return found


def _quote_rules(tx: Tx) -> tuple[QuoteRule, ...]:
    """The rules over the lines of a quote that are in force, in the order of ids."""
    found = sorted(_RULES.rows(tx.connection, tenant=tx.tenant_id), key=itemgetter(0))
    return tuple(
        quote_rules.compile_quote_rule(declarations.QuoteRuleRow.model_validate(declared)) for _, declared in found
    )


def _base_prices(tx: Tx, ids: Collection[str], currency: str, buyer: AccountFacts) -> dict[str, list[PriceRow]]:
    """The prices that the account's books may convert into the currency, by product."""
    found: dict[str, list[PriceRow]] = {}
    for base in sorted({book.base_currency for book in buyer.converting} - {currency}):
        books = [book.id for book in buyer.converting if book.base_currency == base]
        for product_id, rows in _prices(tx, ids, base, books, account_id="").items():
            found.setdefault(product_id, []).extend(rows)
    return found


def _prices(
    tx: Tx, ids: Collection[str], currency: str, books: Collection[str], account_id: str
) -> dict[str, list[PriceRow]]:
    asked = {**_mine(tx, ids), "currency": currency, "account": account_id}
    asked["books"] = listed(tx.connection, books)
    read = [(product_id, _price(values)) for product_id, *values in _PRICES.rows(tx.connection, **asked)]
    read.sort(key=lambda priced: priced[1].id)  # By bytes, on every database.
    found: dict[str, list[PriceRow]] = {}
    for product_id, row in read:
        found.setdefault(product_id, []).append(row)
    return found


def _price(values: Sequence[Any]) -> PriceRow:
    stored = dict(zip(_PRICE_COLUMNS, values, strict=True))
    stored["tiers"] = () if stored["tiers"] == "[]" else _tiers(stored["tiers"])
    stored["surcharges"] = {} if stored["surcharges"] == "{}" else _surcharges(stored["surcharges"])
    stored["is_evergreen"], stored["is_usage"] = bool(stored["is_evergreen"]), bool(stored["is_usage"])
    return PriceRow(**stored)


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


def model_of(product: ProductFacts) -> configuration.Model:
    """The compiled options and rules of a product."""
    return compiled(product.content_hash, product.options, product.rules)


def compiled(content_hash: str, options: list[dict[str, Any]], rules: Mapping[str, Any]) -> configuration.Model:
    """The compiled options and rules of the product with this content."""
    model = _MODELS.get(content_hash)
    if model is None:
        if len(_MODELS) >= MODELS_MAX:
            _MODELS.clear()
        model = _MODELS[content_hash] = model_compiler.compile_model(options, rules)
    return model


_MODELS: dict[str, configuration.Model] = {}
_GROUPS: dict[str, tuple[GroupRow, ...]] = {}
