"""The tenant filter that every statement has."""

from __future__ import annotations

import sqlalchemy as sa


def of_tenant(table: sa.FromClause, tenant_id: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Rows of one tenant, given as an id, as a bound parameter, or as a column of another table in a join."""
    return table.c.tenant_id == tenant_id
