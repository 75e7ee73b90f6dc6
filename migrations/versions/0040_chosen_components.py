"""The components that were chosen for a bundle on a line"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quote_line", sa.Column("components", columns.Json(), nullable=True))


def downgrade() -> None:
    op.drop_column("quote_line", "components")
