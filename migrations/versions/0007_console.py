"""The console: one-time links, sessions, and the record of one quote found by it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ABOUT_SOMETHING = sa.text("subject IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "sign_in_link",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("principal_name", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.Column("used_at", columns.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "code_hash", name=op.f("pk_sign_in_link")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "principal_name"],
            ["principal.tenant_id", "principal.name"],
            name=op.f("fk_sign_in_link_tenant_id_principal_name"),
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "console_session",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("principal_name", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("seen_at", columns.Timestamp(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "secret_hash", name=op.f("pk_console_session")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "principal_name"],
            ["principal.tenant_id", "principal.name"],
            name=op.f("fk_console_session_tenant_id_principal_name"),
        ),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_audit_entry_subject",
        "audit_entry",
        ["tenant_id", "subject"],
        sqlite_where=_ABOUT_SOMETHING,
        postgresql_where=_ABOUT_SOMETHING,
    )


def downgrade() -> None:
    op.drop_index("ix_audit_entry_subject", "audit_entry")
    op.drop_table("console_session")
    op.drop_table("sign_in_link")
