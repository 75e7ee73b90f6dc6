"""Several processes that write to one SQLite file: how many writes a second, and who had to wait longest."""

import multiprocessing
import time
from pathlib import Path

from cpq.config import read_settings
from tests.storage.test_processes import work

PROCESSES = 8
CALLS = 200


def measure(home: Path) -> dict[str, float]:
    settings = read_settings({}, home=home)
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    keys = [[f"{process}-{call}" for call in range(CALLS)] for process in range(PROCESSES)]
    processes = [spawn.Process(target=work, args=(settings, mine, results)) for mine in keys]
    for process in processes:
        process.start()
    answers = [results.get(timeout=300) for _ in range(PROCESSES * CALLS)]
    start = time.perf_counter()
    for process in processes:
        process.join()
    waits = sorted(seconds for _, _, _, seconds in answers)
    failures = sum(replayed is None for _, _, replayed, _ in answers)
    return {
        "writes": len(answers),
        "failures": failures,
        "median write ms": waits[len(waits) // 2] * 1000,
        "p99 write ms": waits[int(len(waits) * 0.99)] * 1000,
        "longest wait s": waits[-1],
        "seconds to close": time.perf_counter() - start,
    }
