"""The stored vectors of all corpora: loads them, computes missing ones, and deletes those of texts that are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import sqlalchemy as sa

from cpq.app import App, Call
from cpq.app.transaction import Tx
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.installed_model import MODEL
from cpq.retrieval.search.vectors import STORED_BYTES, Vector, from_bytes
from cpq.storage.schema import tables
from cpq.storage.upsert import upsert

BATCH = 32
"""Texts that are embedded and stored in one transaction; a killed process loses at most this many."""

_LISTED_MAX = 5_000
"""Text hashes in one statement; for more, all vectors of the corpus are read."""

Progress = Callable[[int, int], None]
"""Receives how many texts are done, and how many there are."""


def no_progress(_done: int, _total: int) -> None:
    """For callers that do not show progress."""


def load(tx: Tx, corpus: Corpus) -> None:
    """Fill a corpus with the stored vectors of the texts that have none in memory."""
    for part in _stored(tx, corpus, corpus.missing()):
        corpus.fill(part)


def stored_names(tx: Tx, corpus: str) -> set[bytes]:
    """The hashes of all texts of a corpus that have a stored vector."""
    return set(map(bytes.fromhex, tx.connection.scalars(sa.select(_VECTOR.text_hash).where(_whole(tx, corpus)))))


def embed(
    app: App,
    call: Call,
    corpus: Corpus,
    *,
    limit: int | None = None,
    newest_first: bool = False,
    progress: Progress = no_progress,
) -> int:
    """Compute and store missing vectors, each batch in its own transaction; returns how many were computed.

    The tenant is that of `call`. A killed process loses one batch, and the next run continues after it. Vectors that
    another process or another variant of the corpus stored meanwhile are loaded. Calls that wait for their own texts
    take the newest first, while the server's rounds take the oldest, so that the two do not do the same work.
    """
    todo = len(corpus.missing(limit))
    done = computed = 0
    progress(0, todo)
    while done < todo and (batch := corpus.missing(min(BATCH, todo - done), newest_first=newest_first)):
        known = app.read_unaudited(call, lambda tx, batch=batch: {"parts": list(_stored(tx, corpus, batch))})["parts"]  # type: ignore[misc] # A default.
        for part in known:
            corpus.fill(part)
        if made := corpus.embed(len(batch) - sum(map(len, known)), newest_first=newest_first):
            app.upkeep(call, lambda tx, made=made: store(tx, corpus.name, made))  # type: ignore[misc] # A default.
        done += len(batch)
        computed += len(made)
        progress(done, todo)
    return computed


def store(tx: Tx, corpus: str, vectors: dict[bytes, Vector]) -> None:
    """Store vectors by text hash, in place of damaged ones; another process stored the same, if any."""
    rows = [
        {
            "tenant_id": tx.tenant_id,
            "corpus": corpus,
            "model": MODEL,
            "text_hash": name.hex(),
            "vector": vector.to_bytes(),
        }
        for name, vector in sorted(vectors.items())
    ]
    if rows:
        tx.connection.execute(upsert(tx.connection.dialect.name, tables.search_vector), rows)


def forget(tx: Tx, *variants: Corpus) -> int:
    """Delete the vectors of texts that no variant of a corpus holds any more; returns how many."""
    vector = tables.search_vector.c
    known = {name.hex() for corpus in variants for name in corpus.hashes()}
    mine = tx.own(tables.search_vector) & (vector.corpus == variants[0].name)
    stored = tx.connection.scalars(sa.select(vector.text_hash).where(mine)).all()
    gone = [name for name in stored if name not in known]
    for start in range(0, len(gone), _LISTED_MAX):
        part = gone[start : start + _LISTED_MAX]
        tx.connection.execute(sa.delete(tables.search_vector).where(mine, tx.own_among(vector.text_hash, part)))
    return len(gone)


def _stored(tx: Tx, corpus: Corpus, names: Sequence[bytes]) -> Iterator[dict[bytes, Vector]]:
    """The stored vectors of these text hashes, in parts."""
    if not names:
        return
    mine = sa.select(_VECTOR.text_hash, _VECTOR.vector).where(_whole(tx, corpus.name))
    wanted = {name.hex() for name in names}
    if len(wanted) <= _LISTED_MAX:
        mine = mine.where(tx.own_among(_VECTOR.text_hash, wanted))
    rows = iter(tx.connection.execute(mine))
    while part := list(islice(rows, 10_000)):
        yield {bytes.fromhex(row.text_hash): from_bytes(row.vector) for row in part if row.text_hash in wanted}


_VECTOR = tables.search_vector.c


def _whole(tx: Tx, corpus: str) -> sa.ColumnElement[bool]:
    """The vectors of a corpus by the installed model. A damaged one counts as missing, and is computed again."""
    mine = tx.own(tables.search_vector) & (_VECTOR.corpus == corpus) & (_VECTOR.model == MODEL)
    return mine & (sa.func.length(_VECTOR.vector) == STORED_BYTES)
