"""A catalogue of a million products: how long its import takes, how fast it is searched, beside plain FTS5."""

import csv
import itertools
import random
import resource
import statistics
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from pathlib import Path

import pysqlite3

from cpq.app import App, Command, open_app
from cpq.app.access import OPERATOR, Permission
from cpq.base.settings import read_settings
from cpq.services import catalog
from cpq.storage import migrations

QUERIES = 600
EVERYDAY = """rotary screw compressor industrial oilless variable speed filter element valve pump dryer tank vertical
horizontal stainless steel heavy duty kit air oil belt drive motor seal gasket hose fitting flange regulator"""
COMMON = EVERYDAY.split()


class Words:
    """Words as catalogues have them: a few that are everywhere, thousands that are rare."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        syllables = [a + b for a in "bcdfghklmnprstvz" for b in "aeiou"]
        maker = random.Random(1)
        self.rare = sorted({"".join(maker.choices(syllables, k=maker.randint(2, 4))) for _ in range(8000)})
        self._weights = list(itertools.accumulate((rank + 1) ** -0.9 for rank in range(len(self.rare))))

    def any(self) -> str:
        return self.rare[bisect(self._weights, self.random.random() * self._weights[-1])]

    def common(self) -> str:
        return self.random.choice(COMMON)

    def category(self) -> str:
        return f"category_{self.random.randrange(40):02}"


def products(count: int) -> Iterator[list[str]]:
    words = Words(7)
    for number in range(count):
        model = f"{''.join(words.random.choices('ABCDEFGHKLMNPRSTVX', k=2))}{words.random.randint(10, 9999)}"
        name = f"{model} {words.common()} {words.any()} {words.common()} {words.any()}"
        description = " ".join(words.any() if words.random.random() < 0.8 else words.common() for _ in range(16))
        yield [f"prod_{number * 7919 % count:07}", f"SKU-{number:07}", name, description, words.category()]


def write_csv(path: Path, count: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "sku", "name", "description", "category"])
        writer.writerows(products(count))


def import_catalogue(home: Path, file: Path) -> None:
    """Runs in a process of its own, so that its memory is its own."""
    settings = read_settings(home=home)
    migrations.upgrade(settings)
    app = open_app(settings)
    start, cpu = time.perf_counter(), time.process_time()
    command = Command("import_catalog", Permission.ADMINISTER, {"file": file.name})

    def work(tx):
        return {"created": catalog.import_rows(tx, catalog.read_rows(file, "products")).created["products"]}

    created = app.write(app.new_call(OPERATOR), command, work).answer["created"]
    seconds = time.perf_counter() - start
    app.close()
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() - cpu + times.ru_utime + times.ru_stime
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    megabytes = sum(resource.getrusage(process).ru_maxrss for process in who) / 1024
    print(created, seconds, cpu, megabytes)


def measure(home: Path, count: int) -> dict[str, float]:
    file = home / "catalogue.csv"
    home.mkdir(parents=True, exist_ok=True)
    print(f"writing {count:,} products", file=sys.stderr)
    write_csv(file, count)
    print("importing them", file=sys.stderr)
    run = [sys.executable, "-m", "tests.bench.catalog", str(home), str(file)]
    created, seconds, cpu, megabytes = map(float, subprocess.check_output(run, text=True).split())
    assert created == count
    print("building a plain FTS5 table of the same rows", file=sys.stderr)
    plain = _plain_fts5(home / "plain.db", file)
    app = open_app(read_settings(home=home))
    ours, theirs = _search_times(app, plain)
    app.close()
    return {
        "import s": seconds,
        "import CPU s": cpu,
        "import MB": megabytes,
        "search p50 ms": _percentile(ours, 50),
        "search p99 ms": _percentile(ours, 99),
        "plain FTS5 p50 ms": _percentile(theirs, 50),
        "plain FTS5 p99 ms": _percentile(theirs, 99),
        "search / plain FTS5, p50": _percentile(ours, 50) / _percentile(theirs, 50),
        "search / plain FTS5, p99": _percentile(ours, 99) / _percentile(theirs, 99),
    }


def _search_times(app: App, plain: Callable[[str, str], object]) -> tuple[list[float], list[float]]:
    """Two-word queries with a category, a third each of rare, mixed and common words, alternating between both."""
    words = Words(11)
    makers = [(words.any, words.any), (words.common, words.any), (words.common, words.common)]
    ours, theirs = [], []
    for number in range(QUERIES + 30):
        first, second = makers[number % 3]
        query, category = f"{first()} {second()}", words.category()
        command = Command("catalog_search", Permission.READ, {"query": query})

        def work(tx, query=query, category=category):
            return catalog.search(tx, query=query, category_id=category, active_only=True, limit=20, page=1)

        start = time.perf_counter()
        app.read(app.new_call(), command, work)
        middle = time.perf_counter()
        plain(query, category)
        end = time.perf_counter()
        if number >= 30:
            ours.append((middle - start) * 1000)
            theirs.append((end - middle) * 1000)
    return ours, theirs


def _plain_fts5(path: Path, file: Path) -> Callable[[str, str], object]:
    """What one would write first: an FTS5 table, `MATCH`, a category column, ranked by bm25, with the count of hits."""
    path.unlink(missing_ok=True)
    connection = pysqlite3.connect(path)
    connection.execute("CREATE VIRTUAL TABLE p USING fts5(id UNINDEXED, sku, name, description, category)")
    with file.open() as rows:
        reader = csv.reader(rows)
        next(reader)
        connection.executemany("INSERT INTO p VALUES (?, ?, ?, ?, ?)", reader)
    connection.commit()

    def search(query: str, category: str) -> object:
        match = f"{query} AND category:{category}".replace(" ", " AND ", 1)
        total = connection.execute("SELECT count(*) FROM p WHERE p MATCH ?", (match,)).fetchone()
        page = "SELECT id, name FROM p WHERE p MATCH ? ORDER BY rank LIMIT 20"
        return total, connection.execute(page, (match,)).fetchall()

    return search


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


if __name__ == "__main__":
    import_catalogue(Path(sys.argv[1]), Path(sys.argv[2]))
