"""Views of products: search results, and one product with its list prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.base.late_modules import LateModule
from cpq.base.money import Amount, amount, from_micro, to_micro
from cpq.base.rounding import PriceRounding
from cpq.base.rounding import nearest as nearest_whole
from cpq.domain.billing_terms import Billed, CancellationCredit
from cpq.domain.catalog.search_query import QUERY_LENGTH_MAX
from cpq.domain.pricing.derived_prices import Conversion, rounded
from cpq.domain.pricing.request import selling_model
from cpq.domain.translations import found_locale, lookup, translated
from cpq.services.catalog import repository, word_index
from cpq.services.catalog.conversions import conversion
from cpq.services.catalog.repository import ConvertingBook
from cpq.services.pagination import Pagination, pagination
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant

if TYPE_CHECKING:
    from cpq.domain.configuration import components
else:
    components = LateModule("cpq.domain.configuration.components")

KNOWN_CATEGORIES_MAX = 100


class ProductSummary(TypedDict):
    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    active: bool
    name_locale: NotRequired[str | None]
    """With a `locale` that was asked for: the locale of the name; null if there is no translation."""


SPENDS: tuple[Literal["minimum_spend"], Literal["maximum_spend"]] = ("minimum_spend", "maximum_spend")
UnitConversion = TypedDict("UnitConversion", {"argument": str, "from": str, "to": str, "searched": NotRequired[str]})
"""An amount that was given in another unit than the products have. `to` is rounded to five digits, limits are exact;
`searched` are the numbers that products have, where a query's is near one."""


class CatalogPage(TypedDict):
    items: list[ProductSummary]
    pagination: Pagination
    matched: Literal["all_words", "meaning", "category"]
    """`all_words`: every hit has every word, some perhaps spelt otherwise; `meaning`: no product has all of them."""
    conversions: NotRequired[list[UnitConversion]]
    hint: NotRequired[str]


class PriceTier(TypedDict):
    up_to: int | None
    unit_price: Decimal
    flat_fee: Decimal


class ListPrice(TypedDict):
    price_book: str
    currency: str
    unit_price: Decimal
    billing_period: str
    selling_model: str
    """`one_time`, `term`, `evergreen`, or `usage`: a rate card, which charges what is used in each billing period."""
    name: str | None
    pick_with: str
    """The `selling_model` of a line that is to have this price."""
    tier_mode: str
    tiers: list[PriceTier]
    quantity_scope: str
    """`line`: a tier is reached by one line; `quote`: by all lines with the product together."""
    package_size: int | None
    free_quantity: int
    """Units of each line that packages are not charged for; of a usage price, those included in each period."""
    tax_category: str
    tax_included: bool
    valid_from: date | None
    valid_to: date | None
    option_surcharges: dict[str, dict[str, Decimal]]
    converted_into: NotRequired[list[str]]
    """Currencies into which the price book converts this price, where it has none; ask with `currency`."""
    derived_from: NotRequired[DerivedFrom]
    unit: NotRequired[Annotated[str, Described("What a usage price counts; `unit_price` is for one, or a package.")]]
    minimum_spend: NotRequired[Annotated[Decimal | None, Described("Of a usage price, for each billing period.")]]
    maximum_spend: NotRequired[Annotated[Decimal | None, Described("Of a usage price, for each billing period.")]]
    billed: NotRequired[
        Annotated[str, Described("`arrears`: a period is due at its end. Left out where it is due at its start.")]
    ]
    cancellation_credit: NotRequired[
        Annotated[
            str,
            Described(
                "What a cancelled line gives back: `none`, or only `full_periods`. Left out where it is by days."
            ),
        ]
    ]


class DerivedFrom(TypedDict):
    """The price from which this one is converted, by the rates of the policies."""

    currency: str
    unit_price: Amount
    rate: Amount
    rates_as_of: str
    rounding: str


class Spec(TypedDict):
    value: Decimal | str
    unit: str | None


