"""Product sheets for documents, read for all lines of a quote at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.late_modules import LateModule
from cpq.domain.translations import translated
from cpq.services.catalog.repository import Relation
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant

if TYPE_CHECKING:
    from cpq.domain.configuration import components
else:
    components = LateModule("cpq.domain.configuration.components")


class Sheet(NamedTuple):
    """One product as a customer may see it, in the customer's language where it is translated."""

    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    category_name: str
    specs: Mapping[str, Any]
    units: Mapping[str, str]
    """Units of the specs that are numbers."""
    attributes: Mapping[str, Any]
    option_labels: Mapping[str, str]
    value_names: Mapping[str, Mapping[str, str]]
    """The translated values of options, by option and value."""
    components: tuple[Relation, ...]
    unit: str | None
    choices_of_components: tuple[str, ...]
    """The options that choose components of a bundle, which are named themselves."""


def sheets(tx: Tx, product_ids: Collection[str], tags: tuple[str, ...]) -> dict[str, Sheet]:
    """The sheets of products and of the components of bundles, in at most four queries.

    Texts are in the first of the locales that has them, else untranslated.
    """
    found = _sheets(tx, product_ids, tags)
    parts = {part.product_id for sheet in found.values() for part in sheet.components}
    return found | _sheets(tx, parts - found.keys(), tags) if parts - found.keys() else found


def _sheets(tx: Tx, product_ids: Collection[str], tags: tuple[str, ...]) -> dict[str, Sheet]:
    query = (
        sa.select(
            tables.product,
            tables.category.c.name.label("category_name"),
            tables.category.c.names.label("category_names"),
            tables.category.c.specs.label("definitions"),
        )
        .join(
            tables.category,
            of_tenant(tables.category, tables.product.c.tenant_id)
            & (tables.category.c.id == tables.product.c.category_id),
        )
        .where(tx.own_among(tables.product.c.id, product_ids))
    )
    parts = (
        sa.select(
            tables.product_relation.c.product_id, tables.product_relation.c.other_id, tables.product_relation.c.quantity
        )
        .where(
            tx.own_among(tables.product_relation.c.product_id, product_ids),
            tables.product_relation.c.kind == "component",
        )
        .order_by(tables.product_relation.c.product_id, tables.product_relation.c.position)
    )
    fixed = defaultdict(list)
    for row in tx.connection.execute(parts):
        fixed[row.product_id].append(Relation("component", row.other_id, row.quantity))
    return {row.id: _sheet(row, tuple(fixed[row.id]), tags) for row in tx.connection.execute(query)}


def _sheet(row: sa.Row[Any], fixed: tuple[Relation, ...], tags: tuple[str, ...]) -> Sheet:
    units = {name: row.definitions.get(name, {}).get("unit") for name in row.specs}
    labels = {option["name"]: translated(option.get("labels", {}), tags, option.get("label")) for option in row.options}
    nothing: Mapping[str, str] = {}
    values = {option["name"]: translated(option.get("value_names", {}), tags, nothing) for option in row.options}
    return Sheet(
        row.id,
        row.sku,
        translated(row.names, tags, row.name),
        translated(row.descriptions, tags, row.description),
        row.product_type,
        row.category_id,
        translated(row.category_names, tags, row.category_name),
        row.specs,
        {name: unit for name, unit in units.items() if unit},
        row.attributes,
        {name: label for name, label in labels.items() if label},
        {name: named for name, named in values.items() if named},
        fixed,
        row.unit,
        components.option_names(row.bundle) if row.bundle and "groups" in row.bundle else (),
    )
