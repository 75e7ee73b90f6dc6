"""What is found first: questions about the sample's past lines and products, exact text and answers in other people's
documentation, put to the search core and to other libraries."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pysqlite3
import yaml

from cpq.app.access import ENGINE
from cpq.base.settings import read_settings
from cpq.retrieval import equipment, past_quotes
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.embedding import installed_embedder
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.scores import ITEMS
from tests.bench import exact_text
from tests.bench.exact_text import bm25_ranks, fused, vector_ranks
from tests.support import engine

GOLDEN = Path(__file__).parents[1] / "retrieval" / "search" / "relevance.yaml"
PRODUCTS = GOLDEN.with_name("product_questions.yaml")
FIRST = 5

Find = Callable[[str], Sequence[str]]


def measure(home: Path) -> dict[str, float]:
    """For each engine the share of questions answered among the first five, and the mean reciprocal rank."""
    lines = [each for each in _read(GOLDEN)["queries"] if each["in"] == "lines"]
    products = _read(PRODUCTS)["questions"]
    engine.fill_with_sample(read_settings({}, home=home))
    app = engine.opened(home)
    figures = {}
    for what, source, asked in (("past lines", past_quotes.LINES, lines), ("products", equipment.SOURCE, products)):
        gathered = app.read_unaudited(app.new_call(ENGINE), lambda tx, source=source: list(source.gather(tx, None)))  # type: ignore[misc]
        for name, find in _engines(gathered):
            ranks = [_rank(find(each["query"]), each["expect"]) for each in asked]
            figures[f"{what}, {name}: in the first five, %"] = 100 * sum(rank > 0 for rank in ranks) / len(ranks)
            figures[f"{what}, {name}: mean reciprocal rank"] = sum(1 / rank for rank in ranks if rank) / len(ranks)
    app.close()
    return figures | exact_text.measure()


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _rank(found: Sequence[str], expected: Sequence[str]) -> int:
    ids = [_id(one) for one in found[:FIRST]]
    return next((rank for rank, one in enumerate(ids, 1) if one in expected), 0)


def _id(chunk_id: str) -> str:
    """As the file of questions writes it: `P25-1257/1` for a line, the id of a product as it is."""
    quote, mark, number = chunk_id.partition("#")
    return f"{quote}/{int(number)}" if mark else quote


def _engines(chunks: list[Chunk]) -> Iterator[tuple[str, Find]]:
    embedder = installed_embedder()
    both, words = Corpus("both", ITEMS, embedder), Corpus("words", ITEMS)
    for name, corpus in (("words and vectors", both), ("words alone", words)):
        corpus.change(chunks)
        corpus.embed()
        yield name, partial(_ours, corpus)
    ids, texts = [chunk.id for chunk in chunks], [f"{chunk.read}\n{chunk.words}" for chunk in chunks]
    yield "plain FTS5", _fts5(ids, texts)
    by_words = bm25_ranks(ids, texts)
    yield "bm25s", by_words
    if embedder is not None:
        by_vectors = vector_ranks(ids, [embedder.passage(chunk.read) for chunk in chunks], embedder)
        yield "the same vectors alone", by_vectors
        yield "rank fusion of the two", lambda question: fused([by_words(question), by_vectors(question)])


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
