"""One attack that was tried on the product, and one promise that it keeps."""

from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    tried: str
    now: str
    tests: tuple[str, ...]


def attack(tried: str, now: str, *tests: str) -> Attack:
    """What was tried, what happens now, and the names of the tests that hold it so."""
    return Attack(tried, now, tests)


class Promise(NamedTuple):
    promised: str
    tests: tuple[str, ...]


def promise(promised: str, *tests: str) -> Promise:
    """What is promised, and the names of the tests that show it; `bench NAME` is a part of the bench."""
    return Promise(promised, tests)
