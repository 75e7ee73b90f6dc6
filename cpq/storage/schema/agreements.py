"""Tables of what customers own: orders, and the agreements that they make up."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKeyConstraint, Index, PrimaryKeyConstraint

from cpq.domain.agreements.order_kind import OrderKind
from cpq.storage.columns import Day, Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, table, text, whole

agreement = table(
    "agreement",
    text("id"),
    text("account_id"),
    text("currency"),
    whole("sequence"),
    Column("starts_on", Day, nullable=False),
    Column("ends_on", Day, nullable=True),
    Column("cancelled_on", Day, nullable=True),
    whole("yearly"),
    text("state_hash"),
    text("renewed_into", nullable=True),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("account", "account_id"),
    Index(None, "tenant_id", "account_id", "starts_on"),
    Index(None, "tenant_id", "ends_on"),
    Index(None, "tenant_id", "starts_on"),
)
"""One row per agreement, changed by every order. All of it follows from the orders, and `state_hash` proves it.

`sequence` is the number of its orders, `ends_on` the last day of its term, `yearly` its recurring revenue of a year at
the end of its last change.
"""

order_counter = table(
    "order_counter",
    whole("year"),
    whole("last"),
    PrimaryKeyConstraint("tenant_id", "year"),
)
"""The last number given to an order in each year."""

sales_order = table(
    "sales_order",
    text("id"),
    text("number"),
    text("kind"),
    text("account_id"),
    text("agreement_id"),
    text("quote_id"),
    whole("version"),
    text("currency"),
    text("rounding"),
    Column("effective_on", Day, nullable=False),
    whole("net"),
    whole("tax_total"),
    whole("total"),
    text("fingerprint"),
    Column("accepted_at", Timestamp, nullable=False),
    text("accepted_by"),
    text("evidence", nullable=True),
    Column("lines", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("account", "account_id"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
    ),
    one_of("kind", *OrderKind),
    Index("uq_sales_order_number", "tenant_id", "number", unique=True),
    Index("uq_sales_order_quote", "tenant_id", "quote_id", unique=True),
    Index(None, "tenant_id", "account_id", "accepted_at"),
    Index(None, "tenant_id", "accepted_at"),
)
"""What a customer accepted. It is written once, with the acceptance, and never changes. Amounts are millionths."""

agreement_order = table(
    "agreement_order",
    text("agreement_id"),
    whole("sequence"),
    text("order_id"),
    PrimaryKeyConstraint("tenant_id", "agreement_id", "sequence"),
    belongs_to("agreement", "agreement_id"),
    belongs_to("sales_order", "order_id"),
    Index(None, "tenant_id", "order_id"),
)
"""The orders of an agreement in their sequence. An order that renews several agreements into one is in each of them."""
