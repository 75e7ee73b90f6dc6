"""Indexes for the open and recent quotes of a deal and of an account"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_KEYS = ("account_id", "deal_id")


def upgrade() -> None:
    for key in _KEYS:
        name = op.f(f"ix_quote_tenant_id_{key}_expires_at")
        op.create_index(name, "quote", ["tenant_id", key, "expires_at"])


def downgrade() -> None:
    for key in _KEYS:
        op.drop_index(op.f(f"ix_quote_tenant_id_{key}_expires_at"), "quote")
