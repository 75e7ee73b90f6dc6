"""Inserts for keys that may exist already: keep the existing row, or change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sqlalchemy as sa

from cpq.base.late_modules import LateModule

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    Insert = sqlite.Insert | postgresql.Insert
else:
    postgresql = LateModule("sqlalchemy.dialects.postgresql")
    sqlite = LateModule("sqlalchemy.dialects.sqlite")


def insert_if_absent(dialect: str, table: sa.Table, *unique: str) -> Insert:
    """Keep an existing row: one with the same `unique` columns if they are given, else with any equal key."""
    return _insert(dialect, table).on_conflict_do_nothing(index_elements=unique or None)


def upsert(dialect: str, table: sa.Table, changes: Mapping[str, sa.ColumnElement[object]] | None = None) -> Insert:
    """Where the primary key exists, set the other columns to the new values, or apply only the given `changes`."""
    made = _insert(dialect, table)
    key = [column.name for column in table.primary_key]
    values = changes or {column.name: made.excluded[column.name] for column in table.c if column.name not in key}
    return made.on_conflict_do_update(index_elements=key, set_=values)


def _insert(dialect: str, table: sa.Table) -> Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
