"""Documents: the processor's time for one of ten, a thousand and five thousand lines, and for asking once more."""

import os
import subprocess
import sys
import time
from pathlib import Path

from cpq.app import App, open_app
from cpq.base.clock import Effects
from cpq.base.settings import read_settings
from cpq.services.documents import worker_pool
from tests.support import engine, papers
from tests.support.engine import Tools
from tests.support.quotes import put_into

SIZES = (10, 500, 1_000, 5_000)
REPEATS = {10: 9, 500: 2, 1_000: 1, 5_000: 1}
PRODUCTS = ("prod_qmb30", "prod_pro_v2", "prod_dr125", "prod_tk240v", "prod_svc_install", "prod_fp150", "prod_drain_zl")
TICKS = os.sysconf("SC_CLK_TCK")


def measure(home: Path) -> dict[str, float]:
    """By the processor's time of the worker, because the machine is shared; the best of a few."""
    engine.fill_with_sample(read_settings({}, home=home))
    app = open_app(read_settings({}, home=home, rate_limit_per_minute=0))
    ids = {size: _import(app, home, size) for size in SIZES}
    pool = worker_pool.Workers(papers.TEMPLATES_FOLDER.absolute())
    first = _cpu(pool, papers.job(app, ids[SIZES[0]]))
    figures = {"first document of a process, start included ms": first * 1000}
    seconds: dict[int, float] = {}
    for size in SIZES:
        job = papers.job(app, ids[size])
        seconds[size] = min(_cpu(pool, job) for _ in range(REPEATS[size]))
    pool.close()
    figures["10 lines warm, CPU ms"] = seconds[10] * 1000
    figures["500 lines, CPU s"] = seconds[500]
    figures["1,000 lines, CPU s"] = seconds[1_000]
    figures["5,000 lines, CPU s"] = seconds[5_000]
    figures["time a line, 5,000 / 500"] = seconds[5_000] / 5_000 / (seconds[500] / 500)
    figures["second request for a draft of 500 lines, CPU ms"] = _second(app, ids[500]) * 1000
    put_into(app, ids[10], "approved")
    figures["second request, CPU ms"] = _second(app, ids[10]) * 1000
    app.close()
    return figures


def _import(app: App, home: Path, size: int) -> str:
    chosen = [(PRODUCTS[number % len(PRODUCTS)], 1 + number % 9, number % 4) for number in range(size)]
    rows = [f"D-{size},acct_acme_001,USD,12,{id_},{quantity},{off}" for id_, quantity, off in chosen]
    rows.insert(0, "id,account_id,currency,term_months,product_id,quantity,discount_pct")
    (home / "quotes.csv").write_text("\n".join(rows) + "\n")
    script = "import sys; from cpq.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "import", "quotes", str(home / "quotes.csv")]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "CPQ_HOME": str(home)})
    Tools(app)("quote_price", quote_id=f"D-{size}")
    return f"D-{size}"


def _cpu(pool: worker_pool.Workers, job: bytes) -> float:
    """What the worker has used for one document; all of its life for the first."""
    before = sum(_used(worker._process.pid) for worker in pool._idle)
    pool.render(job, effects=Effects(), seconds_max=600, progress=lambda *_: None)
    return sum(_used(worker._process.pid) for worker in pool._idle) - before


def _used(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _second(app: App, quote_id: str) -> float:
    tools = Tools(app)
    tools("quote_pdf", quote_id=quote_id)
    best = 1e9
    for _ in range(30):
        start = time.process_time()
        tools("quote_pdf", quote_id=quote_id)
        best = min(best, time.process_time() - start)
    return best
