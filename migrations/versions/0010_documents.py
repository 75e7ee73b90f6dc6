"""Documents: what was issued, of which version, and the checksum of its bytes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "document",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("locale", sa.Text(), nullable=False),
        sa.Column("stamp", sa.Text(), nullable=True),
        sa.Column("checksum", sa.Text(), nullable=False),
        sa.Column("size", _WHOLE, nullable=False),
        sa.Column("pages", _WHOLE, nullable=False),
        sa.Column("missing", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("content", columns.Json(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_document")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id", "version"],
            ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
            name=op.f("fk_document_tenant_id_quote_id_version"),
        ),
        sqlite_strict=True,
    )
    key = ["tenant_id", "quote_id", "version", "state", "template", "locale", "checksum"]
    op.create_index("uq_document_of_version", "document", key, unique=True)
    op.create_index(op.f("ix_document_tenant_id_checksum"), "document", ["tenant_id", "checksum"])


def downgrade() -> None:
    op.drop_table("document")
