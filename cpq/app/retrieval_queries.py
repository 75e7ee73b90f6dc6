"""The record of what callers searched for and how well it was found, for tuning; written with the audit entries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.audit import Noted
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant
from cpq.storage.upsert import insert_if_absent

QUERY_LENGTH_MAX = 300
"""Characters of a query that are kept: agents may paste a whole mail."""

QUERIES_MAX = 100_000
"""Queries of a tenant that are kept; the hourly sweep deletes the oldest ones above it."""


def record(connection: Connection, batch: Iterable[Noted]) -> None:
    """Store the searches of these calls. A batch that is written a second time is stored once."""
    rows = [row for noted in batch if (row := _row(noted))]
    if rows:
        connection.execute(insert_if_absent(connection.dialect.name, tables.retrieval_query), rows)


def forget_old(connection: Connection, tenant_id: str, before: datetime) -> None:
    """Delete the queries from before this moment, and the oldest of too many."""
    query = tables.retrieval_query
    mine = of_tenant(query, tenant_id)
    newest = sa.select(query.c.at).where(mine).order_by(query.c.at.desc()).offset(QUERIES_MAX).limit(1)
    last = connection.scalar(newest)
    connection.execute(sa.delete(query).where(mine, query.c.at <= (max(before, last) if last else before)))


def _row(noted: Noted) -> dict[str, object] | None:
    entry, retrieval = noted
    if retrieval is None:
        return None
    text = _cleaned(retrieval.query)
    return {
        "tenant_id": entry.tenant_id,
        "id": entry.id,
        "at": entry.at,
        "caller": entry.caller,
        "tool": entry.operation,
        "query": text,
        "folded": text.casefold(),
        "hits": retrieval.hits,
        "mode": retrieval.mode,
        "score": retrieval.score,
        "confidence": retrieval.confidence,
        "is_failed": retrieval.is_failed,
    }


def _cleaned(query: str) -> str:
    """One line that every database can store, with its beginning."""
    # Much longer than what is kept, because most of a pasted text may be blanks.
    shown = "".join(sign if sign.isprintable() else " " for sign in query[: 10 * QUERY_LENGTH_MAX])
    text = " ".join(shown.split())
    return text if len(text) <= QUERY_LENGTH_MAX else f"{text[: QUERY_LENGTH_MAX - 1]}…"
