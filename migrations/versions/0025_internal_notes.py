"""Internal notes, sources and marks for review of quotes and lines"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("quote_version", "quote_line"):
        op.add_column(table, sa.Column("internal", columns.Json(), nullable=True))


def downgrade() -> None:
    for table in ("quote_version", "quote_line"):
        op.drop_column(table, "internal")
