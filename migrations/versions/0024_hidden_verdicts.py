"""What hidden policies said to each caller today"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hidden_verdict",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("day", columns.Day(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("changes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "caller", "quote_id", name=op.f("pk_hidden_verdict")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("hidden_verdict")
