"""Every table on one page. Keys start with the tenant; constraints state what must always be true."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKeyConstraint, Index, PrimaryKeyConstraint, Text, UniqueConstraint

from cpq.db import Amount, Day, Flag, Json, Timestamp

SCHEMA_VERSION = "0006"
"""The newest migration. A test holds it equal to Alembic's head; servers compare it without importing Alembic."""

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _table(name: str, *parts: Any) -> sa.Table:
    return sa.Table(name, metadata, Column("tenant_id", Text, nullable=False), *parts, sqlite_strict=True)


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def _whole(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=nullable)


def _one_of(column: str, *words: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _belongs_to(table: str, column: str, *, cascade: bool = False) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", column],
        [f"{table}.tenant_id", f"{table}.id"],
        ondelete="CASCADE" if cascade else None,
    )


def _waiting(name: str, *columns: str) -> Index:
    """Over what is still to be delivered, which is little of what there is."""
    waiting = sa.text("status = 'waiting'")
    return Index(name, *columns, sqlite_where=waiting, postgresql_where=waiting)


category = _table(
    "category",
    _text("id"),
    _text("name"),
    Column("specs", Json, nullable=False),
    Column("attributes", Json, nullable=False),
    _text("content_hash"),
    PrimaryKeyConstraint("tenant_id", "id"),
)

product = _table(
    "product",
    _text("id"),
    _text("sku"),
    _text("sku_key"),
    _text("name"),
    _text("description"),
    _text("product_type"),
    _text("category_id"),
    Column("active", Flag, nullable=False),
    Column("attributes", Json, nullable=False),
    Column("specs", Json, nullable=False),
    Column("options", Json, nullable=False),
    Column("rules", Json, nullable=False),
    Column("bundle", Json, nullable=True),
    _text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "sku_key"),
    _belongs_to("category", "category_id"),
    _one_of("product_type", "simple", "configurable", "bundle", "service"),
    Index(None, "tenant_id", "category_id", "active", "id"),
)

product_spec = _table(
    "product_spec",
    _text("product_id"),
    _text("name"),
    Column("number", Amount, nullable=True),
    _text("word", nullable=True),
    PrimaryKeyConstraint("tenant_id", "product_id", "name"),
    _belongs_to("product", "product_id", cascade=True),
    sa.CheckConstraint("(number IS NULL) <> (word IS NULL)", name="one_value"),
    Index(None, "tenant_id", "name", "number"),
    Index(None, "tenant_id", "name", "word"),
)

product_relation = _table(
    "product_relation",
    _text("product_id"),
    _text("kind"),
    _text("other_id"),
    _whole("quantity"),
    _whole("position"),
    PrimaryKeyConstraint("tenant_id", "product_id", "kind", "other_id"),
    _belongs_to("product", "product_id", cascade=True),
    _one_of("kind", "requires", "excludes", "recommends", "component", "substitute"),
    sa.CheckConstraint("quantity > 0", name="quantity_positive"),
    sa.CheckConstraint("product_id <> other_id", name="not_itself"),
)

price_book = _table(
    "price_book",
    _text("id"),
    _text("name"),
    _text("region", nullable=True),
    Column("is_default", Flag, nullable=False),
    _text("content_hash"),
    PrimaryKeyConstraint("tenant_id", "id"),
)

account = _table(
    "account",
    _text("id"),
    _text("name"),
    _text("segment"),
    _text("region"),
    _text("country"),
    _text("tax_zone"),
    _text("tax_status"),
    _text("tax_note", nullable=True),
    _text("locale"),
    _text("time_zone"),
    _text("currency"),
    _text("price_book_id"),
    _text("contact", nullable=True),
    _text("address", nullable=True),
    Column("active", Flag, nullable=False),
    _text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    _belongs_to("price_book", "price_book_id"),
    _one_of("tax_status", "taxable", "exempt", "reverse_charge"),
)

