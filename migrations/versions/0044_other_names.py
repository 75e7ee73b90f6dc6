"""Other names of people"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("principal", sa.Column("person", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("principal", "person")
