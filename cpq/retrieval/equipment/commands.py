"""Searches, reads and compares equipment."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import compress, pairwise
from typing import Any

from cpq.app.corpus_changes import EQUIPMENT
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.domain.catalog import units
from cpq.domain.catalog.search_query import QUERY_LENGTH_MAX
from cpq.domain.catalog.units import Amount, Unit
from cpq.domain.catalog.words import compact
from cpq.retrieval.equipment import repository
from cpq.retrieval.equipment.repository import Equipment
from cpq.retrieval.equipment.views import (
    UNTRUSTED,
    EquipmentDetail,
    EquipmentFound,
    EquipmentRows,
    hit_view,
    product_view,
)
from cpq.retrieval.search import amounts, table_source
from cpq.retrieval.search.amounts import Stated
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.retrieval_notes import note
from cpq.retrieval.search.scores import PRODUCTS
from cpq.retrieval.search.table_source import Source
from cpq.services.catalog.views import UnitConversion

MODELS_MAX = 20

_ACTIVE, _CODE = "active", "code="
_COMPARED_MAX = 50
"""Codes that are compared with an unknown one letter by letter, which is slow."""


Limit = Decimal | Amount
Bounds = tuple[Limit | None, Limit | None]
"""Smallest and largest value; a number is in the unit of the spec, an amount in its own."""

Exact = Decimal | Fraction


def search(
    tx: Tx,
    query: str,
    *,
    bounds: Mapping[str, Bounds],
    words: Mapping[str, str],
    category_id: str | None = None,
    top_k: int,
) -> EquipmentFound:
    """The products that meet every bound and word, best match first.

    A product without a requested spec does not meet it: unknown is never a match. One that is no longer sold is found
    only by a query that names its model, SKU or id. A query with amounts in other units
    than the products have is searched in both forms; a product has the better of its scores.
    """
    declared = repository.declared_specs(tx)
    known = _definitions(declared.values())
    exact, conversions = _in_units_of_specs(known, bounds)
    where = _conditions(query, declared, known, exact, words, category_id)
    corpus = table_source.current(tx, SOURCE)
    stated = _stated(corpus, known, units.kinds(query))
    found, of_query = amounts.search(corpus, query, stated, limit=top_k, where=where)
    conversions += of_query
    note(tx, query, found.mode, [hit.score for hit in found.hits])
    products = repository.by_id(tx, [hit.document_id for hit in found.hits])
    answer: EquipmentFound = {
        "results": [
            hit_view(hit, products[hit.document_id], found.words) for hit in found.hits if hit.document_id in products
        ],
        "eligible": found.eligible,
        "mode": found.mode,
        "corrections": found.corrections,
        "notice": UNTRUSTED,
    }
    if conversions:
        answer["conversions"] = conversions
    if found.waiting:
        answer["indexing"] = found.waiting
    return answer


def get(tx: Tx, model: str) -> EquipmentDetail:
    """The product with this model, SKU or id; otherwise NOT_FOUND."""
    return {**product_view(_of_models(tx, {"/model": model})[0]), "notice": UNTRUSTED}


def compare(tx: Tx, models: Sequence[str]) -> EquipmentRows:
    """One row for each model, in the order asked for."""
    asked = {f"/models/{place}": model for place, model in enumerate(models)}
    return {"items": [product_view(product) for product in _of_models(tx, asked)], "notice": UNTRUSTED}


def _gather(tx: Tx, ids: Collection[str] | None) -> Iterator[Chunk]:
    for product in repository.searched(tx, ids):
        numbers = {name: value for name, value in product.specs.items() if not isinstance(value, str)}
        tags = {f"{name}={value}" for name, value in product.specs.items() if isinstance(value, str)}
        codes = {product.id, product.sku, *filter(None, [product.model])}
        tags |= {f"category={product.category_id}", *(_CODE + compact(code) for code in codes)}
        tags |= {_ACTIVE} if product.active else set()
        name, text, words = product.name, product.description, product.words()
        yield Chunk(product.id, product.id, text, name, words, tags, numbers, also=product.uses)


SOURCE = Source(EQUIPMENT, PRODUCTS, _gather)


def _stated(corpus: Corpus, known: Mapping[str, dict[str, Any]], kinds: Collection[str]) -> Stated:
    """The numbers of these kinds of all products, by their unit."""
    stated: dict[Unit, Counter[Decimal]] = {}
    for name, definition in known.items():
        unit = units.unit_named(definition["unit"]) if kinds else None
        if unit and unit.kind in kinds:
            stated.setdefault(unit, Counter()).update(Decimal(repr(value)) for value in corpus.values(name))
    return stated


def _in_units_of_specs(
    known: Mapping[str, dict[str, Any]], bounds: Mapping[str, Bounds]
) -> tuple[dict[str, tuple[Exact | None, Exact | None]], list[UnitConversion]]:
    """Every bound as a number in the unit of its spec, and what was converted."""
    conversions: list[UnitConversion] = []

    def number(name: str, end: str, limit: Limit | None) -> Exact | None:
        if not isinstance(limit, Amount):
            return limit
        _require_spec(known, name, "number")
        unit = units.unit_named(known[name]["unit"])
        if unit is None or unit.kind != limit.unit.kind:
            reason = f"{limit} cannot be compared with {name}, which is in {known[name]['unit'] or 'no unit'}."
            raise bad_field(f"/{name}_{end}", reason)
        if unit == limit.unit:
            return limit.number
        exact = limit.in_unit(unit)
        conversions.append({"argument": f"{name}_{end}", "from": str(limit), "to": f"{units.shown(exact)} {unit.name}"})
        return exact

    exact = {name: (number(name, "min", low), number(name, "max", high)) for name, (low, high) in bounds.items()}
    return exact, conversions


def _conditions(
    query: str,
    declared: Mapping[str, Any],
    known: Mapping[str, dict[str, Any]],
    bounds: Mapping[str, tuple[Exact | None, Exact | None]],
    words: Mapping[str, str],
    category_id: str | None,
) -> Where:
    if category_id and category_id not in declared:
        near = nearest(category_id, declared) or None
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no category {category_id!r}.",
            field="/category",
            allowed=sorted(declared),
            nearest=near,
        )
    for name, (low, high) in bounds.items():
        _require_spec(known, name, "number")
        if low is not None and high is not None and Fraction(low) > Fraction(high):
            least, most = (units.shown(end) if isinstance(end, Fraction) else end for end in (low, high))
            raise bad_field(f"/{name}_min", f"The least {name} is above the most: {least} > {most}.", maximum=most)
    for name, word in words.items():
        allowed = _require_spec(known, name, "enum")
        if word not in allowed:
            reason = f"{word!r} is no value of {name}."
            raise bad_field(f"/{name}", reason, allowed=allowed, nearest=nearest(word, allowed) or None)
    tags = [f"{name}={word}" for name, word in words.items()] + ([f"category={category_id}"] if category_id else [])
    sold_or_named = [_ACTIVE, *(_CODE + code for code in _codes(query))]
    return Where(numbers=bounds, all_tags=tags, any_tags=[sold_or_named], is_asked=bool(bounds or tags))


def _codes(query: str) -> set[str]:
    """What may be a code in a query: words with a digit, and each two words side by side, `DR 150`."""
    words = query.split()
    codes = map(compact, [*words, *map("".join, pairwise(words))])
    return {code for code in codes if any(map(str.isdigit, code))}


def _definitions(declared: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every spec that a category declares. A name has one kind and unit; the words of several categories add up."""
    known: dict[str, dict[str, Any]] = {}
    for specs in declared:
        for name, definition in specs.items():
            kept = known.setdefault(name, {"kind": definition["kind"], "unit": definition.get("unit"), "values": []})
            kept["values"] = list(dict.fromkeys([*kept["values"], *(definition.get("values") or ())]))
    return known


