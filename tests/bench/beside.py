"""The same work in other systems, in the same run: create and price a quote of so many lines, and store it.

Each system has an environment of its own under `.cache/peers`, made from its registry on first use; one that cannot be
installed here is left out with its reason. The page of the guide is written from the figures.
"""

from __future__ import annotations

import json
import math
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cpq.app import open_app
from cpq.base.memory import spare_the_collector
from cpq.base.settings import read_settings
from tests.bench.quotes import asked
from tests.support import engine

HERE = Path(__file__).parent / "others"
CACHE = Path(__file__).parents[2] / ".cache" / "peers"
PAGE = Path(__file__).parents[2] / "cpq" / "guide" / "benchmarks.md"
OURS = "Quotewright"
SIZES = {10: 20, 100: 5}
SIZES_OF_OTHERS = {10: 5, 100: 1}
INSTALL_SECONDS = 1200
RUN_SECONDS = 3600
TRYTON = ("trytond==8.2.*", "trytond-sale", "trytond-product-price-list", "trytond-sale-price-list")


def measure(home: Path) -> dict[str, float]:
    """Milliseconds of the processor for each system and number of lines, and how many times ours the best other is."""
    home.mkdir(parents=True, exist_ok=True)
    found = {OURS: ours(home)}
    for name, (install, command) in OTHERS.items():
        folder = home / name
        folder.mkdir()
        try:
            install()
            found[name] = _run([*command(), str(folder), json.dumps([*SIZES_OF_OTHERS.items()])])
        except (OSError, subprocess.SubprocessError, ValueError) as problem:
            print(f"{name} is left out: {_reason(problem)}", file=sys.stderr)
    PAGE.write_text(page(found), encoding="utf-8")
    figures = {f"{name}, {lines} lines: ms CPU": ms for name, one in found.items() for lines, ms in one.items()}
    for lines, ms in found[OURS].items():
        others = [one[lines] for name, one in found.items() if name != OURS]
        if others:
            figures[f"best other / ours, {lines} lines"] = min(others) / ms
    return figures


def ours(home: Path) -> dict[int, float]:
    """Both calls on SQLite, by the processor's time of the whole process."""
    settings = read_settings({}, home=home / "ours", rate_limit_per_minute=0)
    engine.fill_with_sample(settings)
    app = open_app(settings)
    spare_the_collector()
    tools = engine.Tools(app)

    def once(lines: int) -> float:
        arguments = asked(app, lines)
        began = time.process_time()
        tools("quote_price", quote_id=tools("quote_create", **arguments)["quote_id"])
        return (time.process_time() - began) * 1000

    once(10)
    found = {lines: min(once(lines) for _ in range(rounds)) for lines, rounds in SIZES.items()}
    app.close()
    return found


def page(found: dict[str, dict[int, float]]) -> str:
    """The page of the guide: one row for each system, and the power with which its work grows."""
    sizes = [*SIZES]
    rows = [
        "| system | " + " | ".join(f"{lines} lines" for lines in sizes) + " | growth |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for name, one in found.items():
        growth = math.log(one[sizes[-1]] / one[sizes[0]]) / math.log(sizes[-1] / sizes[0])
        rows.append(f"| {name} | " + " | ".join(f"{one[lines]:,.1f}" for lines in sizes) + f" | {growth:.2f} |")
    missing = [name for name in OTHERS if name not in found]
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Create a quote, price it, and store it: milliseconds of the processor's time for each quote, on SQLite,",
            "and the power with which the work grows with the lines. `python -m tests.bench --only beside` measures",
            "them in one run and writes this page.",
            "",
            *rows,
            "",
            *([f"Left out, because they could not be installed: {', '.join(missing)}.", ""] if missing else []),
            f"Measured with Python {platform.python_version()} on {platform.system()} {platform.machine()}.",
            "",
        ]
    )


def _run(command: list[str]) -> dict[int, float]:
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=RUN_SECONDS)
    figures = json.loads(ran.stdout.splitlines()[-1])
    return {int(lines): float(ms) for lines, ms in figures.items()}


def _reason(problem: Exception) -> str:
    said = getattr(problem, "stderr", None) or str(problem)
    return str(said).strip().splitlines()[-1][:300]


def _install_python(name: str, *packages: str) -> None:
    python = CACHE / name / "bin" / "python"
    ready = CACHE / name / ".ready"
    if ready.exists():
        return
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(CACHE / name)],
        [str(python), "-m", "pip", "install", *packages],
    ):
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    ready.touch()


def _install_vendure() -> None:
    folder = CACHE / "vendure"
    if (folder / ".ready").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "vendure.json", folder / "package.json")
    command = ["npm", "install", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    (folder / ".ready").touch()


def _python(name: str, script: str) -> list[str]:
    return [str(CACHE / name / "bin" / "python"), str(HERE / script)]


Install = Callable[[], None]

OTHERS: dict[str, tuple[Install, Callable[[], list[str]]]] = {
    "Tryton 8.2": (lambda: _install_python("tryton", *TRYTON), lambda: _python("tryton", "tryton_sales.py")),
    "django-oscar 4.2": (
        lambda: _install_python("oscar", "django-oscar==4.2.*"),
        lambda: _python("oscar", "oscar_orders.py"),
    ),
    "Vendure 3.7": (_install_vendure, lambda: ["node", str(HERE / "vendure_orders.mjs"), str(CACHE / "vendure")]),
}
