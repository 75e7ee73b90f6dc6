"""Tables of calls: tenants, callers, tokens, sessions, keys, shares, policies in use, audit, events, deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint

from cpq.storage.columns import Day, Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, partial_index, table, text, texts, waiting, whole

TENANT_STATES = ("active", "suspended")

tenant = table(
    "tenant",
    text("name"),
    text("state"),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id"),
    one_of("state", *TENANT_STATES),
)
"""Each tenant but `main`, which is there without a row: it is the one of the installation, and never closed."""

principal = table(
    "principal",
    text("name"),
    text("kind"),
    Column("created_at", Timestamp, nullable=False),
    text("person", nullable=True),
    PrimaryKeyConstraint("tenant_id", "name"),
    one_of("kind", "agent", "human"),
)
"""`person` is whose other name this is: an e-mail address, or a subject of the company's provider."""

token = table(
    "token",
    text("id"),
    text("principal_name"),
    text("role"),
    text("secret_hash"),
    text("owner", nullable=True),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=True),
    Column("revoked_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "principal_name"], ["principal.tenant_id", "principal.name"]),
)

sign_in_link = table(
    "sign_in_link",
    text("code_hash"),
    text("principal_name"),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    Column("used_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "code_hash"),
    ForeignKeyConstraint(["tenant_id", "principal_name"], ["principal.tenant_id", "principal.name"]),
)
"""A single-use link that signs a person in to the console. Only a hash of its code is stored."""

console_session = table(
    "console_session",
    text("secret_hash"),
    text("principal_name"),
    Column("created_at", Timestamp, nullable=False),
    Column("seen_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "secret_hash"),
    ForeignKeyConstraint(["tenant_id", "principal_name"], ["principal.tenant_id", "principal.name"]),
)
"""A console session. Signing out deletes the row; rights are looked up at every request."""

idempotency = table(
    "idempotency",
    text("caller"),
    text("operation"),
    text("key"),
    Column("request_hashes", Json, nullable=False),
    Column("answer", Json, nullable=True),
    text("trace_id"),
    Column("created_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "caller", "operation", "key"),
    Index(None, "tenant_id", "expires_at"),
)

caller_bytes = table(
    "caller_bytes",
    text("caller"),
    Column("day", Day, nullable=False),
    whole("bytes"),
    PrimaryKeyConstraint("tenant_id", "caller"),
)
"""How much each caller stored on the last day on which it stored something."""

call_pace = table(
    "call_pace",
    text("caller"),
    text("kind"),
    whole("full_until"),
    PrimaryKeyConstraint("tenant_id", "caller", "kind"),
)
"""Until when the calls of each caller so far fill its limit, in microseconds since 1970, for all servers together."""

hidden_verdict = table(
    "hidden_verdict",
    text("caller"),
    text("quote_id"),
    Column("day", Day, nullable=False),
    text("outcome"),
    whole("changes"),
    PrimaryKeyConstraint("tenant_id", "caller", "quote_id"),
)
"""The last outcome of hidden policies that a caller drew, of a quote or, with an empty id, of any, and how often it has
changed on that day. No row: it did not change, and nobody is asked."""

policy_set = table(
    "policy_set",
    text("content_hash"),
    text("files"),
    Column("used_at", Timestamp, nullable=False),
    Column("adopted_at", Timestamp, nullable=True),
    text("adopted_by", nullable=True),
    PrimaryKeyConstraint("tenant_id", "content_hash"),
    sa.CheckConstraint("(adopted_at IS NULL) = (adopted_by IS NULL)", name="adopted_whole"),
)
"""The files of a set of policies as JSON. `used_at`: when a server last began to use it; the last adopted one is in
force where people adopt policies."""

audit_entry = table(
    "audit_entry",
    text("id"),
    Column("at", Timestamp, nullable=False),
    *texts("caller", "operation", "arguments_hash", "outcome"),
    text("subject", nullable=True),
    text("trace_id"),
    whole("seq", nullable=True),
    text("hash", nullable=True),
    *texts("state", "answer", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "seq"),
    sa.CheckConstraint("(seq IS NULL) = (hash IS NULL)", name="sealed_whole"),
    partial_index("ix_audit_entry_unsealed", "tenant_id", "at", where="seq IS NULL"),
    partial_index("ix_audit_entry_subject", "tenant_id", "subject", where="subject IS NOT NULL"),
    partial_index("ix_audit_entry_state", "tenant_id", "subject", "at", where="state IS NOT NULL"),
)
"""`state` has digests of the rows that a change led to, `answer` the digest of the answer stored under its key."""

audit_head = table(
    "audit_head",
    whole("seq"),
    text("hash"),
    PrimaryKeyConstraint("tenant_id"),
)

event = table(
    "event",
    text("id"),
    text("name"),
    text("subject"),
    whole("number"),
    Column("body", Json, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "subject", "number"),
)
"""Events, written with the change itself. The events of a subject are numbered from 1 in order."""

DELIVERY_STATUSES = ("waiting", "delivered", "failed")

event_delivery = table(
    "event_delivery",
    text("event_id"),
    text("webhook"),
    text("subject"),
    whole("number"),
    text("status"),
    whole("attempts"),
    Column("due_at", Timestamp, nullable=False),
    text("claim", nullable=True),
    text("answer", nullable=True),
    Column("attempted_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "event_id", "webhook"),
    belongs_to("event", "event_id"),
    one_of("status", *DELIVERY_STATUSES),
    sa.CheckConstraint("claim IS NULL OR status = 'waiting'", name="only_waiting_claimed"),
    waiting("ix_event_delivery_due", "tenant_id", "webhook", "due_at"),
    waiting("ix_event_delivery_order", "tenant_id", "webhook", "subject", "number"),
)
"""One event for one webhook. A claim for delivery sets `claim` to its mark and `due_at` to its end."""
