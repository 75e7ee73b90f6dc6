"""Billing periods of any number of weeks, months or years: the code knows the words, not the table"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

FOUR_WORDS = "billing_period IN ('one_time', 'monthly', 'quarterly', 'yearly')"
ANY_WORD = "billing_period <> ''"


def upgrade() -> None:
    _check_instead(FOUR_WORDS, ANY_WORD)


def downgrade() -> None:
    op.execute("DELETE FROM price WHERE billing_period NOT IN ('one_time', 'monthly', 'quarterly', 'yearly')")
    _check_instead(ANY_WORD, FOUR_WORDS)


def _check_instead(old: str, new: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _copy_with_check(old, new)
        return
    op.drop_constraint(op.f("ck_price_billing_period_known"), "price", type_="check")
    op.create_check_constraint(op.f("ck_price_billing_period_known"), "price", new)


def _copy_with_check(old: str, new: str) -> None:
    """SQLite changes no constraint of a table, so a table like it takes the rows; it has all columns of this one."""
    connection = op.get_bind()
    parts = connection.execute(
        sa.text("SELECT type, sql FROM sqlite_master WHERE tbl_name = 'price' AND sql IS NOT NULL")
    ).all()
    (table,) = [sql for type_, sql in parts if type_ == "table"]
    assert table.count(old) == 1
    op.execute(sa.text("ALTER TABLE price RENAME TO price_before"))
    connection.exec_driver_sql(table.replace(old, new))
    op.execute("INSERT INTO price SELECT * FROM price_before")
    op.execute("DROP TABLE price_before")
    for sql in [sql for type_, sql in parts if type_ != "table"]:
        connection.exec_driver_sql(sql)
