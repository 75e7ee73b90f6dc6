"""A hundred thousand past lines: how fast a question with a filter is answered, beside other embedded libraries."""

import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pysqlite3

from cpq.app import open_app
from cpq.app.access import ENGINE
from cpq.base.row_problems import SourceRow
from cpq.base.settings import read_settings
from cpq.retrieval import past_quotes
from cpq.retrieval.search import table_source
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.vectors import DIMENSIONS, Vector
from cpq.storage import migrations
from tests.bench.catalog import Words
from tests.bench.peers import bm25s, usearch
from tests.support import engine
from tests.support.engine import Tools

QUERIES = 200
LINES_OF_A_QUOTE = 5
NEAREST = 100
"""How many neighbours the peer takes before it filters, because it can only filter afterwards."""


def measure(home: Path, count: int) -> dict[str, float]:
    home.mkdir(parents=True, exist_ok=True)
    run = [sys.executable, "-m", "tests.bench.search", str(home), str(count)]
    figures: dict[str, float] = json.loads(subprocess.check_output(run, text=True))
    return figures


def _measure(home: Path, count: int) -> dict[str, float]:
    settings = read_settings({}, home=home)
    migrations.upgrade(settings)
    app = open_app(settings)
    print(f"importing {count:,} past lines", file=sys.stderr)
    engine.write(app, lambda tx: {"made": past_quotes.import_history(tx, _rows(count)).created.total()})
    base, start = _megabytes(), time.process_time()
    tools = Tools(app)
    tools("search_line_items", query="warm up")
    built = time.process_time() - start
    corpus: Corpus = app.read_unaudited(
        app.new_call(ENGINE), lambda tx: {"it": table_source.current(tx, past_quotes.LINES)}
    )["it"]
    _fake_vectors(corpus)
    assert corpus.embedder is not None, "the extra `semantic` is not installed"
    tools("search_line_items", query="warm up")
    memory = _megabytes() - base
    questions = list(_questions())
    figures = {
        "index from the tables, CPU s": built,
        "MB over the base, model included": memory,
        **_timed("with a filter", lambda query, category: corpus_search(tools, query, category), questions),
        **_timed("without a filter", lambda query, _category: corpus_search(tools, query, None), questions),
        **_timed("plain FTS5, words or-ed, filter", _plain_fts5(home, count), questions),
    }
    if usearch is None or bm25s is None:
        print("no other libraries: .ci/setup peers installs them", file=sys.stderr)
    else:
        figures |= _timed("bm25s, words or-ed, filter", _bm25s(count), questions)
        figures |= _peer(corpus, count, questions)
    app.close()
    return figures


def corpus_search(tools: Tools, query: str, category: str | None) -> None:
    tools("search_line_items", query=query, category=category, top_k=10)


def _rows(count: int) -> Iterator[SourceRow]:
    words = Words(5)
    for number in range(count // LINES_OF_A_QUOTE):
        lines = [{"category": words.category(), "description": _text(words)} for _ in range(LINES_OF_A_QUOTE)]
        quote = {"id": f"P-{number:06}", "customer": f"Customer {number % 997}", "project": words.any()}
        yield SourceRow("quotes", number, {**quote, "quoted_on": "2024-01-31", "line_items": lines})


def _text(words: Words) -> str:
    some = [words.any() if words.random.random() < 0.5 else words.common() for _ in range(20)]
    return f"{' '.join(some)}, {words.random.randint(5, 300)} HP, {words.random.randint(50, 2000)} CFM"


def _questions() -> Iterator[tuple[str, str]]:
    """Each once, so that every one has to be embedded."""
    words = Words(11)
    for number in range(QUERIES):
        yield f"{words.common()} {words.any()} {words.common()} {number} HP", words.category()


def _fake_vectors(corpus: Corpus) -> None:
    """Random ones: how fast they compare does not depend on what they mean, and real ones take a quarter of an hour."""
    generator = np.random.default_rng(7)
    waiting = iter(corpus.missing())
    while part := list(itertools.islice(waiting, 10_000)):
        digits = generator.integers(-127, 128, (len(part), DIMENSIONS), dtype=np.int8)
        corpus.fill({name: Vector(row, 0.0007) for name, row in zip(part, digits, strict=True)})


def _plain_fts5(home: Path, count: int) -> Callable[[str, str], object]:
    connection = pysqlite3.connect(home / "plain.db")
    connection.execute("CREATE VIRTUAL TABLE line USING fts5(category, text, tokenize='porter')")
    every = ((line["category"], line["description"]) for row in _rows(count) for line in row.values["line_items"])
    connection.executemany("INSERT INTO line VALUES (?, ?)", every)
    connection.commit()

    def search(query: str, category: str) -> object:
        match = f"category:{category} AND text:({' OR '.join(query.split())})"
        return connection.execute(
            "SELECT rowid FROM line WHERE line MATCH ? ORDER BY rank LIMIT 10", [match]
        ).fetchall()

    return search


def _bm25s(count: int) -> Callable[[str, str], object]:
    """It scores every line anyway, so that a mask filters exactly."""
    print("building bm25s' index", file=sys.stderr)
    lines = [line for row in _rows(count) for line in row.values["line_items"]]
    peer = bm25s.BM25()
    peer.index(
        bm25s.tokenize([line["description"] for line in lines], stopwords="en", show_progress=False),
        show_progress=False,
    )
    categories = np.array([line["category"] for line in lines])
    masks = {category: (categories == category).astype(np.float32) for category in set(categories.tolist())}

    def search(query: str, category: str) -> object:
        asked = bm25s.tokenize(query, stopwords="en", show_progress=False)
        return peer.retrieve(asked, k=10, show_progress=False, weight_mask=masks[category])

    return search


def _peer(corpus: Corpus, count: int, questions: list[tuple[str, str]]) -> dict[str, float]:
    """A nearest-neighbour graph over as many vectors: quick, but a filter comes after it, and most of it is lost."""
    print("building usearch's graph", file=sys.stderr)
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((count, DIMENSIONS), np.float32)
    start = time.process_time()
    index = usearch.Index(ndim=DIMENSIONS, metric="cos", dtype="i8")
    index.add(np.arange(count), vectors)
    built = time.process_time() - start
    categories = [line["category"] for row in _rows(count) for line in row.values["line_items"]]
    kept: list[int] = []

    def search(query: str, category: str) -> None:
        assert corpus.embedder is not None
        vector = corpus.embedder.unit(query)
        near = index.search(vector, NEAREST).keys.tolist()
        kept.append(len([key for key in near if categories[key] == category][:10]))

    figures = _timed("usearch, filtered after the nearest 100", search, questions)
    return {
        "usearch: building, CPU s": built,
        **figures,
        "usearch: hits of 10 after the filter": statistics.mean(kept),
    }


def _timed(name: str, search: Callable[[str, str], object], questions: list[tuple[str, str]]) -> dict[str, float]:
    wall, cpu = [], []
    for query, category in questions:
        start, worked = time.perf_counter(), time.process_time()
        search(f"{query} {name.split(',')[0]}", category)
        wall.append((time.perf_counter() - start) * 1000)
        cpu.append((time.process_time() - worked) * 1000)
    return {
        f"{name}: p50 ms": statistics.median(wall),
        f"{name}: p99 ms": statistics.quantiles(wall, n=100)[98],
        f"{name}: CPU ms": statistics.median(cpu),
    }


def _megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1024**2


if __name__ == "__main__":
    random.seed(1)
    print(json.dumps(_measure(Path(sys.argv[1]), int(sys.argv[2]))))
