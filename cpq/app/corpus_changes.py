"""Which documents of a corpus changed, recorded in the same transaction as the change."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant
from cpq.storage.upsert import upsert

EQUIPMENT = "equipment"
PAST_QUOTES = "past_quotes"
"""The corpora: products with specs, and quotes that were sent or imported as history."""

EVERYTHING = "*"
LISTED_MAX = 1_000
"""More changes than this at once are recorded as one that covers the whole corpus."""


def touch(tx: Tx, corpus: str, documents: Collection[str]) -> None:
    """Record that these documents were added, changed or removed; later searches see it."""
    if not documents:
        return
    ((generation,),) = _RAISE.rows(tx.connection, tenant_id=tx.tenant_id, corpus=corpus, generation=1)
    names = sorted(documents) if len(documents) <= LISTED_MAX else [EVERYTHING]
    _CHANGE.run_many(tx.connection, [(tx.tenant_id, corpus, name, generation) for name in names])


def generation(tx: Tx, corpus: str) -> int:
    """The newest change of a corpus; 0 when there was no change."""
    found = _GENERATION.rows(tx.connection, tenant=tx.tenant_id, corpus=corpus)
    return found[0][0] if found else 0


def since(tx: Tx, corpus: str, generation: int) -> list[str] | None:
    """The documents that changed after a generation; None when all must be checked."""
    found = list(tx.connection.scalars(_SINCE, {"tenant": tx.tenant_id, "corpus": corpus, "generation": generation}))
    return None if EVERYTHING in found else found


def _generation(_dialect: str) -> sa.Select[*tuple[int]]:
    head = tables.search_corpus
    mine = of_tenant(head, sa.bindparam("tenant")) & (head.c.corpus == sa.bindparam("corpus"))
    return sa.select(head.c.generation).where(mine)


def _raise(dialect: str) -> sa.Executable:
    head = tables.search_corpus
    return upsert(dialect, head, {"generation": head.c.generation + sa.literal_column("1")}).returning(
        head.c.generation
    )


_RAISE = Statement(_raise)
_CHANGE = Statement(lambda dialect: upsert(dialect, tables.search_change))
_GENERATION = Statement(_generation)
_SINCE = (
    sa.select(tables.search_change.c.document_id)
    .where(
        of_tenant(tables.search_change, sa.bindparam("tenant")),
        tables.search_change.c.corpus == sa.bindparam("corpus"),
        tables.search_change.c.generation > sa.bindparam("generation"),
    )
    .order_by(tables.search_change.c.document_id)
)
