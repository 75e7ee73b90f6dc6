"""The context toolset as a client meets it: a server of its own over stdio, its memory, and its first answer.

Once with nothing but chunk files, and once after a server has made and stored everything. The chunks are sentences of
other people's documentation, about 100 words each, with names of their own.
"""

import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cpq.app import App, open_app
from cpq.app.access import OPERATOR
from cpq.base.settings import Settings, read_settings
from cpq.retrieval import context
from cpq.retrieval.context.chunk_folder import KEPT_FROM
from cpq.retrieval.search import vector_repository
from tests.bench import docs, exact_text
from tests.bench.stdio import RawClient
from tests.support import engine

SIZES = (1_000, 10_000, 100_000)
SENTENCES = 6
ASKED = 20
SETTLED_SECONDS_MAX = 600.0


def measure(home: Path, largest: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for size in SIZES:
        if size <= largest:
            figures |= _of(home / str(size), size)
    return figures


def _of(home: Path, size: int) -> dict[str, float]:
    engine.fill_with_sample(read_settings({}, home=home))
    root = home / "chunks"
    root.mkdir()
    (root / "doc-chunks.json").write_text(json.dumps({"chunks": list(chunks(size))}))
    name = f"{size:,} chunks: "
    fresh = _served(home, root, size, waits=False)
    figures = {f"{name}nothing stored, first answer s": fresh["first answer s"], f"{name}at first MB": fresh["MB"]}
    # In a process of its own, because the measured one must not have seen the vectors.
    subprocess.run([sys.executable, "-m", "tests.bench.context", str(home), str(root)], check=True)
    _served(home, root, size, waits=True)  # It stores what it makes of the files.
    stored = _served(home, root, size, waits=True)
    return figures | {
        f"{name}stored, first answer s": stored["first answer s"],
        f"{name}stored, first answer by meaning s": stored["by meaning s"],
        f"{name}resident MB": stored["MB"],
        f"{name}of its own MB": stored["MB"] - stored["mapped MB"],
        f"{name}at most MB": stored["at most MB"],
        f"{name}over stdio p50 ms": stored["p50 ms"],
    }


def _served(home: Path, root: Path, size: int, *, waits: bool) -> dict[str, float]:
    """Start a server, ask until all is ready if it `waits`, then ask on, and look at its memory."""
    client = RawClient("mcp_facade", home, CPQ_CHUNKS_DIR=str(root), CPQ_TOOLSETS="context")
    asked = iter(_questions())
    answer = _ask(client, next(asked))
    figures = {"first answer s": time.perf_counter() - client.started, "first hits": float(len(answer["results"]))}
    while waits and answer["mode"] != "hybrid":
        assert time.perf_counter() - client.started < SETTLED_SECONDS_MAX, answer
        time.sleep(0.2)
        answer = _ask(client, next(asked))
    figures["by meaning s"] = time.perf_counter() - client.started
    times = []
    for _ in range(ASKED if waits else 1):
        began = time.perf_counter()
        _ask(client, next(asked))
        times.append((time.perf_counter() - began) * 1000)
    figures["p50 ms"] = statistics.median(times)
    is_stored = size < KEPT_FROM
    while waits and not is_stored:
        assert time.perf_counter() - client.started < SETTLED_SECONDS_MAX
        is_stored = any((home / "index").glob("*.index"))
        time.sleep(0.5)
    if waits:
        time.sleep(3)  # What is stored in the background is stored, and freed memory is given back.
    figures |= client.memory()
    client.close()
    return figures


def _ask(client: RawClient, question: str) -> dict[str, Any]:
    answer = client.call("cortex_search", query=question)
    assert not answer.get("isError"), answer
    return answer["structuredContent"]


def _questions() -> Iterator[str]:
    chance = random.Random(11)
    words = sorted({word for line in _lines() for word in re.findall(r"[a-z]{5,}", line)})
    while True:
        yield f"how to {' '.join(chance.sample(words, 3))}"


def chunks(count: int) -> Iterator[dict[str, Any]]:
    chance, lines = random.Random(7), _lines()
    for number in range(count):
        text = "\n".join(chance.choice(lines) for _ in range(SENTENCES))
        yield {
            "id": f"c{number:06}",
            "chunk_type": "documentation",
            "title": " ".join(chance.choice(lines).split()[:5]),
            "text": f"{text}\nSee also part_{number // 7}.handler_{number}.",
            "tags": ["rare"] if number % 100 == 0 else [],
            "metadata": {"file_path": f"docs/part{number // 200}/page{number // 20}.md"},
        }


def _lines() -> list[str]:
    """Sentences of the pages, in a fixed order."""
    texts = (line.strip() for chunk in exact_text.pages() for line in chunk.text.splitlines())
    return sorted({line for line in texts if 8 <= len(line.split()) <= 30})


def _store_vectors(settings: Settings) -> None:
    """Vectors of chance for all chunks: what they say changes neither memory nor time."""
    app: App = open_app(settings)
    folder = context.commands._folder(app)
    folder.load()
    made = docs.vectors_of_chance(folder.corpus.missing())
    for part in made:
        app.upkeep(app.new_call(OPERATOR), lambda tx, part=part: vector_repository.store(tx, "context", part))  # type: ignore[misc] # A default.
    app.close()


if __name__ == "__main__":
    _store_vectors(read_settings({}, home=Path(sys.argv[1]), chunks_dir=Path(sys.argv[2])))
