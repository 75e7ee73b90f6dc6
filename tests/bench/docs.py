"""Docs and context: searches of up to 100,000 chunks beside a plain scan and a peer, and the price of staying fresh."""

import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bm25s
import numpy as np

from cpq.base.clock import Effects
from cpq.base.memory import give_back
from cpq.retrieval.context.chunk_folder import ChunkFolder
from cpq.retrieval.docs.page_folder import PageFolder
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.embedding import installed_embedder
from cpq.retrieval.search.index import Where
from cpq.retrieval.search.vectors import DIMENSIONS, Vector, quantised
from tests.bench.catalog import Words

SIZES = (1_000, 10_000, 100_000)
QUERIES = 40
FILES = 1_000
WORDS_A_CHUNK = 60

LENIENT = Where(is_lenient=True)


def measure(home: Path, largest: int) -> dict[str, float]:
    home.mkdir(parents=True)
    figures: dict[str, float] = {}
    sizes = [size for size in SIZES if size <= largest]
    for kind, size in [*(("chunks", size) for size in sizes), ("pages", sizes[-1])]:
        # Each in a process of its own, so that its memory is its own.
        command = [sys.executable, "-m", "tests.bench.docs", kind, str(home / f"{kind}-{size}"), str(size)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        figures |= json.loads(ran.stdout)
    return figures | _staying_fresh(home / "pages")


def _searches(home: Path, count: int) -> dict[str, float]:
    """CPU time of a search, warm, its query embedded anew each time; and what the chunks take of memory."""
    words = Words(7)
    queries = [f"{words.common()} {words.any()} {words.any()} of number {n}" for n in range(2 * QUERIES)]
    texts = _write(home, count, words)
    name = f"{count:,} chunks: "
    base = _base()
    folder = ChunkFolder(home, Effects())
    started = time.process_time()
    folder.load()
    figures = {f"{name}load s": time.process_time() - started}
    for query in queries[:QUERIES]:
        folder.corpus.search(query, limit=15, where=LENIENT)
    by_words = _p50(queries[:QUERIES], lambda query: folder.corpus.search(query, limit=15, where=LENIENT))
    _fill(folder.corpus)
    give_back()  # As a server does when it has all vectors.
    figures[f"{name}memory MB"] = (_resident() - base) / 2**20
    for query in queries[:QUERIES]:
        folder.corpus.search(query, limit=15, where=LENIENT)
    figures[f"{name}search p50 ms"] = _p50(
        queries[QUERIES:], lambda query: folder.corpus.search(query, limit=15, where=LENIENT)
    )
    tagged = Where(all_tags=["tag:rare"], is_lenient=True)
    figures[f"{name}1 % by tag p50 ms"] = _p50(
        [f"{query} again" for query in queries[QUERIES:]],
        lambda query: folder.corpus.search(query, limit=15, where=tagged),
    )
    # The others know words alone, so ours with words alone stands beside them.
    figures[f"{name}words alone p50 ms"] = by_words
    kept = texts()
    figures[f"{name}plain scan p50 ms"] = _p50(queries[:10], lambda query: _scan(kept, query))
    peer = bm25s.BM25()
    peer.index(bm25s.tokenize(kept, show_progress=False), show_progress=False)
    for query in queries[:QUERIES]:
        _ask(peer, query)
    figures[f"{name}bm25s p50 ms"] = _p50(queries[:QUERIES], lambda query: _ask(peer, query))
    return figures


def _pages(home: Path, count: int) -> dict[str, float]:
    """What as many sections of pages take of memory, ten to a page."""
    words = Words(7)
    for number in range(count // 10):
        path = home / f"folder{number // 100}" / f"page{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(f"## {words.common()} {words.any()}\n\n{_text(words)}\n" for _ in range(10)))
    base = _base()
    folder = PageFolder(home, Effects())
    folder.refresh()
    assert len(folder.corpus) == count
    _fill(folder.corpus)
    give_back()
    return {f"{count:,} sections of pages: memory MB": (_resident() - base) / 2**20}


def _write(home: Path, count: int, words: Words) -> Callable[[], list[str]]:
    """All in one file, as `cpq context index` makes it of pages; how to get the texts again, which are not kept."""
    home.mkdir(parents=True)
    path = home / "doc-chunks.json"
    path.write_text(json.dumps({"chunks": [_chunk(number, words) for number in range(count)]}))
    return lambda: [made["text"] for made in json.loads(path.read_text())["chunks"]]


def _chunk(number: int, words: Words) -> dict[str, Any]:
    return {
        "id": f"c{number:06}",
        "title": f"{words.common()} {words.any()}",
        "text": _text(words),
        "tags": ["rare"] if number % 100 == 0 else [],
        "metadata": {"file_path": f"docs/part{number // 200}/page{number // 20}.md"},
    }


def _text(words: Words) -> str:
    return " ".join(words.any() if words.random.random() < 0.7 else words.common() for _ in range(WORDS_A_CHUNK))


def _fill(corpus: Corpus) -> None:
    for part in vectors_of_chance(corpus.missing()):
        corpus.fill(part)


def vectors_of_chance(names: list[bytes]) -> Iterator[dict[bytes, Vector]]:
    """What vectors say does not change what a search costs."""
    chance = np.random.default_rng(7)
    for start in range(0, len(names), 1_000):
        part = names[start : start + 1_000]
        rows = chance.normal(size=(len(part), DIMENSIONS)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        yield {name: quantised(row) for name, row in zip(part, rows, strict=True)}


def _scan(texts: list[str], query: str) -> list[int]:
    wanted = query.split()
    counts = [sum(word in text for word in wanted) for text in texts]
    return sorted(range(len(texts)), key=lambda place: -counts[place])[:15]


def _ask(peer: Any, query: str) -> Any:
    return peer.retrieve(bm25s.tokenize(query, show_progress=False), k=15, show_progress=False)


def _staying_fresh(home: Path) -> dict[str, float]:
    words = Words(11)
    for number in range(FILES):
        path = home / f"folder{number % 40}" / f"page{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = (f"## {words.any()} {n}\n\n{' '.join(words.any() for _ in range(80))}\n" for n in range(5))
        path.write_text(f"# {words.common()} {number}\n\n" + "\n".join(sections))
    time.sleep(0.2)  # Files that were just written are read once more.
    folder = PageFolder(home, Effects())
    started = time.process_time()
    folder.refresh()
    first = time.process_time() - started
    folder.refresh()
    looks = _p50(list(range(60)), lambda _number: folder.refresh())
    changes: list[float] = []
    for number in range(20):
        page = home / f"folder{number}" / f"page{number}.md"
        page.write_text(page.read_text() + f"\n## Added\n\nzyzzyva{number}\n")
        started = time.process_time()
        folder.refresh()
        found = folder.corpus.search(f"zyzzyva{number}", limit=1, where=LENIENT)
        changes.append((time.process_time() - started) * 1000)
        assert found.hits[0].document_id == f"folder{number}/page{number}.md"
    return {
        f"{FILES:,} files: first index s": first,
        f"{FILES:,} files: look without a change p50 ms": looks,
        f"{FILES:,} files: one changed, until it is found p50 ms": statistics.median(changes),
    }


def _p50(values: list[Any], work: Callable[[Any], Any]) -> float:
    times = []
    for value in values:
        started = time.process_time()
        work(value)
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def _base() -> int:
    """What the process takes with the model loaded, and nothing else that could still be given back."""
    if (embedder := installed_embedder()) is not None:
        embedder.query("warm")
    gc.collect()
    give_back()
    return _resident()


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    random.seed(7)
    work = {"chunks": _searches, "pages": _pages}[sys.argv[1]]
    print(json.dumps(work(Path(sys.argv[2]), int(sys.argv[3]))))
