"""Building blocks of tables: a few kinds of columns, keys that start with the tenant, and one naming convention."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKeyConstraint, Index, Text

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def table(name: str, *parts: Any) -> sa.Table:
    return sa.Table(name, metadata, Column("tenant_id", Text, nullable=False), *parts, sqlite_strict=True)


def text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def texts(*names: str, nullable: bool = False) -> list[Column[str]]:
    return [text(name, nullable=nullable) for name in names]


def whole(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=nullable)


def one_of(column: str, *words: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def belongs_to(table: str, column: str, *, cascade: bool = False) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", column],
        [f"{table}.tenant_id", f"{table}.id"],
        ondelete="CASCADE" if cascade else None,
    )


def waiting(name: str, *columns: str) -> Index:
    """A partial index on undelivered rows, which are a small part of all rows."""
    return partial_index(name, *columns, where="status = 'waiting'")


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index on the rows that meet a condition.

    The migrations make it. Here the condition is for the reader: an argument such as `postgresql_where` would load the
    dialect of PostgreSQL into every process.
    """
    return Index(name, *columns, unique=unique, info={"where": where})
