"""Registry of tenants, with those that have callers or entries already"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tenant",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenant")),
        sa.CheckConstraint("state IN ('active', 'suspended')", name=op.f("ck_tenant_state_known")),
        sqlite_strict=True,
    )
    op.execute(
        "INSERT INTO tenant (tenant_id, name, state, created_at)"
        " SELECT tenant_id, tenant_id, 'active', min(at) FROM audit_entry WHERE tenant_id <> 'main' GROUP BY tenant_id"
    )


def downgrade() -> None:
    op.drop_table("tenant")
