"""Makes a backup: all tables of one moment, the documents they name, policies and templates, and the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq import __version__
from cpq.app import App
from cpq.base.audit_key import audit_key_text
from cpq.base.errors import Code, CpqError
from cpq.base.settings import shipped
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.base.text import canonical_json, fingerprint
from cpq.services import documents
from cpq.services.backups import archive
from cpq.services.backups.target import Progress
from cpq.storage import portable_rows
from cpq.storage.engine import large_work
from cpq.storage.portable_rows import Digested
from cpq.storage.schema import SCHEMA_VERSION, tables
from cpq.storage.tenants import of_tenant

FORMAT = 1
SIGNED_AS = "backup"
AUDIT_KEY = "audit.key"
FILE_DELAY_SECONDS = 1.0


@dataclass(frozen=True)
class Saved:
    """What a backup holds."""

    path: str
    bytes: int
    checksum: str
    """Of the manifest, which has the checksums of all parts: keep it elsewhere, and a backup cannot be exchanged."""
    made_at: str
    schema_version: str
    rows: dict[str, int]
    documents: int
    missing_documents: list[str]
    """Checksums of documents whose file was lost or changed before; `cpq repair` renders such a document again."""
    audit_heads: list[dict[str, Any]]
    is_signed: bool
    has_audit_key: bool


def save(
    app: App, target: Path, progress: Progress, *, with_audit_key: bool = False, tenant_id: str | None = None
) -> Saved:
    """Write a backup, of one tenant or of all; a folder gets a file with the time in its name. Writers go on."""
    made_at = app.effects.now()
    if target.is_dir():
        target = target / f"{tenant_id or 'quotewright'}-{made_at:%Y%m%dT%H%M%SZ}.backup.zip"
    if target.exists():
        raise archive.exists_already(target)
    key = audit_key_text(app.settings) if with_audit_key else None
    if with_audit_key and key is None:
        raise CpqError(Code.VALIDATION_ERROR, "There is no audit key to put into the backup.", field="--with-audit-key")
    app.require_schema(exactly=True)
    app.flush_audit()
    with archive.written(target) as writer:
        with app.database.reading() as connection, large_work(connection):
            portable_rows.unlimited(connection)
            found, heads, checksums = _save_tables(connection, writer, progress, tenant_id)
        missing = [one for one in checksums if not _save_document(app, writer, one)]
        if missing:  # The row of a document is committed a moment before its file has its name.
            app.effects.sleep(FILE_DELAY_SECONDS)
            missing = [one for one in missing if not _save_document(app, writer, one)]
        settings = app.of(tenant_id or MAIN_TENANT).settings
        _save_folder(writer, "policies", settings.policies_dir or shipped("policies"))
        _save_folder(writer, "templates", settings.templates_dir or shipped("pdf_templates"))
        if key is not None:
            writer.add(AUDIT_KEY, [key.encode()])
        manifest = {
            "format": FORMAT,
            "made_at": made_at.isoformat(),
            "product_version": __version__,
            "schema_version": SCHEMA_VERSION,
            "tables": found,
            "parts": writer.parts,
            "audit_heads": heads,
            "missing_documents": missing,
        }
        signature = app.audit_key.sign(SIGNED_AS, canonical_json(manifest)) if app.audit_key else None
        checksum = fingerprint(manifest)
        writer.finish(canonical_json({**manifest, "checksum": checksum, "signature": signature}))
    return Saved(
        path=str(target),
        bytes=target.stat().st_size,
        checksum=checksum,
        made_at=made_at.isoformat(),
        schema_version=SCHEMA_VERSION,
        rows={table["name"]: table["rows"] for table in found},
        documents=len(checksums) - len(missing),
        missing_documents=missing,
        audit_heads=heads,
        is_signed=signature is not None,
        has_audit_key=key is not None,
    )


def _save_tables(
    connection: Connection, writer: archive.Writer, progress: Progress, tenant_id: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """All rows as of one moment; returns what the manifest says of the tables, the audit heads, and the documents."""
    shapes = portable_rows.shapes()
    total = sum(portable_rows.count(connection, shape, tenant_id) for shape in shapes)
    found, done = [], count(1)

    def lines(digested: Digested) -> Iterator[bytes]:
        for line in digested:
            yield line + b"\n"
            progress(next(done), total)

    for shape in shapes:
        digested = Digested(portable_rows.read(connection, shape, tenant_id))
        part = f"tables/{shape.name}.jsonl"
        writer.add(part, lines(digested))
        digest = digested.digest
        found.append(
            {"name": shape.name, "columns": shape.columns, "part": part, "rows": digest.rows, "digest": digest.text}
        )
    of_heads, of_documents = sa.select(tables.audit_head), sa.select(tables.document.c.checksum).distinct()
    if tenant_id is not None:
        of_heads = of_heads.where(of_tenant(tables.audit_head, tenant_id))
        of_documents = of_documents.where(of_tenant(tables.document, tenant_id))
    heads = [dict(row._mapping) for row in connection.execute(of_heads.order_by("tenant_id"))]
    query = of_documents.order_by("checksum")
    return found, heads, list(connection.scalars(query))


def _save_document(app: App, writer: archive.Writer, checksum: str) -> bool:
    content = documents.Store(app.settings.home).read(checksum)
    if content is not None:
        writer.add(f"documents/{checksum}.pdf", [content], is_packed=True)
    return content is not None


def _save_folder(writer: archive.Writer, name: str, folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            writer.add(f"{name}/{path.relative_to(folder).as_posix()}", [path.read_bytes()])
