"""Catalogue search that lists the nearest products when no product has all words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from cpq.app.corpus_changes import EQUIPMENT
from cpq.app.transaction import Tx
from cpq.domain.catalog import units
from cpq.retrieval.equipment import repository
from cpq.retrieval.search import amounts, table_source
from cpq.retrieval.search.amounts import Stated
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.retrieval_notes import note, note_unscored
from cpq.retrieval.search.scores import PROBABLE_MISS, PRODUCTS
from cpq.retrieval.search.table_source import Source
from cpq.services import catalog
from cpq.services.catalog.views import CatalogPage, UnitConversion
from cpq.services.pagination import pagination

NEAREST_MAX = 20

_ACTIVE = "active"
_NEAR = ": check with catalog_get that one of them is what is wanted."
_FAR = ", but none is near: it is probably not sold here."


def search(
    tx: Tx, *, query: str | None, category_id: str | None, active_only: bool, limit: int, page: int, locale: str | None
) -> CatalogPage:
    """The products that have all words; without such products, the nearest ones, marked as such."""
    found = catalog.search(
        tx, query=query, category_id=category_id, active_only=active_only, limit=limit, page=page, locale=locale
    )
    category = (category_id or "").strip().lower()
    if not query or found["matched"] == "category" or found["pagination"]["total"]:
        return found
    if not sources(tx):
        near = _most_words(tx, query, category, active_only)
    else:
        corpus = table_source.current(tx, SOURCE)
        stated = amounts.stated(corpus, query)
        texts, made = units.converted(query, stated)
        for tried, text in enumerate(texts, 1):
            same = catalog.search(
                tx, query=text, category_id=category_id, active_only=active_only, limit=limit, page=page, locale=locale
            )
            if same["pagination"]["total"]:
                return {**same, "conversions": amounts.conversions(made, texts[:tried])}
        near = _nearest(tx, corpus, query, stated, category, active_only)
    if not near.ids:
        return found
    answer: CatalogPage = {
        "items": catalog.summaries(tx, near.ids[(page - 1) * limit : page * limit], locale),
        "pagination": pagination(len(near.ids), page, limit),
        "matched": "meaning",
        "hint": f"No product has all these words. {near.hint}",
    }
    if near.conversions:
        answer["conversions"] = near.conversions
    return answer


class _Near(NamedTuple):
    ids: list[str]
    hint: str
    conversions: list[UnitConversion]


def _nearest(tx: Tx, corpus: Corpus, query: str, stated: Stated, category: str, active_only: bool) -> _Near:
    tags = [_ACTIVE] * active_only + [f"category={category}"] * bool(category)
    where = Where(all_tags=tags, is_asked=False)
    near, conversions = amounts.search(corpus, query, stated, limit=NEAREST_MAX, where=where)
    note(tx, query, near.mode, [hit.score for hit in near.hits])
    ids = [hit.document_id for hit in near.hits if hit.confidence != PROBABLE_MISS]
    how = "meaning and words" if near.mode == "hybrid" else "words alone"
    hint = f"These are the nearest by {how}, best first{_NEAR if ids else _FAR}"
    return _Near(ids or [hit.document_id for hit in near.hits], hint, conversions)


def _most_words(tx: Tx, query: str, category: str, active_only: bool) -> _Near:
    """For a large catalogue, which is not in memory."""
    ids = catalog.with_most_words(tx, query, category_id=category or None, active_only=active_only, limit=NEAREST_MAX)
    note_unscored(tx, query, "lexical", len(ids))
    return _Near(ids, f"These have some of them, the rarest words first{_NEAR}", [])


def sources(tx: Tx) -> list[Source]:
    """The corpus of all products; none for a large catalogue."""
    return [SOURCE] if repository.is_small(tx) else []


def _gather(tx: Tx, ids: Collection[str] | None) -> Iterator[Chunk]:
    for product in repository.products(tx, ids):
        tags = {f"category={product.category_id}", *([_ACTIVE] if product.active else [])}
        name, text, words = product.name, product.description, product.words()
        yield Chunk(product.id, product.id, text, name, words, tags, also=product.uses)


SOURCE = Source(EQUIPMENT, PRODUCTS, _gather, variant="products")
"""Shares stored vectors with the corpus of equipment. The first search that needs it builds it."""
