"""The rows of issued documents: one per version, state, template, locale and checksum."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_state, tenant_registry
from cpq.app.transaction import Tx
from cpq.services.documents.scan_code import ScanCode
from cpq.storage.schema import tables
from cpq.storage.upsert import insert_if_absent

Content = dict[str, Any]

LOOKED_AT_MAX = 50
"""Documents that are read for one code: of a version those from before codes were stored, or with one content."""


@dataclass(frozen=True)
class DocumentKey:
    """What identifies a document."""

    quote_id: str
    version: int
    state: str
    """What else the bytes depend on; a version can have several documents over time."""
    template: str
    locale: str


@dataclass(frozen=True)
class IssuedDocument:
    """A row without its content, which can be large."""

    id: str
    quote_id: str
    version: int
    state: str
    template: str
    locale: str
    stamp: str | None
    checksum: str
    size: int
    pages: int
    missing: str
    """Characters that no font has."""
    fingerprint: str
    created_at: datetime


_COLUMNS = [tables.document.c[field.name] for field in fields(IssuedDocument)]


def find(tx: Tx, document_id: str) -> IssuedDocument:
    return IssuedDocument(*tx.connection.execute(sa.select(*_COLUMNS).where(_is(tx, id=document_id))).one())


def tenants(tx: Tx) -> list[str]:
    """Every tenant that has documents."""
    column = tables.document.c.tenant_id
    return sorted(tx.connection.scalars(sa.select(column).where(tenant_registry.is_served(column)).distinct()))


def checksums(tx: Tx) -> list[tuple[str, str]]:
    """Id and checksum of every document of the tenant, oldest first."""
    query = sa.select(tables.document.c.id, tables.document.c.checksum).where(tx.own(tables.document))
    return [(row.id, row.checksum) for row in tx.connection.execute(query.order_by(tables.document.c.created_at))]


def find_content(tx: Tx, document_id: str) -> Content:
    content: Content = tx.connection.execute(
        sa.select(tables.document.c.content).where(_is(tx, id=document_id))
    ).scalar_one()
    return content


def find_latest(tx: Tx, key: DocumentKey) -> IssuedDocument | None:
    """The last one issued: a document whose bytes could not be reproduced was issued again."""
    row = tx.connection.execute(_newest(_COLUMNS, _is(tx, **asdict(key)))).one_or_none()
    return IssuedDocument(*row) if row is not None else None


def find_by_checksum(tx: Tx, checksum: str) -> IssuedDocument | None:
    """The last document that was issued with these bytes."""
    row = tx.connection.execute(_newest(_COLUMNS, _is(tx, checksum=checksum))).one_or_none()
    return IssuedDocument(*row) if row is not None else None


def printing(tx: Tx, code: ScanCode) -> list[tuple[IssuedDocument, Content]]:
    """The last documents that print this code, with their content: found by an index, but for those from before it."""
    if not code.code:
        return _printing(tx, code, tables.document.c.fingerprint == code.fingerprint)
    found = _printing(tx, code, tables.document.c.code == code.code)
    return found or _printing(tx, code, tables.document.c.code.is_(None))


def _printing(tx: Tx, code: ScanCode, among: sa.ColumnElement[bool]) -> list[tuple[IssuedDocument, Content]]:
    mine = _is(tx, quote_id=code.quote_id, version=code.version)
    newest = sa.select(*_COLUMNS, tables.document.c.content).where(mine, among)
    newest = newest.order_by(tables.document.c.created_at.desc(), tables.document.c.id).limit(LOOKED_AT_MAX)
    return [(IssuedDocument(*row[:-1]), row[-1]) for row in tx.connection.execute(newest) if code.is_of(row[-1])]


def find_draft_content(tx: Tx, key: DocumentKey) -> Content | None:
    """The content of the last unstamped document that was issued while the version was a draft."""
    mine = _is(tx, quote_id=key.quote_id, version=key.version, template=key.template, locale=key.locale)
    as_draft = tables.document.c.state.startswith("final:draft:", autoescape=True)
    newest = (
        sa.select(tables.document.c.content)
        .where(mine, as_draft)
        .order_by(tables.document.c.created_at.desc(), tables.document.c.id)
    )
    content: Content | None = tx.connection.scalar(newest.limit(1))
    return content


def record(
    tx: Tx,
    key: DocumentKey,
    content: Content,
    *,
    stamp: str | None,
    fingerprint: str,
    checksum: str,
    size: int,
    pages: int,
    missing: str,
) -> IssuedDocument:
    """Record an issued document; a concurrent caller with the same document gets the same row."""
    unique = {**asdict(key), "checksum": checksum}
    row = {
        "tenant_id": tx.tenant_id,
        "id": tx.new_id("DOC-"),
        **unique,
        "stamp": stamp,
        "size": size,
        "pages": pages,
        "missing": missing,
        "fingerprint": fingerprint,
        "content": content,
        "created_at": tx.now,
        "created_by": tx.caller,
        "code": content["quote"].get("code"),
    }
    tx.sizes.append(3 * size)  # The file, and its content, which is about as large as the file before it is packed.
    insert = insert_if_absent(tx.connection.dialect.name, tables.document, "tenant_id", *unique)
    tx.connection.execute(insert.values(row))
    issued = IssuedDocument(*tx.connection.execute(sa.select(*_COLUMNS).where(_is(tx, **unique))).one())
    if issued.id == row["id"]:
        recorded_state.note(tx, key.quote_id, "document", issued.id)
    return issued


def require_recorded(tx: Tx, document: IssuedDocument) -> None:
    """CONFLICT when the document or the version it shows differ from the audit record."""
    also = (f"document/{document.id}", "quote_line", *recorded_state.APPROVALS)
    recorded_state.require(tx, document.quote_id, document.version, also=also)


def _is(tx: Tx, **values: object) -> sa.ColumnElement[bool]:
    return sa.and_(tx.own(tables.document), *(tables.document.c[name] == value for name, value in values.items()))


def _newest(columns: list[sa.Column[Any]], mine: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .where(mine)
        .order_by(tables.document.c.created_at.desc(), tables.document.c.id.desc())
        .limit(1)
    )
