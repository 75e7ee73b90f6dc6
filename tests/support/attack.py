"""One attack that was tried on the product."""

from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    tried: str
    now: str
    tests: tuple[str, ...]


def attack(tried: str, now: str, *tests: str) -> Attack:
    """What was tried, what happens now, and the names of the tests that hold it so."""
    return Attack(tried, now, tests)
