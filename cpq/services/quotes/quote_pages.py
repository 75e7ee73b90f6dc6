"""Pages of quotes: filtered by account, status, owner and words, newest first."""

from __future__ import annotations

from datetime import date, datetime
from typing import NamedTuple

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, nearest
from cpq.base.money import Amount, amount
from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus, status_at
from cpq.services.catalog.accounts import account_has
from cpq.services.pagination import Pagination, pagination
from cpq.services.quotes.answer_fields import Number
from cpq.storage.schema import tables


class QuoteSummary(TypedDict):
    id: str
    number: Number
    version: int
    account_id: str
    account_name: str
    status: str
    currency: str
    total: Amount
    valid_until: date
    created_at: datetime
    owner: str | None


class QuotePage(TypedDict):
    items: list[QuoteSummary]
    pagination: Pagination


class _Listed(NamedTuple):
    """The columns that a page of quotes reads."""

    id: str
    number: str
    version: int
    account_id: str
    status: str
    currency: str
    total: int
    valid_until: date
    expires_at: datetime
    lapses_at: datetime | None
    created_at: datetime
    owner: str | None


def list_quotes(
    tx: Tx,
    *,
    account_id: str | None,
    status: str | None,
    limit: int,
    page: int,
    query: str | None = None,
    owner: str | None = None,
    deal_id: str | None = None,
) -> QuotePage:
    """One page of quotes, newest first.

    `query` is the start of an id or number, a deal, or words of the account's name.
    """
    known = [word.value for word in QuoteStatus]
    if status is not None and status not in known:
        raise bad_field(
            "/status",
            f"{status!r} is not a status of a quote.",
            allowed=known,
            nearest=nearest(status, known) or None,
        )
    mine = [tx.own(tables.quote)]
    if account_id is not None:
        mine.append(tables.quote.c.account_id == account_id)
    if status is not None:
        mine.append(_has_status(tx, QuoteStatus(status)))
    if owner is not None:
        mine.append(tables.quote.c.owner == owner)
    if deal_id is not None:
        mine.append(tables.quote.c.deal_id == deal_id)
    if query:
        named = sa.select(tables.account.c.id).where(tx.own(tables.account), *account_has(query))
        mine.append(_is_called(tx, query) | (tables.quote.c.deal_id == query) | tables.quote.c.account_id.in_(named))
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.quote).where(*mine)) or 0
    listed = sa.select(*(tables.quote.c[name] for name in _Listed._fields)).where(*mine)
    listed = listed.order_by(tables.quote.c.created_at.desc(), tables.quote.c.id)
    rows = list(map(_Listed._make, tx.connection.execute(listed.limit(limit).offset((page - 1) * limit))))
    names = _account_names(tx, {row.account_id for row in rows})
    items = [_summary(tx, row, names[row.account_id]) for row in rows]
    return {"items": items, "pagination": pagination(total, page, limit)}


def _has_status(tx: Tx, status: QuoteStatus) -> sa.ColumnElement[bool]:
    is_over = tables.quote.c.expires_at <= tx.now
    is_status = tables.quote.c.status == status
    lapses_at = tables.quote.c.lapses_at
    if status.is_draft:
        return is_status | ((tables.quote.c.status == QuoteStatus.PENDING_APPROVAL) & (lapses_at <= tx.now))
    if status.awaits_approval:
        return is_status & (lapses_at.is_(None) | (lapses_at > tx.now))
    if status is QuoteStatus.EXPIRED:
        return is_status | (tables.quote.c.status.in_(EXPIRING) & is_over)
    return is_status & ~is_over if status.can_expire else is_status


def _is_called(tx: Tx, query: str) -> sa.ColumnElement[bool]:
    return _starts_with(tx, tables.quote.c.id, query) | _starts_with(tx, tables.quote.c.number, query)


def _starts_with(tx: Tx, column: sa.Column[str], query: str) -> sa.ColumnElement[bool]:
    """Whether a column starts with the text; by a range on SQLite, which does not use the index for LIKE."""
    if tx.connection.dialect.name == "sqlite":
        return (column >= query) & (column < f"{query}\uffff")
    return column.startswith(query, autoescape=True)


def _account_names(tx: Tx, ids: set[str]) -> dict[str, str]:
    query = sa.select(tables.account.c.id, tables.account.c.name)
    rows = tx.connection.execute(query.where(tx.own(tables.account), tables.account.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


def _summary(tx: Tx, row: _Listed, account_name: str) -> QuoteSummary:
    return {
        "id": row.id,
        "number": row.number,
        "version": row.version,
        "account_id": row.account_id,
        "account_name": account_name,
        "status": status_at(QuoteStatus(row.status), row.expires_at, tx.now, row.lapses_at),
        "currency": row.currency,
        "total": amount(row.total),
        "valid_until": row.valid_until,
        "created_at": row.created_at,
        "owner": row.owner,
    }
