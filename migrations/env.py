"""Alembic's entry: works on the connection it is given, inside the transaction that is already open."""

from __future__ import annotations

from alembic import context

from cpq.storage.schema import metadata

OWN_TABLES = ("catalog_index", "search_key")
"""Made per database by hand; SQLAlchemy does not know them."""


def include_name(name: str | None, type_: str, _parents: object) -> bool:
    return type_ != "table" or not (name or "").startswith(OWN_TABLES)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    include_name=include_name,
    transactional_ddl=False,
)
context.run_migrations()