price = _table(
    "price",
    _text("id"),
    _text("product_id"),
    _text("price_book_id", nullable=True),
    _text("account_id", nullable=True),
    _text("currency"),
    Column("unit_price", Amount, nullable=False),
    _text("billing_period"),
    _text("tier_mode"),
    Column("tiers", Json, nullable=False),
    _text("quantity_scope"),
    _whole("package_size", nullable=True),
    _whole("free_quantity"),
    _whole("priority"),
    Column("valid_from", Day, nullable=True),
    Column("valid_to", Day, nullable=True),
    Column("cost", Amount, nullable=True),
    _text("tax_category"),
    Column("tax_included", Flag, nullable=False),
    Column("surcharges", Json, nullable=False),
    _text("content_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    _belongs_to("product", "product_id"),
    _belongs_to("price_book", "price_book_id"),
    _belongs_to("account", "account_id"),
    _one_of("billing_period", "one_time", "monthly", "quarterly", "yearly"),
    _one_of("tier_mode", "none", "volume", "graduated", "package"),
    _one_of("quantity_scope", "line", "quote"),
    sa.CheckConstraint("(price_book_id IS NULL) <> (account_id IS NULL)", name="one_owner"),
    sa.CheckConstraint("unit_price >= 0", name="unit_price_not_negative"),
    sa.CheckConstraint("valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to", name="valid_in_order"),
    Index(None, "tenant_id", "product_id", "currency"),
)

catalog_revision = _table(
    "catalog_revision",
    _text("revision"),
    PrimaryKeyConstraint("tenant_id"),
)
"""Another one after every import that changed something: what was read under a revision holds while it stands."""

QUOTE_STATUSES = ("draft", "pending_approval", "approved", "sent", "accepted", "declined", "expired", "cancelled")

quote = _table(
    "quote",
    _text("id"),
    _text("account_id"),
    _text("deal_id", nullable=True),
    _text("currency"),
    _whole("version"),
    _whole("edit"),
    _text("status"),
    _whole("total"),
    Column("valid_until", Day, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    _text("created_by"),
    PrimaryKeyConstraint("tenant_id", "id"),
    _belongs_to("account", "account_id"),
    _one_of("status", *QUOTE_STATUSES),
    Index(None, "tenant_id", "created_at"),
    Index(None, "tenant_id", "account_id", "created_at"),
    Index(None, "tenant_id", "status", "created_at"),
    Index(None, "tenant_id", "status", "expires_at"),
)
"""The root: one row a quote, changed by every command. Status, total and validity are those of its current version."""

quote_version = _table(
    "quote_version",
    _text("quote_id"),
    _whole("version"),
    _text("status"),
    _text("reason", nullable=True),
    _text("deal_id", nullable=True),
    Column("term_months", sa.Integer, nullable=True),
    Column("start_date", Day, nullable=True),
    Column("end_date", Day, nullable=True),
    _text("payment_terms"),
    _text("notes", nullable=True),
    _text("option_set", nullable=True),
    _whole("requested_discount"),
    _whole("subtotal"),
    _whole("discount_total"),
    _whole("tax_total"),
    _whole("total"),
    _text("tax_note", nullable=True),
    Column("priced_at", Timestamp, nullable=True),
    _text("fingerprint"),
    Column("hashes", Json, nullable=False),
    Column("valid_until", Day, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    _text("created_by"),
    PrimaryKeyConstraint("tenant_id", "quote_id", "version"),
    _belongs_to("quote", "quote_id"),
    _one_of("status", *QUOTE_STATUSES, "rejected", "superseded"),
    sa.CheckConstraint("subtotal - discount_total + tax_total = total", name="adds_up"),
    sa.CheckConstraint("version > 0", name="version_positive"),
)

quote_line = _table(
    "quote_line",
    _text("quote_id"),
    _whole("version"),
    _whole("number"),
    _text("product_id"),
    _text("product_name"),
    _whole("quantity"),
    _whole("discount_pct"),
    Column("attributes", Json, nullable=False),
    _text("notes", nullable=True),
    _text("option_set", nullable=True),
    Column("ramp", Json, nullable=False),
    _text("billing_period"),
    _text("tax_category"),
    _whole("list_amount"),
    _whole("regular"),
    _whole("net"),
    _whole("cost", nullable=True),
    PrimaryKeyConstraint("tenant_id", "quote_id", "version", "number"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
        ondelete="CASCADE",
    ),
    sa.CheckConstraint("quantity > 0", name="quantity_positive"),
    sa.CheckConstraint("discount_pct BETWEEN 0 AND 100000000", name="discount_pct_in_range"),
    sa.CheckConstraint("net BETWEEN 0 AND regular", name="net_in_range"),
)
"""Amounts and percentages are whole millionths, as the pricer reckons them."""

quote_pricing = _table(
    "quote_pricing",
    _text("quote_id"),
    _whole("version"),
    _text("option_set"),
    Column("request", Json, nullable=False),
    Column("result", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "quote_id", "version", "option_set"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
        ondelete="CASCADE",
    ),
)
"""What the price was reckoned from and what came out, step by step: enough to reckon it again anywhere."""

APPROVAL_STATUSES = ("pending", "approved", "kept", "rejected", "withdrawn", "expired")

approval = _table(
    "approval",
    _text("id"),
    _text("quote_id"),
    _whole("version"),
    _text("role"),
    _text("status"),
    _text("reason", nullable=True),
    _text("fingerprint"),
    _whole("total"),
    _text("policy_hash"),
    Column("chains", Json, nullable=False),
    Column("grounds", Json, nullable=False),
    _text("quorum"),
    _text("justification"),
    _text("requested_by"),
    Column("requested_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    _text("escalates_to", nullable=True),
    Column("escalates_at", Timestamp, nullable=True),
    Column("escalated_at", Timestamp, nullable=True),
    Column("holds_until", Timestamp, nullable=False),
    _text("kept_from", nullable=True),
    _text("decided_by", nullable=True),
    Column("decided_at", Timestamp, nullable=True),
    _text("comment", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
    ),
    _one_of("status", *APPROVAL_STATUSES),
    sa.CheckConstraint("(kept_from IS NULL) = (status <> 'kept')", name="kept_from_an_approval"),
    sa.CheckConstraint("status NOT IN ('approved', 'rejected') OR decided_by IS NOT NULL", name="decided_by_somebody"),
    Index(None, "tenant_id", "quote_id", "version"),
    Index(
        "uq_approval_one_pending",
        "tenant_id",
        "quote_id",
        "version",
        "role",
        unique=True,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    ),
    Index(
        "ix_approval_pending",
        "tenant_id",
        "requested_at",
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    ),
)
"""A role's say on one version of a quote: what it is bound to, the facts it rests on, and what became of it."""

approval_vote = _table(
    "approval_vote",
    _text("approval_id"),
    _text("caller"),
    _text("acted_as"),
    _text("decision"),
    _text("comment", nullable=True),
    Column("at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "approval_id", "caller"),
    _belongs_to("approval", "approval_id"),
    _one_of("decision", "approve", "reject"),
)
"""Who said what. A quorum counts them; nobody is counted twice."""

delegation = _table(
    "delegation",
    _text("id"),
    _text("role"),
    _text("from_name"),
    _text("to_name"),
    Column("starts_at", Timestamp, nullable=False),
    Column("ends_at", Timestamp, nullable=False),
    _text("account_id", nullable=True),
    _text("quote_id", nullable=True),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "from_name"], ["principal.tenant_id", "principal.name"]),
    ForeignKeyConstraint(["tenant_id", "to_name"], ["principal.tenant_id", "principal.name"]),
    _belongs_to("account", "account_id"),
    _belongs_to("quote", "quote_id"),
    sa.CheckConstraint("starts_at < ends_at", name="ends_after_it_starts"),
    sa.CheckConstraint("from_name <> to_name", name="not_to_oneself"),
    Index(None, "tenant_id", "to_name", "ends_at"),
)
"""A role lent to somebody from one moment to another, for all quotes or those of one account, or for one quote."""

principal = _table(
    "principal",
    _text("name"),
    _text("kind"),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "name"),
    _one_of("kind", "agent", "human"),
)

token = _table(
    "token",
    _text("id"),
    _text("principal_name"),
    _text("role"),
    _text("secret_hash"),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=True),
    Column("revoked_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "principal_name"], ["principal.tenant_id", "principal.name"]),
)

idempotency = _table(
    "idempotency",
    _text("caller"),
    _text("operation"),
    _text("key"),
    Column("request_hashes", Json, nullable=False),
    Column("answer", Json, nullable=True),
    _text("trace_id"),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "caller", "operation", "key"),
    Index(None, "tenant_id", "expires_at"),
)

audit_entry = _table(
    "audit_entry",
    _text("id"),
    Column("at", Timestamp, nullable=False),
    _text("caller"),
    _text("operation"),
    _text("arguments_hash"),
    _text("outcome"),
    _text("subject", nullable=True),
    _text("trace_id"),
    _whole("seq", nullable=True),
    _text("hash", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "seq"),
    sa.CheckConstraint("(seq IS NULL) = (hash IS NULL)", name="sealed_whole"),
    Index(
        "ix_audit_entry_unsealed",
        "tenant_id",
        "at",
        sqlite_where=sa.text("seq IS NULL"),
        postgresql_where=sa.text("seq IS NULL"),
    ),
)

audit_head = _table(
    "audit_head",
    _whole("seq"),
    _text("hash"),
    PrimaryKeyConstraint("tenant_id"),
)

event = _table(
    "event",
    _text("id"),
    _text("name"),
    _text("subject"),
    _whole("number"),
    Column("body", Json, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "subject", "number"),
)
"""What happened, written with the change itself. The events of a subject are numbered from 1, in their order."""

DELIVERY_STATUSES = ("waiting", "delivered", "failed")

event_delivery = _table(
    "event_delivery",
    _text("event_id"),
    _text("webhook"),
    _text("subject"),
    _whole("number"),
    _text("status"),
    _whole("attempts"),
    Column("due_at", Timestamp, nullable=False),
    _text("claim", nullable=True),
    _text("answer", nullable=True),
    Column("attempted_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "event_id", "webhook"),
    _belongs_to("event", "event_id"),
    _one_of("status", *DELIVERY_STATUSES),
    sa.CheckConstraint("claim IS NULL OR status = 'waiting'", name="only_waiting_claimed"),
    _waiting("ix_event_delivery_due", "tenant_id", "webhook", "due_at"),
    _waiting("ix_event_delivery_order", "tenant_id", "webhook", "subject", "number"),
)
"""One event for one webhook. Whoever delivers it moves `due_at` to when the claim ends and puts its own mark on it."""

catalog_word = _table(
    "catalog_word",
    _text("near"),
    _text("word"),
    PrimaryKeyConstraint("tenant_id", "near", "word"),
)
"""For typing errors: every dictionary word under each spelling that lacks one or two of its letters.

The word index itself, `catalog_index`, differs between the databases; its migration and `catalog/finding.py` own it.
"""

PAST_OUTCOMES = ("won", "lost", "open", "unknown")

past_quote = _table(
    "past_quote",
    _text("id"),
    _text("customer"),
    _text("project"),
    Column("quoted_on", Day, nullable=False),
    _text("currency"),
    _text("outcome"),
    _text("salesperson", nullable=True),
    _text("notes", nullable=True),
    _text("content_hash"),
    Column("imported_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    _one_of("outcome", *PAST_OUTCOMES),
)
"""A quote from before this system, or from another one: what was said and asked then, never a price of today."""

past_line = _table(
    "past_line",
    _text("quote_id"),
    _whole("number"),
    _text("category"),
    _text("description"),
    _text("model", nullable=True),
    _text("product_id", nullable=True),
    _whole("quantity"),
    Column("unit_price", Amount, nullable=True),
    PrimaryKeyConstraint("tenant_id", "quote_id", "number"),
    _belongs_to("past_quote", "quote_id", cascade=True),
    sa.CheckConstraint("quantity > 0", name="quantity_positive"),
)

search_corpus = _table(
    "search_corpus",
    _text("corpus"),
    _whole("generation"),
    PrimaryKeyConstraint("tenant_id", "corpus"),
)
"""How often what a corpus is made of has changed. Whoever changes it holds this row, so generations commit in order."""

search_change = _table(
    "search_change",
    _text("corpus"),
    _text("document_id"),
    _whole("generation"),
    PrimaryKeyConstraint("tenant_id", "corpus", "document_id"),
    Index(None, "tenant_id", "corpus", "generation"),
)
"""In which generation a document last changed; `*` stands for all of them."""

search_vector = _table(
    "search_vector",
    _text("corpus"),
    _text("model"),
    _text("text_hash"),
    Column("vector", sa.LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant_id", "corpus", "model", "text_hash"),
)
"""What was embedded, by the hash of its text: dear to make, cheap to keep, and of no use to anybody else."""
