"""Links by which customers accept"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "acceptance_link",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.Column("used_at", columns.Timestamp(), nullable=True),
        sa.Column("used_by", sa.Text(), nullable=True),
        sa.Column("address_hash", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_acceptance_link")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id", "version"],
            ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
            name=op.f("fk_acceptance_link_tenant_id_quote_id_version_quote_version"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("(used_at IS NULL) = (used_by IS NULL)", name=op.f("ck_acceptance_link_used_whole")),
        sqlite_strict=True,
    )
    op.create_index("uq_acceptance_link_code", "acceptance_link", ["tenant_id", "code_hash"], unique=True)


def downgrade() -> None:
    op.drop_table("acceptance_link")
