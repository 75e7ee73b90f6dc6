"""Reads past quotes from both places: imported history, and our own quotes that were sent to a customer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.quotes.lifecycle import VersionStatus, local_day, status_at
from cpq.domain.quotes.quote import stored_quantity
from cpq.domain.quotes.special_terms import CUSTOM
from cpq.storage.schema import tables
from cpq.storage.statements import AnyRow

HISTORY, STORED = "history", "stored"

_OUTCOMES = {
    VersionStatus.SENT: "open",
    VersionStatus.ACCEPTED: "won",
    VersionStatus.DECLINED: "lost",
    VersionStatus.EXPIRED: "unknown",
}
_WENT_OUT = tuple(status.value for status in _OUTCOMES if status is not VersionStatus.EXPIRED)


@dataclass(frozen=True)
class PastLine:
    number: int
    category: str
    description: str
    model: str | None
    product_id: str | None
    quantity: Amount
    price: Amount | None
    """The price of one unit; for our own quotes the price of the whole line."""


@dataclass(frozen=True)
class PastQuote:
    id: str
    origin: str
    customer: str
    project: str
    quoted_on: date
    currency: str
    outcome: str
    salesperson: str | None
    notes: str | None
    lines: tuple[PastLine, ...]


def load(tx: Tx, ids: Collection[str] | None) -> Iterator[PastQuote]:
    """The past quotes with these ids; all of them for None.

    No id occurs twice: each import refuses ids of the other place. In an older database with both, history counts.
    """
    found = set()
    for past in _history(tx, ids):
        found.add(past.id)
        yield past
    if ids is None or found < set(ids):
        yield from (past for past in _stored(tx, ids) if past.id not in found)


def customers(tx: Tx) -> Iterator[str]:
    """The names of all customers with past quotes."""
    yield from tx.connection.scalars(
        sa.select(tables.past_quote.c.customer).where(tx.own(tables.past_quote)).distinct()
    )
    served = sa.select(tables.quote.c.account_id).where(tx.own(tables.quote))
    yield from tx.connection.scalars(
        sa.select(tables.account.c.name).where(tx.own(tables.account), tables.account.c.id.in_(served))
    )


def _history(tx: Tx, ids: Collection[str] | None) -> Iterator[PastQuote]:
    mine = tx.own(tables.past_quote) if ids is None else tx.own_among(tables.past_quote.c.id, ids)
    same = (tables.past_line.c.tenant_id == tables.past_quote.c.tenant_id) & (
        tables.past_line.c.quote_id == tables.past_quote.c.id
    )
    rows = tx.connection.execute(
        sa.select(
            tables.past_quote,
            tables.past_line.c.number,
            tables.past_line.c.category,
            tables.past_line.c.description,
            tables.past_line.c.model,
            tables.past_line.c.product_id,
            tables.past_line.c.quantity,
            tables.past_line.c.unit_price,
        )
        .join(tables.past_line, same)
        .where(mine)
        .order_by(tables.past_quote.c.id, tables.past_line.c.number)
    )
    for _, group in groupby(rows, key=lambda row: row.id):
        lines = list(group)
        yield _past_quote(
            lines[0],
            [
                PastLine(
                    row.number, row.category, row.description, row.model, row.product_id, row.quantity, row.unit_price
                )
                for row in lines
            ],
        )


def _past_quote(row: AnyRow, lines: Sequence[PastLine]) -> PastQuote:
    return PastQuote(
        id=row.id,
        origin=HISTORY,
        customer=row.customer,
        project=row.project,
        quoted_on=row.quoted_on,
        currency=row.currency,
        outcome=row.outcome,
        salesperson=row.salesperson,
        notes=row.notes,
        lines=tuple(lines),
    )


def _stored(tx: Tx, ids: Collection[str] | None) -> Iterator[PastQuote]:
    """The newest sent version of each quote. A line is described by its product, options and notes."""
    sent = (
        sa.select(tables.quote_version.c.quote_id, sa.func.max(tables.quote_version.c.version).label("version"))
        .where(tx.own(tables.quote_version), tables.quote_version.c.status.in_(_WENT_OUT))
        .group_by(tables.quote_version.c.quote_id)
    )
    if ids is not None:
        sent = sent.where(tx.own_among(tables.quote_version.c.quote_id, ids))
    newest = sent.subquery()
    mine = [
        tx.own(tables.quote),
        tx.own(tables.quote_version),
        tx.own(tables.quote_line),
        tx.own(tables.account),
    ]
    rows = tx.connection.execute(
        sa.select(
            tables.quote.c.id,
            tables.quote_version.c.currency,
            tables.account.c.name.label("customer"),
            tables.quote_version.c.status,
            tables.quote_version.c.notes,
            tables.account.c.time_zone,
            tables.quote_version.c.expires_at,
            tables.quote_version.c.priced_at,
            tables.quote_version.c.created_at,
            tables.quote_version.c.created_by,
            tables.quote_line.c.number,
            tables.quote_line.c.product_id,
            tables.quote_line.c.product_name,
            tables.quote_line.c.quantity,
            tables.quote_line.c.quantity_of,
            tables.quote_line.c.attributes,
            tables.quote_line.c.notes.label("line_notes"),
            tables.quote_line.c.net,
            tables.product.c.description,
            tables.product.c.attributes.label("product_attributes"),
            tables.category.c.name.label("category"),
        )
        .select_from(newest)
        .join(tables.quote, tables.quote.c.id == newest.c.quote_id)
        .join(tables.account, tables.account.c.id == tables.quote.c.account_id)
        .join(
            tables.quote_version,
            (tables.quote_version.c.quote_id == newest.c.quote_id)
            & (tables.quote_version.c.version == newest.c.version),
        )
        .join(
            tables.quote_line,
            (tables.quote_line.c.quote_id == newest.c.quote_id) & (tables.quote_line.c.version == newest.c.version),
        )
        .outerjoin(
            tables.product,
            tx.own(tables.product) & (tables.product.c.id == tables.quote_line.c.product_id),
        )
        .outerjoin(
            tables.category,
            tx.own(tables.category) & (tables.category.c.id == tables.product.c.category_id),
        )
        .where(*mine)
        .order_by(tables.quote.c.id, tables.quote_line.c.number)
    )
    for _, group in groupby(rows, key=lambda row: row.id):
        yield _own_quote(list(group), tx.now)


def _own_quote(rows: Sequence[AnyRow], now: datetime) -> PastQuote:
    first = rows[0]
    return PastQuote(
        id=first.id,
        origin=STORED,
        customer=first.customer,
        project=", ".join(dict.fromkeys(row.product_name for row in rows[:5])),
        quoted_on=local_day(first.priced_at or first.created_at, first.time_zone),  # As on its document.
        currency=first.currency,
        outcome=_OUTCOMES[status_at(VersionStatus(first.status), first.expires_at, now)],
        salesperson=first.created_by,
        notes=first.notes,
        lines=tuple(_own_line(row) for row in rows),
    )


def _own_line(row: AnyRow) -> PastLine:
    options = "; ".join(f"{name}: {value}" for name, value in row.attributes.items())
    parts = [row.product_name, row.description, options, row.line_notes]
    return PastLine(
        number=row.number,
        category=row.category or "",
        description="\n".join(filter(None, parts)),
        model=(row.product_attributes or {}).get("model"),
        product_id=None if row.product_id.startswith(f"{CUSTOM}:") else row.product_id,
        quantity=stored_quantity(row.quantity, row.quantity_of),
        price=amount(row.net),
    )
