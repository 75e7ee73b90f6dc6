"""Tables of search: past quotes, web pages, the vectors of all passages, and what was searched for."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, Index, PrimaryKeyConstraint, UniqueConstraint

from cpq.storage.columns import Amount, Day, Flag, Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, table, text, texts, whole

PAST_OUTCOMES = ("won", "lost", "open", "unknown")

past_quote = table(
    "past_quote",
    text("id"),
    text("customer"),
    text("project"),
    Column("quoted_on", Day, nullable=False),
    text("currency"),
    text("outcome"),
    text("salesperson", nullable=True),
    text("notes", nullable=True),
    text("content_hash"),
    Column("imported_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    one_of("outcome", *PAST_OUTCOMES),
)
"""A quote from before this system, or from another one: its content and prices then, never a current price."""

past_line = table(
    "past_line",
    text("quote_id"),
    whole("number"),
    text("category"),
    text("description"),
    text("model", nullable=True),
    text("product_id", nullable=True),
    whole("quantity"),
    Column("unit_price", Amount, nullable=True),
    PrimaryKeyConstraint("tenant_id", "quote_id", "number"),
    belongs_to("past_quote", "quote_id", cascade=True),
    sa.CheckConstraint("quantity > 0", name="quantity_positive"),
)

search_corpus = table(
    "search_corpus",
    text("corpus"),
    whole("generation"),
    PrimaryKeyConstraint("tenant_id", "corpus"),
)
"""The number of changes of a corpus. A change locks this row, so that generations commit in order."""

search_change = table(
    "search_change",
    *texts("corpus", "document_id"),
    whole("generation"),
    PrimaryKeyConstraint("tenant_id", "corpus", "document_id"),
    Index(None, "tenant_id", "corpus", "generation"),
)
"""The generation in which a document last changed; `*` means all documents."""

search_vector = table(
    "search_vector",
    *texts("corpus", "model", "text_hash"),
    Column("vector", sa.LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant_id", "corpus", "model", "text_hash"),
)
"""Embedded texts by their hash: expensive to compute, cheap to store."""

web_page = table(
    "web_page",
    *texts("id", "url", "host", "title", "kind"),
    *texts("etag", "last_modified", nullable=True),
    text("content_hash"),
    whole("passages"),
    whole("tokens"),
    Column("links", Json, nullable=False),
    *texts("warning", "failure", nullable=True),
    Column("fetched_at", Timestamp, nullable=False),
    Column("checked_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "url"),
    Index(None, "tenant_id", "host"),
)
"""A web page as last read. `failure` is why the newest attempt to read it again failed."""

web_alias = table(
    "web_alias",
    *texts("url", "page_id"),
    PrimaryKeyConstraint("tenant_id", "url"),
    belongs_to("web_page", "page_id", cascade=True),
    Index(None, "tenant_id", "page_id"),
)
"""Addresses that redirect to a page."""

web_passage = table(
    "web_passage",
    text("page_id"),
    whole("ordinal"),
    Column("headings", Json, nullable=False),
    text("text"),
    whole("tokens"),
    Column("images", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", "page_id", "ordinal"),
    belongs_to("web_page", "page_id", cascade=True),
)
"""The passages of a page in order; they are searched and quoted."""

retrieval_query = table(
    "retrieval_query",
    text("id"),
    Column("at", Timestamp, nullable=False),
    *texts("caller", "tool", "query", "folded"),
    whole("hits"),
    text("mode"),
    Column("score", Amount, nullable=True),
    text("confidence", nullable=True),
    Column("is_failed", Flag, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    Index(None, "tenant_id", "at"),
)
"""A search that a caller made, under the id of its audit entry; `folded` is the query without case, to count equal
ones. Old ones are deleted."""
