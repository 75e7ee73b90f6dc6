"""Corpora and the database: built from tables and kept in step with them, with vectors that outlive the process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import sqlalchemy as sa

from cpq.app import App, Call, corpus_changes
from cpq.app.access import ENGINE
from cpq.app.transaction import Tx
from cpq.retrieval.search.corpus import Corpus, new_corpus
from cpq.retrieval.search.embedding import MODEL
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.scores import Scale
from cpq.retrieval.search.vectors import Vector, from_bytes
from cpq.storage.schema import search_vector
from cpq.storage.upsert import insert_if_absent

BATCH = 32
"""Texts that are embedded and stored together; a killed process loses no more than this."""

ROUND = 8
BUSY_SECONDS, IDLE_SECONDS = 0.05, 5.0
"""A server embeds in small bites with a breath in between, so that calls come first."""

WAIT_SECONDS = 0.2
"""How long a search waits for another that is bringing the corpus up to date, before it takes the corpus as it is."""

_ONE_BY_ONE_MAX = 5_000


class Source(NamedTuple):
    """A corpus that is made of tables. Whoever changes them calls `changes.touch` with the documents' ids."""

    corpus: str
    scale: Scale
    gather: Callable[[Tx, Collection[str] | None], Iterable[Chunk]]
    """The passages of these documents; of all when None."""
    stream: str = ""
    """Under which name `touch` is called, when several corpora are made of the same tables."""
    variant: str = ""
    """Sets apart in memory what some callers may search and others may not; the vectors are the same."""
    basis: object = None
    """What every passage depends on: when it is another object, all are gathered again."""


def current(tx: Tx, source: Source) -> Corpus:
    """The corpus as of this transaction. It is built when it is first asked for, later only what changed is read.

    Where a loop follows it, a change of everything is left to that, and a search takes the corpus as it is.
    """
    corpus: Corpus = tx.kept.setdefault(
        (tx.tenant_id, source.corpus, source.variant), new_corpus(source.corpus, source.scale)
    )
    newest = corpus_changes.generation(tx, source.stream or source.corpus)
    if _is_current(source, corpus, newest) or (corpus.is_followed and _changed(tx, source, corpus) is None):
        return corpus
    if not corpus.lock.acquire(timeout=-1 if corpus.generation is None else WAIT_SECONDS):
        return corpus
    try:
        _catch_up(tx, source, corpus, newest)
    finally:
        corpus.lock.release()
    return corpus


def load_vectors(tx: Tx, corpus: Corpus) -> None:
    """Take over stored vectors for texts that have none in memory."""
    for part in _stored(tx, corpus, corpus.missing()):
        corpus.fill(part)


