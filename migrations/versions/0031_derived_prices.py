"""Price books that convert their prices"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_NAMES = ("base_currency", "price_rounding")


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("price_book", sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    for name in _NAMES:
        op.drop_column("price_book", name)
