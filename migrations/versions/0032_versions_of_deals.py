"""Versions by their deal"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    named = sa.text("deal_id IS NOT NULL")
    op.create_index(
        "ix_quote_version_deal",
        "quote_version",
        ["tenant_id", "deal_id"],
        sqlite_where=named,
        postgresql_where=named,
    )


def downgrade() -> None:
    op.drop_index("ix_quote_version_deal", "quote_version")
