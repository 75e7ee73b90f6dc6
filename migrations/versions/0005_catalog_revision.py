"""Catalogue revision: one word that says whether anything was imported since"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "catalog_revision",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_catalog_revision")),
        sqlite_strict=True,
    )
    product = sa.table("product", sa.column("tenant_id"))
    first = sa.literal(f"rev-{secrets.token_hex(10)}")
    known = sa.select(product.c.tenant_id, first).distinct()
    op.execute(sa.insert(table).from_select(["tenant_id", "revision"], known))


def downgrade() -> None:
    op.drop_table("catalog_revision")
