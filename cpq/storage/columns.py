"""Column types, stored exactly and in the same way on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from cpq.base.money import from_micro, to_micro
from cpq.base.state_digest import iso_text
from cpq.base.text import canonical_json, read_json


def _if_any(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A writer of column values that passes None through, without SQLAlchemy's layers around it."""
    return lambda value: None if value is None else write(value)


class Timestamp(TypeDecorator[datetime]):
    """Aware UTC. On SQLite: ISO text of fixed width, so that text order is time order."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.DateTime(timezone=True))

    def bind_processor(self, dialect: Dialect) -> Any:
        return _if_any(iso_text) if dialect.name == "sqlite" else None

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return datetime.fromisoformat(value) if dialect.name == "sqlite" else value.astimezone(UTC)


class Day(TypeDecorator[date]):
    """A date without time; ISO text on SQLite."""

    impl = sa.Date
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.Date())

    def bind_processor(self, dialect: Dialect) -> Any:
        return _if_any(date.isoformat) if dialect.name == "sqlite" else None

    def process_result_value(self, value: Any, dialect: Dialect) -> date | None:
        return date.fromisoformat(value) if isinstance(value, str) else value


class Amount(TypeDecorator[Decimal]):
    """An exact decimal as whole millionths: sortable and summable on both databases."""

    impl = sa.BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(sa.Integer() if dialect.name == "sqlite" else sa.BigInteger())

    def bind_processor(self, dialect: Dialect) -> Any:
        return _if_any(to_micro)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else from_micro(value)


class Json(TypeDecorator[Any]):
    """An opaque payload in canonical form; decimals stay exact."""

    impl = sa.Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        # SQLite's driver is slower with subclasses of `str`.
        return _if_any(lambda value: str(value) if isinstance(value, JsonText) else canonical_json(value))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value == "{}":
            return {}
        if value == "[]":
            return []
        return None if value is None else read_json(value)


class JsonText(str):
    """A payload that is already canonical JSON; it is stored unchanged."""

    __slots__ = ()


class Flag(TypeDecorator[bool]):
    """True or false; on SQLite 1 or 0, because its strict tables have no boolean."""

    impl = sa.Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(sa.Integer() if dialect.name == "sqlite" else sa.Boolean())

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)


def as_stored(dialect: str, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """A column without the work of reading it: texts as text, so that one row has one digest."""
    is_sqlite = dialect == "sqlite"
    if isinstance(column.type, Json) or (is_sqlite and isinstance(column.type, Timestamp | Day)):
        return sa.type_coerce(column, sa.Text)
    if isinstance(column.type, Timestamp):
        return sa.type_coerce(column, sa.DateTime(timezone=True))
    if isinstance(column.type, Amount) or (is_sqlite and isinstance(column.type, Flag)):
        return sa.type_coerce(column, sa.BigInteger)
    return column
