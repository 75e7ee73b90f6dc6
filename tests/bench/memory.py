"""What a server's process holds after many calls, over what it held once it was warm; each database in its own."""

import multiprocessing
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cpq.app import open_app
from cpq.base.memory import spare_the_collector
from cpq.base.settings import Settings
from tests.bench.quotes import plain_products, stores
from tests.support import engine

WARM_CALLS = 5_000
ROUND = ("quote_create", "quote_price", "quote_get", "quote_list", "catalog_search")


def measure(home: Path, calls: int) -> dict[str, float]:
    results: dict[str, float] = {}
    with stores(home) as settings_of:
        for database, settings in settings_of.items():
            engine.fill_with_sample(settings)
            print(f"{calls:,} calls on {database}", file=sys.stderr)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                figures = process.submit(grow, settings, calls).result()
            results |= {f"{database} {name}": value for name, value in figures.items()}
    return results


def grow(settings: Settings, calls: int) -> dict[str, float]:
    app = open_app(settings)
    spare_the_collector()
    tools = engine.Tools(app)
    product = plain_products(app)[0]
    lines = [{"product_id": product, "quantity": 3}]
    quote_id = ""
    warm = 0.0
    for number in range(calls):
        if number == WARM_CALLS:
            warm = _megabytes()
        match ROUND[number % len(ROUND)]:
            case "quote_create":
                quote_id = tools("quote_create", account_id="acct_acme_001", line_items=lines)["quote_id"]
            case "quote_list":
                tools("quote_list", account_id="acct_acme_001", limit=5)
            case "catalog_search":
                tools("catalog_search", query="suite")
            case name:
                tools(name, quote_id=quote_id)
    last = _megabytes()
    app.close()
    return {f"MB after {WARM_CALLS:,} calls": warm, "MB at the end": last, "MB grown": last - warm}


def _megabytes() -> float:
    """All resident memory, as an operator sees it, with what is mapped from files."""
    with open("/proc/self/statm") as file:
        _size, resident, *_rest = map(int, file.read().split())
    return resident * resource.getpagesize() / 2**20
