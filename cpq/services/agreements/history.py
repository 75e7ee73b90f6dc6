"""History: quotes that were accepted before orders existed get their order and agreement, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import Answer, recorded_state
from cpq.app.call import OUTCOME_OK
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.domain.quotes.quote import Quote
from cpq.services import orders
from cpq.services.orders import Signature
from cpq.services.orders import repository as order_repository
from cpq.services.quotes import repository as quote_repository
from cpq.storage.schema import tables

BATCH = 20
"""Quotes in one transaction, so that other writers need not wait long."""

UNKNOWN = "unknown"
"""Who accepted, where no record says it."""

Write = Callable[[Callable[[Tx], Answer]], Answer]
Progress = Callable[[int, int], None]


class Refused(TypedDict):
    quote_id: str
    message: str


class BuiltHistory(TypedDict):
    """What a build did; no record says who accepted the `unknown` quotes, and when."""

    built: int
    unknown: list[str]
    refused: list[Refused]
    waiting: int


def build(write: Write, total: int, progress: Progress) -> BuiltHistory:
    """Make the orders that are missing, oldest quote first. Each batch is stored by itself: a stopped build goes on."""
    built: BuiltHistory = {"built": 0, "unknown": [], "refused": [], "waiting": 0}
    after: list[str] | None = None
    while True:
        step = write(partial(build_some, after=after))
        built["built"] += step["built"]
        built["unknown"] += step["unknown"]
        built["refused"] += step["refused"]
        built["waiting"] = step["waiting"]
        progress(built["built"] + len(built["refused"]), total)
        after = step["after"]
        if after is None:
            return built


def build_some(tx: Tx, *, after: list[str] | None, limit: int = BATCH) -> Answer:
    """Make the orders of the next quotes. One whose rows differ from the record is named and left as it is."""
    quote = tables.quote
    wanted = [tx.own(quote), order_repository.is_waiting(tx)]
    if after is not None:
        wanted.append(sa.tuple_(quote.c.number, quote.c.id) > sa.tuple_(*map(sa.literal, after)))
    query = sa.select(quote.c.number, quote.c.id).where(*wanted).order_by(quote.c.number, quote.c.id).limit(limit)
    rows = tx.connection.execute(query.with_for_update(of=quote)).all()
    # Another build may have made some of them while this one waited for their rows.
    ids = [row.id for row in rows]
    mine = sa.select(quote.c.id).where(tx.own_among(quote.c.id, ids), order_repository.is_waiting(tx))
    waiting = set(tx.connection.scalars(mine))
    unknown, refused = [], []
    for quote_id in filter(waiting.__contains__, ids):
        try:
            if not _build(tx, quote_id):
                unknown.append(quote_id)
        except CpqError as error:
            refused.append({"quote_id": quote_id, "message": error.message})
    last = rows[-1] if len(rows) == limit else None
    return {
        "built": len(waiting) - len(refused),
        "unknown": unknown,
        "refused": refused,
        "waiting": order_repository.waiting(tx),
        "after": list(last) if last else None,
    }


def _build(tx: Tx, quote_id: str) -> bool:
    """Make the order of one quote; returns whether its acceptance is on record."""
    quote = quote_repository.load(tx, quote_id)
    recorded_state.require(tx, quote_id, quote.version.number, also=["quote_line", "quote_pricing"], for_update=True)
    signature = _signature(tx, quote)
    is_known = signature is not None
    if signature is None:
        why = "Built from a quote whose acceptance is not on record; the time is that of its price."
        signature = Signature(quote.version.priced_at or quote.version.created_at, UNKNOWN, why)
    orders.record_past_order(tx, quote, quote_repository.pricings(tx, quote)[0], signature)
    return is_known


def _signature(tx: Tx, quote: Quote) -> Signature | None:
    """Who accepted the version and when: by the customer's link, by the event of the acceptance, or by the audit."""
    event = _event(tx, quote)
    link = tables.acceptance_link
    mine = tx.own(link), link.c.quote_id == quote.id, link.c.version == quote.version.number
    used = tx.connection.execute(sa.select(link).where(*mine, link.c.used_at.is_not(None))).first()
    if used is not None:
        caller = event["by"] if event else f"customer:{used.id}"
        return Signature(used.used_at, caller, f"{used.used_by} accepted by link {used.id}")
    if event is not None:
        return Signature(event["at"], event["by"], None)
    entry = tables.audit_entry
    accepted = entry.c.operation == "quote_accept", entry.c.outcome == OUTCOME_OK
    query = sa.select(entry.c.at, entry.c.caller).where(tx.own(entry), entry.c.subject == quote.id, *accepted)
    row = tx.connection.execute(query.order_by(entry.c.at, entry.c.id)).first()  # A later one repeats the answer.
    return Signature(row.at, row.caller, None) if row else None


def _event(tx: Tx, quote: Quote) -> dict[str, Any] | None:
    event = tables.event
    query = sa.select(event.c.created_at, event.c.body).where(
        tx.own(event), event.c.subject == quote.id, event.c.name == "quote.accepted"
    )
    row = tx.connection.execute(query.order_by(event.c.number.desc())).first()
    return {"at": row.created_at, "by": row.body["by"]} if row else None
