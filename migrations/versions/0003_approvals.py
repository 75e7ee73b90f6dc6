"""Approvals: what is asked of each role, who said what, and roles lent for a while"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_PENDING = sa.text("status = 'pending'")


def upgrade() -> None:
    op.create_table(
        "approval",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("version", _WHOLE, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("total", _WHOLE, nullable=False),
        sa.Column("policy_hash", sa.Text(), nullable=False),
        sa.Column("chains", columns.Json(), nullable=False),
        sa.Column("grounds", columns.Json(), nullable=False),
        sa.Column("quorum", sa.Text(), nullable=False),
        sa.Column("justification", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("requested_at", columns.Timestamp(), nullable=False),
        sa.Column("expires_at", columns.Timestamp(), nullable=False),
        sa.Column("escalates_to", sa.Text(), nullable=True),
        sa.Column("escalates_at", columns.Timestamp(), nullable=True),
        sa.Column("escalated_at", columns.Timestamp(), nullable=True),
        sa.Column("holds_until", columns.Timestamp(), nullable=False),
        sa.Column("kept_from", sa.Text(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", columns.Timestamp(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_approval")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id", "version"],
            ["quote_version.tenant_id", "quote_version.quote_id", "quote_version.version"],
            name=op.f("fk_approval_tenant_id_quote_id_version"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'kept', 'rejected', 'withdrawn', 'expired')",
            name=op.f("ck_approval_status_known"),
        ),
        sa.CheckConstraint("(kept_from IS NULL) = (status <> 'kept')", name=op.f("ck_approval_kept_from_an_approval")),
        sa.CheckConstraint(
            "status NOT IN ('approved', 'rejected') OR decided_by IS NOT NULL",
            name=op.f("ck_approval_decided_by_somebody"),
        ),
        sqlite_strict=True,
    )
    op.create_index("ix_approval_tenant_id_quote_id_version", "approval", ["tenant_id", "quote_id", "version"])
    op.create_index(
        "uq_approval_one_pending",
        "approval",
        ["tenant_id", "quote_id", "version", "role"],
        unique=True,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    )
    op.create_index(
        "ix_approval_pending",
        "approval",
        ["tenant_id", "requested_at"],
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    )

    op.create_table(
        "approval_vote",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("acted_as", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "approval_id", "caller", name=op.f("pk_approval_vote")),
        _belongs_to("approval_vote", "approval", "approval_id"),
        sa.CheckConstraint("decision IN ('approve', 'reject')", name=op.f("ck_approval_vote_decision_known")),
        sqlite_strict=True,
    )

    op.create_table(
        "delegation",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("from_name", sa.Text(), nullable=False),
        sa.Column("to_name", sa.Text(), nullable=False),
        sa.Column("starts_at", columns.Timestamp(), nullable=False),
        sa.Column("ends_at", columns.Timestamp(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=True),
        sa.Column("quote_id", sa.Text(), nullable=True),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_delegation")),
        _belongs_to("delegation", "principal", "from_name", "name"),
        _belongs_to("delegation", "principal", "to_name", "name"),
        _belongs_to("delegation", "account", "account_id"),
        _belongs_to("delegation", "quote", "quote_id"),
        sa.CheckConstraint("starts_at < ends_at", name=op.f("ck_delegation_ends_after_it_starts")),
        sa.CheckConstraint("from_name <> to_name", name=op.f("ck_delegation_not_to_oneself")),
        sqlite_strict=True,
    )
    op.create_index("ix_delegation_tenant_id_to_name_ends_at", "delegation", ["tenant_id", "to_name", "ends_at"])


def downgrade() -> None:
    op.drop_table("delegation")
    op.drop_table("approval_vote")
    op.drop_table("approval")


def _belongs_to(table: str, other: str, column: str, key: str = "id") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", column],
        [f"{other}.tenant_id", f"{other}.{key}"],
        name=op.f(f"fk_{table}_tenant_id_{column}"),
    )
