"""Whose word an approval is: the holder for whom a vote counts, and all who changed a version of a quote"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Older rows do not tell: a vote then counts for whoever gave it, a version is that of whoever made it.
    op.add_column(
        "quote_version", sa.Column("edited_by", columns.Json(), nullable=False, server_default=sa.text("'[]'"))
    )
    op.add_column("approval_vote", sa.Column("holder", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.execute(sa.text("UPDATE approval_vote SET holder = caller"))
    op.create_index("uq_approval_vote_holder", "approval_vote", ["tenant_id", "approval_id", "holder"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_approval_vote_holder", "approval_vote")
    op.drop_column("approval_vote", "holder")
    op.drop_column("quote_version", "edited_by")
