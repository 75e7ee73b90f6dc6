"""Web: pages that were read, the addresses that lead to them, and their passages"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "web_page",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("passages", _WHOLE, nullable=False),
        sa.Column("tokens", _WHOLE, nullable=False),
        sa.Column("links", columns.Json(), nullable=False),
        sa.Column("warning", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("fetched_at", columns.Timestamp(), nullable=False),
        sa.Column("checked_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_web_page")),
        sa.UniqueConstraint("tenant_id", "url", name=op.f("uq_web_page_tenant_id_url")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_web_page_tenant_id_host"), "web_page", ["tenant_id", "host"])
    op.create_table(
        "web_alias",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "url", name=op.f("pk_web_alias")),
        _of_page("web_alias"),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_web_alias_tenant_id_page_id"), "web_alias", ["tenant_id", "page_id"])
    op.create_table(
        "web_passage",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("ordinal", _WHOLE, nullable=False),
        sa.Column("headings", columns.Json(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", _WHOLE, nullable=False),
        sa.Column("images", columns.Json(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "page_id", "ordinal", name=op.f("pk_web_passage")),
        _of_page("web_passage"),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("web_passage")
    op.drop_table("web_alias")
    op.drop_table("web_page")


def _of_page(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "page_id"],
        ["web_page.tenant_id", "web_page.id"],
        name=op.f(f"fk_{table}_tenant_id_page_id"),
        ondelete="CASCADE",
    )
