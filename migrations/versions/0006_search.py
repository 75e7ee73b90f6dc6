"""Search: which documents changed, and the vectors of their texts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
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
