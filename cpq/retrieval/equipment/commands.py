"""Searches, reads and compares equipment."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import compress
from typing import Any

from cpq.app.corpus_changes import EQUIPMENT
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.domain.catalog.search_query import QUERY_LENGTH_MAX
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
from cpq.retrieval.search import table_source
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.scores import ITEMS
from cpq.retrieval.search.table_source import Source

MODELS_MAX = 20

_ACTIVE, _CODE = "active", "code="
_COMPARED_MAX = 50
"""Codes that are compared with an unknown one letter by letter, which is slow."""


Bounds = tuple[Decimal | None, Decimal | None]


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

    A product without a requested spec does not meet it: unknown is never a match.
    """
    where = _conditions(tx, bounds, words, category_id)
    found = table_source.current(tx, SOURCE).search(query, limit=top_k, where=where)
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
    if found.waiting:
        answer["indexing"] = found.waiting
    return answer


def get(tx: Tx, model: str) -> EquipmentDetail:
    """The product with this model, SKU or id; otherwise NOT_FOUND."""
    return {**product_view(_of_models(tx, [model])[0]), "notice": UNTRUSTED}


def compare(tx: Tx, models: Sequence[str]) -> EquipmentRows:
    """One row for each model, in the order asked for."""
    return {"items": [product_view(product) for product in _of_models(tx, models)], "notice": UNTRUSTED}


def _gather(tx: Tx, ids: Collection[str] | None) -> Iterator[Chunk]:
    for product in repository.searched(tx, ids):
        numbers = {name: value for name, value in product.specs.items() if not isinstance(value, str)}
        tags = {f"{name}={value}" for name, value in product.specs.items() if isinstance(value, str)}
        codes = {product.id, product.sku, *filter(None, [product.model])}
        tags |= {f"category={product.category_id}", *(_CODE + compact(code) for code in codes)}
        tags |= {_ACTIVE} if product.active else set()
        yield Chunk(product.id, product.id, product.description, product.name, product.specs_in_words(), tags, numbers)


SOURCE = Source(EQUIPMENT, ITEMS, _gather)


def _conditions(tx: Tx, bounds: Mapping[str, Bounds], words: Mapping[str, str], category_id: str | None) -> Where:
    declared = repository.declared_specs(tx)
    if category_id and category_id not in declared:
        near = nearest(category_id, declared) or None
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no category {category_id!r}.",
            field="/category",
            allowed=sorted(declared),
            nearest=near,
        )
    known = _definitions(declared.values())
    for name, (low, high) in bounds.items():
        _require_spec(known, name, "number")
        if low is not None and high is not None and low > high:
            raise bad_field(f"/{name}_min", f"The least {name} is above the most: {low} > {high}.", maximum=high)
    for name, word in words.items():
        allowed = _require_spec(known, name, "enum")
        if word not in allowed:
            reason = f"{word!r} is no value of {name}."
            raise bad_field(f"/{name}", reason, allowed=allowed, nearest=nearest(word, allowed) or None)
    tags = [f"{name}={word}" for name, word in words.items()] + ([f"category={category_id}"] if category_id else [])
    return Where(numbers=bounds, all_tags=[_ACTIVE, *tags], is_asked=bool(bounds or tags))


def _definitions(declared: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every spec that a category declares. A name has one kind and unit; the words of several categories add up."""
    known: dict[str, dict[str, Any]] = {}
    for specs in declared:
        for name, definition in specs.items():
            kept = known.setdefault(name, {"kind": definition["kind"], "values": []})
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


def _of_models(tx: Tx, models: Sequence[str]) -> list[Equipment]:
    corpus = table_source.current(tx, SOURCE)
    ids = [corpus.matching(Where(all_tags=[_CODE + compact(model)])) for model in models]
    is_wrong = [len(found) != 1 for found in ids]
    codes = [tag.removeprefix(_CODE) for tag in corpus.tags() if tag.startswith(_CODE)] if any(is_wrong) else []
    wrong = compress(zip(models, ids, strict=True), is_wrong)
    problems = [_problem(corpus, codes, model, found) for model, found in wrong]
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise CpqError(
            Code.NOT_FOUND,
            f"{len(problems)} of the {len(models)} models cannot be identified: {problems[0].message}",
            problems=[{"message": problem.message, **problem.details} for problem in problems],
        )
    products = repository.by_id(tx, [found[0] for found in ids])
    return [products[found[0]] for found in ids]


def _problem(corpus: Corpus, known: Sequence[str], model: str, found: Sequence[str]) -> CpqError:
    if found:
        return CpqError(
            Code.CONFLICT, f"{len(found)} products are called {model!r}.", allowed=sorted(found), hint="Use an id."
        )
    code = compact(model)
    alike = heapq.nlargest(_COMPARED_MAX, known, key=lambda other: (_same_ends(code, other), other))
    near = dict.fromkeys(id_ for one in nearest(code, alike) for id_ in corpus.matching(Where(all_tags=[_CODE + one])))
    return CpqError(
        Code.NOT_FOUND,
        f"There is no equipment {model!r}.",
        field="/model",
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
