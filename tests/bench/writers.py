"""Several processes that write to one SQLite file: how many writes a second, and who had to wait longest."""

import multiprocessing
import time
from pathlib import Path

from cpq.app import open_app
from cpq.app.access import OPERATOR
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings
from tests.app.test_transactions import book, command

PROCESSES = 8
CALLS = 200


def write(settings: Settings, keys: list[str], results: multiprocessing.Queue) -> None:
    """One process: writes under each key, and says whether it failed and how long it took."""
    app = open_app(settings)
    for key in keys:
        start, failed = time.perf_counter(), False
        try:
            app.write(app.new_call(OPERATOR), command(key), book)
        except CpqError:
            failed = True
        results.put((failed, time.perf_counter() - start))
    app.close()


def measure(home: Path) -> dict[str, float]:
    settings = read_settings({}, home=home)
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    keys = [[f"{process}-{call}" for call in range(CALLS)] for process in range(PROCESSES)]
    processes = [spawn.Process(target=write, args=(settings, mine, results)) for mine in keys]
    for process in processes:
        process.start()
    answers = [results.get(timeout=300) for _ in range(PROCESSES * CALLS)]
    start = time.perf_counter()
    for process in processes:
        process.join()
    waits = sorted(seconds for _, seconds in answers)
    return {
        "writes": len(answers),
        "failures": sum(failed for failed, _ in answers),
        "median write ms": waits[len(waits) // 2] * 1000,
        "p99 write ms": waits[int(len(waits) * 0.99)] * 1000,
        "longest wait s": waits[-1],
        "seconds to close": time.perf_counter() - start,
    }
