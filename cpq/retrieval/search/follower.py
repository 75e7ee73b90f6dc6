"""Corpora that are made of files: a server looks for changes and reckons the vectors that follow, beside its work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.clock import Effects
from cpq.base.memory import give_back
from cpq.retrieval.search import table_corpus
from cpq.retrieval.search.corpus import Corpus

FIRST_SECONDS_MAX = 5.0
"""How long after the start calls wait for the first vectors; a small corpus has them by then."""

REST = 40
"""So many times as long as a look took is the pause after it: two hundredths of a processor at most."""

Progress = Callable[[int, int], None]


class Keeper(Protocol):
    """Has a corpus that is made of files, and keeps it in step with them."""

    corpus: Corpus
    revision: int
    """Counts the changes of the corpus."""

    def look(self) -> None:
        """Take over what changed."""


class Follower:
    """Keeps the vectors of one corpus coming."""

    def __init__(self, keeper: Keeper, effects: Effects) -> None:
        self.is_watched = False
        """Whether a loop of this process keeps the corpus up to date."""
        self._keeper = keeper
        self._effects = effects
        self._deadline = effects.monotonic() + FIRST_SECONDS_MAX
        self._first = threading.Event()
        self._looked_at: int | None = None

    def load(self, tx: Tx) -> None:
        """Take over stored vectors for what the newest revision of the corpus brought; once for each."""
        revision = self._keeper.revision
        if self._looked_at != revision:
            table_corpus.load_vectors(tx, self._keeper.corpus)
            self._looked_at = revision

    def loop(self, app: App, every_seconds: float) -> Loop:
        """What keeps the corpus up to date from now on, under the name of the corpus."""
        self.is_watched = True

        def work() -> float:
            started = self._effects.monotonic()
            self._keeper.look()
            took = self._effects.monotonic() - started
            return 0.0 if self._step(app) else max(every_seconds, REST * took)

        return Loop(self._keeper.corpus.name, work)

    def complete(self, app: App, progress: Progress, *, forgets: bool) -> tuple[int, int]:
        """Reckon and store all that are missing; where this folder is the only one, forget those of texts that are
        gone. How many were reckoned, and forgotten."""
        call = app.new_call(OPERATOR)

        def prepare(tx: Tx) -> int:
            self.load(tx)
            return table_corpus.forget_vectors(tx, self._keeper.corpus) if forgets else 0

        forgotten = app.upkeep(call, prepare)
        return table_corpus.embed(app, call, self._keeper.corpus, progress=progress), forgotten

    def wait(self) -> None:
        """Just after the start: until the first vectors are there, or long enough."""
        if self.is_watched and not self._first.is_set():
            self._first.wait(max(0.0, self._deadline - self._effects.monotonic()))

    def _step(self, app: App) -> bool:
        """Reckon and store some vectors; whether there are more to come."""
        call = app.new_call(OPERATOR)

        if self._looked_at != self._keeper.revision:
            app.read_unaudited(call, self.load)
        corpus = self._keeper.corpus
        has_waited = corpus.has_missing()
        table_corpus.embed(app, call, corpus, limit=table_corpus.BATCH)
        is_done = not corpus.has_missing()
        if has_waited and is_done:
            give_back()  # The texts that waited are gone.
        if is_done:
            self._first.set()
        return not is_done
