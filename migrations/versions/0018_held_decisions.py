"""Decisions that were confirmed and can still be undone"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_HELD = sa.text("state = 'held'")


def upgrade() -> None:
    op.create_table(
        "held_decision",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("made_at", columns.Timestamp(), nullable=False),
        sa.Column("due_at", columns.Timestamp(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ended_at", columns.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_held_decision")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "approval_id"],
            ["approval.tenant_id", "approval.id"],
            name=op.f("fk_held_decision_tenant_id_approval_id"),
        ),
        sa.CheckConstraint("decision IN ('approve', 'reject')", name=op.f("ck_held_decision_decision_known")),
        sa.CheckConstraint("state IN ('held', 'taken', 'undone', 'failed')", name=op.f("ck_held_decision_state_known")),
        sqlite_strict=True,
    )
    only = {"sqlite_where": _HELD, "postgresql_where": _HELD}
    one = ["tenant_id", "approval_id", "caller"]
    op.create_index("uq_held_decision_one_held", "held_decision", one, unique=True, **only)
    op.create_index("ix_held_decision_due", "held_decision", ["tenant_id", "due_at"], **only)
    mine = ["tenant_id", "caller", "made_at"]
    op.create_index(op.f("ix_held_decision_tenant_id_caller_made_at"), "held_decision", mine)


def downgrade() -> None:
    op.drop_table("held_decision")
