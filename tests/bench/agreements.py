"""Agreements through the tools: amend and read one of many lines and orders, and list the orders of a busy account."""

import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cpq.app import App
from cpq.base.memory import spare_the_collector
from cpq.base.settings import read_settings
from cpq.storage.schema import tables
from tests.support import engine
from tests.support.approvals import person
from tests.support.engine import Tools, opened
from tests.support.quotes import ACME

SEAT = "prod_seat"
"""So cheap that ten thousand ask nobody for an approval."""

PRICE = {
    "product_id": SEAT,
    "price_book": "list",
    "currency": "USD",
    "unit_price": "1",
    "billing_period": "yearly",
    "cost": "0.1",
}
SIZES = (100, 1_000, 10_000)
EARLIER = 50
ORDERS = 10_000
QUOTED = 500
START, FIRST, CHANGE = "2026-12-01", "2027-02-01", "2027-06-01"


def measure(home: Path) -> dict[str, float]:
    """By the processor's time, the best of three."""
    spare_the_collector()  # As every server does.
    figures: dict[str, float] = {}
    for size in SIZES:
        folder = home / f"agreements-{size}"
        folder.mkdir(parents=True)
        engine.fill_with_sample(read_settings({}, home=folder))
        app = opened(folder)
        engine.import_dicts(app, "products", engine.product_row(id=SEAT))
        engine.import_dicts(app, "prices", PRICE)
        figures |= _of_agreement(person(app, "rita", "sales_rep"), size)
        if size == SIZES[0]:
            figures |= _of_account(app)
        app.close()
    for name in ("amend a line", "amend all lines", "agreement_get"):
        smaller, larger = (figures[f"{size:,} lines: {name} ms"] for size in SIZES[1:])
        figures[f"{name}: growth, 10,000 / 1,000"] = larger / smaller
    return figures


def _of_agreement(tools: Tools, size: int) -> dict[str, float]:
    agreement_id = sold(tools, size)
    lines = [line["line_id"] for line in owned(tools, agreement_id)["lines"]]
    for number in range(EARLIER):
        change = amend(tools, agreement_id, FIRST, lines[number : number + 1], 2 + number)
        accept(tools, change["quote_id"])
    name = f"{size:,} lines"
    return {
        f"{name}: amend a line ms": best(lambda: amend(tools, agreement_id, CHANGE, lines[-1:], 3)),
        f"{name}: amend all lines ms": best(lambda: amend(tools, agreement_id, CHANGE, lines, 3), times=1),
        f"{name}: agreement_get ms": best(lambda: owned(tools, agreement_id)),
    }


def _of_account(app: App) -> dict[str, float]:
    """The rows of one order, as often as the account shall have orders."""
    order, quote, version = tables.sales_order, tables.quote, tables.quote_version
    with app.database.writing(app.effects.monotonic() + 3600) as connection:
        one = dict(connection.execute(sa.select(order).limit(1)).mappings().one())
        sold_by = dict(connection.execute(sa.select(quote).where(quote.c.id == one["quote_id"])).mappings().one())
        of_quote = version.c.quote_id == one["quote_id"]
        sold_as = dict(connection.execute(sa.select(version).where(of_quote)).mappings().one())
        copies = [f"{number:05}" for number in range(ORDERS)]
        connection.execute(sa.insert(quote), [{**sold_by, "id": f"Q-{end}", "number": f"N-{end}"} for end in copies])
        connection.execute(sa.insert(version), [{**sold_as, "quote_id": f"Q-{end}"} for end in copies])
        connection.execute(
            sa.insert(order), [{**one, "id": f"O-{end}", "number": end, "quote_id": f"Q-{end}"} for end in copies]
        )
    tools = person(app, "rita", "sales_rep")
    return {f"{ORDERS:,} orders: order_list ms": best(lambda: tools("order_list", account_id=one["account_id"]))}


def sold(tools: Tools, size: int) -> str:
    """An agreement of so many lines: a quote by a tool has at most 500, further ones are added on the first day."""
    line = {"product_id": SEAT, "quantity": 1}
    lines = [line] * min(size, QUOTED)
    made = tools("quote_create", account_id=ACME, term_months=12, start_date=START, line_items=lines)
    id_ = str(accept(tools, made["quote_id"])["agreement_id"])
    if size > QUOTED:
        changes = [{"action": "add_line", **line}] * (size - QUOTED)
        change = tools("agreement_amend", agreement_id=id_, effective_date=START, changes=changes)
        accept(tools, change["quote_id"])
    return id_


def accept(tools: Tools, quote_id: str) -> dict[str, Any]:
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    return tools("quote_accept", quote_id=quote_id, expected_version=1)


def owned(tools: Tools, agreement_id: str) -> dict[str, Any]:
    return tools("agreement_get", agreement_id=agreement_id, as_of=FIRST)


def amend(tools: Tools, agreement_id: str, day: str, lines: list[str], quantity: int) -> dict[str, Any]:
    changes = [{"action": "set_quantity", "line_id": line, "quantity": quantity} for line in lines]
    return tools("agreement_amend", agreement_id=agreement_id, effective_date=day, changes=changes)


def best(work: Any, *, times: int = 3) -> float:
    return min(_seconds(work) for _ in range(times)) * 1_000


def _seconds(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
