"""Tables of approvals: requests, votes, decisions that can still be undone, and delegations."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKeyConstraint, Index, PrimaryKeyConstraint

from cpq.domain.approvals.approval_request import RequestStatus
from cpq.storage.columns import Json, Timestamp
from cpq.storage.schema.table_parts import belongs_to, one_of, partial_index, table, text, whole

approval = table(
    "approval",
    text("id"),
    text("quote_id"),
    whole("version"),
    text("role"),
    text("status"),
    text("reason", nullable=True),
    text("fingerprint"),
    whole("total"),
    text("policy_hash"),
    Column("chains", Json, nullable=False),
    Column("grounds", Json, nullable=False),
    Column("reasons", Json, nullable=False),
    text("quorum"),
    text("justification"),
    text("requested_by"),
    Column("requested_at", Timestamp, nullable=False),
    Column("expires_at", Timestamp, nullable=False),
    text("escalates_to", nullable=True),
    Column("escalates_at", Timestamp, nullable=True),
    Column("escalated_at", Timestamp, nullable=True),
    Column("holds_until", Timestamp, nullable=False),
    text("kept_from", nullable=True),
    text("decided_by", nullable=True),
    Column("decided_at", Timestamp, nullable=True),
    text("comment", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(
        ["tenant_id", "quote_id", "version"],
        ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
    ),
    one_of("status", *RequestStatus),
    sa.CheckConstraint("(kept_from IS NULL) = (status <> 'kept')", name="kept_from_an_approval"),
    sa.CheckConstraint("status NOT IN ('approved', 'rejected') OR decided_by IS NOT NULL", name="decided_by_somebody"),
    Index(None, "tenant_id", "quote_id", "version"),
    partial_index(
        "uq_approval_one_pending", "tenant_id", "quote_id", "version", "role", where="status = 'pending'", unique=True
    ),
    partial_index("ix_approval_pending", "tenant_id", "requested_at", where="status = 'pending'"),
)
"""A request for a role's approval of one version of a quote: the price it is bound to, its facts and its outcome."""

approval_vote = table(
    "approval_vote",
    text("approval_id"),
    text("caller"),
    text("acted_as"),
    text("holder"),
    text("decision"),
    text("comment", nullable=True),
    Column("at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "approval_id", "caller"),
    belongs_to("approval", "approval_id"),
    one_of("decision", "approve", "reject"),
    Index("uq_approval_vote_holder", "tenant_id", "approval_id", "holder", unique=True),
)
"""The votes: who decided what, and for which holder of the role. A quorum counts each holder once."""

held_decision = table(
    "held_decision",
    text("id"),
    text("approval_id"),
    text("quote_id"),
    text("caller"),
    text("decision"),
    text("fingerprint"),
    text("comment", nullable=True),
    Column("made_at", Timestamp, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    text("state"),
    text("reason", nullable=True),
    Column("ended_at", Timestamp, nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    belongs_to("approval", "approval_id"),
    one_of("decision", "approve", "reject"),
    one_of("state", "held", "taken", "undone", "failed"),
    partial_index(
        "uq_held_decision_one_held", "tenant_id", "approval_id", "caller", where="state = 'held'", unique=True
    ),
    partial_index("ix_held_decision_due", "tenant_id", "due_at", where="state = 'held'"),
    Index(None, "tenant_id", "caller", "made_at"),
)
"""A decision that a person confirmed and can still undo; nothing is decided before `due_at`."""

delegation = table(
    "delegation",
    text("id"),
    text("role"),
    text("from_name"),
    text("to_name"),
    Column("starts_at", Timestamp, nullable=False),
    Column("ends_at", Timestamp, nullable=False),
    text("account_id", nullable=True),
    text("quote_id", nullable=True),
    Column("created_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "from_name"], ["principal.tenant_id", "principal.name"]),
    ForeignKeyConstraint(["tenant_id", "to_name"], ["principal.tenant_id", "principal.name"]),
    belongs_to("account", "account_id"),
    belongs_to("quote", "quote_id"),
    sa.CheckConstraint("starts_at < ends_at", name="ends_after_it_starts"),
    sa.CheckConstraint("from_name <> to_name", name="not_to_oneself"),
    Index(None, "tenant_id", "to_name", "ends_at"),
)
"""A role delegated to a person for a period: for all quotes, for those of one account, or for one quote."""
