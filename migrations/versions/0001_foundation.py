"""The foundation: catalogue, prices, accounts, access, keys, audit"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SEARCH = {
    "sqlite": (
        # Contentless, without positions: only which product has which term. Terms are made by the application.
        (
            "CREATE VIRTUAL TABLE catalog_index USING fts5("
            "terms, content='', contentless_delete=1, detail=none, tokenize='ascii')"
        ),
        # Fewer, larger merges: less work for a large import, for a few more segments to look into.
        "INSERT INTO catalog_index (catalog_index, rank) VALUES ('automerge', 16)",
        (
            "CREATE TABLE search_key ("
            "row INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, product_id TEXT NOT NULL, "
            "UNIQUE (tenant_id, product_id)) STRICT"
        ),
    ),
    "postgresql": (
        (
            "CREATE TABLE catalog_index ("
            "tenant_id TEXT NOT NULL, product_id TEXT NOT NULL, terms TSVECTOR NOT NULL, "
            "PRIMARY KEY (tenant_id, product_id))"
        ),
        "CREATE INDEX ix_catalog_index_terms ON catalog_index USING GIN (terms)",
    ),
}


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", columns.Timestamp(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("arguments_hash", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("hash", sa.Text(), nullable=True),
        sa.CheckConstraint("(seq IS NULL) = (hash IS NULL)", name=op.f("ck_audit_entry_sealed_whole")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_audit_entry")),
        sa.UniqueConstraint("tenant_id", "seq", name=op.f("uq_audit_entry_tenant_id_seq")),
        sqlite_strict=True,
    )
    op.create_index(
        "ix_audit_entry_unsealed",
        "audit_entry",
        ["tenant_id", "at"],
        unique=False,
        sqlite_where=sa.text("seq IS NULL"),
        postgresql_where=sa.text("seq IS NULL"),
    )

    op.create_table(
        "audit_head",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_audit_head")),
        sqlite_strict=True,
    )
    op.create_table(
        "catalog_word",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("near", sa.Text(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "near", "word", name=op.f("pk_catalog_word")),
        sqlite_strict=True,
    )
    op.create_table(
        "category",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("specs", columns.Json(), nullable=False),
        sa.Column("attributes", columns.Json(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_category")),
        sqlite_strict=True,
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_hashes", columns.Json(), nullable=False),
        sa.Column("answer", columns.Json(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "caller", "operation", "key", name=op.f("pk_idempotency")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_idempotency_tenant_id_expires_at"), "idempotency", ["tenant_id", "expires_at"], unique=False
    )

    op.create_table(
        "price_book",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=True),
        sa.Column("is_default", columns.Flag(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_price_book")),
        sqlite_strict=True,
    )
    op.create_table(
        "principal",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.CheckConstraint("kind IN ('agent', 'human')", name=op.f("ck_principal_kind_known")),
        sa.PrimaryKeyConstraint("tenant_id", "name", name=op.f("pk_principal")),
        sqlite_strict=True,
    )
    op.create_table(
        "account",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("segment", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("country", sa.Text(), nullable=False),
        sa.Column("tax_zone", sa.Text(), nullable=False),
        sa.Column("tax_status", sa.Text(), nullable=False),
        sa.Column("tax_note", sa.Text(), nullable=True),
        sa.Column("locale", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("price_book_id", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("active", columns.Flag(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("updated_at", columns.Timestamp(), nullable=False),
        sa.CheckConstraint(
            "tax_status IN ('taxable', 'exempt', 'reverse_charge')", name=op.f("ck_account_tax_status_known")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "price_book_id"],
            ["price_book.tenant_id", "price_book.id"],
            name=op.f("fk_account_tenant_id_price_book_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_account")),
        sqlite_strict=True,
    )
    op.create_table(
        "product",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sku", sa.Text(), nullable=False),
        sa.Column("sku_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("product_type", sa.Text(), nullable=False),
        sa.Column("category_id", sa.Text(), nullable=False),
        sa.Column("active", columns.Flag(), nullable=False),
        sa.Column("attributes", columns.Json(), nullable=False),
        sa.Column("specs", columns.Json(), nullable=False),
        sa.Column("options", columns.Json(), nullable=False),
        sa.Column("rules", columns.Json(), nullable=False),
        sa.Column("bundle", columns.Json(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("updated_at", columns.Timestamp(), nullable=False),
        sa.CheckConstraint(
            "product_type IN ('simple', 'configurable', 'bundle', 'service')",
            name=op.f("ck_product_product_type_known"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "category_id"],
            ["category.tenant_id", "category.id"],
            name=op.f("fk_product_tenant_id_category_id"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_product")),
        sa.UniqueConstraint("tenant_id", "sku_key", name=op.f("uq_product_tenant_id_sku_key")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_product_tenant_id_category_id_active_id"),
        "product",
        ["tenant_id", "category_id", "active", "id"],
        unique=False,
    )

    op.create_table(
        "token",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("principal_name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=True),
        sa.Column("revoked_at", columns.Timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "principal_name"],
            ["principal.tenant_id", "principal.name"],
            name=op.f("fk_token_tenant_id_principal_name"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_token")),
        sqlite_strict=True,
    )
    op.create_table(
        "price",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("product_id", sa.Text(), nullable=False),
        sa.Column("price_book_id", sa.Text(), nullable=True),
        sa.Column("account_id", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("unit_price", columns.Amount(), nullable=False),
        sa.Column("billing_period", sa.Text(), nullable=False),
        sa.Column("tier_mode", sa.Text(), nullable=False),
        sa.Column("tiers", columns.Json(), nullable=False),
        sa.Column("quantity_scope", sa.Text(), nullable=False),
        sa.Column("package_size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("free_quantity", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("priority", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("valid_from", columns.Day(), nullable=True),
        sa.Column("valid_to", columns.Day(), nullable=True),
        sa.Column("cost", columns.Amount(), nullable=True),
        sa.Column("tax_category", sa.Text(), nullable=False),
        sa.Column("tax_included", columns.Flag(), nullable=False),
        sa.Column("surcharges", columns.Json(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.Column("updated_at", columns.Timestamp(), nullable=False),
        sa.CheckConstraint(
            "billing_period IN ('one_time', 'monthly', 'quarterly', 'yearly')",
            name=op.f("ck_price_billing_period_known"),
        ),
        sa.CheckConstraint("quantity_scope IN ('line', 'quote')", name=op.f("ck_price_quantity_scope_known")),
        sa.CheckConstraint(
            "tier_mode IN ('none', 'volume', 'graduated', 'package')", name=op.f("ck_price_tier_mode_known")
        ),
        sa.CheckConstraint("(price_book_id IS NULL) <> (account_id IS NULL)", name=op.f("ck_price_one_owner")),
        sa.CheckConstraint("unit_price >= 0", name=op.f("ck_price_unit_price_not_negative")),
        sa.CheckConstraint(
            "valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to", name=op.f("ck_price_valid_in_order")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "account_id"], ["account.tenant_id", "account.id"], name=op.f("fk_price_tenant_id_account_id")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "price_book_id"],
            ["price_book.tenant_id", "price_book.id"],
            name=op.f("fk_price_tenant_id_price_book_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "product_id"], ["product.tenant_id", "product.id"], name=op.f("fk_price_tenant_id_product_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_price")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_price_tenant_id_product_id_currency"), "price", ["tenant_id", "product_id", "currency"], unique=False
    )

    op.create_table(
        "product_relation",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("product_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("other_id", sa.Text(), nullable=False),
        sa.Column("quantity", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.CheckConstraint(
            "kind IN ('requires', 'excludes', 'recommends', 'component', 'substitute')",
            name=op.f("ck_product_relation_kind_known"),
        ),
        sa.CheckConstraint("product_id <> other_id", name=op.f("ck_product_relation_not_itself")),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_product_relation_quantity_positive")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "product_id"],
            ["product.tenant_id", "product.id"],
            name=op.f("fk_product_relation_tenant_id_product_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "product_id", "kind", "other_id", name=op.f("pk_product_relation")),
        sqlite_strict=True,
    )
    op.create_table(
        "product_spec",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("product_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", columns.Amount(), nullable=True),
        sa.Column("word", sa.Text(), nullable=True),
        sa.CheckConstraint("(number IS NULL) <> (word IS NULL)", name=op.f("ck_product_spec_one_value")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "product_id"],
            ["product.tenant_id", "product.id"],
            name=op.f("fk_product_spec_tenant_id_product_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "product_id", "name", name=op.f("pk_product_spec")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_product_spec_tenant_id_name_number"), "product_spec", ["tenant_id", "name", "number"], unique=False
    )
    op.create_index(
        op.f("ix_product_spec_tenant_id_name_word"), "product_spec", ["tenant_id", "name", "word"], unique=False
    )

    for statement in _SEARCH[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE catalog_index")
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE search_key")

    op.drop_table("product_spec")
    op.drop_table("product_relation")

    op.drop_table("price")
    op.drop_table("token")

    op.drop_table("product")
    op.drop_table("account")
    op.drop_table("principal")
    op.drop_table("price_book")

    op.drop_table("idempotency")
    op.drop_table("category")
    op.drop_table("catalog_word")
    op.drop_table("audit_head")

    op.drop_table("audit_entry")
