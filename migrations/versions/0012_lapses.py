"""Lapses: until when a version waits for approval, after which the quote is a draft again"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_VERSIONS = """UPDATE quote_version SET lapses_at = (
    SELECT MIN(approval.expires_at) FROM approval JOIN quote ON quote.tenant_id = approval.tenant_id
    AND quote.id = approval.quote_id AND quote.version = approval.version
    WHERE approval.status = 'pending' AND quote.status = 'pending_approval'
    AND approval.tenant_id = quote_version.tenant_id AND approval.quote_id = quote_version.quote_id
    AND approval.version = quote_version.version) WHERE status = 'pending_approval'"""
_QUOTES = """UPDATE quote SET lapses_at = (
    SELECT current.lapses_at FROM quote_version AS current WHERE current.tenant_id = quote.tenant_id
    AND current.quote_id = quote.id AND current.version = quote.version) WHERE status = 'pending_approval'"""


def upgrade() -> None:
    for table in ("quote", "quote_version"):
        op.add_column(table, sa.Column("lapses_at", columns.Timestamp(), nullable=True))
    # A quote that waits now lapses with the first of its requests.
    op.execute(sa.text(_VERSIONS))
    op.execute(sa.text(_QUOTES))


def downgrade() -> None:
    for table in ("quote_version", "quote"):
        op.drop_column(table, "lapses_at")
