"""What is found first: questions about the sample's past lines and products, exact text and answers in other people's
documentation, put to the search core and to other libraries."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pysqlite3
import yaml

from cpq.app.access import ENGINE
from cpq.base.settings import read_settings
from cpq.retrieval import equipment, past_quotes
from cpq.retrieval.docs.pages import chunks_of, page_of
from cpq.retrieval.search import amounts
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.embedding import installed_embedder
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.scores import PROBABLE_MISS, Scale
from tests.bench import exact_text
from tests.bench.exact_text import bm25_ranks, fused, vector_ranks
from tests.support import engine

GOLDEN = Path(__file__).parents[1] / "retrieval" / "search" / "relevance.yaml"
PRODUCTS = GOLDEN.with_name("product_questions.yaml")
BLIND, BLIND_PAGES = GOLDEN.with_name("blind_products.yaml"), GOLDEN.with_name("blind_docs.yaml")
"""By somebody who had not seen the search."""

SECOND = GOLDEN.with_name("second_blind_products.yaml")
"""By somebody who knew the products and not the search."""

ROOT = Path(__file__).parents[2]
FIRST, FIRST_PAGES = 5, 3

ENGINES = ("words and vectors", "words alone", "BM25", "vectors alone", "rank fusion", "plain FTS5")

Find = Callable[[str], Sequence[str]]


def measure(home: Path) -> dict[str, float]:
    """For each engine the share of questions answered among the first five, and the mean reciprocal rank."""
    lines = [each for each in _read(GOLDEN)["queries"] if each["in"] == "lines"]
    products, blind = _read(PRODUCTS), _read(BLIND)
    blindly = [(each, "first set") for each in blind if each["accept"]]
    blindly += [(each, "second set") for each in _read(SECOND)]
    blind_questions = [
        {**each, "expect": each["accept"], "how": f"{name}, {_half(each['query'])}"} for each, name in blindly
    ]
    asked_for = [*products["questions"], *blind_questions]
    not_sold = [*products["not_sold"], *products["not_sold_unseen"], *(e["query"] for e in blind if not e["accept"])]
    engine.fill_with_sample(read_settings({}, home=home))
    app = engine.opened(home)
    figures: dict[str, float] = {}
    kinds = {"past lines": (past_quotes.LINES, lines), "products": (equipment.SOURCE, asked_for)}
    for what, (source, asked) in kinds.items():
        gathered = app.read_unaudited(app.new_call(ENGINE), lambda tx, source=source: list(source.gather(tx, None)))  # type: ignore[misc]
        for name, find in _engines(gathered, source.scale):
            for whose, questions in _by_writer(what, asked):
                ranks = [_rank(find(each["query"]), each["expect"]) for each in questions]
                figures |= _figures(f"{whose}, {name}", FIRST, ranks)
        if what == "products":
            figures["goods that are not sold, read as a failed retrieval, %"] = _failed(gathered, not_sold)
    app.close()
    return figures | _own_pages() | exact_text.measure()


def _by_writer(what: str, asked: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The questions that we wrote, and those of somebody who had not seen the search."""
    for how in dict.fromkeys(each.get("how") for each in asked):
        yield f"{what}, {how}" if how else what, [each for each in asked if each.get("how") == how]


def _half(question: str) -> str:
    """Weights and words were fitted to one half of the questions that others asked."""
    return "the half not looked at" if hashlib.sha256(question.encode()).digest()[0] % 2 else "the half looked at"


def _figures(name: str, first: int, ranks: Sequence[int]) -> dict[str, float]:
    return {
        f"{name}: in the first {first}, %": 100 * sum(0 < rank <= first for rank in ranks) / len(ranks),
        f"{name}: mean reciprocal rank": sum(1 / rank for rank in ranks if rank) / len(ranks),
    }


