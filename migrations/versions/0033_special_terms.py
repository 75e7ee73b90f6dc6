"""What a seller arranged for a line, and a discount on the whole quote as an amount"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "quote_version",
        sa.Column("requested_amount", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
    )
    op.add_column("quote_line", sa.Column("special", columns.Json(), nullable=True))


def downgrade() -> None:
    op.drop_column("quote_line", "special")
    op.drop_column("quote_version", "requested_amount")
