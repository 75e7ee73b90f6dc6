"""Past quotes as one thing, wherever they are stored: imported history, and our own quotes that went to a customer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.quotes.lifecycle import local_day, status_at
from cpq.storage.schema import account, category, past_line, past_quote, product, quote, quote_line, quote_version
from cpq.storage.statements import AnyRow
from cpq.storage.tenants import of_tenant

HISTORY, STORED = "history", "stored"

_WENT_OUT = ("sent", "accepted", "declined")
_OUTCOMES = {"sent": "open", "accepted": "won", "declined": "lost", "expired": "unknown"}


@dataclass(frozen=True)
class PastLine:
    number: int
    category: str
    description: str
    model: str | None
    product_id: str | None
    quantity: int
    price: Amount | None
    """What was asked for one unit then; of our own quotes what was asked for the whole line."""


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
    """The past quotes of these ids, or all of them. No id comes twice: both imports refuse what the other place has,
    and history counts where an older store has it in both."""
    found = set()
    for past in _history(tx, ids):
        found.add(past.id)
        yield past
    if ids is None or found < set(ids):
        yield from (past for past in _stored(tx, ids) if past.id not in found)


def customers(tx: Tx) -> Iterator[str]:
    """The names of all customers that past quotes went to."""
    yield from tx.connection.scalars(sa.select(past_quote.c.customer).where(tx.own(past_quote)).distinct())
    served = sa.select(quote.c.account_id).where(tx.own(quote))
    yield from tx.connection.scalars(sa.select(account.c.name).where(tx.own(account), account.c.id.in_(served)))


def _history(tx: Tx, ids: Collection[str] | None) -> Iterator[PastQuote]:
    mine = tx.own(past_quote) if ids is None else tx.own_among(past_quote.c.id, ids)
    same = of_tenant(past_line, past_quote.c.tenant_id) & (past_line.c.quote_id == past_quote.c.id)
    rows = tx.connection.execute(
        sa.select(
            past_quote,
            past_line.c.number,
            past_line.c.category,
            past_line.c.description,
            past_line.c.model,
            past_line.c.product_id,
            past_line.c.quantity,
            past_line.c.unit_price,
        )
        .join(past_line, same)
        .where(mine)
        .order_by(past_quote.c.id, past_line.c.number)
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
    """The newest version of each quote that went out. Lines are told by product and options; nobody wrote more."""
    sent = (
        sa.select(quote_version.c.quote_id, sa.func.max(quote_version.c.version).label("version"))
        .where(tx.own(quote_version), quote_version.c.status.in_(_WENT_OUT))
        .group_by(quote_version.c.quote_id)
    )
    if ids is not None:
        sent = sent.where(tx.own_among(quote_version.c.quote_id, ids))
    newest = sent.subquery()
    mine = [
        tx.own(quote),
        tx.own(quote_version),
        tx.own(quote_line),
        tx.own(account),
    ]
    rows = tx.connection.execute(
        sa.select(
            quote.c.id,
            quote.c.currency,
            account.c.name.label("customer"),
            quote_version.c.status,
            quote_version.c.notes,
            account.c.time_zone,
            quote_version.c.expires_at,
            quote_version.c.priced_at,
            quote_version.c.created_at,
            quote_version.c.created_by,
            quote_line.c.number,
            quote_line.c.product_id,
            quote_line.c.product_name,
            quote_line.c.quantity,
            quote_line.c.attributes,
            quote_line.c.notes.label("line_notes"),
            quote_line.c.net,
            product.c.description,
            product.c.attributes.label("product_attributes"),
            category.c.name.label("category"),
        )
        .select_from(newest)
        .join(quote, quote.c.id == newest.c.quote_id)
        .join(account, account.c.id == quote.c.account_id)
        .join(
            quote_version,
            (quote_version.c.quote_id == newest.c.quote_id) & (quote_version.c.version == newest.c.version),
        )
        .join(quote_line, (quote_line.c.quote_id == newest.c.quote_id) & (quote_line.c.version == newest.c.version))
        .outerjoin(product, tx.own(product) & (product.c.id == quote_line.c.product_id))
        .outerjoin(category, tx.own(category) & (category.c.id == product.c.category_id))
        .where(*mine)
        .order_by(quote.c.id, quote_line.c.number)
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
        quoted_on=local_day(first.priced_at or first.created_at, first.time_zone),  # As its document says.
        currency=first.currency,
        outcome=_OUTCOMES[status_at(first.status, first.expires_at, now)],
        salesperson=first.created_by,
        notes=first.notes,
        lines=tuple(_own_line(row) for row in rows),
    )


def _own_line(row: AnyRow) -> PastLine:
    options = "; ".join(f"{name}: {value}" for name, value in row.attributes.items())
    told = [row.product_name, row.description, options, row.line_notes]
    return PastLine(
        number=row.number,
        category=row.category or "",
        description="\n".join(filter(None, told)),
        model=(row.product_attributes or {}).get("model"),
        product_id=row.product_id,
        quantity=row.quantity,
        price=amount(row.net),
    )
