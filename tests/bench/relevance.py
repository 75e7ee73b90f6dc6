"""What is found first: golden questions on the sample's past lines, and exact text in other people's documentation,
put to the search core and to other libraries."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pysqlite3
import yaml

from cpq.app.access import ENGINE
from cpq.base.settings import read_settings
from cpq.retrieval import past_quotes
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.embedding import installed_embedder
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.scores import ITEMS
from cpq.retrieval.search.vectors import DIMENSIONS
from tests.bench import exact_text
from tests.bench.peers import bm25s, usearch
from tests.support import engine

QUESTIONS = Path(__file__).parents[1] / "retrieval" / "search" / "relevance.yaml"
FIRST = 5

Find = Callable[[str], Sequence[str]]


def measure(home: Path) -> dict[str, float]:
    """For each engine the share of questions answered among the first five, and the mean reciprocal rank."""
    asked = [each for each in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))["queries"] if each["in"] == "lines"]
    figures = {}
    for name, find in _engines(_chunks(home)):
        ranks = [_rank(find(each["query"]), each["expect"]) for each in asked]
        figures[f"{name}: in the first five, %"] = 100 * sum(rank > 0 for rank in ranks) / len(ranks)
        figures[f"{name}: mean reciprocal rank"] = sum(1 / rank for rank in ranks if rank) / len(ranks)
    return figures | exact_text.measure()


def _chunks(home: Path) -> list[Chunk]:
    engine.fill_with_sample(read_settings({}, home=home))
    app = engine.opened(home)
    gathered = app.read_unaudited(app.new_call(ENGINE), lambda tx: list(past_quotes.LINES.gather(tx, None)))
    app.close()
    return gathered


def _rank(found: Sequence[str], expected: Sequence[str]) -> int:
    ids = [_id(one) for one in found[:FIRST]]
    return next((rank for rank, one in enumerate(ids, 1) if one in expected), 0)


def _id(chunk_id: str) -> str:
    """As the file of questions writes it: `P25-1257/1`."""
    quote, number = chunk_id.split("#")
    return f"{quote}/{int(number)}"


def _engines(chunks: list[Chunk]) -> Iterator[tuple[str, Find]]:
    both, words = Corpus("both", ITEMS, installed_embedder()), Corpus("words", ITEMS)
    for name, corpus in (("words and vectors", both), ("words alone", words)):
        corpus.change(chunks)
        corpus.embed()
        yield name, partial(_ours, corpus)
    ids, texts = [chunk.id for chunk in chunks], [f"{chunk.read}\n{chunk.words}" for chunk in chunks]
    yield "plain FTS5", _fts5(ids, texts)
    if usearch is not None and bm25s is not None:
        yield "bm25s", _bm25s(ids, texts)
        yield "usearch, the same vectors alone", _usearch(ids, [chunk.read for chunk in chunks])


def _ours(corpus: Corpus, query: str) -> list[str]:
    return [hit.id for hit in corpus.search(query, limit=FIRST).hits]


def _fts5(ids: list[str], texts: list[str]) -> Find:
    connection = pysqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE line USING fts5(id UNINDEXED, text, tokenize='porter')")
    connection.executemany("INSERT INTO line VALUES (?, ?)", zip(ids, texts, strict=True))

    def find(query: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in query.replace('"', " ").split())
        rows = connection.execute("SELECT id FROM line WHERE line MATCH ? ORDER BY rank LIMIT 5", [match])
        return [row[0] for row in rows]

    return find


def _bm25s(ids: list[str], texts: list[str]) -> Find:
    peer = bm25s.BM25()
    peer.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def find(query: str) -> list[str]:
        asked = bm25s.tokenize(query, stopwords="en", show_progress=False)
        return [ids[place] for place in peer.retrieve(asked, k=FIRST, show_progress=False)[0][0].tolist()]

    return find


def _usearch(ids: list[str], texts: list[str]) -> Find:
    embedder = installed_embedder()
    assert embedder is not None
    vectors: Any = np.stack([embedder.unit(text) for text in texts])
    index = usearch.Index(ndim=DIMENSIONS, metric="cos", dtype="f32")
    index.add(np.arange(len(ids)), vectors)
    return lambda query: [ids[key] for key in index.search(embedder.unit(query), FIRST).keys.tolist()]
