"""Copies all tables to another database, SQLite or PostgreSQL, in one read of one and one transaction of the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import sqlalchemy as sa

from cpq.app import App, audit
from cpq.base.errors import Code, CpqError
from cpq.services.backups import target
from cpq.services.backups.target import Progress
from cpq.services.catalog import index_repair
from cpq.storage import migrations, portable_rows
from cpq.storage.engine import large_work
from cpq.storage.portable_rows import Line, TableShape
from cpq.storage.schema import SCHEMA_VERSION

EMPTY_HINT = (
    "Give an empty database. A copy is whole or nothing, so these rows are not of one that was stopped: "
    "to start over, drop the database and create it again."
)


@dataclass(frozen=True)
class Copied:
    """What was copied; every number was read again from the target."""

    made_at: str
    rows: dict[str, int]
    digests: dict[str, str]
    audit_heads: dict[str, str]
    """By tenant: `SEQ:HASH` of the chain, which was verified on the target."""


def copy(source: App, other: App, progress: Progress) -> Copied:
    """Copy every row of one moment. CONFLICT when the target is not empty or a table differs: nothing is changed."""
    shapes = portable_rows.shapes()
    if other.schema_version() is None or _is_older_and_empty(other):
        migrations.upgrade(other.settings)
    source.require_schema(exactly=True)
    other.require_schema(exactly=True)
    with source.database.reading() as connection, large_work(connection):
        portable_rows.unlimited(connection)
        made_at = source.effects.now()
        total = sum(portable_rows.count(connection, shape) for shape in shapes)
        done = count(1)

        def lines(shape: TableShape) -> Iterator[Line]:
            for line in portable_rows.read(connection, shape):
                yield line
                progress(next(done), total)

        with target.filling(other, shapes) as into:
            if found := target.filled(into, shapes):
                raise target.not_empty(other, found, hint=EMPTY_HINT)
            loaded = {shape.name: target.load(into, shape, lines(shape)) for shape in shapes}
            heads = {tenant: _verified(into, tenant) for tenant in target.tenants(into)}
    index_repair.rebuild(other)
    return Copied(
        made_at=made_at.isoformat(),
        rows={name: digest.rows for name, digest in loaded.items()},
        digests={name: digest.text for name, digest in loaded.items()},
        audit_heads=heads,
    )


def _is_older_and_empty(other: App) -> bool:
    version = other.schema_version()
    if version is None or version >= SCHEMA_VERSION:
        return False
    with other.database.reading() as connection:
        known = set(sa.inspect(connection).get_table_names())
        return not target.filled(connection, [shape for shape in portable_rows.shapes() if shape.name in known])


def _verified(connection: sa.Connection, tenant_id: str) -> str:
    report = audit.verify(connection, tenant_id)
    if report.broken_at is not None:
        raise CpqError(
            Code.CONFLICT,
            f"The audit chain of tenant {tenant_id} is broken at entry {report.broken_at}: {report.reason}.",
            hint="`cpq audit verify` says the same of the source: mend it from a backup before it is copied.",
        )
    return f"{report.sealed}:{report.head}"
