"""The currency and the warnings of each version of a quote: a revision may be in another currency than the sent one"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("quote_version", sa.Column("currency", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column(
        "quote_version", sa.Column("warnings", columns.Json(), nullable=False, server_default=sa.text("'[]'"))
    )
    op.execute(
        sa.text(
            "UPDATE quote_version SET currency = (SELECT quote.currency FROM quote"
            " WHERE quote.tenant_id = quote_version.tenant_id AND quote.id = quote_version.quote_id)"
        )
    )


def downgrade() -> None:
    op.drop_column("quote_version", "warnings")
    op.drop_column("quote_version", "currency")
