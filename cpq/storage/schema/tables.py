"""All tables, used as `tables.quote`, so that a variable can be called `quote`."""

from __future__ import annotations

from cpq.storage.schema.approvals import approval, approval_vote, delegation, held_decision
from cpq.storage.schema.calls import (
    audit_entry,
    audit_head,
    console_session,
    event,
    event_delivery,
    idempotency,
    policy_set,
    principal,
    sign_in_link,
    token,
)
from cpq.storage.schema.catalog import (
    account,
    catalog_revision,
    catalog_word,
    category,
    price,
    price_book,
    product,
    product_relation,
    product_spec,
)
from cpq.storage.schema.quotes import document, quote, quote_counter, quote_line, quote_pricing, quote_version
from cpq.storage.schema.retrieval import (
    past_line,
    past_quote,
    search_change,
    search_corpus,
    search_vector,
    web_alias,
    web_page,
    web_passage,
)

__all__ = [
    "account",
    "approval",
    "approval_vote",
    "audit_entry",
    "audit_head",
    "catalog_revision",
    "catalog_word",
    "category",
    "console_session",
    "delegation",
    "document",
    "event",
    "event_delivery",
    "held_decision",
    "idempotency",
    "past_line",
    "past_quote",
    "policy_set",
    "price",
    "price_book",
    "principal",
    "product",
    "product_relation",
    "product_spec",
    "quote",
    "quote_counter",
    "quote_line",
    "quote_pricing",
    "quote_version",
    "search_change",
    "search_corpus",
    "search_vector",
    "sign_in_link",
    "token",
    "web_alias",
    "web_page",
    "web_passage",
]
