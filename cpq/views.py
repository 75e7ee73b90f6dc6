"""The one read shape of each thing, for tools, console, command line and PDF alike."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, NotRequired

from typing_extensions import TypedDict


class Pagination(TypedDict):
    total: int
    page: int
    per_page: int
    has_more: bool


class ProductSummary(TypedDict):
    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    active: bool


class CatalogPage(TypedDict):
    items: list[ProductSummary]
    pagination: Pagination
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
    tier_mode: str
    tiers: list[PriceTier]
    package_size: int | None
    valid_from: date | None
    valid_to: date | None
    option_surcharges: dict[str, dict[str, Decimal]]


class Spec(TypedDict):
    value: Decimal | str
    unit: str | None


class RelatedProduct(TypedDict):
    kind: str
    product_id: str
    name: str | None
    quantity: int


class ProductDetail(TypedDict):
    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    attributes: dict[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime
    specs: dict[str, Spec]
    prices: list[ListPrice]
    relationships: NotRequired[list[RelatedProduct]]
    options: NotRequired[list[dict[str, Any]]]
    rules: NotRequired[list[str]]


def pagination(total: int, page: int, per_page: int) -> Pagination:
    return {"total": total, "page": page, "per_page": per_page, "has_more": page * per_page < total}
