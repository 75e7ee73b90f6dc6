"""Prices that are charged by use, and the rate card of a line"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

_SPENDS = ("minimum_spend", "maximum_spend")


def upgrade() -> None:
    op.add_column("price", sa.Column("unit", sa.Text(), nullable=True))
    for name in _SPENDS:
        op.add_column("price", sa.Column(name, columns.Amount(), nullable=True))
    op.add_column("quote_line", sa.Column("usage", columns.Json(), nullable=True))


def downgrade() -> None:
    op.drop_column("quote_line", "usage")
    for name in _SPENDS:
        op.drop_column("price", name)
    op.drop_column("price", "unit")
