"""The vectors of the sample data: reckoned once for all workers of a run, then put into each store that wants them."""

import pickle
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cpq.app import App
from cpq.app.access import ENGINE
from cpq.base.settings import read_settings
from cpq.retrieval.search import table_source, vector_repository
from cpq.retrieval.search.vectors import Vector, from_bytes
from cpq.retrieval.toolset_sources import sources_of
from tests.support.engine import open_app
from tests.support.made_once import made_once

ALL = ("equipment", "past_quotes")
Vectors = dict[str, dict[bytes, Vector]]


@pytest.fixture(scope="session")
def sample_vectors(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Vectors:
    """Of every text of the sample: half a minute of work."""

    def make(home: Path) -> None:
        shutil.copy(sqlite_template, home / "quotewright.db")
        (home / "vectors.pickle").write_bytes(pickle.dumps(_reckoned(home)))

    stored = pickle.loads((made_once(tmp_path_factory, "vectors", make) / "vectors.pickle").read_bytes())
    return {corpus: {name: from_bytes(vector) for name, vector in made.items()} for corpus, made in stored.items()}


def _reckoned(home: Path) -> dict[str, dict[bytes, bytes]]:
    app = open_app(read_settings({}, home=home))
    made = {}
    for source in sources_of(ALL):
        corpus = app.read_unaudited(app.new_call(ENGINE), partial(table_source.current, source=source))
        made[source.corpus] = {name: vector.to_bytes() for name, vector in corpus.embed().items()}
    app.close()
    return made


@pytest.fixture
def with_vectors(sample_vectors: Vectors) -> Callable[[App], App]:
    """Gives a store of the sample its vectors."""

    def give(app: App) -> App:
        for corpus, vectors in sample_vectors.items():
            app.upkeep(app.new_call(ENGINE), lambda tx, c=corpus, v=vectors: vector_repository.store(tx, c, v))  # type: ignore[misc]
        return app

    return give
