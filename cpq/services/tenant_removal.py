"""Removes a suspended tenant: every row of it in one transaction, then its documents and its folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import sqlalchemy as sa

from cpq.app import Answer, App, Command, tenant_registry
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base import tenant_settings
from cpq.services import documents
from cpq.services.catalog import word_index
from cpq.storage import portable_rows
from cpq.storage.engine import large_work
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant


@dataclass(frozen=True)
class Removed:
    rows: int
    documents: int


def remove(app: App, tenant_id: str) -> Removed:
    """CONFLICT unless the tenant is suspended. The record of the main tenant keeps that it was removed."""
    files: list[str] = []

    def work(tx: Tx) -> Answer:
        tenant_registry.require_suspended(tx, tenant_id)
        with large_work(tx.connection):
            portable_rows.unlimited(tx.connection)
            files[:] = _only_its_documents(tx, tenant_id)
            word_index.forget(tx, tenant_id)
            gone = portable_rows.delete_tenant(tx.connection, tenant_id)
        return {"tenant": tenant_id, "rows": sum(gone.values())}

    command = Command("tenant_delete", Permission.ADMINISTER, {"tenant": tenant_id}, subject=tenant_id)
    answer = app.write(app.new_call(app.operator), command, work).answer
    store = documents.Store(app.settings.home)
    for checksum in files:
        store.path(checksum).unlink(missing_ok=True)
    shutil.rmtree(tenant_settings.folder_of(app.settings, tenant_id), ignore_errors=True)
    app.tenants.forget(tenant_id)
    return Removed(answer["rows"], len(files))


def _only_its_documents(tx: Tx, tenant_id: str) -> list[str]:
    """The checksums of documents that no other tenant has, too: files are kept by their content."""
    document, other = tables.document, tables.document.alias("other")
    is_shared = sa.exists().where(other.c.checksum == document.c.checksum, other.c.tenant_id != tenant_id)
    query = sa.select(document.c.checksum).where(of_tenant(document, tenant_id), ~is_shared).distinct()
    return list(tx.connection.scalars(query))