GROUPS_IN_WORDS = (
    "The components of a bundle that a line chooses with its attributes, in groups: each group of at most one is an "
    "option with the names of its components as values; of other groups each component is an option by its name. A "
    "component is charged at its own price unless it is `included`."
)


class RelatedProduct(TypedDict):
    kind: str
    product_id: str
    name: str | None
    quantity: int


class ProductDetail(TypedDict):
    id: str
    sku: str
    name: str
    name_locale: NotRequired[str | None]
    description: str
    product_type: str
    category: str
    attributes: dict[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime
    specs: dict[str, Spec]
    unit: str | None
    quantity_decimals: int
    """How many decimals the quantity of a line may have; 0: whole numbers only."""
    default_selling_model: str | None
    prices: list[ListPrice]
    relationships: NotRequired[list[RelatedProduct]]
    groups: NotRequired[Annotated[list[dict[str, Any]], Described(GROUPS_IN_WORDS)]]
    options: NotRequired[list[dict[str, Any]]]
    rules: NotRequired[list[str]]


def search(
    tx: Tx,
    *,
    query: str | None,
    category_id: str | None,
    active_only: bool,
    limit: int,
    page: int,
    locale: str | None = None,
) -> CatalogPage:
    """One page of products: by words if there are any, else a whole category in the order of ids."""
    tags = _tags(locale)
    words, wanted_category = (query or "").strip(), (category_id or "").strip().lower()
    if not words and not wanted_category:
        raise bad_field(
            "/query",
            "Give a query, a category, or both.",
            next_call=next_call("catalog_search", category=_any_category(tx)),
        )
    if len(words) > QUERY_LENGTH_MAX:
        raise bad_field("/query", f"A query has at most {QUERY_LENGTH_MAX} characters.", maximum=QUERY_LENGTH_MAX)
    offset = (page - 1) * limit
    if words:
        hits = word_index.find(
            tx, words, category_id=wanted_category or None, active_only=active_only, limit=limit, offset=offset
        )
        items, total = summaries(tx, hits.ids, locale), hits.total
    else:
        items, total = _list_category(tx, wanted_category, active_only, limit, offset, tags)
    result: CatalogPage = {
        "items": items,
        "pagination": pagination(total, page, limit),
        "matched": "all_words" if words else "category",
    }
    if total == 0:
        result["hint"] = _empty_hint(tx, wanted_category, active_only)
    return result


def summaries(tx: Tx, ids: list[str], locale: str | None) -> list[ProductSummary]:
    """These products, in this order."""
    tags = _tags(locale)
    query = _summary_query(tags).where(tx.own(tables.product), tables.product.c.id.in_(ids))
    by_id = {row.id: _summary(row, tags) for row in tx.connection.execute(query)}
    return [by_id[id_] for id_ in ids]


def get(
    tx: Tx, product_id: str, *, include_relationships: bool, locale: str | None = None, currency: str | None = None
) -> ProductDetail:
    """Everything a seller may see of one product; NOT_FOUND offers a search for the same word.

    With a currency, only the prices in it, and those that price books derive for it.
    """
    tags = _tags(locale)
    row = tx.connection.execute(_PRODUCT, {"tenant": tx.tenant_id, "id": product_id}).one_or_none()
    if row is None and (by_sku := repository.ids_by_sku(tx, [product_id])):
        id_ = by_sku[product_id]
        return get(tx, id_, include_relationships=include_relationships, locale=locale, currency=currency)
    if row is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no product {product_id!r}.",
            field="/product_id",
            next_call=next_call("catalog_search", query=product_id[:QUERY_LENGTH_MAX]),
        )
    detail: ProductDetail = {
        "id": row.id,
        "sku": row.sku,
        "name": row.name,
        "description": row.description,
        "product_type": row.product_type,
        "category": row.category,
        "attributes": row.attributes,
        "active": row.active,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "specs": {name: _spec(value, row.definitions.get(name)) for name, value in row.specs.items()},
        "unit": row.unit,
        "quantity_decimals": row.quantity_decimals,
        "default_selling_model": row.default_selling_model,
        "prices": _list_prices(tx, product_id, currency),
    }
    if tags:
        detail["name"], detail["description"], detail["name_locale"] = _texts(row, tags)
    if include_relationships:
        detail["relationships"] = _relationships(tx, product_id, tags)
        if row.bundle and "groups" in row.bundle:
            detail["groups"] = _groups(tx, row.bundle, tags)
        detail["options"] = [_option(option, tags) for option in row.options]
        detail["rules"] = [rule["say"] for rule in row.rules.get("rules", ())]
    return detail


