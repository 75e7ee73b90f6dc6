"""PURE. The number of a quote for people: its year, and its place among the quotes of that year."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[0-9]{4}-[0-9]{6,12}")


def written(year: int, place: int) -> str:
    """`2026-000123`; a year with more than 999,999 quotes has longer numbers."""
    return f"{year:04}-{place:06}"


def is_number(text: str) -> bool:
    """Whether the text has the form of a number; an imported quote may have such a text as its id."""
    return _NUMBER.fullmatch(text) is not None
