"""Proof of agreements: each is folded again from its orders and compared with what is stored of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.domain.agreements.agreement import fold
from cpq.services.orders import repository as order_repository
from cpq.storage.schema import tables

Progress = Callable[[int, int], None]


class Difference(TypedDict):
    agreement_id: str
    column: str
    stored: str
    folded: str


class Verified(TypedDict):
    agreements: int
    orders: int
    differences: list[Difference]


def verify(tx: Tx, agreement_id: str | None = None, progress: Progress = lambda _done, _total: None) -> Verified:
    """Fold every agreement again, or one of them; what differs is named. Orders that belong to none differ, too."""
    table = tables.agreement
    mine = [tx.own(table)] + ([table.c.id == agreement_id] if agreement_id is not None else [])
    rows = tx.connection.execute(sa.select(table).where(*mine).order_by(table.c.id)).mappings().all()
    if agreement_id is not None and not rows:
        order_repository.load_agreement(tx, agreement_id)  # NOT_FOUND with the way out.
    found: Verified = {"agreements": len(rows), "orders": 0, "differences": []}
    for done, row in enumerate(rows, 1):
        found["orders"] += _compare(tx, dict(row), found["differences"])
        progress(done, len(rows))
    if agreement_id is None:
        found["differences"] += _without_agreement(tx)
    return found


def _compare(tx: Tx, stored: Mapping[str, Any], differences: list[Difference]) -> int:
    """Add what differs; returns the number of orders."""
    id_ = stored["id"]
    orders = order_repository.orders_of(tx, id_)
    if not orders:
        differences.append(_difference(id_, "sequence", stored["sequence"], "no order"))
        return 0
    agreement = fold(id_, orders)
    folded = {
        "account_id": agreement.account_id,
        "currency": agreement.currency,
        **order_repository.cached(agreement),
        "sequence": len(orders),
    }
    differences += [
        _difference(id_, column, stored[column], value) for column, value in folded.items() if stored[column] != value
    ]
    return len(orders)


def _without_agreement(tx: Tx) -> list[Difference]:
    order, place = tables.sales_order, tables.agreement_order
    placed = sa.exists().where(tx.own(place), place.c.order_id == order.c.id).correlate(order)
    query = sa.select(order.c.agreement_id, order.c.number).where(tx.own(order), ~placed).order_by(order.c.number)
    return [_difference(id_, "orders", "missing", number) for id_, number in tx.connection.execute(query)]


def _difference(agreement_id: str, column: str, stored: object, folded: object) -> Difference:
    return {"agreement_id": agreement_id, "column": column, "stored": str(stored), "folded": str(folded)}
