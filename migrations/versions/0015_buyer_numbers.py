"""Numbers of buyers that their documents print: tax id and standing purchase order"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("tax_id", "purchase_order"):
        op.add_column("account", sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    for name in ("purchase_order", "tax_id"):
        op.drop_column("account", name)
