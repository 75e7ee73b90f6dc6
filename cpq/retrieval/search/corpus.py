"""One corpus in this process: its current index, swapped whole on a change, and its model."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from cpq.retrieval.search.embedding import Embedder, installed_embedder
from cpq.retrieval.search.index import ANYWHERE, Chunk, Found, Index, Where
from cpq.retrieval.search.scores import Scale
from cpq.retrieval.search.vectors import Vector


class Corpus:
    """Safe for many threads: a search takes the index that is current and keeps it; changes take turns."""

    def __init__(self, name: str, scale: Scale, embedder: Embedder | None = None) -> None:
        self.name = name
        self.scale = scale
        self.embedder = embedder
        self.generation: int | None = None
        """Of `cpq.app.corpus_changes`, for corpora that are made of tables; None before the first build."""
        self.basis: object = None
        """Of `storing.Source`, likewise."""
        self.is_followed = False
        """Whether a loop of this process brings it up to date, so that nobody need wait for a long refresh."""
        self.lock = threading.RLock()
        """Held while the corpus is changed, never while it is searched."""
        self._index = Index()

    def __len__(self) -> int:
        return len(self._index)

    def documents(self) -> set[str]:
        return set(self._index.documents())

    def hashes(self) -> set[bytes]:
        """Of every text in it; see `index.text_hash`."""
        return set(self._index.hashes())

    def change(self, chunks: Iterable[Chunk], removed: Collection[str] = ()) -> None:
        """Put whole documents in place of what there was of them, and take others away.

        Words are found at once. A text that was here before keeps its vector; the others wait for `table_corpus`.
        """
        self.change_in_parts([chunks], removed)

    def change_in_parts(self, parts: Iterable[Iterable[Chunk]], removed: Collection[str] = ()) -> None:
        """The same for more than should be in memory at once: one part at least, no document in two of them.

        Searches see all of it or nothing.
        """
        with self.lock:
            index = self._index
            for part in parts:
                index = index.changed(part, removed, with_vectors=self.embedder is not None)
                removed = ()
            self._index = index

    def replace_all(self, chunks: Iterable[Chunk]) -> None:
        """Make the corpus hold exactly these; what is unchanged keeps its vector."""
        fresh = list(chunks)
        with self.lock:
            self.change(fresh, self.documents() - {chunk.document_id for chunk in fresh})

    def search(self, query: str, *, limit: int, where: Where = ANYWHERE) -> Found:
        """The best hits of everything that passes `where`, and how they were found."""
        index = self._index
        vector = self.embedder.query(query) if self.embedder is not None and index.has_vectors() else None
        return index.search(query, vector, scale=self.scale, limit=limit, where=where)

    def tags(self) -> set[str]:
        """Every tag that some passage has."""
        return self._index.tags()

    def matching(self, where: Where) -> list[str]:
        """The ids of all passages that pass, in order, without ranking them."""
        return self._index.matching(where)

    def missing(self, limit: int | None = None, *, newest_first: bool = False) -> list[bytes]:
        """The hashes of the texts that wait for a vector, or of some of them."""
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
        """Hand in vectors; those of texts that are gone meanwhile are ignored."""
        with self.lock:
            self._index.fill(vectors)

    def embed(self, limit: int | None = None, *, newest_first: bool = False) -> dict[bytes, Vector]:
        """Reckon the vectors of the texts that wait, or of some of them, and use them at once. 10 to 100 ms each."""
        if self.embedder is None:
            return {}
        with self.lock:
            texts = {name: self._index.text(name) for name in self.missing(limit, newest_first=newest_first)}
        made = {name: self.embedder.passage(text) for name, text in texts.items() if text is not None}
        self.fill(made)
        return made


def new_corpus(name: str, scale: Scale) -> Corpus:
    """An empty corpus with the installed model, or on words alone."""
    return Corpus(name, scale, installed_embedder())
