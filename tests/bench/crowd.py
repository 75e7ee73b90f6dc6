"""Many processes that create and price quotes for a while: nothing is lost, nothing is done twice, and how fast."""

import multiprocessing
import time
from collections import Counter
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cpq.app import App, open_app
from cpq.base.errors import Code
from cpq.base.memory import spare_the_collector
from cpq.base.money import from_micro
from cpq.base.settings import Settings
from cpq.storage.schema.tables import quote, quote_line, quote_version
from tests.bench.quotes import Floor, creator, plain_products, stores
from tests.support import engine

WRITERS = 16
LINES = 10
NAMED = {Code.UNAVAILABLE, Code.TIMEOUT, Code.CONFLICT, Code.RATE_LIMITED}
"""What a client that writes as fast as it can may be told; each says when or how to try again."""


def measure(home: Path, seconds: int) -> dict[str, float]:
    results: dict[str, float] = {}
    with stores(home) as settings_of:
        for database, settings in settings_of.items():
            engine.fill_with_sample(settings)
            floor = run(settings, max(5, seconds // 4), write_floor)
            ours = run(settings, seconds, write_quotes)
            results |= {f"{database} {name}": value for name, value in judge(settings, ours, seconds).items()}
            results[f"{database} floor quotes a second"] = sum(floor) / max(5, seconds // 4)
    return results


def run(settings: Settings, seconds: int, work: Any) -> list[Any]:
    spawn = multiprocessing.get_context("spawn")
    results, ready = spawn.Queue(), spawn.Barrier(WRITERS)
    processes = [spawn.Process(target=work, args=(settings, n, seconds, ready, results)) for n in range(WRITERS)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=seconds * 4 + 120) for _ in processes]
    for process in processes:
        process.join()
    return answers


def write_quotes(settings: Settings, number: int, seconds: int, ready: Any, results: Any) -> None:
    """Every fifth call is sent a second time with its key, as a client does that lost the answer."""
    app = open_app(settings)
    tools = engine.Tools(app)
    products = plain_products(app)
    lines = [{"product_id": products[n], "quantity": number + 1} for n in range(LINES)]
    codes: Counter[str] = Counter()
    totals: dict[str, float] = {}
    twice = waits = 0.0
    spare_the_collector()
    ready.wait()
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        count += 1
        arguments = {"account_id": "acct_acme_001", "line_items": lines, "idempotency_key": f"{number}-{count}"}
        start = time.monotonic()
        reply = tools.reply("quote_create", arguments)
        waits = max(waits, time.monotonic() - start)
        codes[reply.code] += 1
        if reply.is_error:
            continue
        totals[reply.body["quote_id"]] = sum(line["subtotal"] for line in reply.body["line_items"])
        if count % 5 == 0:
            again = tools.reply("quote_create", arguments)
            codes[again.code] += 1
            twice += not again.is_error and again.body["quote_id"] != reply.body["quote_id"]
    results.put((codes, totals, twice, waits))
    app.close()


def write_floor(settings: Settings, number: int, seconds: int, ready: Any, results: Any) -> None:
    app = open_app(settings)
    floor = Floor(app, prefix=f"{number}-")
    rows = floor.rows_of(creator(app, LINES, f"floor-{number}")())
    ready.wait()
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        floor.write(rows)
        count += 1
    results.put(count)
    floor.close()
    app.close()


def judge(settings: Settings, answers: list[Any], seconds: int) -> dict[str, float]:
    codes = sum((one[0] for one in answers), Counter[str]())
    acknowledged = {quote_id: total for one in answers for quote_id, total in one[1].items()}
    app = open_app(settings)
    stored = totals_stored(app)
    app.close()
    ours = {id_: total for id_, total in stored.items() if id_ in acknowledged}
    return {
        "quotes": len(acknowledged),
        "quotes a second": len(acknowledged) / seconds,
        "longest wait s": max(one[3] for one in answers),
        "refusals the contract names": sum(n for code, n in codes.items() if code in NAMED),
        "unexpected errors": sum(n for code, n in codes.items() if code != "OK" and code not in NAMED),
        "duplicates": sum(one[2] for one in answers),
        "lost quotes": len(acknowledged) - len(ours),
        "totals that differ": sum(from_micro(total) != round(acknowledged[id_], 2) for id_, total in ours.items()),
    }


def totals_stored(app: App) -> dict[str, int]:
    """The total of every quote, which must be the sum of its lines."""
    with app.database.reading() as connection:
        by_lines = sa.select(quote_line.c.quote_id, sa.func.sum(quote_line.c.net)).group_by(quote_line.c.quote_id)
        lines = {row[0]: int(row[1]) for row in connection.execute(by_lines)}
        versions = sa.select(quote_version.c.quote_id, quote_version.c.total - quote_version.c.tax_total)
        for quote_id, total in connection.execute(versions):
            assert lines[quote_id] == total, quote_id
        return {row[0]: row[1] for row in connection.execute(sa.select(quote.c.id, quote.c.total))}
