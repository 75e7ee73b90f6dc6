"""When a period of a price is billed, and what a cancellation gives back"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_NAMES = ("billed", "cancellation_credit")


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("price", sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    for name in _NAMES:
        op.drop_column("price", name)
