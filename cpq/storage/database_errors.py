"""Classifies database failures: transient, taken key, too slow, missing table, a fault that the operator ends."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

_LOST_RACE = {"40001", "40P01", "55P03"}
_STOPPED_OR_STARTING = {"57P01", "57P02", "57P03", "53300"}
"""A server that shuts down or starts, or whose places are all taken, for example by sessions of one that was killed."""


def is_transient(error: BaseException) -> bool:
    """True when the whole transaction may succeed if it is run again."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if getattr(error.orig, "sqlstate", None) in _LOST_RACE or is_server_lost(error):
        return True
    is_busy = "locked" in str(error.orig) or "busy" in str(error.orig)
    return is_busy and isinstance(error, sa.exc.OperationalError)


def is_server_lost(error: sa.exc.DBAPIError) -> bool:
    """True when the connection or its server is gone: the transaction has not failed, it had nobody to talk to."""
    if sqlstate := getattr(error.orig, "sqlstate", None):
        return sqlstate in _STOPPED_OR_STARTING or sqlstate.startswith("08")
    return error.connection_invalidated or "connection" in str(error.orig).lower()


def is_taken(error: sa.exc.DBAPIError) -> bool:
    """True when another call has just stored something under the same key."""
    return getattr(error.orig, "sqlstate", None) == "23505" or "UNIQUE constraint failed" in str(error.orig)


def is_too_slow(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "57014"


def is_missing_table(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig)


@dataclass(frozen=True)
class StorageFault:
    """A fault of the disk, the file or the server: no call causes it, and only the operator ends it."""

    message: str
    to_do: str
    words: tuple[str, ...]
    """SQLite's words for it."""
    sqlstates: tuple[str, ...]
    is_damage: bool = False
    """Pages are damaged: the rest of the database should be looked at."""
    is_of_connection: bool = False
    """A connection that was opened meanwhile has it until it is closed; a new one shows whether it is over."""


_FAULTS = (
    StorageFault(
        "The database has no room left.", "frees space on its disk", words=("disk is full",), sqlstates=("53100",)
    ),
    StorageFault(
        "The database can be read, but not written.",
        "makes the database writable: the file and its folder, or the server if it is a standby",
        words=("readonly database",),
        sqlstates=("25006",),
        is_of_connection=True,
    ),
    StorageFault(
        "The database cannot be opened.",
        "makes its file and folder readable and writable for the server",
        words=("unable to open database file",),
        sqlstates=("58030",),
    ),
    StorageFault(
        "A part of the database is damaged or cannot be read.",
        "runs `cpq doctor`, then `cpq repair`; what these cannot mend comes from a backup",
        words=("malformed", "not a database", "disk I/O error", "fts5: corrupt"),
        sqlstates=("XX001", "XX002"),
        is_damage=True,
    ),
)


def storage_fault(error: BaseException) -> StorageFault | None:
    if not isinstance(error, sa.exc.DBAPIError):
        return None
    if sqlstate := getattr(error.orig, "sqlstate", None):
        return next((fault for fault in _FAULTS if sqlstate in fault.sqlstates), None)
    text = str(error.orig)
    return next((fault for fault in _FAULTS if any(words in text for words in fault.words)), None)
