"""Links of customers that were revoked"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("acceptance_link", sa.Column("revoked_at", columns.Timestamp(), nullable=True))
    op.add_column("acceptance_link", sa.Column("revoked_by", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("acceptance_link", "revoked_by")
    op.drop_column("acceptance_link", "revoked_at")