def _failed(chunks: list[Chunk], asked: Sequence[str]) -> float:
    corpus = Corpus("both", equipment.SOURCE.scale, installed_embedder())
    corpus.change(chunks)
    corpus.embed()
    bands = [{hit.confidence for hit in corpus.search(query, limit=FIRST).hits} for query in asked]
    return 100 * sum(band <= {PROBABLE_MISS} for band in bands) / len(bands)


def _own_pages() -> dict[str, float]:
    """Questions to our own pages and the sample's handbook: by kind, for each engine."""
    questions = _read(BLIND_PAGES)
    then = datetime(2026, 1, 1, tzinfo=UTC)
    names = sorted({one["file"] for each in questions for one in each["accept"]})
    pages = [page_of(name, (ROOT / name).read_text(encoding="utf-8"), then) for name in names]
    chunks = [chunk for page in pages for chunk in chunks_of(page)]
    sections = {chunk.id: (chunk.document_id, _plain(chunk.title.rpartition(" > ")[2])) for chunk in chunks}
    figures: dict[str, float] = {}
    for name, find in exact_text.engines(chunks):
        ranks: dict[str, list[int]] = {}
        for each in questions:
            wanted = {(one["file"], _plain(one["heading"])) for one in each["accept"]}
            found = [sections[id_] for id_ in find(each["query"])[: exact_text.RANKS]]
            rank = next((rank for rank, section in enumerate(found, 1) if section in wanted), 0)
            for kind in (each["kind"], "all"):
                ranks.setdefault(kind, []).append(rank)
        for kind, of_kind in ranks.items():
            figures |= _figures(f"our pages, asked blindly, {kind}, {name}", FIRST_PAGES, of_kind)
    return figures


def _plain(heading: str) -> str:
    return heading.replace("`", "").strip()


def _read(path: Path) -> Any:
    found: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _rank(found: Sequence[str], expected: Sequence[str]) -> int:
    ids = [_id(one) for one in found[:FIRST]]
    return next((rank for rank, one in enumerate(ids, 1) if one in expected), 0)


def _id(chunk_id: str) -> str:
    """As the file of questions writes it: `P25-1257/1` for a line, the id of a product as it is."""
    quote, mark, number = chunk_id.partition("#")
    return f"{quote}/{int(number)}" if mark else quote


def _engines(chunks: list[Chunk], scale: Scale) -> Iterator[tuple[str, Find]]:
    embedder = installed_embedder()
    both, words = Corpus("both", scale, embedder), Corpus("words", scale)
    for name, corpus in (("words and vectors", both), ("words alone", words)):
        corpus.change(chunks)
        corpus.embed()
        yield name, partial(_ours, corpus)
    ids, texts = [chunk.id for chunk in chunks], ["\n".join([*chunk.texts, chunk.words]) for chunk in chunks]
    yield "plain FTS5", _fts5(ids, texts)
    by_words = bm25_ranks(ids, texts)
    yield "BM25", by_words
    if embedder is not None:
        texts_of = [(chunk.id, text) for chunk in chunks for text in chunk.texts]
        made = [embedder.passage(text) for _, text in texts_of]
        nearest = vector_ranks([id_ for id_, _ in texts_of], made, embedder)

        def by_vectors(question: str) -> list[str]:
            return list(dict.fromkeys(nearest(question)))

        yield "vectors alone", by_vectors
        yield "rank fusion", lambda question: fused([by_words(question), by_vectors(question)])


def _ours(corpus: Corpus, query: str) -> list[str]:
    searched = amounts.search(corpus, query, amounts.stated(corpus, query), limit=FIRST)
    return [hit.id for hit in searched.found.hits]


def _fts5(ids: list[str], texts: list[str]) -> Find:
    connection = pysqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE line USING fts5(id UNINDEXED, text, tokenize='porter')")
    connection.executemany("INSERT INTO line VALUES (?, ?)", zip(ids, texts, strict=True))

    def find(query: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in query.replace('"', " ").split())
        rows = connection.execute("SELECT id FROM line WHERE line MATCH ? ORDER BY rank LIMIT 5", [match])
        return [row[0] for row in rows]

    return find
