"""Lists what callers searched for: each search, the searches by tool, and the failed queries that occur most often."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount
from cpq.services.pagination import Pagination, pagination
from cpq.storage.schema import tables

FREQUENT_MAX = 20

_QUERY = tables.retrieval_query
_SHOWN = tuple(column for column in _QUERY.c if column.name not in ("tenant_id", "folded"))


class RetrievalQuery(TypedDict):
    id: str
    """The id of its audit entry."""
    at: datetime
    caller: str
    tool: str
    query: str
    hits: int
    mode: str
    score: Amount | None
    confidence: str | None
    is_failed: bool


class RetrievalQueries(TypedDict):
    items: list[RetrievalQuery]
    pagination: Pagination


class ToolFigure(TypedDict):
    tool: str
    count: int
    failed: int


class FrequentQuery(TypedDict):
    """A query that found nothing near, however it was capitalised."""

    query: str
    tool: str
    count: int
    last_at: datetime
    score: Amount | None
    """The best score that it had."""


def queries(
    tx: Tx, *, tool: str | None = None, failed_only: bool = False, query: str | None = None, limit: int, page: int
) -> RetrievalQueries:
    """The searches, latest first; with `query`, those whose query has all its words."""
    wanted = [tx.own(_QUERY), *_filtered(tool, failed_only)]
    wanted += [_QUERY.c.folded.contains(word, autoescape=True) for word in (query or "").casefold().split()]
    total = tx.connection.scalar(sa.select(sa.func.count()).select_from(_QUERY).where(*wanted)) or 0
    listed = sa.select(*_SHOWN).where(*wanted).order_by(_QUERY.c.at.desc(), _QUERY.c.id.desc())
    rows = tx.connection.execute(listed.limit(limit).offset((page - 1) * limit))
    items: list[Any] = [dict(row._mapping) for row in rows]
    return {"items": items, "pagination": pagination(total, page, limit)}


def by_tool(tx: Tx) -> list[ToolFigure]:
    """How many searches each tool made, and how many of them failed; the busiest tool first."""
    count, failed = sa.func.count(), sa.func.sum(sa.case((_QUERY.c.is_failed, 1), else_=0))
    grouped = sa.select(_QUERY.c.tool, count, failed).where(tx.own(_QUERY)).group_by(_QUERY.c.tool)
    found: list[ToolFigure] = [
        {"tool": tool, "count": all_, "failed": int(missed)} for tool, all_, missed in tx.connection.execute(grouped)
    ]
    return sorted(found, key=lambda one: (-one["count"], one["tool"]))


def often_failed(tx: Tx, *, tool: str | None = None, limit: int = FREQUENT_MAX) -> list[FrequentQuery]:
    """The failed queries that occur most often, each with the tool that did not find it."""
    count, last_at = sa.func.count().label("count"), sa.func.max(_QUERY.c.at).label("last_at")
    grouped = (
        sa.select(_QUERY.c.folded, _QUERY.c.tool, count, last_at, sa.func.max(_QUERY.c.score))
        .where(tx.own(_QUERY), *_filtered(tool, failed_only=True))
        .group_by(_QUERY.c.folded, _QUERY.c.tool)
        .order_by(count.desc(), last_at.desc(), _QUERY.c.tool)
        .limit(limit)
    )
    return [
        {"query": query, "tool": named, "count": times, "last_at": last, "score": score}
        for query, named, times, last, score in tx.connection.execute(grouped)
    ]


def _filtered(tool: str | None, failed_only: bool) -> list[sa.ColumnElement[bool]]:
    return [*([_QUERY.c.tool == tool] if tool else []), *([_QUERY.c.is_failed] if failed_only else [])]
