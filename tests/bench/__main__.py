"""`make bench`: measures what the product promises and prints it beside its floor, never judging by one reading."""

import argparse
import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cpq.config import read_settings
from tests import make
from tests.bench import catalog, pricing, stdio, writers

TARGETS = {
    "import s": "≤ 120 for a million",
    "import MB": "≤ 1,024",
    "search p50 ms": "≤ 15",
    "search p99 ms": "≤ 60",
    "catalog_get / empty tool": "≤ 2",
    "start to first answer s": "≤ 2.5",
    "longest wait s": "< 1",
    "10,000 lines: lines a second": "≥ 60,000",
    "time a line, 10,000 / 100": "≤ 1.3",
    "1,000 lines: pricer / bare integers": "≤ 4",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--products", type=int, default=1_000_000, help="size of the large catalogue")
    parser.add_argument("--only", choices=["pricing", "stdio", "writers", "catalog"], help="measure one part")
    options = parser.parse_args()
    if options.only in (None, "pricing"):
        report("The pricer alone, by the processor's time", pricing.measure())
    if options.only == "pricing":
        return
    with tempfile.TemporaryDirectory(prefix="cpq-bench-", dir=os.environ.get("CPQ_BENCH_DIR")) as folder:
        home = Path(folder)
        make.fill_with_sample(read_settings({}, home=home / "sample"))
        if options.only in (None, "stdio"):
            report("Calls over stdio, alternating", stdio.measure(home / "sample"))
        if options.only in (None, "writers"):
            report("Eight processes writing to one SQLite file", writers.measure(home / "sample"))
        if options.only in (None, "catalog"):
            title = f"A catalogue of {options.products:,} products"
            report(title, catalog.measure(home / "large", options.products))


def report(title: str, figures: dict[str, float]) -> None:
    table = Table(title=title, title_justify="left")
    for name in ("measured", "value", "target"):
        table.add_column(name, justify="right" if name == "value" else "left")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}", TARGETS.get(name, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