def _require_spec(known: Mapping[str, dict[str, Any]], name: str, kind: str) -> list[str]:
    """The words that a spec allows; VALIDATION_ERROR when no category declares such a spec."""
    definition = known.get(name)
    if definition is None or definition["kind"] != kind:
        alike = sorted(other for other, each in known.items() if each["kind"] == kind)
        what = "a number to compare" if kind == "number" else "one of listed words"
        raise bad_field(
            f"/{name}", f"No product has {name} as {what}.", allowed=alike, nearest=nearest(name, alike) or None
        )
    words: list[str] = definition["values"]
    return words


def _of_models(tx: Tx, models: Mapping[str, str]) -> list[Equipment]:
    """The products of these models, which come under the names of their arguments."""
    corpus = table_source.current(tx, SOURCE)
    ids = [corpus.matching(Where(all_tags=[_CODE + compact(model)])) for model in models.values()]
    is_wrong = [len(found) != 1 for found in ids]
    codes = [tag.removeprefix(_CODE) for tag in corpus.tags() if tag.startswith(_CODE)] if any(is_wrong) else []
    wrong = compress(zip(models.items(), ids, strict=True), is_wrong)
    problems = [_problem(corpus, codes, field, model, found) for (field, model), found in wrong]
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise CpqError(
            Code.NOT_FOUND,
            f"{len(problems)} of the {len(models)} models cannot be identified: {problems[0].message}",
            field="/models",
            problems=[{"message": problem.message, **problem.details} for problem in problems],
        )
    products = repository.by_id(tx, [found[0] for found in ids])
    return [products[found[0]] for found in ids]


def _problem(corpus: Corpus, known: Sequence[str], field: str, model: str, found: Sequence[str]) -> CpqError:
    if found:
        message = f"{len(found)} products are called {model!r}."
        return CpqError(Code.CONFLICT, message, field=field, allowed=sorted(found), hint="Use an id.")
    code = compact(model)
    alike = heapq.nlargest(_COMPARED_MAX, known, key=lambda other: (_same_ends(code, other), other))
    near = dict.fromkeys(id_ for one in nearest(code, alike) for id_ in corpus.matching(Where(all_tags=[_CODE + one])))
    return CpqError(
        Code.NOT_FOUND,
        f"There is no equipment {model!r}.",
        field=field,
        nearest=list(near) or None,
        next_call=next_call("search_equipment", query=model[:QUERY_LENGTH_MAX]),
    )


def _same_ends(one: str, other: str) -> int:
    """Number of equal characters at the beginning and the end: a typing error leaves most of them."""
    same = 0
    for pairs in (zip(one, other, strict=False), zip(reversed(one), reversed(other), strict=False)):
        for mine, theirs in pairs:
            if mine != theirs:
                break
            same += 1
    return same
