"""The last valid day that was asked for"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quote_version", sa.Column("requested_valid_until", columns.Day(), nullable=True))


def downgrade() -> None:
    op.drop_column("quote_version", "requested_valid_until")
