"""Exports products and prices as rows that an import accepts and finds unchanged, and counts its contents."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import IO, Any

import sqlalchemy as sa
import yaml

from cpq.app.transaction import Tx
from cpq.base.text import without_formula
from cpq.domain.catalog.prices import PriceBookRow, PriceRow, SellingModel, Tier
from cpq.domain.catalog.products import AttributeDefinition, Bundle, CategoryRow, ProductRow, SpecDefinition
from cpq.domain.configuration.components import Expanded
from cpq.domain.configuration.declarations import OptionRow
from cpq.domain.field_types import Row
from cpq.domain.translations import CATEGORY_TEXTS, OPTION_TEXTS, PRODUCT_TEXTS, spread
from cpq.storage.columns import Json
from cpq.storage.schema import tables

BATCH = 500

Progress = Callable[[int, int], None]
Values = dict[str, Any]


def write_catalog(tx: Tx, form: str, file: IO[str], progress: Progress = lambda _done, _total: None) -> dict[str, int]:
    """Write products, and categories where the form (`json`, `yaml`, `csv`) has sections; returns the count of each."""
    total = counts(tx)
    columns = [*(name for name in ProductRow.model_fields if name not in PRODUCT_TEXTS.values()), *_translated(tx)]
    sections = {"categories": categories(tx), "products": _watched(products(tx), total["products"], progress)}
    if form != "csv" and (declared := list(rules(tx))):
        sections["rules"] = iter(declared)
    if form == "csv":
        return _write_csv(file, "products", sections["products"], columns)
    written = {"json": _write_json, "yaml": write_yaml}[form](file, sections)
    return {name: count for name, count in written.items() if count}


def write_prices(tx: Tx, form: str, file: IO[str], progress: Progress = lambda _done, _total: None) -> dict[str, int]:
    """Write prices, and price books where the form has sections; returns the count of each."""
    priced = _watched(prices(tx), counts(tx)["prices"], progress)
    if form == "csv":
        return _write_csv(file, "prices", priced, list(PriceRow.model_fields))
    written = {"json": _write_json, "yaml": write_yaml}[form](file, {"price_books": price_books(tx), "prices": priced})
    return {name: count for name, count in written.items() if count}


def counts(tx: Tx) -> dict[str, int]:
    """The number of products, prices and accounts."""
    counted = {"products": tables.product, "prices": tables.price, "accounts": tables.account}
    return {
        name: tx.connection.scalar(sa.select(sa.func.count()).select_from(table).where(tx.own(table))) or 0
        for name, table in counted.items()
    }


def categories(tx: Tx) -> Iterator[Values]:
    """Every category as a row of an import file, in the order of ids."""
    query = sa.select(tables.category).where(tx.own(tables.category)).order_by(tables.category.c.id)
    for row in tx.connection.execute(query):
        values = {
            "id": row.id,
            "name": row.name,
            "names": row.names,
            "specs": {name: _without_defaults(SpecDefinition, spec) for name, spec in row.specs.items()},
            "attributes": {name: _without_defaults(AttributeDefinition, a) for name, a in row.attributes.items()},
        }
        yield dict(spread(_without_defaults(CategoryRow, values), CATEGORY_TEXTS))


def price_books(tx: Tx) -> Iterator[Values]:
    """Every price book as a row of an import file, in the order of ids."""
    query = sa.select(tables.price_book).where(tx.own(tables.price_book)).order_by(tables.price_book.c.id)
    for row in tx.connection.execute(query):
        yield _without_defaults(PriceBookRow, {name: getattr(row, name) for name in PriceBookRow.model_fields})


def prices(tx: Tx) -> Iterator[Values]:
    """Every price as a row of an import file, in the order of products, read in batches."""
    table = tables.price
    query = sa.select(table).where(tx.own(table)).order_by(table.c.product_id, table.c.id)
    for row in tx.connection.execute(query.execution_options(yield_per=BATCH)):
        yield _price(row)


def _price(row: sa.Row[Any]) -> Values:
    stored = row._asdict()
    is_usual = stored["selling_model"] == SellingModel.of(row.billing_period)
    days = {name: stored[name] and stored[name].isoformat() for name in ("valid_from", "valid_to")}
    values = {
        **{name: stored[name] for name in PriceRow.model_fields if name != "price_book"},
        "price_book": row.price_book_id,
        "selling_model": None if is_usual else stored["selling_model"],
        "tiers": [_without_defaults(Tier, tier) for tier in row.tiers],
        "surcharges": row.surcharges or None,
        **days,
    }
    # An id that an import would make again is not one that somebody gave, and may be longer than those.
    made = PriceRow.model_construct(**{**values, "id": None, "selling_model": SellingModel(stored["selling_model"])})
    if made.key() == row.id:
        values["id"] = None
    given = {name: values[name] for name in PriceRow.model_fields if values[name] is not None}
    return _without_defaults(PriceRow, given)


def products(tx: Tx) -> Iterator[Values]:
    """Every product as a row of an import file, in the order of ids, read in batches."""
    query = sa.select(tables.product).where(tx.own(tables.product)).order_by(tables.product.c.id)
    for batch in tx.connection.execute(query.execution_options(yield_per=BATCH)).partitions():
        relations = _relationships(tx, [row.id for row in batch])
        for row in batch:
            yield dict(spread(_without_defaults(ProductRow, _product(row, relations[row.id])), PRODUCT_TEXTS))


def rules(tx: Tx) -> Iterator[Values]:
    """Every rule over the lines of a quote, in the order of ids."""
    table = tables.quote_rule
    yield from tx.connection.scalars(sa.select(table.c.declared).where(tx.own(table)).order_by(table.c.id))


def _translated(tx: Tx) -> list[str]:
    """The columns of a CSV that hold translations: `name.de`, `description.fr`."""
    table = tables.product
    rows = tx.connection.execute(
        sa.select(table.c.names, table.c.descriptions)
        .where(tx.own(table), (table.c.names != sa.literal({}, Json)) | (table.c.descriptions != sa.literal({}, Json)))
        .execution_options(yield_per=BATCH)
    )
    found: dict[str, set[str]] = {"name": set(), "description": set()}
    for names, descriptions in rows:
        found["name"].update(names)
        found["description"].update(descriptions)
    return [f"{text}.{tag}" for text, tags in found.items() for tag in sorted(tags)]


def _product(row: sa.Row[Any], relationships: list[Values]) -> Values:
    of_groups = Bundle.model_validate(row.bundle).expanded if row.bundle else Expanded({}, [])
    ids_of_groups = {rule["id"] for rule in of_groups.rules}
    return {
        "id": row.id,
        "sku": row.sku,
        "name": row.name,
        "names": row.names,
        "description": row.description,
        "descriptions": row.descriptions,
        "product_type": row.product_type,
        "category": row.category_id,
        "active": row.active,
        "attributes": row.attributes,
        "specs": row.specs,
        "options": {
            option["name"]: _option(option) for option in row.options if option["name"] not in of_groups.options
        },
        "rules": [rule for rule in row.rules.get("rules", []) if rule["id"] not in ids_of_groups],
        "recommend": row.rules.get("recommend", []),
        "relationships": relationships,
        "bundle": _without_defaults(Bundle, row.bundle) if row.bundle else None,
        "default_selling_model": row.default_selling_model,
        "unit": row.unit,
        "quantity_decimals": row.quantity_decimals,
    }


def _option(stored: Mapping[str, Any]) -> Values:
    declared = {name: value for name, value in stored.items() if name != "name"}
    return dict(spread(_without_defaults(OptionRow, declared), OPTION_TEXTS))


def _relationships(tx: Tx, ids: list[str]) -> dict[str, list[Values]]:
    query = (
        sa.select(tables.product_relation)
        .where(tx.own(tables.product_relation), tables.product_relation.c.product_id.in_(ids))
        .order_by(tables.product_relation.c.product_id, tables.product_relation.c.position)
    )
    found: dict[str, list[Values]] = defaultdict(list)
    for row in tx.connection.execute(query):
        quantity = {"quantity": row.quantity} if row.quantity != 1 else {}
        found[row.product_id].append({"kind": row.kind, "product_id": row.other_id, **quantity})
    return found


def _without_defaults(model: type[Row], values: Mapping[str, Any]) -> Values:
    """The values that are not defaults: an import fills in the rest."""
    return {
        name: value
        for name, value in values.items()
        if (field := model.model_fields[name]).is_required() or value != _as_stored(field.default)
    }


def _as_stored(default: object) -> object:
    return list(default) if isinstance(default, tuple) else default


def _watched(rows: Iterator[Values], total: int, progress: Progress) -> Iterator[Values]:
    for done, row in enumerate(rows, 1):
        yield row
        progress(done, total)


def _write_json(file: IO[str], sections: Mapping[str, Iterator[Values]]) -> dict[str, int]:
    written = dict.fromkeys(sections, 0)
    for position, (name, rows) in enumerate(sections.items()):
        file.write(f'{"," if position else "{"}\n"{name}": [')
        for row in rows:
            file.write(f"{',' if written[name] else ''}\n  {_json(row)}")
            written[name] += 1
        file.write("\n]")
    file.write("\n}\n")
    return written


def write_yaml(file: IO[str], sections: Mapping[str, Iterable[Values]]) -> dict[str, int]:
    """Write named lists of rows as YAML that is read back exactly; returns the count of each."""
    written = dict.fromkeys(sections, 0)
    for name, rows in sections.items():
        file.write(f"{name}:\n")
        for row in rows:
            file.write(yaml.dump([row], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
            written[name] += 1
        if not written[name]:
            file.write("  []\n")
    return written


def _write_csv(file: IO[str], kind: str, rows: Iterator[Values], columns: list[str]) -> dict[str, int]:
    """Nested values are JSON in their cell: a column for each would lose the difference between text and number."""
    writer = csv.writer(file, lineterminator="\r\n")  # Only so is a lone carriage return in a text quoted.
    writer.writerow(columns)
    written = 0
    for row in rows:
        writer.writerow([_csv_cell(row.get(column)) for column in columns])
        written += 1
    return {kind: written} if written else {}


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    # Hidden characters stay, because the file is read again; a formula comes back by `with_formula`.
    return without_formula(value) if isinstance(value, str) else _json(value)


_MARKED = re.compile(r'"\\u0000(-?[0-9.]+)\\u0000"')
_ESCAPED = re.compile("[\u2028\u2029\ufeff]")


def _json(value: object) -> str:
    """JSON with exact decimals. The YAML reader reads JSON files, and for it some more characters end a line."""
    written = json.dumps(value, ensure_ascii=False, default=_marked)
    if "\\u0000" in written:
        written = _MARKED.sub(r"\1", written)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _marked(value: object) -> str:
    """A decimal between NULs, which no stored text contains; the quotation marks are removed afterwards."""
    assert isinstance(value, Decimal), value
    return f"\0{_plain(value)}\0"


def _plain(number: Decimal) -> str:
    """Without exponent, which YAML would read as text."""
    return f"{number.normalize() + 0:f}"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # The C class if libyaml is installed.
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_decimal(dumper: Any, number: Decimal) -> Any:
    text = _plain(number)
    return dumper.represent_scalar("tag:yaml.org,2002:float" if "." in text else "tag:yaml.org,2002:int", text)


_Dumper.add_representer(Decimal, _represent_decimal)
