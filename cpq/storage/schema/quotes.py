"""Tables of quotes: versions, lines, prices and issued documents."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKeyConstraint, Index, PrimaryKeyConstraint

from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus
from cpq.storage.columns import Day, Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, partial_index, table, text, whole

quote = table(
    "quote",
    text("id"),
    text("number"),
    text("account_id"),
    text("deal_id", nullable=True),
    text("currency"),
    whole("version"),
    whole("edit"),
    text("status"),
    whole("total"),
    Column("valid_until", Day, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("lapses_at", Timestamp, nullable=True),
    Column("created_at", Timestamp, nullable=False),
    text("created_by"),
    text("owner", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("account", "account_id"),
    one_of("status", *QuoteStatus),
    Index("uq_quote_number", "tenant_id", "number", unique=True),
    Index(None, "tenant_id", "created_at"),
    Index(None, "tenant_id", "owner", "created_at"),
    Index(None, "tenant_id", "account_id", "created_at"),
    Index(None, "tenant_id", "status", "created_at"),
    Index(None, "tenant_id", "status", "expires_at"),
    Index(None, "tenant_id", "account_id", "expires_at"),
    Index(None, "tenant_id", "deal_id", "expires_at"),
)
"""One row per quote, changed by every command. Status, total and validity are those of its current version."""

quote_counter = table(
    "quote_counter",
    whole("year"),
    whole("last"),
    PrimaryKeyConstraint("tenant_id", "year"),
)
"""The last number given to a quote in each year. A number is given in the transaction that makes the quote."""

quote_version = table(
    "quote_version",
    text("quote_id"),
    whole("version"),
    text("status"),
    text("reason", nullable=True),
    text("deal_id", nullable=True),
    text("currency"),
    Column("term_months", sa.Integer, nullable=True),
    Column("start_date", Day, nullable=True),
    Column("end_date", Day, nullable=True),
    text("payment_terms"),
    text("notes", nullable=True),
    text("option_set", nullable=True),
    whole("requested_discount"),
    whole("subtotal"),
    whole("discount_total"),
    whole("tax_total"),
    whole("total"),
    text("tax_note", nullable=True),
    Column("warnings", Json, nullable=False),
    Column("priced_at", Timestamp, nullable=True),
    text("fingerprint"),
    Column("hashes", Json, nullable=False),
    Column("valid_until", Day, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("lapses_at", Timestamp, nullable=True),
    Column("created_at", Timestamp, nullable=False),
    text("created_by"),
    Column("edited_by", Json, nullable=False),
    Column("internal", Json, nullable=True),
    Column("requested_valid_until", Day, nullable=True),
    whole("requested_amount", nullable=True),
    Column("agreement", Json, nullable=True),
    whole("credit", nullable=True),
    PrimaryKeyConstraint("tenant_id", "quote_id", "version"),
    belongs_to("quote", "quote_id"),
    one_of("status", *VersionStatus),
    sa.CheckConstraint("subtotal - discount_total + tax_total = total", name="adds_up"),
    sa.CheckConstraint("version > 0", name="version_positive"),
    partial_index("ix_quote_version_deal", "tenant_id", "deal_id", where="deal_id IS NOT NULL"),
)
"""`requested_valid_until` is the last valid day that was asked for; without one, `valid_until` is by the policies.

`agreement` is the agreement that the version changes, as it was when the version was made; `credit` is what its lines
give back that get cheaper or end.
"""

quote_line = table(
    "quote_line",
    text("quote_id"),
    whole("version"),
    whole("number"),
    text("product_id"),
    text("product_name"),
    whole("quantity"),
    whole("discount_pct"),
    Column("attributes", Json, nullable=False),
    text("notes", nullable=True),
    text("option_set", nullable=True),
    Column("ramp", Json, nullable=False),
    text("billing_period"),
    text("tax_category"),
    whole("list_amount"),
    whole("regular"),
    whole("net"),
    whole("cost", nullable=True),
    text("selling_model", nullable=True),
    whole("quantity_of"),
    Column("product_names", Json, nullable=False),
    Column("internal", Json, nullable=True),
    Column("special", Json, nullable=True),
    Column("usage", Json, nullable=True),
    Column("components", Json, nullable=True),
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
"""Amounts and percentages are whole millionths, as in the pricer.

`product_names` are the translations of `product_name`, both of the time when the line was written.

The quantity is `quantity` divided by `quantity_of`, which is 1 for a whole one and else 1,000.

`internal` is what only the seller reads. `special` was arranged for this line: its own price, an amount off, dates, or
what it changes in an agreement. Amounts are of what is sold; what a change gives back is in `special`.
`usage` is the rate card of a line that is charged by its use, as the customer gets it. `components` are what the buyer
chose for a bundle.
"""

quote_pricing = table(
    "quote_pricing",
    text("quote_id"),
    whole("version"),
    text("option_set"),
    Column("request", Json, nullable=False),
    Column("result", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "quote_id", "version", "option_set"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
        ondelete="CASCADE",
    ),
)
"""The request and the result of a price, step by step: enough to compute the price again anywhere."""

acceptance_link = table(
    "acceptance_link",
    text("id"),
    text("quote_id"),
    whole("version"),
    text("fingerprint"),
    text("code_hash"),
    Column("created_at", Timestamp, nullable=False),
    text("created_by"),
    Column("expires_at", Timestamp, nullable=False),
    Column("used_at", Timestamp, nullable=True),
    text("used_by", nullable=True),
    text("address_hash", nullable=True),
    Column("revoked_at", Timestamp, nullable=True),
    text("revoked_by", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
        ondelete="CASCADE",
    ),
    sa.CheckConstraint("(used_at IS NULL) = (used_by IS NULL)", name="used_whole"),
    Index("uq_acceptance_link_code", "tenant_id", "code_hash", unique=True),
)
"""A link by which the customer accepts a version that was sent, and the evidence: who, when, from where.

Or who revoked it, and when.

The hash of the address has the code as its key, which is not stored, so that nobody can try all addresses.
"""

document = table(
    "document",
    text("id"),
    text("quote_id"),
    whole("version"),
    text("state"),
    text("template"),
    text("locale"),
    text("stamp", nullable=True),
    text("checksum"),
    whole("size"),
    whole("pages"),
    text("missing"),
    text("fingerprint"),
    Column("content", Json, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    text("created_by"),
    text("code", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
    ),
    Index(
        "uq_document_of_version",
        "tenant_id",
        "quote_id",
        "version",
        "state",
        "template",
        "locale",
        "checksum",
        unique=True,
    ),
    Index(None, "tenant_id", "checksum"),
    partial_index("ix_document_code", "tenant_id", "code", where="code IS NOT NULL"),
)
"""An issued document: its content, so that it can be rendered again, and the SHA-256 of its bytes.

`code` is what it prints for scanning; older documents have it in their content only.
"""
