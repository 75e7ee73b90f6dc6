"""Reasons: why the policies require each approval, in words, as they were when it was requested"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Older requests have the facts they rest on, but not the words.
    op.add_column("approval", sa.Column("reasons", columns.Json(), nullable=False, server_default=sa.text("'[]'")))


def downgrade() -> None:
    op.drop_column("approval", "reasons")
