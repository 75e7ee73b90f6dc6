"""Classifies database failures: transient, taken key, too slow, missing table, full storage."""

from __future__ import annotations

import sqlalchemy as sa

_RETRY_SQLSTATES = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03"}


def is_transient(error: BaseException) -> bool:
    """True when the whole transaction may succeed if it is run again."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate:
        return sqlstate in _RETRY_SQLSTATES or sqlstate.startswith("08")
    if "locked" in str(error.orig) or "busy" in str(error.orig):
        return isinstance(error, sa.exc.OperationalError)
    return error.connection_invalidated or "connection" in str(error.orig).lower()


def is_taken(error: sa.exc.DBAPIError) -> bool:
    """True when another call has just stored something under the same key."""
    return getattr(error.orig, "sqlstate", None) == "23505" or "UNIQUE constraint failed" in str(error.orig)


def is_too_slow(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "57014"


def is_missing_table(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig)


def is_storage_full(error: BaseException) -> bool:
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    return getattr(error.orig, "sqlstate", None) == "53100" or "disk is full" in str(error.orig)
