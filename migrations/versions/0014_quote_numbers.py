"""Numbers of quotes for people, by year and in the order in which they were made; the owners of agents and quotes"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_PLACES = """SELECT tenant_id, id, {year} AS year,
    row_number() OVER (PARTITION BY tenant_id, {year} ORDER BY created_at, {id}) AS place FROM quote"""
_NUMBER_QUOTES = """UPDATE quote SET number = year || '-' || {padded} FROM ({places}) AS numbered
    WHERE numbered.tenant_id = quote.tenant_id AND numbered.id = quote.id"""
_COUNT_QUOTES = """INSERT INTO quote_counter (tenant_id, year, last)
    SELECT tenant_id, CAST(year AS INTEGER), max(place) FROM ({places}) AS numbered GROUP BY tenant_id, year"""
_WORDS = {
    "sqlite": {"year": "substr(created_at, 1, 4)", "id": "id", "padded": "printf('%06d', place)"},
    "postgresql": {
        "year": "to_char(created_at AT TIME ZONE 'UTC', 'YYYY')",
        "id": 'id COLLATE "C"',
        "padded": "lpad(CAST(place AS text), greatest(6, length(CAST(place AS text))), '0')",
    },
}


def upgrade() -> None:
    op.create_table(
        "quote_counter",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("year", _WHOLE, nullable=False),
        sa.Column("last", _WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "year", name=op.f("pk_quote_counter")),
        sqlite_strict=True,
    )
    op.add_column("quote", sa.Column("number", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("quote", sa.Column("owner", sa.Text(), nullable=True))
    op.add_column("token", sa.Column("owner", sa.Text(), nullable=True))
    _number_quotes(op.get_bind().dialect.name)
    op.create_index("uq_quote_number", "quote", ["tenant_id", "number"], unique=True)
    op.create_index(op.f("ix_quote_tenant_id_owner_created_at"), "quote", ["tenant_id", "owner", "created_at"])


def _number_quotes(dialect: str) -> None:
    """Older quotes get numbers in the order in which they were made; a quote that a person made is theirs."""
    words = _WORDS[dialect]
    places = _PLACES.format(**words)
    for statement in (_NUMBER_QUOTES, _COUNT_QUOTES):
        op.execute(sa.text(statement.format(places=places, **words)))
    op.execute(sa.text("UPDATE quote SET owner = substr(created_by, 7) WHERE created_by LIKE 'human:%'"))


def downgrade() -> None:
    op.drop_index(op.f("ix_quote_tenant_id_owner_created_at"), "quote")
    op.drop_index("uq_quote_number", "quote")
    op.drop_column("token", "owner")
    op.drop_column("quote", "owner")
    op.drop_column("quote", "number")
    op.drop_table("quote_counter")
