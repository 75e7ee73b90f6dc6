"""Corpora built from the files of a folder: a server watches the folder and computes vectors in the background."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.clock import Effects
from cpq.base.memory import give_back
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.retrieval.search import vector_repository
from cpq.retrieval.search.corpus import Corpus, new_corpus
from cpq.retrieval.search.scores import PROSE
from cpq.retrieval.search.vector_repository import Progress

FIRST_SECONDS_MAX = 5.0
"""How long after the start calls wait for the first vectors; a small corpus has them by then."""

REST = 40
"""Poll pause as a multiple of the last poll's duration; caps polling at 2.5 % of one core."""


class FolderCorpus(ABC):
    """The corpus of one folder. A subclass reads the files; the vectors are handled here. Safe for many threads."""

    def __init__(self, name: str, root: Path, effects: Effects, tenant_id: str = MAIN_TENANT) -> None:
        self.root = root
        self._keeper = replace(OPERATOR, tenant_id=tenant_id)
        """In whose name vectors are stored."""
        self.corpus: Corpus = new_corpus(name, PROSE)
        self.revision = 0
        """Counts the changes of the corpus."""
        self.is_watched = False
        """Whether a loop of this process keeps the corpus up to date."""
        self._effects = effects
        self._lock = threading.Lock()
        """Held while files are read."""
        self._deadline = effects.monotonic() + FIRST_SECONDS_MAX
        self._has_first_vectors = threading.Event()
        self._loaded_revision: int | None = None

    @abstractmethod
    def look(self) -> None:
        """Read the files that changed."""

    def settle(self) -> None:  # noqa: B027 - not every folder has something to do then
        """Called when every text has its vector."""

    @property
    def is_read(self) -> bool:
        """Whether all files were read once."""
        return True

    def load_vectors(self, tx: Tx) -> None:
        """Load the stored vectors of the newest revision; once for each revision."""
        revision = self.revision
        if self._loaded_revision != revision:
            vector_repository.load(tx, self.corpus)
            self._loaded_revision = revision

    def loop(self, app: App, every_seconds: float) -> Loop:
        """The loop that keeps the corpus up to date from now on, named like the corpus."""
        self.is_watched = True

        def work() -> float:
            started = self._effects.monotonic()
            self.look()
            took = self._effects.monotonic() - started
            if not self.is_read or self._embed_some(app):
                return 0.0
            self.settle()
            return max(every_seconds, REST * took)

        tenant_id = self._keeper.tenant_id
        return Loop(self.corpus.name + (f" of {tenant_id}" if tenant_id != MAIN_TENANT else ""), work)

    def complete_vectors(self, app: App, progress: Progress, *, forgets: bool) -> tuple[int, int]:
        """Compute and store all missing vectors; returns how many were computed, and how many deleted.

        With `forgets`, the vectors of texts that are gone are deleted: only when no other folder uses the corpus.
        """
        call = app.new_call(self._keeper)

        def prepare(tx: Tx) -> int:
            self.load_vectors(tx)
            return vector_repository.forget(tx, self.corpus) if forgets else 0

        forgotten = app.upkeep(call, prepare)
        return vector_repository.embed(app, call, self.corpus, progress=progress), forgotten

    def wait_for_vectors(self) -> None:
        """Shortly after the start, wait until the first vectors are there or the time is over."""
        if self.is_watched and self.is_read and not self._has_first_vectors.is_set():
            self._has_first_vectors.wait(max(0.0, self._deadline - self._effects.monotonic()))

    def _embed_some(self, app: App) -> bool:
        """Compute and store one batch of vectors; returns whether more are missing."""
        call = app.new_call(self._keeper)

        def load(tx: Tx) -> dict[str, object]:
            self.load_vectors(tx)
            return {}

        if self._loaded_revision != self.revision:
            app.read_unaudited(call, load)
        had_missing = self.corpus.has_missing()
        vector_repository.embed(app, call, self.corpus, limit=vector_repository.BATCH)
        is_done = not self.corpus.has_missing()
        if had_missing and is_done:
            give_back()  # The texts that waited for vectors are freed.
        if is_done:
            self._has_first_vectors.set()
        return not is_done
