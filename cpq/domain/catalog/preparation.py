"""Preparation of imported rows: from a row of a file to database columns, or to its problems."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from cpq.base.errors import CpqError, nearest
from cpq.base.row_problems import Problem, SourceRow, faults
from cpq.base.text import canonical_json, read_json
from cpq.domain.catalog.accounts import AccountRow
from cpq.domain.catalog.prices import PriceBookRow, PriceRow
from cpq.domain.catalog.products import AttributeDefinition, CategoryRow, ProductRow, SpecDefinition
from cpq.domain.catalog.spelling import may_be_misspelt
from cpq.domain.catalog.words import Indexed, scope_code
from cpq.domain.configuration.declarations import QuoteRuleRow
from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.field_types import Number, Row
from cpq.domain.translations import CATEGORY_TEXTS, OPTION_TEXTS, PRODUCT_TEXTS, as_written, gathered


class Declared(NamedTuple):
    """The specs and attributes that a category declares for its products."""

    specs: Mapping[str, SpecDefinition]
    attributes: Mapping[str, AttributeDefinition]


class Prepared(NamedTuple):
    """A product ready for the database: its details, then its columns, payloads written as JSON."""

    line: int
    spec_values: dict[str, Decimal | str]
    relations: list[dict[str, Any]]
    terms: str
    id: str
    sku: str
    sku_key: str
    name: str
    description: str
    product_type: str
    category_id: str
    attributes: str
    specs: str
    options: str
    rules: str
    bundle: str | None
    active: bool
    content_hash: str
    default_selling_model: str | None
    unit: str | None
    quantity_decimals: int
    names: str
    descriptions: str

    def columns(self) -> tuple[Any, ...]:
        """In the order of PRODUCT_COLUMNS."""
        return self[-len(PRODUCT_COLUMNS) :]


class PreparedBatch(NamedTuple):
    ready: list[Prepared]
    problems: list[Problem]
    vocabulary: set[str]
    """Its words that can be misspelt."""
    refused: list[tuple[int, str]]
    """Line and id of the rows that cannot be read; rows that refer to them are not wrong for that."""


SECTIONS: dict[str, type[Row]] = {
    "categories": CategoryRow,
    "products": ProductRow,
    "price_books": PriceBookRow,
    "accounts": AccountRow,
    "prices": PriceRow,
    "rules": QuoteRuleRow,
}

ADDED_LATER = (
    *("tax_id", "purchase_order", "selling_model", "name", "names", "base_currency", "price_rounding"),
    *("unit", "minimum_spend", "maximum_spend", "billed", "cancellation_credit"),
)
"""Columns that count for the hash of a row only with a value, so that rows without it are still unchanged."""

PAYLOADS = ("attributes", "specs", "options", "rules", "bundle", "names", "descriptions")
"""Columns of a product that hold JSON."""

PRODUCT_COLUMNS = Prepared._fields[Prepared._fields.index("id") :]


def prepare_products(rows: Sequence[SourceRow], declared: Mapping[str, Declared], tenant_id: str) -> PreparedBatch:
    """Prepare products without the database; large files do this in a second process."""
    batch = PreparedBatch([], [], set(), [])
    with_specs = tuple(id_ for id_, kind in declared.items() if kind.specs)
    for source in rows:
        row, problems = validate(source)
        batch.problems.extend(problems)
        if row is None:
            batch.refused.append((source.line, id_of(source)))
        if isinstance(row, ProductRow):
            kind = declared.get(row.category, _NOTHING)
            if row.specs and not kind.specs:
                batch.problems.append(_without_specs(source.line, row.category, with_specs))
                row = row.model_copy(update={"specs": {}})
            batch.ready.append(_prepare(source.line, row, kind, tenant_id, batch))
    return batch._replace(vocabulary=set(filter(may_be_misspelt, batch.vocabulary)))


def id_of(source: SourceRow) -> str:
    """The id of a row that cannot be read otherwise; empty when it has none."""
    id_ = source.values.get("id")
    return id_ if isinstance(id_, str) else ""


def validate(source: SourceRow) -> tuple[Row | None, list[Problem]]:
    """The valid row, or every problem of it."""
    model = SECTIONS[source.section]
    try:
        return model.model_validate(_with_translations(source)), []
    except ValidationError as error:
        found = faults(error, source.line, model.model_fields)
        return None, [problem._replace(field=as_written(problem.field)) for problem in found]


def _with_translations(source: SourceRow) -> dict[str, Any]:
    """The values of a row, its `name.de` and the like gathered, also those of its options."""
    values = source.values
    if source.section not in _TRANSLATED:
        return values
    if any("." in name for name in values):
        values = gathered(values, _TRANSLATED[source.section])
    options = values.get("options")
    if not isinstance(options, dict):
        return values
    return {
        **values,
        "options": {
            name: gathered(option, OPTION_TEXTS) if isinstance(option, dict) else option
            for name, option in options.items()
        },
    }


def columns(row: Row, **others: Any) -> dict[str, Any]:
    """The columns of a row of any other kind than product. A later import compares the hash to find changes."""
    values = {name: value.value if isinstance(value, Enum) else value for name, value in row if name != "price_book"}
    values |= others
    counted = {name: value for name, value in values.items() if value or name not in ADDED_LATER}
    return {**values, "content_hash": _digest(canonical_json(counted))}


def dump(parts: Any) -> Any:
    """Nested rows as plain values, decimals kept."""
    if isinstance(parts, Mapping):
        return {name: part.model_dump(exclude_none=True) for name, part in parts.items()}
    return [part.model_dump(exclude_none=True) for part in parts]


_TRANSLATED = {"products": PRODUCT_TEXTS, "categories": CATEGORY_TEXTS}
_NOTHING = Declared({}, {})
_NUMBER: TypeAdapter[Decimal] = TypeAdapter(Number)


def _without_specs(line: int, category_id: str, known: tuple[str, ...]) -> Problem:
    """One problem of the category instead of one for each spec: the category is misspelt or was never imported."""
    reason = (
        f"{category_id!r} declares no specs, and this row has some; import it with its specs first, as JSON or YAML"
    )
    return Problem(line, "category", reason, _nearest_category(category_id, known) or None)


@lru_cache(maxsize=1024)
def _nearest_category(category_id: str, known: tuple[str, ...]) -> list[str]:
    return nearest(category_id, known)


def _prepare(line: int, row: ProductRow, declared: Declared, tenant_id: str, batch: PreparedBatch) -> Prepared:
    specs, attributes = {}, {}
    for name, given in row.specs.items():
        try:
            specs[name] = _typed_spec(declared.specs.get(name), given)
        except ValueError as error:
            near = None if name in declared.specs else nearest(name, declared.specs)
            batch.problems.append(Problem(line, f"specs.{name}", str(error), near))
    for name, value in row.attributes.items():
        try:
            attributes[name] = _typed_attribute(declared.attributes.get(name), value)
        except ValueError as error:
            batch.problems.append(Problem(line, f"attributes.{name}", str(error)))
    searched = _searched(row, specs, attributes)
    batch.vocabulary.update(searched.words)
    relations = [
        {"kind": r.kind.value, "other_id": r.product_id, "quantity": r.quantity, "position": position}
        for position, r in enumerate(row.relationships)
    ]
    terms = searched.terms((scope_code(tenant_id), scope_code(tenant_id, row.category)))
    prepared = Prepared(line, specs, relations, terms, *_product_columns(row, attributes, specs, relations))
    if row.options or row.rules or row.recommend or row.of_groups.options:
        batch.problems.extend(_unworkable(prepared))
    return prepared


def _unworkable(product: Prepared) -> list[Problem]:
    """Problems of options and rules, found by compiling them in their stored form, as every line check does."""
    try:
        compile_model(read_json(product.options), read_json(product.rules))
    except CpqError as error:
        found = cast("list[dict[str, str]]", error.details["problems"])
        return [Problem(product.line, fault["field"], fault["message"]) for fault in found]
    return []


def _product_columns(
    row: ProductRow, attributes: Mapping[str, Any], specs: Mapping[str, Any], relations: Sequence[Mapping[str, Any]]
) -> tuple[Any, ...]:
    """In the order of PRODUCT_COLUMNS."""
    # A list, because the declared order of options matters for configuration.
    of_groups = row.of_groups
    options = [{"name": name, **option.model_dump(exclude_none=True)} for name, option in row.options.items()]
    options += [{"name": name, **option} for name, option in of_groups.options.items()]
    constraints = [*dump(row.rules), *of_groups.rules]
    rules = {"rules": constraints, "recommend": dump(row.recommend)} if constraints or row.recommend else {}
    values = (
        row.id,
        row.sku,
        row.sku.casefold(),
        row.name,
        row.description,
        row.product_type.value,
        row.category,
        canonical_json(attributes) if attributes else "{}",
        canonical_json(specs) if specs else "{}",
        canonical_json(options) if options else "[]",
        canonical_json(rules) if rules else "{}",
        canonical_json(row.bundle.stored) if row.bundle else None,
        row.active,
    )
    # Texts contain no NUL, so text cannot move from one column to the next without changing the hash.
    written = "\0".join([*map(str, values), canonical_json(relations) if relations else "", *_later(row)])
    translations = (canonical_json(texts) if texts else "{}" for texts in (row.names, row.descriptions))
    return (*values, _digest(written), row.default_selling_model, row.unit, row.quantity_decimals, *translations)


def _later(row: ProductRow) -> list[str]:
    """Columns that came later, by name and only where they are set, so that the hashes of other products stay."""
    later = {
        "default_selling_model": row.default_selling_model,
        "unit": row.unit,
        "quantity_decimals": row.quantity_decimals,
        "names": canonical_json(row.names) if row.names else "",
        "descriptions": canonical_json(row.descriptions) if row.descriptions else "",
    }
    return [f"{name}={value}" for name, value in later.items() if value]


def _digest(written: str) -> str:
    """Hash of the stored values, not of their spelling: `1.50` and `1.5`, or names in another order, are no change."""
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()


def _typed_spec(definition: SpecDefinition | None, value: Decimal | str) -> Decimal | str:
    if definition is None:
        raise ValueError("is not a spec that the category declares")
    if definition.kind == "enum":
        if str(value) not in definition.values:
            raise ValueError(f"is not one of {', '.join(definition.values)}")
        return str(value)
    return _number(value)


def _typed_attribute(definition: AttributeDefinition | None, value: Any) -> Any:
    kind = definition.type if definition else "text" if isinstance(value, str) else "any"
    if kind in ("integer", "number"):
        number = _number(value)
        if kind == "integer" and number != number.to_integral_value():
            raise ValueError("is not a whole number")
        return number
    if kind == "boolean":
        if str(value).lower() not in ("true", "false"):
            raise ValueError("is neither true nor false")
        return str(value).lower() == "true"
    if definition and kind == "enum" and str(value) not in definition.values:
        raise ValueError(f"is not one of {', '.join(definition.values)}")
    return value if kind == "any" else str(value)


def _number(value: object) -> Decimal:
    try:
        if isinstance(value, bool):
            raise ValueError("is not a number")
        return _NUMBER.validate_python(value)
    except ValidationError as error:
        raise ValueError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None


def _searched(row: ProductRow, specs: Mapping[str, Decimal | str], attributes: Mapping[str, Any]) -> Indexed:
    facts = [value for value in attributes.values() if isinstance(value, str)] if attributes else ()
    words = [value for value in specs.values() if isinstance(value, str)] if specs else ()
    model = str(row.attributes.get("model", ""))
    return Indexed(
        codes=(row.id, row.sku, model) if model else (row.id, row.sku),
        titles=(row.name, row.sku, model, *row.names.values()),
        prose=(row.description, *row.descriptions.values(), row.category, *facts, *words),
        is_active=row.active,
    )
