"""Search: past quotes, which documents changed, and the vectors of their texts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "past_quote",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("customer", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("quoted_on", columns.Day(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("salesperson", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("imported_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_past_quote")),
        sa.CheckConstraint("outcome IN ('won', 'lost', 'open', 'unknown')", name=op.f("ck_past_quote_outcome_known")),
        sqlite_strict=True,
    )
    op.create_table(
        "past_line",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("number", _WHOLE, nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("product_id", sa.Text(), nullable=True),
        sa.Column("quantity", _WHOLE, nullable=False),
        sa.Column("unit_price", columns.Amount(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "quote_id", "number", name=op.f("pk_past_line")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id"],
            ["past_quote.tenant_id", "past_quote.id"],
            name=op.f("fk_past_line_tenant_id_quote_id"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_past_line_quantity_positive")),
        sqlite_strict=True,
    )
    op.create_table(
        "search_corpus",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("generation", _WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "corpus", name=op.f("pk_search_corpus")),
        sqlite_strict=True,
    )
    op.create_table(
        "search_change",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("generation", _WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "corpus", "document_id", name=op.f("pk_search_change")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_search_change_tenant_id_corpus_generation"), "search_change", ["tenant_id", "corpus", "generation"]
    )
    op.create_table(
        "search_vector",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "corpus", "model", "text_hash", name=op.f("pk_search_vector")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("search_vector")
    op.drop_table("search_change")
    op.drop_table("search_corpus")
    op.drop_table("past_line")
    op.drop_table("past_quote")
