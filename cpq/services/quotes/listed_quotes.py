"""Quotes as people list them: with what became of the last request, sorted and filtered, page by page or whole."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.domain.approvals.approval_request import CHANGE_REQUESTED
from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus, VersionStatus, status_at
from cpq.services.catalog.accounts import has_words
from cpq.services.pagination import Pagination, pagination
from cpq.storage.schema import tables

Sort = Literal["newest", "oldest", "biggest", "smallest", "account", "owner", "valid_until"]


class ListState(StrEnum):
    """The state of a quote in a list: its status, or for a draft what sent it back."""

    DRAFT = QuoteStatus.DRAFT.value
    CHANGE_REQUESTED = "change_requested"
    REJECTED = VersionStatus.REJECTED.value
    PENDING_APPROVAL = QuoteStatus.PENDING_APPROVAL.value
    APPROVED = QuoteStatus.APPROVED.value
    SENT = QuoteStatus.SENT.value
    ACCEPTED = QuoteStatus.ACCEPTED.value
    DECLINED = QuoteStatus.DECLINED.value
    EXPIRED = QuoteStatus.EXPIRED.value
    CANCELLED = QuoteStatus.CANCELLED.value


class ListedQuote(TypedDict):
    id: str
    number: str
    version: int
    account_id: str
    account_name: str
    deal_id: str | None
    state: str
    currency: str
    total: Amount
    valid_until: date
    created_at: datetime
    created_by: str
    owner: str | None


class QuoteList(TypedDict):
    items: list[ListedQuote]
    pagination: Pagination


def list_for_people(
    tx: Tx,
    *,
    account_id: str | None = None,
    state: ListState | None = None,
    query: str | None = None,
    sort: Sort = "newest",
    limit: int,
    page: int,
) -> QuoteList:
    """One page of quotes. Words are found in the account's name, the deal, the owner, the number and the id."""
    quote = tables.quote.c
    conditions = [tx.own(tables.quote), *has_words(query, *_SEARCHED)]
    if account_id is not None:
        conditions.append(quote.account_id == account_id)
    if state is not None:
        conditions.append(_has_state(tx, state))
    found = _joined(sa.select(*_COLUMNS)).where(*conditions)
    total = tx.connection.scalar(_joined(sa.select(sa.func.count())).where(*conditions)) or 0
    rows = tx.connection.execute(found.order_by(*_order(tx, sort)).limit(limit).offset((page - 1) * limit))
    return {"items": [_item(tx, row) for row in rows.mappings()], "pagination": pagination(total, page, limit)}


def comparable(tx: Tx, total: sa.Column[int]) -> sa.ColumnElement[Any]:
    """An amount in the policies' currency, for ordering: a currency without a rate comes last.

    Nine decimals distinguish the weakest currencies; a database number holds no more than a quintillion of them.
    """
    terms = tx.policies.terms
    rates = {**terms.rates, terms.currency: Decimal(1)}
    weights = {name: min(max(1, int(rate * 10**9)), 10**18) for name, rate in rates.items()}
    rate = sa.case(weights, value=tables.quote.c.currency, else_=0)
    return sa.cast(total, sa.Numeric) * rate


_SEARCHED = (
    tables.account.c.name,
    tables.quote.c.id,
    tables.quote.c.number,
    tables.quote.c.deal_id,
    tables.quote.c.created_by,
    tables.quote.c.owner,
)
_COLUMNS = (
    *(
        tables.quote.c[name]
        for name in ("id", "number", "version", "account_id", "deal_id", "status", "currency", "total")
    ),
    *(tables.quote.c[name] for name in ("valid_until", "expires_at", "lapses_at", "created_at", "created_by", "owner")),
    tables.account.c.name.label("account_name"),
    tables.quote_version.c.status.label("version_status"),
    tables.quote_version.c.reason,
)


def _joined(query: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """Quotes with their accounts and current versions."""
    quote, version, account = tables.quote.c, tables.quote_version.c, tables.account.c
    of_account = (account.tenant_id == quote.tenant_id) & (account.id == quote.account_id)
    of_version = (
        (version.tenant_id == quote.tenant_id) & (version.quote_id == quote.id) & (version.version == quote.version)
    )
    joined = tables.quote.join(tables.account, of_account).join(tables.quote_version, of_version)
    return query.select_from(joined)


def _has_state(tx: Tx, state: ListState) -> sa.ColumnElement[bool]:
    status, version = tables.quote.c.status, tables.quote_version.c
    is_rejected = version.status == VersionStatus.REJECTED.value
    asks_change = sa.func.coalesce(version.reason, "").startswith(CHANGE_REQUESTED)
    is_over = tables.quote.c.expires_at <= tx.now
    if state is ListState.REJECTED:
        return is_rejected & ~asks_change & (status == QuoteStatus.DRAFT.value)
    if state is ListState.CHANGE_REQUESTED:
        return is_rejected & asks_change & (status == QuoteStatus.DRAFT.value)
    # A request that nobody answered in time leaves a draft, whether or not a sweep has stored that.
    has_lapsed = (status == QuoteStatus.PENDING_APPROVAL.value) & (tables.quote.c.lapses_at <= tx.now)
    if state is ListState.DRAFT:
        return ((status == QuoteStatus.DRAFT.value) & ~is_rejected) | has_lapsed
    if state is ListState.PENDING_APPROVAL:
        lapses_at = tables.quote.c.lapses_at
        return (status == state.value) & (lapses_at.is_(None) | (lapses_at > tx.now))
    if state is ListState.EXPIRED:
        return (status == QuoteStatus.EXPIRED.value) | (status.in_(EXPIRING) & is_over)
    is_status = status == state.value
    return is_status & ~is_over if QuoteStatus(state.value).can_expire else is_status


def _order(tx: Tx, sort: Sort) -> tuple[sa.ColumnElement[Any], ...]:
    quote = tables.quote.c
    value = comparable(tx, quote.total)
    orders: dict[Sort, sa.ColumnElement[Any]] = {
        "newest": quote.created_at.desc(),
        "oldest": quote.created_at.asc(),
        "biggest": value.desc(),
        "smallest": value.asc(),
        "account": sa.func.lower(tables.account.c.name).asc(),
        "owner": sa.func.lower(quote.owner).nulls_last(),
        "valid_until": quote.valid_until.asc(),
    }
    return (orders[sort], quote.created_at.desc(), quote.id)


def _item(tx: Tx, row: sa.RowMapping) -> ListedQuote:
    return {
        "id": row["id"],
        "number": row["number"],
        "version": row["version"],
        "account_id": row["account_id"],
        "account_name": row["account_name"],
        "deal_id": row["deal_id"],
        "state": _state(tx, row).value,
        "currency": row["currency"],
        "total": amount(row["total"]),
        "valid_until": row["valid_until"],
        "created_at": row["created_at"],
        "created_by": row["created_by"],
        "owner": row["owner"],
    }


def _state(tx: Tx, row: sa.RowMapping) -> ListState:
    status = status_at(QuoteStatus(row["status"]), row["expires_at"], tx.now, row["lapses_at"])
    if status.is_draft and row["version_status"] == VersionStatus.REJECTED:
        asks_change = (row["reason"] or "").startswith(CHANGE_REQUESTED)
        return ListState.CHANGE_REQUESTED if asks_change else ListState.REJECTED
    return ListState(status.value)
