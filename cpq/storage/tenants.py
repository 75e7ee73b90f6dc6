"""The condition that keeps one tenant's rows from another's; every statement has it."""

from __future__ import annotations

import sqlalchemy as sa


def of_tenant(table: sa.FromClause, tenant_id: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Rows of one tenant: that of an id, of a bound parameter, or of the rows of another table in a join."""
    return table.c.tenant_id == tenant_id
