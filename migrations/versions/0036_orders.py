"""Orders and agreements, and the agreement that a quote changes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("quote_version", sa.Column("agreement", columns.Json(), nullable=True))
    op.create_table(
        "agreement",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("sequence", WHOLE, nullable=False),
        sa.Column("starts_on", columns.Day(), nullable=False),
        sa.Column("ends_on", columns.Day(), nullable=True),
        sa.Column("cancelled_on", columns.Day(), nullable=True),
        sa.Column("yearly", WHOLE, nullable=False),
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("renewed_into", sa.Text(), nullable=True),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_agreement"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "account_id"],
            ["account.tenant_id", "account.id"],
            name="fk_agreement_tenant_id_account_id",
        ),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_agreement_tenant_id_account_id_starts_on", "agreement", ["tenant_id", "account_id", "starts_on"]
    )
    op.create_index("ix_agreement_tenant_id_ends_on", "agreement", ["tenant_id", "ends_on"])
    op.create_index("ix_agreement_tenant_id_starts_on", "agreement", ["tenant_id", "starts_on"])
    op.create_table(
        "order_counter",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("year", WHOLE, nullable=False),
        sa.Column("last", WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "year", name="pk_order_counter"),
        sqlite_strict=True,
    )
    op.create_table(
        "sales_order",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("agreement_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", WHOLE, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("rounding", sa.Text(), nullable=False),
        sa.Column("effective_on", columns.Day(), nullable=False),
        sa.Column("net", WHOLE, nullable=False),
        sa.Column("tax_total", WHOLE, nullable=False),
        sa.Column("total", WHOLE, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("accepted_at", columns.Timestamp(), nullable=False),
        sa.Column("accepted_by", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("lines", columns.Json(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_sales_order"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "account_id"],
            ["account.tenant_id", "account.id"],
            name="fk_sales_order_tenant_id_account_id",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id", "version"],
            ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
            name="fk_sales_order_tenant_id_quote_id_version",
        ),
        sa.CheckConstraint("kind IN ('new', 'amendment', 'renewal', 'cancellation')", name="ck_sales_order_kind_known"),
        sqlite_strict=True,
    )
    op.create_index("uq_sales_order_number", "sales_order", ["tenant_id", "number"], unique=True)
    op.create_index("uq_sales_order_quote", "sales_order", ["tenant_id", "quote_id"], unique=True)
    op.create_index(
        "ix_sales_order_tenant_id_account_id_accepted_at", "sales_order", ["tenant_id", "account_id", "accepted_at"]
    )
    op.create_index("ix_sales_order_tenant_id_accepted_at", "sales_order", ["tenant_id", "accepted_at"])
    op.create_table(
        "agreement_order",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("agreement_id", sa.Text(), nullable=False),
        sa.Column("sequence", WHOLE, nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "agreement_id", "sequence", name="pk_agreement_order"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agreement_id"],
            ["agreement.tenant_id", "agreement.id"],
            name="fk_agreement_order_tenant_id_agreement_id",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "order_id"],
            ["sales_order.tenant_id", "sales_order.id"],
            name="fk_agreement_order_tenant_id_order_id",
        ),
        sqlite_strict=True,
    )
    op.create_index("ix_agreement_order_tenant_id_order_id", "agreement_order", ["tenant_id", "order_id"])


def downgrade() -> None:
    for name in ("agreement_order", "sales_order", "order_counter", "agreement"):
        op.drop_table(name)
    op.drop_column("quote_version", "agreement")
