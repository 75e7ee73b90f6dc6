"""Vectors follow the texts: a server reckons them beside its work, for corpora that are made of files."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cpq.access import OPERATOR
from cpq.app import App
from cpq.db import Tx
from cpq.effects import Effects
from cpq.memory import give_back
from cpq.search import storing
from cpq.search.corpus import Corpus

FIRST_SECONDS_MAX = 5.0
"""How long after the start calls wait for the first vectors; a small corpus has them by then."""


class Follower:
    """Keeps the vectors of one corpus coming."""

    def __init__(self, corpus: Corpus, effects: Effects) -> None:
        self.is_watched = False
        """Whether a loop of this process keeps the corpus up to date."""
        self._corpus = corpus
        self._effects = effects
        self._deadline = effects.monotonic() + FIRST_SECONDS_MAX
        self._first = threading.Event()
        self._looked_at: int | None = None

    def load(self, tx: Tx, revision: int) -> None:
        """Take over stored vectors for what a revision of the corpus brought; once for each."""
        if self._looked_at != revision:
            storing.load_vectors(tx, self._corpus)
            self._looked_at = revision

    def step(self, app: App, revision: int) -> bool:
        """Reckon and store some vectors; whether there are more to come."""
        call = app.new_call(OPERATOR)

        def look(tx: Tx) -> dict[str, object]:
            self.load(tx, revision)
            return {}

        if self._looked_at != revision:
            app.look(call, look)
        has_waited = bool(self._corpus.missing())
        storing.embed(app, call, self._corpus, limit=storing.BATCH)
        is_done = not self._corpus.missing()
        if has_waited and is_done:
            give_back()  # The texts that waited are gone.
        if is_done:
            self._first.set()
        return not is_done

    def complete(self, app: App, revision: int, progress: Callable[[int, int], None]) -> None:
        """Reckon and store all that are missing, and forget those of texts that are gone."""
        call = app.new_call(OPERATOR)

        def prepare(tx: Tx) -> None:
            self.load(tx, revision)
            storing.forget_vectors(tx, self._corpus)

        app.upkeep(call, prepare)
        storing.embed(app, call, self._corpus, progress=progress)

    def wait(self) -> None:
        """Just after the start: until the first vectors are there, or long enough."""
        if self.is_watched and not self._first.is_set():
            self._first.wait(max(0.0, self._deadline - self._effects.monotonic()))
