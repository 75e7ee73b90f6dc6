"""Events: what happened, and its way to each webhook"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cpq.storage import columns

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "event",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("number", _WHOLE, nullable=False),
        sa.Column("body", columns.Json(), nullable=False),
        sa.Column("created_at", columns.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_event")),
        sa.UniqueConstraint("tenant_id", "subject", "number", name=op.f("uq_event_tenant_id_subject_number")),
        sqlite_strict=True,
    )
    op.create_table(
        "event_delivery",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("number", _WHOLE, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", _WHOLE, nullable=False),
        sa.Column("due_at", columns.Timestamp(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("attempted_at", columns.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "event_id", "webhook", name=op.f("pk_event_delivery")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "event_id"],
            ["event.tenant_id", "event.id"],
            name=op.f("fk_event_delivery_tenant_id_event_id"),
        ),
        sa.CheckConstraint("status IN ('waiting', 'delivered', 'failed')", name=op.f("ck_event_delivery_status_known")),
        sa.CheckConstraint("claim IS NULL OR status = 'waiting'", name=op.f("ck_event_delivery_only_waiting_claimed")),
        sqlite_strict=True,
    )
    _index("ix_event_delivery_due", ["tenant_id", "webhook", "due_at"])
    _index("ix_event_delivery_order", ["tenant_id", "webhook", "subject", "number"])


def downgrade() -> None:
    op.drop_table("event_delivery")
    op.drop_table("event")


def _index(name: str, columns: list[str]) -> None:
    waiting = sa.text("status = 'waiting'")
    op.create_index(name, "event_delivery", columns, sqlite_where=waiting, postgresql_where=waiting)