_SUMMARY = (
    tables.product.c.id,
    tables.product.c.sku,
    tables.product.c.name,
    tables.product.c.description,
    tables.product.c.product_type,
    tables.product.c.category_id.label("category"),
    tables.product.c.active,
)

_TRANSLATIONS = (tables.product.c.names, tables.product.c.descriptions)

_PRODUCT = (
    sa.select(
        *_SUMMARY,
        tables.product.c.attributes,
        tables.product.c.specs,
        tables.product.c.options,
        tables.product.c.rules,
        tables.product.c.bundle,
        tables.product.c.default_selling_model,
        tables.product.c.unit,
        tables.product.c.quantity_decimals,
        *_TRANSLATIONS,
        tables.product.c.created_at,
        tables.product.c.updated_at,
        tables.category.c.specs.label("definitions"),
    )
    .join(
        tables.category,
        of_tenant(tables.category, tables.product.c.tenant_id) & (tables.category.c.id == tables.product.c.category_id),
    )
    .where(of_tenant(tables.product, sa.bindparam("tenant")), tables.product.c.id == sa.bindparam("id"))
)

_PRICES = (
    sa.select(
        tables.price.c.price_book_id.label("price_book"),
        tables.price.c.currency,
        tables.price.c.unit_price,
        tables.price.c.billing_period,
        tables.price.c.selling_model,
        tables.price.c.name,
        tables.price.c.tier_mode,
        tables.price.c.tiers,
        tables.price.c.quantity_scope,
        tables.price.c.package_size,
        tables.price.c.free_quantity,
        tables.price.c.tax_category,
        tables.price.c.tax_included,
        tables.price.c.valid_from,
        tables.price.c.valid_to,
        tables.price.c.surcharges.label("option_surcharges"),
        tables.price.c.unit,
        tables.price.c.minimum_spend,
        tables.price.c.maximum_spend,
        tables.price.c.billed,
        tables.price.c.cancellation_credit,
        tables.price_book.c.base_currency,
        tables.price_book.c.price_rounding,
    )
    .join(
        tables.price_book,
        of_tenant(tables.price_book, tables.price.c.tenant_id)
        & (tables.price_book.c.id == tables.price.c.price_book_id),
    )
    .where(
        of_tenant(tables.price, sa.bindparam("tenant")),
        tables.price.c.product_id == sa.bindparam("id"),
        tables.price.c.price_book_id.is_not(None),
        sa.or_(tables.price.c.valid_to.is_(None), tables.price.c.valid_to >= sa.bindparam("today")),
    )
    .order_by(
        tables.price.c.price_book_id,
        tables.price.c.currency,
        tables.price.c.billing_period,
        tables.price.c.valid_from,
        tables.price.c.id,
    )
)


_SUMMARY_NAMES = [str(column.name) for column in _SUMMARY]
_PRICE_NAMES = [str(column.name) for column in _PRICES.selected_columns][:-2]


def _tags(locale: str | None) -> tuple[str, ...]:
    """The locales to look for; none when the catalogue's own texts are wanted."""
    return (lookup(locale) or (locale,)) if locale else ()  # In an unknown language nothing is translated.


def _texts(row: Any, tags: tuple[str, ...]) -> tuple[str, str, str | None]:
    """Name and description in the best of the locales, and the locale of the name."""
    description = translated(row.descriptions, tags, row.description)
    return translated(row.names, tags, row.name), description, found_locale(row.names, tags)


def _option(option: dict[str, Any], tags: tuple[str, ...]) -> dict[str, Any]:
    label = translated(option.get("labels", {}), tags, option.get("label"))
    return {**option, "label": label} if label else option


