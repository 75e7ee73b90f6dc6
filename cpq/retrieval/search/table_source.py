"""Corpora built from database tables: built on first use, then updated with the documents that changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cpq.app import App, corpus_changes
from cpq.app.access import ENGINE
from cpq.app.transaction import Tx
from cpq.retrieval.search import vector_repository
from cpq.retrieval.search.corpus import Corpus, new_corpus
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.passage_vectors import text_hash
from cpq.retrieval.search.scores import Scale

ROUND = 8
"""Texts that a server embeds in one round."""

BUSY_SECONDS, IDLE_SECONDS = 0.05, 5.0
"""Pause of the server between two rounds, so that calls come first."""

WAIT_SECONDS = 0.2
"""How long a search waits for another thread's update before it uses the corpus as it is."""


class Source(NamedTuple):
    """Describes a corpus built from tables. Code that changes the tables calls `corpus_changes.touch` with the ids."""

    corpus: str
    scale: Scale
    gather: Callable[[Tx, Collection[str] | None], Iterable[Chunk]]
    """Reads the passages of these documents; of all documents for None."""
    stream: str = ""
    """Name given to `touch`, when several corpora are built from the same tables."""
    variant: str = ""
    """Separates in memory what only some callers may search; the stored vectors are shared."""
    basis: object = None
    """What every passage depends on: when it is another object, all passages are read again."""


def current(tx: Tx, source: Source) -> Corpus:
    """The corpus as of this transaction. The first call builds it; later calls read only what changed.

    When a loop of this process follows the corpus, a full rebuild is left to the loop; the search uses the old state.
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
        _update(tx, source, corpus, newest)
    finally:
        corpus.lock.release()
    return corpus


def progress(tx: Tx, source: Source) -> tuple[int, int]:
    """How many different texts of a corpus have a stored vector, and how many there are; builds nothing."""
    texts = {text_hash(text) for chunk in source.gather(tx, None) for text in chunk.texts}
    return len(texts & vector_repository.stored_names(tx, source.corpus)), len(texts)


def embed_round(
    app: App, sources: Sequence[Source], variants: Callable[[Tx, Source], Sequence[Source]] | None = None
) -> float:
    """Embed a few of the texts that wait for a vector, in any corpus; returns the pause before the next round.

    The first round builds the corpora and the given variants, so that no caller waits for it.
    """

    def follow(tx: Tx, source: Source) -> dict[str, object]:
        _follow(tx, variants(tx, source) if variants else [source])
        return {}

    for source in sources:
        app.read_unaudited(app.new_call(ENGINE), partial(follow, source=source))
    everything = [app.kept, *(loaded.kept for loaded in app.tenants.all())]
    for key, corpus in [one for kept in everything for one in list(kept.items())]:
        if isinstance(corpus, Corpus) and corpus.has_missing():
            call = app.new_call(replace(ENGINE, tenant_id=key[0]))
            vector_repository.embed(app, call, corpus, limit=ROUND)
            return BUSY_SECONDS
    return IDLE_SECONDS


def _follow(tx: Tx, sources: Sequence[Source]) -> None:
    """Update these corpora now, and mark them as updated by a loop."""
    for source in sources:
        corpus = current(tx, source)
        with corpus.lock:
            _update(tx, source, corpus, corpus_changes.generation(tx, source.stream or source.corpus))
        corpus.is_followed = True


def _is_current(source: Source, corpus: Corpus, newest: int) -> bool:
    return corpus.generation is not None and corpus.generation >= newest and corpus.basis is source.basis


def _changed(tx: Tx, source: Source, corpus: Corpus) -> list[str] | None:
    """The documents to read again; None means all of them."""
    if corpus.generation is None or corpus.basis is not source.basis:
        return None
    return corpus_changes.since(tx, source.stream or source.corpus, corpus.generation)


def _update(tx: Tx, source: Source, corpus: Corpus, newest: int) -> None:
    if _is_current(source, corpus, newest):
        return
    changed = _changed(tx, source, corpus)
    if changed is None:
        corpus.replace_all(source.gather(tx, None))
    else:
        corpus.change(source.gather(tx, changed), changed)
    vector_repository.load(tx, corpus)
    corpus.generation, corpus.basis = newest, source.basis
