"""Minimal explanations that depend on the question alone: QuickXplain, and the largest part that still holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Holds = Callable[[list[int]], bool]
"""Whether literals hold together."""


def minimal_conflict(holds: Holds, fixed: Sequence[int], items: Sequence[int]) -> list[int]:
    """The items without which nothing is wrong: with `fixed` they do not hold together, and each of them is needed.

    The items and `fixed` together must not hold. Of several conflicts the one of earlier items is taken (Junker 2004).
    """
    if not holds(list(fixed)):
        return []
    return _conflict(holds, list(fixed), [], list(items))


def _conflict(holds: Holds, known: list[int], added: list[int], items: list[int]) -> list[int]:
    if added and not holds(known):
        return []
    if len(items) <= 1:
        return items
    half = len(items) // 2
    first, second = items[:half], items[half:]
    of_second = _conflict(holds, known + first, first, second)
    of_first = _conflict(holds, known + of_second, of_second, first)
    return of_first + of_second


def kept_in_order(holds: Holds, fixed: Sequence[int], items: Sequence[int]) -> list[int]:
    """The items that can be kept when each is kept that holds with `fixed` and the items kept before it."""
    kept = list(fixed)
    _keep(holds, kept, list(items))
    return kept[len(fixed) :]


def _keep(holds: Holds, kept: list[int], items: list[int]) -> None:
    """Whole halves are tried first: most items can be kept."""
    if not items:
        return
    if holds(kept + items):
        kept += items
    elif len(items) > 1:
        half = len(items) // 2
        _keep(holds, kept, items[:half])
        _keep(holds, kept, items[half:])
