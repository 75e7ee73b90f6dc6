"""Catalogue search that lists the nearest products when no product has all words."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from cpq.app.corpus_changes import EQUIPMENT
from cpq.app.transaction import Tx
from cpq.retrieval.equipment import repository
from cpq.retrieval.search import table_source
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.scores import ITEMS, PROBABLE_MISS
from cpq.retrieval.search.table_source import Source
from cpq.services import catalog
from cpq.services.catalog.views import CatalogPage
from cpq.services.pagination import pagination
from cpq.storage.schema import tables

NEAREST_MAX = 20

PRODUCTS_MAX = 5_000
"""A larger catalogue has no nearest hits: one search would read all of it into memory."""

_ACTIVE = "active"


def search(
    tx: Tx, *, query: str | None, category_id: str | None, active_only: bool, limit: int, page: int, locale: str | None
) -> CatalogPage:
    """The products that have all words; without such products, the nearest ones, marked as such."""
    found = catalog.search(
        tx, query=query, category_id=category_id, active_only=active_only, limit=limit, page=page, locale=locale
    )
    category = (category_id or "").strip().lower()
    if not query or found["matched"] == "category" or found["pagination"]["total"] or not sources(tx):
        return found
    tags = [_ACTIVE] * active_only + [f"category={category}"] * bool(category)
    near = table_source.current(tx, SOURCE).search(query, limit=NEAREST_MAX, where=Where(all_tags=tags, is_asked=False))
    ids = [hit.document_id for hit in near.hits if hit.confidence != PROBABLE_MISS]
    if not ids:
        return found
    how = "meaning and words" if near.mode == "hybrid" else "words alone"
    return {
        "items": catalog.summaries(tx, ids[(page - 1) * limit : page * limit], locale),
        "pagination": pagination(len(ids), page, limit),
        "matched": "nearest",
        "hint": f"No product has all these words. These are the nearest by {how}, best first: check with catalog_get"
        " that one of them is what is wanted.",
    }


def sources(tx: Tx) -> list[Source]:
    """The corpus of all products; none for a large catalogue."""
    some = sa.select(tables.product.c.id).where(tx.own(tables.product)).limit(PRODUCTS_MAX + 1).subquery()
    count = tx.connection.scalar(sa.select(sa.func.count()).select_from(some)) or 0
    return [SOURCE] if count <= PRODUCTS_MAX else []


def _gather(tx: Tx, ids: Collection[str] | None) -> Iterator[Chunk]:
    for product in repository.products(tx, ids):
        tags = {f"category={product.category_id}", *([_ACTIVE] if product.active else [])}
        yield Chunk(product.id, product.id, product.description, product.name, product.specs_in_words(), tags)


SOURCE = Source(EQUIPMENT, ITEMS, _gather, variant="products")
"""Shares stored vectors with the corpus of equipment. The first search that needs it builds it."""
