"""Spreads the tables over the workers of Citus: every tenant's rows together on one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.storage.engine import migration_engine
from cpq.storage.schema import metadata

REFERENCE = ("tenant", "principal", "token")
"""Copied to every worker: who calls is looked up before anything else, and by every call."""

ANCHOR = "audit_entry"
"""The others are placed like it, so that all rows of a tenant are on one worker and join there."""

OWN = ("catalog_index",)
"""Made by a migration, unknown to SQLAlchemy."""


def tables() -> list[str]:
    """All tables of the product, those that others refer to first."""
    names = [table.name for table in metadata.sorted_tables]
    first = [*(name for name in names if name in REFERENCE), ANCHOR]
    return [*first, *(name for name in names if name not in first), *OWN]


def statements(placed: Collection[str] = ()) -> Iterator[str]:
    """The SQL for each table that is not placed yet, in an order in which every foreign key finds its table."""
    for name in tables():
        if name in placed:
            continue
        if name in REFERENCE:
            yield f"SELECT create_reference_table('{name}')"
        else:
            beside = "none" if name == ANCHOR else ANCHOR
            yield f"SELECT create_distributed_table('{name}', 'tenant_id', colocate_with => '{beside}')"


def distribute(settings: Settings) -> int:
    """Place every table that is not placed yet; returns how many. Each is placed whole or not, so it may run again."""
    if settings.is_sqlite:
        raise CpqError(
            Code.VALIDATION_ERROR, "SQLite has one machine.", hint="--distribute is for PostgreSQL with Citus."
        )
    engine = migration_engine(settings)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            placed = found(connection)
            if placed is None:
                raise CpqError(
                    Code.UNAVAILABLE,
                    f"The database {settings.database_name} has no Citus. Nothing was changed.",
                    hint="Run `CREATE EXTENSION citus` there and on its workers, and add them with "
                    "`SELECT citus_add_node(…)`. PostgreSQL alone needs no --distribute.",
                )
            connection.exec_driver_sql("SET lock_timeout = 0")
            connection.exec_driver_sql("SET statement_timeout = 0")
            # Tables that refer to a copied one are not placed in parallel.
            connection.exec_driver_sql("SET citus.multi_shard_modify_mode TO 'sequential'")
            missing = list(statements(placed))
            for statement in missing:
                connection.exec_driver_sql(statement)
            return len(missing)
    finally:
        engine.dispose()


def found(connection: sa.Connection) -> set[str] | None:
    """The tables that are placed; None where there is no Citus."""
    if connection.exec_driver_sql("SELECT to_regclass('pg_dist_partition')").scalar() is None:
        return None
    return set(connection.exec_driver_sql("SELECT logicalrelid::text FROM pg_dist_partition").scalars())


def missing(connection: sa.Connection) -> list[str]:
    """The tables that are on the coordinator alone, where there is Citus."""
    placed = found(connection)
    return [] if placed is None else [name for name in tables() if name not in placed]