def _list_category(
    tx: Tx, category_id: str, active_only: bool, limit: int, offset: int, tags: tuple[str, ...]
) -> tuple[list[ProductSummary], int]:
    mine = [tx.own(tables.product), tables.product.c.category_id == category_id]
    if active_only:
        mine.append(tables.product.c.active == sa.literal(True, tables.product.c.active.type))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.product).where(*mine)) or 0
    query = _summary_query(tags).where(*mine).order_by(_in_byte_order(tx, tables.product.c.id))
    rows = tx.connection.execute(query.limit(limit).offset(offset))
    return [_summary(row, tags) for row in rows], total


def _in_byte_order(tx: Tx, column: sa.Column[str]) -> sa.ColumnElement[str]:
    """Sorts by bytes: SQLite always does, PostgreSQL by default uses the database's language."""
    return column if tx.connection.dialect.name == "sqlite" else column.collate("C")


def _summary_query(tags: tuple[str, ...]) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*_SUMMARY, *(_TRANSLATIONS if tags else ()))


def _summary(row: Any, tags: tuple[str, ...]) -> ProductSummary:
    # Plain names: the keys of the row's own mapping are a subclass of `str` that is slow to serialise.
    summary: ProductSummary = dict(zip(_SUMMARY_NAMES, row, strict=False))  # type: ignore[assignment] # Exactly these.
    if tags:
        summary["name"], summary["description"], summary["name_locale"] = _texts(row, tags)
    return summary


def _empty_hint(tx: Tx, category_id: str, active_only: bool) -> str:
    mine = sa.select(tables.category.c.id).where(tx.own(tables.category))
    if category_id and tx.connection.scalar(mine.where(tables.category.c.id == category_id)) is None:
        known = tx.connection.scalars(
            mine.order_by(_in_byte_order(tx, tables.category.c.id)).limit(KNOWN_CATEGORIES_MAX)
        ).all()
        near = nearest(category_id, known)
        return f"No category has this id. {'Did you mean ' + near[0] + '? ' if near else ''}Known: {', '.join(known)}."
    inactive = " Set active_only to false to see discontinued products." if active_only else ""
    return f"Nothing matches. Try fewer or other words.{inactive}"


def _any_category(tx: Tx) -> str | None:
    return tx.connection.scalar(
        sa.select(tables.category.c.id).where(tx.own(tables.category)).order_by(tables.category.c.id).limit(1)
    )


def _spec(value: Decimal | str, definition: dict[str, Any] | None) -> Spec:
    return {"value": value, "unit": (definition or {}).get("unit")}


def _list_prices(tx: Tx, product_id: str, currency: str | None) -> list[ListPrice]:
    """The list prices, or those in one currency together with those that price books derive for it."""
    rows = tx.connection.execute(_PRICES, {"tenant": tx.tenant_id, "id": product_id, "today": tx.now.date()})
    prices: list[ListPrice] = []
    books: dict[str, ConvertingBook] = {}
    for *values, base, rounding in rows:
        listed: ListPrice = dict(zip(_PRICE_NAMES, values, strict=True))  # type: ignore[assignment] # Exactly these.
        listed["tiers"] = [{"up_to": tier.get("up_to"), **tier} for tier in listed["tiers"]]
        is_evergreen = listed["selling_model"] == "evergreen"
        is_usage = listed["selling_model"] == "usage"
        listed["pick_with"] = selling_model(listed["billing_period"], is_evergreen, listed["name"] or "", is_usage)
        if not is_usage:
            del listed["unit"], listed["minimum_spend"], listed["maximum_spend"]
        if listed["billed"] in (None, Billed.ADVANCE):
            del listed["billed"]
        if listed["cancellation_credit"] in (None, CancellationCredit.PRORATED):
            del listed["cancellation_credit"]
        prices.append(listed)
        if base:
            books[listed["price_book"]] = ConvertingBook(
                listed["price_book"], base, PriceRounding(rounding or PriceRounding.MINOR_UNIT)
            )
    shown = prices if currency is None else [listed for listed in prices if listed["currency"] == currency]
    return [*shown, *_derived(tx, prices, books, currency)] if books else shown


