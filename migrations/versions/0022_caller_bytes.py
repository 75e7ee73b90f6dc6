"""What each caller has stored today"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "caller_bytes",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("day", columns.Day(), nullable=False),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "caller", name=op.f("pk_caller_bytes")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("caller_bytes")
