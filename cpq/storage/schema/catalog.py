"""Tables of the catalogue: products, prices, accounts and search words."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, Index, PrimaryKeyConstraint, UniqueConstraint

from cpq.storage.columns import Amount, Day, Flag, Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, table, text, texts, whole

category = table(
    "category",
    text("id"),
    text("name"),
    Column("specs", Json, nullable=False),
    Column("attributes", Json, nullable=False),
    text("content_hash"),
    Column("names", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
)

product = table(
    "product",
    *texts("id", "sku", "sku_key", "name", "description", "product_type", "category_id"),
    Column("active", Flag, nullable=False),
    Column("attributes", Json, nullable=False),
    Column("specs", Json, nullable=False),
    Column("options", Json, nullable=False),
    Column("rules", Json, nullable=False),
    Column("bundle", Json, nullable=True),
    text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    text("default_selling_model", nullable=True),
    text("unit", nullable=True),
    whole("quantity_decimals"),
    Column("names", Json, nullable=False),
    Column("descriptions", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "sku_key"),
    belongs_to("category", "category_id"),
    one_of("product_type", "simple", "configurable", "bundle", "service"),
    Index(None, "tenant_id", "category_id", "active", "id"),
)

product_spec = table(
    "product_spec",
    text("product_id"),
    text("name"),
    Column("number", Amount, nullable=True),
    text("word", nullable=True),
    PrimaryKeyConstraint("tenant_id", "product_id", "name"),
    belongs_to("product", "product_id", cascade=True),
    sa.CheckConstraint("(number IS NULL) <> (word IS NULL)", name="one_value"),
    Index(None, "tenant_id", "name", "number"),
    Index(None, "tenant_id", "name", "word"),
)

product_relation = table(
    "product_relation",
    text("product_id"),
    text("kind"),
    text("other_id"),
    whole("quantity"),
    whole("position"),
    PrimaryKeyConstraint("tenant_id", "product_id", "kind", "other_id"),
    belongs_to("product", "product_id", cascade=True),
    one_of("kind", "requires", "excludes", "recommends", "component", "substitute"),
    sa.CheckConstraint("quantity > 0", name="quantity_positive"),
    sa.CheckConstraint("product_id <> other_id", name="not_itself"),
)

quote_rule = table(
    "quote_rule",
    text("id"),
    Column("active", Flag, nullable=False),
    Column("declared", Json, nullable=False),
    text("content_hash"),
    PrimaryKeyConstraint("tenant_id", "id"),
)
"""Rules over the lines of a quote. `declared` is the rule as its file has it, without defaults."""

price_book = table(
    "price_book",
    text("id"),
    text("name"),
    text("region", nullable=True),
    Column("is_default", Flag, nullable=False),
    text("content_hash"),
    text("base_currency", nullable=True),
    text("price_rounding", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
)
"""With a `base_currency`, prices in it are converted into the currency of a quote and rounded by `price_rounding`."""

account = table(
    "account",
    *texts("id", "name", "segment", "region", "country", "tax_zone", "tax_status"),
    text("tax_note", nullable=True),
    text("locale"),
    text("time_zone"),
    text("currency"),
    text("price_book_id"),
    text("contact", nullable=True),
    text("address", nullable=True),
    text("tax_id", nullable=True),
    text("purchase_order", nullable=True),
    Column("active", Flag, nullable=False),
    text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("price_book", "price_book_id"),
    one_of("tax_status", "taxable", "exempt", "reverse_charge"),
)

price = table(
    "price",
    text("id"),
    text("product_id"),
    text("price_book_id", nullable=True),
    text("account_id", nullable=True),
    text("currency"),
    Column("unit_price", Amount, nullable=False),
    text("billing_period"),
    text("tier_mode"),
    Column("tiers", Json, nullable=False),
    text("quantity_scope"),
    whole("package_size", nullable=True),
    whole("free_quantity"),
    whole("priority"),
    Column("valid_from", Day, nullable=True),
    Column("valid_to", Day, nullable=True),
    Column("cost", Amount, nullable=True),
    text("tax_category"),
    Column("tax_included", Flag, nullable=False),
    Column("surcharges", Json, nullable=False),
    text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    text("selling_model"),
    text("name", nullable=True),
    text("unit", nullable=True),
    Column("minimum_spend", Amount, nullable=True),
    Column("maximum_spend", Amount, nullable=True),
    text("billed", nullable=True),
    text("cancellation_credit", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("product", "product_id"),
    belongs_to("price_book", "price_book_id"),
    belongs_to("account", "account_id"),
    sa.CheckConstraint("billing_period <> ''", name="billing_period_known"),
    one_of("tier_mode", "none", "volume", "graduated", "package"),
    one_of("quantity_scope", "line", "quote"),
    sa.CheckConstraint("(price_book_id IS NULL) <> (account_id IS NULL)", name="one_owner"),
    sa.CheckConstraint("unit_price >= 0", name="unit_price_not_negative"),
    sa.CheckConstraint("valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to", name="valid_in_order"),
    Index(None, "tenant_id", "product_id", "currency"),
)

catalog_revision = table(
    "catalog_revision",
    text("revision"),
    PrimaryKeyConstraint("tenant_id"),
)
"""The catalogue's revision, new after every import that changed something. Cached reads are valid for one revision."""

guide = table(
    "guide",
    text("id"),
    Column("content", Json, nullable=False),
    text("content_hash"),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
)
"""Guides for guided selling: questions, and what their answers demand of a product."""

catalog_word = table(
    "catalog_word",
    text("near"),
    text("word"),
    PrimaryKeyConstraint("tenant_id", "near", "word"),
)
"""For typing errors: every dictionary word under each spelling without one or two of its letters.

The word index itself, `catalog_index`, differs between the databases; its migration and `catalog/word_index.py` own it.
"""
