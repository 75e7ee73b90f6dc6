"""The rate limits of callers over all servers"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None
older_code_goes_on = True


def upgrade() -> None:
    op.create_table(
        "call_pace",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("full_until", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "caller", "kind", name=op.f("pk_call_pace")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("call_pace")