def embed(
    app: App,
    call: Call,
    corpus: Corpus,
    *,
    limit: int | None = None,
    newest_first: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> int:
    """Reckon and store vectors that are missing, batch by batch, each kept for good; how many were reckoned.

    `call` is whose tenant it is done for. A kill in between loses one batch, and the next run goes on from there. What
    another process, or another variant of the corpus, has stored meanwhile is taken over. Calls that wait for their own
    texts take the newest first, and so meet the server's rounds, not double them.
    """
    todo = len(corpus.missing(limit))
    done = reckoned = 0
    progress(0, todo)
    while done < todo and (batch := corpus.missing(min(BATCH, todo - done), newest_first=newest_first)):
        known = app.read_unaudited(call, lambda tx, batch=batch: list(_stored(tx, corpus, batch)))  # type: ignore[misc] # A default.
        for part in known:
            corpus.fill(part)
        if made := corpus.embed(len(batch) - sum(map(len, known)), newest_first=newest_first):
            app.upkeep(call, lambda tx, made=made: store_vectors(tx, corpus.name, made))  # type: ignore[misc] # A default.
        done += len(batch)
        reckoned += len(made)
        progress(done, todo)
    return reckoned


def embed_round(
    app: App, sources: Sequence[Source], variants: Callable[[Tx, Source], Sequence[Source]] | None = None
) -> float:
    """A little of what waits for a vector in any corpus of this process; in how many seconds to come again.

    The first round builds the corpora, with those variants that somebody may ask for, so that no caller waits for it.
    """

    def follow(tx: Tx, source: Source) -> None:
        _followed(tx, variants(tx, source) if variants else [source])

    for source in sources:
        app.read_unaudited(app.new_call(ENGINE), partial(follow, source=source))
    for key, corpus in list(app.kept.items()):
        if isinstance(corpus, Corpus) and corpus.has_missing():
            call = app.new_call(replace(ENGINE, tenant_id=key[0]))
            embed(app, call, corpus, limit=ROUND)
            return BUSY_SECONDS
    return IDLE_SECONDS


def _followed(tx: Tx, sources: Sequence[Source]) -> None:
    """The corpora brought up to date here and now, and from now on by whoever calls this again and again."""
    for source in sources:
        corpus = current(tx, source)
        with corpus.lock:
            _catch_up(tx, source, corpus, corpus_changes.generation(tx, source.stream or source.corpus))
        corpus.is_followed = True


def store_vectors(tx: Tx, corpus: str, vectors: dict[bytes, Vector]) -> None:
    rows = [
        {
            "tenant_id": tx.tenant_id,
            "corpus": corpus,
            "model": MODEL,
            "text_hash": name.hex(),
            "vector": vector.to_bytes(),
        }
        for name, vector in vectors.items()
    ]
    if rows:
        tx.connection.execute(insert_if_absent(tx.connection.dialect.name, search_vector), rows)


def forget_vectors(tx: Tx, *variants: Corpus) -> int:
    """Delete the stored vectors of texts that are in no variant of a corpus any more; how many there were."""
    known = {name.hex() for corpus in variants for name in corpus.hashes()}
    mine = tx.own(search_vector) & (search_vector.c.corpus == variants[0].name)
    stored = tx.connection.scalars(sa.select(search_vector.c.text_hash).where(mine)).all()
    gone = [name for name in stored if name not in known]
    for start in range(0, len(gone), _ONE_BY_ONE_MAX):
        part = gone[start : start + _ONE_BY_ONE_MAX]
        tx.connection.execute(sa.delete(search_vector).where(mine, tx.own_among(search_vector.c.text_hash, part)))
    return len(gone)


def _stored(tx: Tx, corpus: Corpus, names: Sequence[bytes]) -> Iterator[dict[bytes, Vector]]:
    """What is stored of these texts' vectors, in parts."""
    if not names:
        return
    mine = sa.select(search_vector.c.text_hash, search_vector.c.vector).where(
        tx.own(search_vector),
        search_vector.c.corpus == corpus.name,
        search_vector.c.model == MODEL,
    )
    wanted = {name.hex() for name in names}
    if len(wanted) <= _ONE_BY_ONE_MAX:
        mine = mine.where(tx.own_among(search_vector.c.text_hash, wanted))
    rows = iter(tx.connection.execute(mine))
    while part := list(islice(rows, 10_000)):
        yield {bytes.fromhex(row.text_hash): from_bytes(row.vector) for row in part if row.text_hash in wanted}


def _is_current(source: Source, corpus: Corpus, newest: int) -> bool:
    return corpus.generation is not None and corpus.generation >= newest and corpus.basis is source.basis


def _changed(tx: Tx, source: Source, corpus: Corpus) -> list[str] | None:
    """The documents to read again; None when it is all of them."""
    if corpus.generation is None or corpus.basis is not source.basis:
        return None
    return corpus_changes.since(tx, source.stream or source.corpus, corpus.generation)


def _catch_up(tx: Tx, source: Source, corpus: Corpus, newest: int) -> None:
    if _is_current(source, corpus, newest):
        return
    changed = _changed(tx, source, corpus)
    if changed is None:
        corpus.replace_all(source.gather(tx, None))
    else:
        corpus.change(source.gather(tx, changed), changed)
    load_vectors(tx, corpus)
    corpus.generation, corpus.basis = newest, source.basis
