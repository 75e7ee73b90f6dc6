"""The state that each audit entry leads to"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_NAMES = ("state", "answer")


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("audit_entry", sa.Column(name, sa.Text(), nullable=True))
    recorded = sa.text("state IS NOT NULL")
    op.create_index(
        "ix_audit_entry_state",
        "audit_entry",
        ["tenant_id", "subject", "at"],
        sqlite_where=recorded,
        postgresql_where=recorded,
    )


def downgrade() -> None:
    op.drop_index("ix_audit_entry_state", "audit_entry")
    for name in _NAMES:
        op.drop_column("audit_entry", name)
