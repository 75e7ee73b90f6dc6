"""Sets of policies that servers have used and people have adopted"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "policy_set",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("used_at", columns.Timestamp(), nullable=False),
        sa.Column("adopted_at", columns.Timestamp(), nullable=True),
        sa.Column("adopted_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "content_hash", name=op.f("pk_policy_set")),
        sa.CheckConstraint("(adopted_at IS NULL) = (adopted_by IS NULL)", name=op.f("ck_policy_set_adopted_whole")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("policy_set")
