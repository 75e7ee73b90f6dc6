"""One corpus in this process: its current index, which a change replaces whole, and its model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from cpq.retrieval.search import segment_file
from cpq.retrieval.search.embedding import Embedder, installed_embedder
from cpq.retrieval.search.index import ANYWHERE, Chunk, Found, Index, Where
from cpq.retrieval.search.packed_texts import Arrays
from cpq.retrieval.search.scores import Scale, weight
from cpq.retrieval.search.segment_file import Content
from cpq.retrieval.search.vectors import Vector, similarity

WAITING_SHARE_MAX = 0.05
"""A few new texts do not take the meaning from all the others."""


class Corpus:
    """Safe for many threads: a search uses the index that was current when it began; changes take turns."""

    def __init__(self, name: str, scale: Scale, embedder: Embedder | None = None) -> None:
        self.name = name
        self.scale = scale
        self.embedder = embedder
        self.generation: int | None = None
        """The generation of `cpq.app.corpus_changes`, for corpora built from tables; None before the first build."""
        self.basis: object = None
        """The `basis` of `table_source.Source`, for corpora built from tables."""
        self.is_followed = False
        """Whether a loop of this process updates it, so that no search waits for a long update."""
        self.lock = threading.RLock()
        """Held during a change, never during a search."""
        self._index = Index()

    def __len__(self) -> int:
        return len(self._index)

    def documents(self) -> set[str]:
        return set(self._index.documents())

    def hashes(self) -> set[bytes]:
        """The hashes of all texts; see `passage_vectors.text_hash`."""
        return set(self._index.hashes())

    def change(self, chunks: Iterable[Chunk], removed: Collection[str] = ()) -> None:
        """Replace whole documents, and remove others.

        A search finds their words at once. A text that was indexed before keeps its vector; the others wait for one.
        """
        self.change_in_parts([chunks], removed)

    def change_in_parts(self, parts: Iterable[Iterable[Chunk]], removed: Collection[str] = ()) -> None:
        """Like `change`, for more than fits into memory at once: at least one part, and no document in two parts.

        A search sees all of the change or nothing.
        """
        with self.lock:
            index = self._index
            for part in parts:
                index = index.changed(part, removed, with_vectors=self.embedder is not None)
                removed = ()
            self._index = index

    def replace_all(self, chunks: Iterable[Chunk]) -> None:
        """Make the corpus hold exactly these chunks; unchanged texts keep their vectors."""
        fresh = list(chunks)
        with self.lock:
            self.change(fresh, self.documents() - {chunk.document_id for chunk in fresh})

    def keep(self, path: Path, content_of: Callable[[Any], Content], about: Any) -> None:
        """Store the index in a file; no text may wait for its vector."""
        with self.lock:
            segment_file.write(path, self._index.whole(), content_of, about)

    def use(self, arrays: Arrays, payload_of: Callable[[str, memoryview], Any]) -> None:
        """Replace the index by that of a file, which stays there."""
        segment = segment_file.mapped(arrays, payload_of)
        with self.lock:
            self._index = Index([(segment, np.ones(len(segment.ids), bool))])

    def search(self, query: str, *, limit: int, where: Where = ANYWHERE) -> Found:
        """The best hits among the passages that pass `where`, and how they were found.

        While more than a few passages wait for their vectors, words alone decide, so that all scores have one scale.
        """
        index = self._index
        if self.embedder is None or not len(index):
            return index.search(query, None, scale=self.scale, limit=limit, where=where)
        waiting, total = index.waiting() if index.has_missing() else 0, len(index)
        if waiting > WAITING_SHARE_MAX * total:
            found = index.search(query, None, scale=self.scale, limit=limit, where=where)
            return found._replace(waiting=f"{total - waiting:,} of {total:,} texts can be found by meaning so far")
        return index.search(query, self.embedder.query(query), scale=self.scale, limit=limit, where=where)

    def nearness(self, query: str, texts: Sequence[str]) -> list[float] | None:
        """How near short texts outside the index are to a query, -1 to 1; None without the model. 5 to 10 ms each."""
        if self.embedder is None:
            return None
        asked = self.embedder.query(query)
        return [similarity(asked, vector) for vector in self.embedder.short_texts(texts)]

    def rarity(self, term: str) -> float:
        """The weight of a term: high when few passages hold it, highest when none does."""
        index = self._index
        return weight(index.count(term), len(index))

    def tags(self) -> set[str]:
        """Every tag of any passage."""
        return self._index.tags()

    def values(self, name: str) -> list[float]:
        """The numbers of this name, of all passages."""
        return self._index.values(name)

    def amounts(self, unit: str) -> Mapping[Decimal, int]:
        """The numbers that passages have before this unit, by its name in `lexicon.UNITS`, and in how many passages."""
        return self._index.amounts(unit)

    def matching(self, where: Where) -> list[str]:
        """The ids of all passages that pass, in order, without ranking."""
        return self._index.matching(where)

    def missing(self, limit: int | None = None, *, newest_first: bool = False) -> list[bytes]:
        """The hashes of the texts without a vector, at most `limit`."""
        found: dict[bytes, None] = {}
        with self.lock:
            for name in self._index.missing(newest_first=newest_first):
                if len(found) == limit:
                    break
                found[name] = None
        return list(found)

    def has_missing(self) -> bool:
        """Whether a text waits for a vector."""
        return self._index.has_missing()

    def fill(self, vectors: Mapping[bytes, Vector]) -> None:
        """Add vectors; vectors of texts that are gone are ignored."""
        with self.lock:
            self._index.fill(vectors)

    def embed(self, limit: int | None = None, *, newest_first: bool = False) -> dict[bytes, Vector]:
        """Compute the vectors of the texts without one, at most `limit`, and use them at once. 10 to 100 ms each."""
        if self.embedder is None:
            return {}
        with self.lock:
            waiting = {name: self._index.text(name) for name in self.missing(limit, newest_first=newest_first)}
        texts = {name: text for name, text in waiting.items() if text is not None}
        made = dict(zip(texts, self.embedder.passages(list(texts.values())), strict=True))
        self.fill(made)
        return made


def new_corpus(name: str, scale: Scale) -> Corpus:
    """An empty corpus with the installed model, or with words alone."""
    return Corpus(name, scale, installed_embedder())
