"""What a quote gives back that changes an agreement"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("quote_version", sa.Column("credit", WHOLE, nullable=True))


def downgrade() -> None:
    op.drop_column("quote_version", "credit")
