"""The kinds of argument a tool may take: each reads what sloppy clients send, and refuses what could be misread."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cpq.errors import CpqError, bad_field
from cpq.search.ranking import QUERY_LENGTH_MAX
from cpq.text import clean, clean_identifier

LIMIT_DEFAULT = 20
LIMIT_MAX = 100
PAGE_MAX = 1_000_000_000
DEPTH_MAX = 32
WHOLE_MAX = 2**53
NUMBER_BITS_MAX = 4096


def _identifier(value: object) -> object:
    return clean_identifier(value) if isinstance(value, str) else value


def _text(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


def _whole(value: object) -> object:
    """A whole number; also `"20"` and `20.0`. Never a boolean, which Python would count as 1."""
    if isinstance(value, bool):
        raise ValueError("is a boolean, not a whole number")
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str | float | Decimal):
        raise ValueError("is not a whole number")
    return value


def _flag(value: object) -> object:
    """True or false; also `"true"`. Never 1 or "yes", which could mean anything."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


_WHOLE = re.compile(r"[+-]?[0-9]{1,16}")

# Bounds stand before the reader, so that they appear in the JSON schema under their own names.
Identifier = Annotated[str, Field(min_length=1, max_length=128), BeforeValidator(_identifier)]
SearchText = Annotated[Annotated[str, Field(max_length=QUERY_LENGTH_MAX)] | None, BeforeValidator(_text)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Limit = Annotated[
    int,
    Field(ge=1, le=WHOLE_MAX, description=f"Results per page, at most {LIMIT_MAX}; more is cut to that."),
    BeforeValidator(_whole),
]
Page = Annotated[int, Field(ge=1, le=PAGE_MAX, description="Which page, counted from 1."), BeforeValidator(_whole)]
Ignored = Any
"""Accepted whatever it is, and not looked at."""


def capped(limit: int) -> int:
    """The limit that is kept: a larger one is cut, not refused."""
    return min(limit, LIMIT_MAX)


def require_shallow(arguments: object) -> None:
    """Refuse nesting and numbers that no tool has a use for, before anything walks the one or writes the other."""
    level = [arguments]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for part in level
            if isinstance(part, dict | list)
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        if any(type(item) is int and item.bit_length() > NUMBER_BITS_MAX for item in level):
            raise bad_field("", "A number among the arguments has too many digits.", maximum=WHOLE_MAX)
        if not level:
            return
    raise too_deep()


def too_deep() -> CpqError:
    return bad_field("", f"The arguments are nested more than {DEPTH_MAX} levels deep.", maximum=DEPTH_MAX)
