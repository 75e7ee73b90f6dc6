"""Which documents of a corpus changed, written by whoever changes them, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from cpq.app.transaction import Tx
from cpq.storage.schema import search_change, search_corpus

EQUIPMENT = "equipment"
PAST_QUOTES = "past_quotes"
"""What is written down here: products with specs, and quotes that went out or were imported as history."""

EVERYTHING = "*"
LISTED_MAX = 1_000
"""More changes than this at once are written down as one: all of it is then compared again."""


def touch(tx: Tx, corpus: str, documents: Collection[str]) -> None:
    """Say that these documents were added, changed or removed; searches that begin later see it."""
    if not documents:
        return
    insert = sqlite_insert if tx.connection.dialect.name == "sqlite" else postgres_insert
    head = insert(search_corpus).values(tenant_id=tx.tenant_id, corpus=corpus, generation=1)
    generation = tx.connection.scalar(
        head.on_conflict_do_update(
            index_elements=["tenant_id", "corpus"], set_={"generation": search_corpus.c.generation + 1}
        ).returning(search_corpus.c.generation)
    )
    names = sorted(documents) if len(documents) <= LISTED_MAX else [EVERYTHING]
    rows = [
        {"tenant_id": tx.tenant_id, "corpus": corpus, "document_id": name, "generation": generation} for name in names
    ]
    change = insert(search_change)
    replaced = change.on_conflict_do_update(
        index_elements=["tenant_id", "corpus", "document_id"], set_={"generation": change.excluded.generation}
    )
    tx.connection.execute(replaced, rows)


def generation(tx: Tx, corpus: str) -> int:
    """The newest change of a corpus; 0 when none was ever written down."""
    return tx.connection.execute(_GENERATION, {"tenant": tx.tenant_id, "corpus": corpus}).scalar() or 0


def since(tx: Tx, corpus: str, generation: int) -> list[str] | None:
    """The documents that changed after a generation; None when all must be looked at."""
    found = list(tx.connection.scalars(_SINCE, {"tenant": tx.tenant_id, "corpus": corpus, "generation": generation}))
    return None if EVERYTHING in found else found


_GENERATION = sa.select(search_corpus.c.generation).where(
    search_corpus.c.tenant_id == sa.bindparam("tenant"), search_corpus.c.corpus == sa.bindparam("corpus")
)
_SINCE = (
    sa.select(search_change.c.document_id)
    .where(
        search_change.c.tenant_id == sa.bindparam("tenant"),
        search_change.c.corpus == sa.bindparam("corpus"),
        search_change.c.generation > sa.bindparam("generation"),
    )
    .order_by(search_change.c.document_id)
)
