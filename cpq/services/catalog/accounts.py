"""Search for accounts by words of the name or id, and one account in full."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, nearest, next_call
from cpq.services.pagination import Pagination, pagination
from cpq.storage.schema import tables

AccountSort = Literal["name", "country", "currency", "segment"]

WORDS_MAX = 10
NEIGHBOURS = 50
ALIKE_MAX = 3

_SUMMARY = ("id", "name", "segment", "region", "country", "currency", "active")
_DETAIL = (
    *_SUMMARY,
    "tax_zone",
    "tax_status",
    "tax_note",
    "locale",
    "time_zone",
    "contact",
    "address",
    "tax_id",
    "purchase_order",
)


class AccountSummary(TypedDict):
    id: str
    name: str
    segment: str
    region: str
    country: str
    currency: str
    active: bool


class AccountPage(TypedDict):
    items: list[AccountSummary]
    pagination: Pagination


class AccountDetail(AccountSummary):
    tax_zone: str
    tax_status: str
    tax_note: str | None
    locale: str
    time_zone: str
    price_book: str
    contact: str | None
    address: str | None
    tax_id: str | None
    purchase_order: str | None
    created_at: datetime
    updated_at: datetime


def search_accounts(
    tx: Tx,
    *,
    query: str | None,
    active_only: bool,
    limit: int,
    page: int,
    country: str | None = None,
    currency: str | None = None,
    sort: AccountSort = "name",
) -> AccountPage:
    """Accounts whose name or id has every word, by name unless asked otherwise; all of them without words."""
    mine = [tx.own(tables.account)]
    if country is not None:
        mine.append(sa.func.lower(tables.account.c.country) == country.lower())
    if currency is not None:
        mine.append(tables.account.c.currency == currency)
    if active_only:
        mine.append(tables.account.c.active == sa.literal(True, tables.account.c.active.type))
    mine += account_has(query)
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(tables.account).where(*mine)) or 0
    chosen = (
        sa.select(*(tables.account.c[name] for name in _SUMMARY))
        .where(*mine)
        .order_by(tables.account.c[sort], tables.account.c.name, tables.account.c.id)
    )
    rows = tx.connection.execute(chosen.limit(limit).offset((page - 1) * limit))
    items = [dict(zip(_SUMMARY, row, strict=True)) for row in rows]
    return {"items": items, "pagination": pagination(total, page, limit)}  # type: ignore[typeddict-item] # Exactly these.


def get_account(tx: Tx, account_id: str) -> AccountDetail:
    names = (*_DETAIL, "price_book_id", "created_at", "updated_at")
    columns = [tables.account.c[name] for name in names]
    mine = tx.own(tables.account) & (tables.account.c.id == account_id)
    row = tx.connection.execute(sa.select(*columns).where(mine)).one_or_none()
    if row is None:
        raise missing_account(tx, account_id)
    detail = dict(zip(names, row, strict=True))
    detail["price_book"] = detail.pop("price_book_id")
    return detail  # type: ignore[return-value] # Exactly these.


def missing_account(tx: Tx, account_id: str) -> CpqError:
    """The error for an unknown account; callers who may see customers also get similar ids."""
    near = _called_alike(tx, account_id) if tx.principal.may(Permission.SEE_CUSTOMERS) else []
    return CpqError(
        Code.NOT_FOUND,
        f"There is no account {account_id!r}.",
        field="/account_id",
        nearest=near or None,
        next_call=next_call("account_search", query=account_id.removeprefix("acct_")[:64]),
        hint=None if near else "account_search (toolset deals) and the console find accounts by name.",
    )


def _called_alike(tx: Tx, account_id: str) -> list[str]:
    """Ids that differ by a typing error, else those that have all its words. Reads few rows, however many exist."""
    ids, id_ = sa.select(tables.account.c.id).where(tx.own(tables.account)), tables.account.c.id
    beside = (ids.where(id_ >= account_id).order_by(id_), ids.where(id_ < account_id).order_by(id_.desc()))
    near = nearest(account_id, [row for query in beside for row in tx.connection.scalars(query.limit(NEIGHBOURS))])
    words = re.sub(r"[\W_]+", " ", account_id).strip()
    if near or not words:
        return near
    return list(tx.connection.scalars(ids.where(*account_has(words)).order_by(id_).limit(ALIKE_MAX)))


def account_has(query: str | None) -> list[sa.ColumnElement[bool]]:
    """Conditions for accounts whose name or id has every word."""
    return has_words(query, tables.account.c.name, tables.account.c.id)


def has_words(query: str | None, *columns: sa.Column[str]) -> list[sa.ColumnElement[bool]]:
    """One condition for each word: it is anywhere in one of the columns, in any case."""
    words = (query or "").split()[:WORDS_MAX]
    return [sa.or_(*(_has(column, word) for column in columns)) for word in words]


def _has(column: sa.Column[str], word: str) -> sa.ColumnElement[bool]:
    """A database may lower only the letters a to z, so the other letters of the word are replaced one by one."""
    folded, lower = sa.func.lower(column), word.lower()
    for letter in sorted({letter for letter in lower if len(letter.upper()) == 1 and not letter.isascii()}):
        folded = sa.func.replace(folded, letter.upper(), letter)
    found = folded.contains(lower, autoescape=True)
    return found if word.isascii() else found | column.contains(word, autoescape=True)
