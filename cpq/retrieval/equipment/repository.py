"""Reads products with their specs, and the specs that categories declare."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.storage.schema import tables

PRODUCTS_MAX = 5_000
"""In a larger catalogue, products without specs are found by their words alone (`catalog_search`)."""


APPLICATIONS = "applications"
"""The attribute that says what a product is used for, in the words of those who need it; it is also embedded by itself,
because a description is about the thing and a question often about the need."""


class Equipment(NamedTuple):
    """A product with what its category says about it."""

    id: str
    sku: str
    name: str
    description: str
    category_id: str
    active: bool
    attributes: dict[str, Any]
    specs: dict[str, Any]
    names: dict[str, str]
    descriptions: dict[str, str]
    """By language; `name` and `description` are the ones in the language of the catalogue."""
    updated_at: datetime
    category_name: str
    definitions: dict[str, Any]
    """The specs that its category declares, by name."""

    @property
    def model(self) -> str | None:
        return self.attributes.get("model")

    @property
    def uses(self) -> list[str]:
        found = self.attributes.get(APPLICATIONS)
        return [found] if isinstance(found, str) and found else []

    def unit(self, spec: str) -> str | None:
        return (self.definitions.get(spec) or {}).get("unit")

    def specs_in_words(self) -> str:
        """Specs and attributes as people write them: `100 hp`, `lubrication oilless`, `food grade`."""
        specs = [
            f"{name.replace('_', ' ')} {value.replace('_', ' ')}"
            if isinstance(value, str)
            else f"{value} {self.unit(name) or ''}".strip()
            for name, value in self.specs.items()
        ]
        attributes = [
            name.replace("_", " ") if value is True else str(value)
            for name, value in self.attributes.items()
            if value and name != APPLICATIONS
        ]
        return ", ".join([self.category_name, *specs, *attributes, self.sku])

    def words(self) -> str:
        """What finds it beside its name and description: specs, attributes, and both texts in other languages."""
        return "\n".join([self.specs_in_words(), *self.names.values(), *self.descriptions.values()])


def searched(tx: Tx, ids: Collection[str] | None) -> Iterator[Equipment]:
    """The products that are searched as equipment, of these ids; all of them for None.

    Of a large catalogue only those with specs, because a search keeps them in memory.
    """
    if is_small(tx):
        return products(tx, ids)
    product, spec = tables.product.c, tables.product_spec.c
    has_specs = sa.exists().where(spec.tenant_id == product.tenant_id, spec.product_id == product.id)
    mine = tx.own(tables.product) if ids is None else tx.own_among(product.id, ids)
    return _read(tx, mine, has_specs)


def is_small(tx: Tx) -> bool:
    """Whether a search may read all products into memory."""
    some = sa.select(tables.product.c.id).where(tx.own(tables.product)).limit(PRODUCTS_MAX + 1).subquery()
    return (tx.connection.scalar(sa.select(sa.func.count()).select_from(some)) or 0) <= PRODUCTS_MAX


def products(tx: Tx, ids: Collection[str] | None) -> Iterator[Equipment]:
    """The products of these ids, with or without specs; all of them for None."""
    return _read(tx, tx.own(tables.product) if ids is None else tx.own_among(tables.product.c.id, ids))


def by_id(tx: Tx, ids: Collection[str]) -> dict[str, Equipment]:
    return {each.id: each for each in products(tx, ids)}


def declared_specs(tx: Tx) -> dict[str, dict[str, Any]]:
    """The specs of every category, by category id."""
    category = tables.category.c
    mine = sa.select(category.id, category.specs).where(tx.own(tables.category))
    return {row.id: row.specs for row in tx.connection.execute(mine)}


def _read(tx: Tx, *conditions: sa.ColumnElement[bool]) -> Iterator[Equipment]:
    for row in tx.connection.execute(_PRODUCTS.where(*conditions)):
        yield Equipment(**row._mapping)


_PRODUCTS = sa.select(
    *(tables.product.c[name] for name in Equipment._fields if name in tables.product.c),
    tables.category.c.name.label("category_name"),
    tables.category.c.specs.label("definitions"),
).join(
    tables.category,
    (tables.category.c.tenant_id == tables.product.c.tenant_id)
    & (tables.category.c.id == tables.product.c.category_id),
)
