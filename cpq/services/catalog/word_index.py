"""The catalogue's word index on both databases: written by the import, read by `catalog_search`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.domain.catalog.search_query import All, Any, Expression, Query, Term, Without, other_words
from cpq.domain.catalog.spelling import FEW_HITS, may_be_misspelt, nearest_words, shortened
from cpq.domain.catalog.words import scope_code, words
from cpq.storage.schema import tables
from cpq.storage.statements import insert_into_sqlite, insert_many

DICTIONARY_WORDS_MAX = 200_000
"""The most words that one import may add to the dictionary for typing errors."""


@dataclass(frozen=True)
class Hits:
    """One page of product ids in order, and the number of hits on all pages."""

    ids: list[str]
    total: int


def find(tx: Tx, text: str, *, category_id: str | None, active_only: bool, limit: int, offset: int) -> Hits:
    """Products whose words match, best kind of hit first, then by id; the order is stable over pages."""
    query = Query(text, scope_code(tx.tenant_id, category_id), active_only=active_only)
    sets = query.exact_sets()
    if not sets:
        return Hits([], 0)
    total = _count(tx, sets[-1])
    if total == 0:
        _require_entries(tx)
    if total < FEW_HITS and (near := _near_words(tx, query.words, other_words(words(text)))):
        sets += [Any((sets[-1], corrected)) for corrected in query.corrected_sets(near)]
        total = _count(tx, sets[-1])
    return Hits(_page(tx, sets, min(limit, total - offset), offset), total)


def with_most_words(tx: Tx, text: str, *, category_id: str | None, active_only: bool, limit: int) -> list[str]:
    """Products that have some of the words, those with more and rarer ones first."""
    query = Query(text, scope_code(tx.tenant_id, category_id), active_only=active_only)
    near = _near_words(tx, query.words, other_words(words(text)))
    return _page(tx, query.partial_sets(near, lambda part: _count(tx, part)), limit, 0)


def tenants(tx: Tx) -> list[str]:
    """Every tenant that has products."""
    return sorted(tx.connection.scalars(sa.select(tables.product.c.tenant_id).distinct()))


def count(tx: Tx) -> int:
    """The products of the tenant that the index has."""
    return tx.connection.scalar(_ENTRIES[tx.connection.dialect.name], {"tenant": tx.tenant_id}) or 0


def has_words(tx: Tx) -> bool:
    """Whether the dictionary for typing errors has any word of the tenant."""
    words_of_tenant = sa.exists().where(tx.own(tables.catalog_word))
    return bool(tx.connection.scalar(sa.select(words_of_tenant)))


def clear(tx: Tx) -> None:
    """Empty index and dictionary of all tenants, also ones that are damaged."""
    is_sqlite = tx.connection.dialect.name == "sqlite"
    for statement in (*(_SQLITE_CLEAR if is_sqlite else ("DELETE FROM catalog_index",)), "DELETE FROM catalog_word"):
        tx.connection.exec_driver_sql(statement)


def forget(tx: Tx, tenant_id: str) -> None:
    """Remove all products of one tenant from the index."""
    if tx.connection.dialect.name == "postgresql":
        tx.connection.execute(sa.text("DELETE FROM catalog_index WHERE tenant_id = :tenant"), {"tenant": tenant_id})
        return
    old = [{"row": row} for row in tx.connection.scalars(_SQLITE_ALL, {"tenant": tenant_id})]
    if old:
        tx.connection.execute(sa.text("DELETE FROM catalog_index WHERE rowid = :row"), old)
        tx.connection.execute(sa.text("DELETE FROM search_key WHERE row = :row"), old)


def index(tx: Tx, documents: Sequence[tuple[str, str]]) -> None:
    """Put products (id, terms) into the index, replacing their earlier terms."""
    if tx.connection.dialect.name == "postgresql":
        statement = sa.text(
            "INSERT INTO catalog_index (tenant_id, product_id, terms) "
            "SELECT :tenant, each.id, array_to_tsvector(string_to_array(each.terms, ' ')) "
            "FROM unnest(CAST(:ids AS text[]), CAST(:terms AS text[])) AS each (id, terms) "
            "ON CONFLICT (tenant_id, product_id) DO UPDATE SET terms = EXCLUDED.terms"
        )
        last = dict(documents)  # A statement changes no row twice.
        rows = {"tenant": tx.tenant_id, "ids": list(last), "terms": list(last.values())}
        tx.connection.execute(statement, rows)
        return
    ids = {"tenant": tx.tenant_id, "ids": json.dumps([id_ for id_, _ in documents])}
    old = [{"row": row} for row in tx.connection.scalars(_SQLITE_OLD, ids)]
    if old:
        tx.connection.execute(sa.text("DELETE FROM catalog_index WHERE rowid = :row"), old)
        tx.connection.execute(sa.text("DELETE FROM search_key WHERE row = :row"), old)
    first = (tx.connection.scalar(_SQLITE_LAST) or 0) + 1
    numbered = list(enumerate(documents, first))
    keys = ((row, product_id) for row, (product_id, _) in numbered)
    insert_into_sqlite(tx.connection, "search_key", ("row", "product_id"), keys, {"tenant_id": tx.tenant_id})
    terms = ((row, terms) for row, (_, terms) in numbered)
    insert_into_sqlite(tx.connection, "catalog_index", ("rowid", "terms"), terms)


def learn(tx: Tx, vocabulary: set[str]) -> None:
    """Add words that can be misspelt to the dictionary from which typing errors are corrected."""
    candidates = sorted(vocabulary)
    room = DICTIONARY_WORDS_MAX
    for start in range(0, len(candidates), 1000):
        part = candidates[start : start + 1000]
        known = sa.select(tables.catalog_word.c.word).where(
            tx.own(tables.catalog_word),
            tables.catalog_word.c.near == tables.catalog_word.c.word,
            tables.catalog_word.c.near.in_(part),
        )
        fresh = sorted(set(part).difference(tx.connection.scalars(known)))[:room]
        room -= len(fresh)
        rows = [
            {"tenant_id": tx.tenant_id, "near": spelling, "word": word}
            for word in fresh
            for spelling in dict.fromkeys(shortened(word))
        ]
        insert_many(tx.connection, tables.catalog_word, rows)


_ENTRIES = {
    # The join: an entry counts when it has both its row and its words.
    "sqlite": sa.text(
        "SELECT count(*) FROM search_key JOIN catalog_index_docsize ON id = row WHERE tenant_id = :tenant"
    ),
    "postgresql": sa.text("SELECT count(*) FROM catalog_index WHERE tenant_id = :tenant"),
}
_SQLITE_CLEAR = ("DELETE FROM search_key", "INSERT INTO catalog_index (catalog_index) VALUES ('delete-all')")
_SQLITE_OLD = sa.text(
    "SELECT row FROM search_key WHERE tenant_id = :tenant AND product_id IN (SELECT value FROM json_each(:ids))"
)
_SQLITE_ALL = sa.text("SELECT row FROM search_key WHERE tenant_id = :tenant")
_SQLITE_LAST = sa.text("SELECT max(row) FROM search_key")
_COUNT = {
    "sqlite": sa.text("SELECT count(*) FROM catalog_index WHERE catalog_index MATCH :match"),
    "postgresql": sa.text(
        "SELECT count(*) FROM catalog_index WHERE tenant_id = :tenant AND terms @@ CAST(:match AS tsquery)"
    ),
}
# CROSS JOIN fixes the order: the index first. A subquery on rowid would run again for every row.
_IDS = {
    "sqlite": sa.text(
        "SELECT product_id FROM catalog_index CROSS JOIN search_key ON search_key.row = catalog_index.rowid "
        "WHERE catalog_index MATCH :match AND tenant_id = :tenant ORDER BY product_id LIMIT :limit OFFSET :offset"
    ),
    "postgresql": sa.text(
        "SELECT product_id FROM catalog_index WHERE tenant_id = :tenant AND terms @@ CAST(:match AS tsquery) "
        'ORDER BY product_id COLLATE "C" LIMIT :limit OFFSET :offset'
    ),
}


def _page(tx: Tx, sets: Sequence[Expression], wanted: int, offset: int) -> list[str]:
    """Walk the kinds of hits from the best to the widest, skipping `offset`, until the page is full."""
    page: list[str] = []
    for position, whole in enumerate(sets):
        if len(page) >= wanted:
            break
        kind = Without(whole, sets[position - 1]) if position else whole
        parameters = {
            "tenant": tx.tenant_id,
            "match": _render(tx, kind),
            "limit": wanted - len(page),
            "offset": offset,
        }
        ids = tx.connection.execute(_IDS[tx.connection.dialect.name], parameters).scalars().all()
        if offset:
            offset = 0 if ids else offset - _count(tx, kind)
        page += ids
    return page


def _require_entries(tx: Tx) -> None:
    """No hits may mean that the index was lost: "nothing found" would then be wrong."""
    has_products = sa.select(tables.product.c.id).where(tx.own(tables.product)).limit(1)
    if tx.connection.scalar(has_products) is not None and count(tx) == 0:
        raise CpqError(
            Code.UNAVAILABLE,
            "The word index of the catalogue is empty, so nothing can be found.",
            hint="The operator runs `cpq repair`; a server over HTTP mends it within a minute by itself.",
            retry_after_seconds=60,
        )


def _count(tx: Tx, expression: Expression) -> int:
    parameters = {"match": _render(tx, expression)}
    if tx.connection.dialect.name == "postgresql":
        parameters["tenant"] = tx.tenant_id
    return tx.connection.scalar(_COUNT[tx.connection.dialect.name], parameters) or 0


def _near_words(tx: Tx, typed: Sequence[str], synonyms: dict[str, list[str]]) -> dict[str, list[str]]:
    """The alternatives of each word: words that it may be a typing error of, and its synonyms."""
    spellings = {word: set(shortened(word)) for word in typed if may_be_misspelt(word)}
    if not spellings:
        return synonyms
    query = sa.select(tables.catalog_word.c.near, tables.catalog_word.c.word).where(
        tx.own(tables.catalog_word), tables.catalog_word.c.near.in_(set().union(*spellings.values()))
    )
    found = tx.connection.execute(query).all()
    near = {
        word: nearest_words(word, (row.word for row in found if row.near in shorter))
        for word, shorter in spellings.items()
    }
    near = {word: [*near.get(word, ()), *synonyms.get(word, ())] for word in typed}
    return {word: others for word, others in near.items() if others}


def _render(tx: Tx, expression: Expression) -> str:
    is_sqlite = tx.connection.dialect.name == "sqlite"
    and_, or_, without = (" AND ", " OR ", " NOT ") if is_sqlite else (" & ", " | ", " & !")

    def render(part: Expression) -> str:
        if isinstance(part, Term):
            if is_sqlite:
                return f'"{part.text}" *' if part.is_prefix else f'"{part.text}"'
            return f"'{part.text}':*" if part.is_prefix else f"'{part.text}'"
        if isinstance(part, Without):
            return f"({render(part.wanted)}{without}{render(part.unwanted)})"
        return "(" + (and_ if isinstance(part, All) else or_).join(map(render, part.parts)) + ")"

    return render(expression)
