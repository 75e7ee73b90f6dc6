"""What callers searched for, and how well it was found"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retrieval_query",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", columns.Timestamp(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("hits", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("score", columns.Amount(), nullable=True),
        sa.Column("confidence", sa.Text(), nullable=True),
        sa.Column("is_failed", columns.Flag(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_retrieval_query")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_retrieval_query_tenant_id_at"), "retrieval_query", ["tenant_id", "at"])


def downgrade() -> None:
    op.drop_table("retrieval_query")
