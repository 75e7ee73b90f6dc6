"""Rules over the lines of a quote"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quote_rule",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("active", columns.Flag(), nullable=False),
        sa.Column("declared", columns.Json(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_quote_rule")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("quote_rule")