def _derived(
    tx: Tx, prices: list[ListPrice], books: Mapping[str, ConvertingBook], currency: str | None
) -> list[ListPrice]:
    """The prices derived for a currency; without one, those that are converted say into which."""
    terms, today = tx.policies.terms, tx.now.date()
    known = {(listed["price_book"], listed["pick_with"], listed["currency"]) for listed in prices}
    found = []
    for listed in prices:
        book = books.get(listed["price_book"])
        if book is None or listed["currency"] != book.base_currency:
            continue
        into = []
        for code in terms.rates if currency is None else [currency]:
            if (book.id, listed["pick_with"], code) not in known:
                with suppress(CpqError):
                    into.append(conversion(terms, book, code, today))
        if currency is None and into:
            listed["converted_into"] = sorted(one.currency for one in into)
        elif currency is not None:
            found += [_converted(listed, one) for one in into]
    return found


def _converted(listed: ListPrice, by: Conversion) -> ListPrice:
    is_usage = listed["selling_model"] == "usage"
    rounding = PriceRounding.EXACT if is_usage else by.rounding  # As `derive` has it.

    def price(amount_: Decimal, rule: PriceRounding = rounding) -> Decimal:
        return from_micro(rounded(to_micro(Decimal(amount_)) * by.rate, rule, by.currency))

    def fee(amount_: Decimal) -> Decimal:
        return price(amount_, PriceRounding.MINOR_UNIT)

    converted: ListPrice = {
        **listed,
        "currency": by.currency,
        "unit_price": price(listed["unit_price"]),
        "tiers": [
            {**tier, "unit_price": price(tier["unit_price"]), "flat_fee": fee(tier["flat_fee"])}
            for tier in listed["tiers"]
        ],
        "option_surcharges": {
            option: {value: fee(amount_) for value, amount_ in amounts.items()}
            for option, amounts in listed["option_surcharges"].items()
        },
        "derived_from": {
            "currency": by.base,
            "unit_price": listed["unit_price"],
            "rate": amount(nearest_whole(by.rate.numerator * 1_000_000, by.rate.denominator)),
            "rates_as_of": by.rates_as_of,
            "rounding": rounding.value,
        },
    }
    for name in SPENDS:
        spend = listed.get(name)
        if spend is not None:
            converted[name] = fee(spend)
    return converted


def _groups(tx: Tx, bundle: Mapping[str, Any], tags: tuple[str, ...]) -> list[dict[str, Any]]:
    """The groups of a bundle as declared, with the names of the products."""
    product = tables.product.c
    ids = components.products_within(components.read_groups(bundle))
    query = sa.select(product.id, product.name, product.names).where(tx.own_among(product.id, ids))
    names = {row.id: translated(row.names, tags, row.name) for row in tx.connection.execute(query)}

    def named(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{**group, "components": [component(one) for one in group["components"]]} for group in groups]

    def component(one: Mapping[str, Any]) -> dict[str, Any]:
        nested = {"groups": named(one["groups"])} if "groups" in one else {}
        return {**one, "product_name": names.get(one["product_id"]), "included": one.get("included", False), **nested}

    return named(bundle["groups"])


def _relationships(tx: Tx, product_id: str, tags: tuple[str, ...]) -> list[RelatedProduct]:
    other = tables.product.alias()
    rows = tx.connection.execute(
        sa.select(tables.product_relation, other.c.name, other.c.names)
        .outerjoin(
            other,
            of_tenant(other, tables.product_relation.c.tenant_id) & (other.c.id == tables.product_relation.c.other_id),
        )
        .where(tx.own(tables.product_relation), tables.product_relation.c.product_id == product_id)
        .order_by(tables.product_relation.c.position)
    )
    return [
        {
            "kind": row.kind,
            "product_id": row.other_id,
            "name": translated(row.names or {}, tags, row.name),
            "quantity": row.quantity,
        }
        for row in rows
    ]
