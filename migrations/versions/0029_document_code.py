"""The code that a document prints for scanning"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Older rows stay without: the audit record has digests of them as they are.
    op.add_column("document", sa.Column("code", sa.Text(), nullable=True))
    printed = sa.text("code IS NOT NULL")
    op.create_index(
        "ix_document_code", "document", ["tenant_id", "code"], sqlite_where=printed, postgresql_where=printed
    )


def downgrade() -> None:
    op.drop_index("ix_document_code", "document")
    op.drop_column("document", "code")
