"""Selling models: what a price is for, a product's default model, and the model that a line has"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("product", sa.Column("default_selling_model", sa.Text(), nullable=True))
    op.add_column("price", sa.Column("selling_model", sa.Text(), nullable=False, server_default=sa.text("'term'")))
    op.add_column("price", sa.Column("name", sa.Text(), nullable=True))
    op.execute(sa.text("UPDATE price SET selling_model = 'one_time' WHERE billing_period = 'one_time'"))
    op.add_column("quote_line", sa.Column("selling_model", sa.Text(), nullable=True))
    # A line keeps the billing period it was priced with. That of a bundle may be one of its components'.
    op.execute(
        sa.text(
            "UPDATE quote_line SET selling_model = billing_period WHERE billing_period <> 'mixed' AND NOT EXISTS "
            "(SELECT 1 FROM product WHERE product.tenant_id = quote_line.tenant_id "
            "AND product.id = quote_line.product_id AND product.product_type = 'bundle')"
        )
    )


def downgrade() -> None:
    op.drop_column("quote_line", "selling_model")
    op.drop_column("price", "name")
    op.drop_column("price", "selling_model")
    op.drop_column("product", "default_selling_model")
