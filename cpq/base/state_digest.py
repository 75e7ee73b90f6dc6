"""Digests of stored rows: one spelling of a row on every database, whether it was just written or read back."""

from __future__ import annotations

import hashlib
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from cpq.base.text import canonical_json

_AS_STORED = frozenset({str, int})
_BYTES = 24
"""192 bits of SHA-256: as hard to hit as needed, in 32 characters."""


def row_digest(row: Sequence[object]) -> str:
    """The digest of one row, its values in the order of the columns.

    Columns at the end without a value do not count, so that a new column leaves the digests of old rows as they are.
    """
    return _digest(_ENCODER.encode(_spelled(row)))


def row_number(row: Sequence[object]) -> int:
    """The digest of one row as a number, for the sum of a set of rows."""
    return int.from_bytes(hashlib.sha256(_ENCODER.encode(_spelled(row))).digest()[:_BYTES])


def rows_digest(rows: Iterable[Sequence[object]]) -> str:
    """The digest of several rows in their order."""
    return _digest(_ENCODER.encode([_spelled(row) for row in rows]))


@lru_cache(maxsize=256)
def iso_text(moment: datetime) -> str:
    """A moment as text of fixed width; cached, because all rows of one transaction carry the same moment."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def _spelled(row: Sequence[object]) -> list[object]:
    values: list[object] = [*row]
    last = -1
    for place, value in enumerate(values):
        if value is None:
            continue
        last = place
        if (kind := type(value)) not in _AS_STORED:
            values[place] = _WRITERS.get(kind, _stored)(value)
    del values[last + 1 :]
    return values


def _stored(value: object) -> object:
    """A value of a kind that is met for the first time: an enum, a text or a number of a special kind, or JSON."""
    kind = type(value)
    if issubclass(kind, Enum):
        _WRITERS[kind] = attrgetter("value")
    else:
        _WRITERS[kind] = next((plain for plain in (str, int) if issubclass(kind, plain)), canonical_json)
    return _WRITERS[kind](value)


_WRITERS: dict[type, Callable[[Any], object]] = {datetime: iso_text, date: date.isoformat}


def _digest(written: bytes) -> str:
    return b2a_base64(hashlib.sha256(written).digest()[:_BYTES], newline=False).translate(_FOR_NAMES).decode()


_FOR_NAMES = bytes.maketrans(b"+/", b"-_")


# Every text has its length before it, so that no text can run into the next one.
_ENCODER = msgspec.msgpack.Encoder()
