"""Every table, as `tables.quote`. Keys start with the tenant; constraints state what must always be true."""

from __future__ import annotations

from cpq.storage.schema import tables
from cpq.storage.schema.table_parts import metadata

SCHEMA_VERSION = "0044"
"""The newest migration. A test compares it with Alembic's head; servers check it without importing Alembic."""

__all__ = ["SCHEMA_VERSION", "metadata", "tables"]
