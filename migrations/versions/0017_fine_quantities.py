"""Fine quantities: what one of a product is, how many decimals its quantity takes, and quantities in thousandths"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("product", sa.Column("unit", sa.Text(), nullable=True))
    op.add_column("product", sa.Column("quantity_decimals", _WHOLE, nullable=False, server_default=sa.text("0")))
    op.add_column("quote_line", sa.Column("quantity_of", _WHOLE, nullable=False, server_default=sa.text("1")))


def downgrade() -> None:
    op.drop_column("quote_line", "quantity_of")
    op.drop_column("product", "quantity_decimals")
    op.drop_column("product", "unit")
