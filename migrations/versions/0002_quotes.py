"""Quotes: the root, its versions, their lines, and what each price was reckoned from"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_STATUSES = "'draft', 'pending_approval', 'approved', 'sent', 'accepted', 'declined', 'expired', 'cancelled'"


def upgrade() -> None:
    op.create_table(
        "quote",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("deal_id", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("edit", _WHOLE, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("total", _WHOLE, nullable=False),
        sa.Column("valid_until", columns.Day(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_quote")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "account_id"],
            ["account.tenant_id", "account.id"],
            name=op.f("fk_quote_tenant_id_account_id"),
        ),
        sa.CheckConstraint(f"status IN ({_STATUSES})", name=op.f("ck_quote_status_known")),
        sqlite_strict=True,
    )
    op.create_index("ix_quote_tenant_id_created_at", "quote", ["tenant_id", "created_at"])
    op.create_index("ix_quote_tenant_id_account_id_created_at", "quote", ["tenant_id", "account_id", "created_at"])
    op.create_index("ix_quote_tenant_id_status_created_at", "quote", ["tenant_id", "status", "created_at"])
    op.create_index("ix_quote_tenant_id_status_expires_at", "quote", ["tenant_id", "status", "expires_at"])

    op.create_table(
        "quote_version",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("deal_id", sa.Text(), nullable=True),
        sa.Column("term_months", sa.Integer(), nullable=True),
        sa.Column("start_date", columns.Day(), nullable=True),
        sa.Column("end_date", columns.Day(), nullable=True),
        sa.Column("payment_terms", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("option_set", sa.Text(), nullable=True),
        sa.Column("requested_discount", _WHOLE, nullable=False),
        sa.Column("subtotal", _WHOLE, nullable=False),
        sa.Column("discount_total", _WHOLE, nullable=False),
        sa.Column("tax_total", _WHOLE, nullable=False),
        sa.Column("total", _WHOLE, nullable=False),
        sa.Column("tax_note", sa.Text(), nullable=True),
        sa.Column("priced_at", columns.Timestamp(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("hashes", columns.Json(), nullable=False),
        sa.Column("valid_until", columns.Day(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "quote_id", "version", name=op.f("pk_quote_version")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id"],
            ["quote.tenant_id", "quote.id"],
            name=op.f("fk_quote_version_tenant_id_quote_id"),
        ),
        sa.CheckConstraint(
            f"status IN ({_STATUSES}, 'rejected', 'superseded')", name=op.f("ck_quote_version_status_known")
        ),
        sa.CheckConstraint("subtotal - discount_total + tax_total = total", name=op.f("ck_quote_version_adds_up")),
        sa.CheckConstraint("version > 0", name=op.f("ck_quote_version_version_positive")),
        sqlite_strict=True,
    )

    op.create_table(
        "quote_line",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("number", _WHOLE, nullable=False),
        sa.Column("product_id", sa.Text(), nullable=False),
        sa.Column("product_name", sa.Text(), nullable=False),
        sa.Column("quantity", _WHOLE, nullable=False),
        sa.Column("discount_pct", _WHOLE, nullable=False),
        sa.Column("attributes", columns.Json(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("option_set", sa.Text(), nullable=True),
        sa.Column("ramp", columns.Json(), nullable=False),
        sa.Column("billing_period", sa.Text(), nullable=False),
        sa.Column("tax_category", sa.Text(), nullable=False),
        sa.Column("list_amount", _WHOLE, nullable=False),
        sa.Column("regular", _WHOLE, nullable=False),
        sa.Column("net", _WHOLE, nullable=False),
        sa.Column("cost", _WHOLE, nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "quote_id", "version", "number", name=op.f("pk_quote_line")),
        _of_version("quote_line"),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_quote_line_quantity_positive")),
        sa.CheckConstraint("discount_pct BETWEEN 0 AND 100000000", name=op.f("ck_quote_line_discount_pct_in_range")),
        sa.CheckConstraint("net BETWEEN 0 AND regular", name=op.f("ck_quote_line_net_in_range")),
        sqlite_strict=True,
    )

    op.create_table(
        "quote_pricing",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("option_set", sa.Text(), nullable=False),
        sa.Column("request", columns.Json(), nullable=False),
        sa.Column("result", columns.Json(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "quote_id", "version", "option_set", name=op.f("pk_quote_pricing")),
        _of_version("quote_pricing"),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("quote_pricing")
    op.drop_table("quote_line")
    op.drop_table("quote_version")
    op.drop_table("quote")


def _of_version(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
        name=op.f(f"fk_{table}_tenant_id_quote_id_version"),
        ondelete="CASCADE",
    )
