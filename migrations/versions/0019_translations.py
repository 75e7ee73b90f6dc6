"""Translations: names and descriptions of products and categories by locale, and the names a quote line was given"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_ADDED = (("product", "names"), ("product", "descriptions"), ("category", "names"), ("quote_line", "product_names"))


def upgrade() -> None:
    for table, name in _ADDED:
        op.add_column(table, sa.Column(name, columns.Json(), nullable=False, server_default=sa.text("'{}'")))


def downgrade() -> None:
    for table, name in reversed(_ADDED):
        op.drop_column(table, name)
