"""`cpq policy simulate` in a process of its own: time and memory of a changed policy over many stored quotes."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from cpq.base.settings import read_settings, shipped
from tests.bench import quotes
from tests.support import engine

COMMAND = """
import sys
from cpq.cli import main
code = main()
status = open("/proc/self/status").read()
print(status.partition("VmHWM:")[2].split()[0], file=sys.stderr)
sys.exit(code)
"""
"""Its own peak: what the system counts for a child begins with the size of the process that started it."""


def measure(home: Path, count: int) -> dict[str, float]:
    """Wall and processor time, and the peak of its memory, when every quote's decision changes and when none does."""
    settings = read_settings({}, home=home, rate_limit_per_minute=0)
    engine.fill_with_sample(settings)
    print(f"storing {count:,} quotes", file=sys.stderr)
    quotes.fill(settings, count)
    results: dict[str, float] = {}
    for name, bound in (("all change", "0.5"), ("none change", "4.5")):
        folder = shutil.copytree(shipped("policies"), home.with_name(f"policies {name}"))
        text = (folder / "discounts.yaml").read_text(encoding="utf-8")
        (folder / "discounts.yaml").write_text(text.replace("above: 5\n", f"above: {bound}\n"), encoding="utf-8")
        results |= {f"{name}: {what}": value for what, value in _run(home, folder, count).items()}
    return results


def _run(home: Path, folder: Path, count: int) -> dict[str, float]:
    output = home.with_name("simulated.json")
    command = [sys.executable, "-c", COMMAND, "--home", str(home), "policy", "simulate", str(folder), "--json"]
    start, before = time.perf_counter(), os.times()
    with output.open("wb") as file:
        ran = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=True)
    seconds, after = time.perf_counter() - start, os.times()
    summary = json.loads(output.read_text(encoding="utf-8"))["summary"]
    assert summary["quotes"] == count + 1, summary
    return {
        "simulation s": seconds,
        "of the processor s": sum(after[2:4]) - sum(before[2:4]),
        "simulation MB": int(ran.stderr.split()[-1]) / 1024,
        "quotes changed": summary["changed"],
    }
