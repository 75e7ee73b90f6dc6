"""Minimal explanations that depend on the question alone: the conflict of the earliest items, and what can stay."""

from __future__ import annotations

from collections.abc import Sequence

from cpq.domain.configuration.solver.kernel import Kernel


def minimal_conflict(kernel: Kernel, fixed: Sequence[int], items: Sequence[int]) -> list[int]:
    """The items without which nothing is wrong: with `fixed` they do not hold together, and each of them is needed.

    The items and `fixed` together must not hold. Of several conflicts the one with the earliest last item is taken, of
    those the one with the earliest last but one, and so on, which is the one that QuickXplain finds (Junker 2004). No
    core of the solver changes that: a core only says that nothing after its last item is needed.
    """
    places = {item: place for place, item in enumerate(items)}
    found: list[int] = []

    def core_of(count: int) -> list[int] | None:
        """The places of the first `count` items that alone do not hold with what is found; None when all hold."""
        if kernel.is_satisfiable([*fixed, *found, *items[:count]]):
            return None
        return sorted(places[literal] for literal in {*kernel.core()} & places.keys() - {*found})

    core = core_of(len(items))
    assert core is not None, "the items do not hold together"
    while core:
        holding, asked = -1, core[-1]
        while core and holding < core[-1]:
            smaller = core_of(asked)
            if smaller is None:
                holding, asked = asked, core[-1]
            else:
                core = smaller
                asked = (holding + 1 + core[-1]) // 2 if core else 0
        found += [items[place] for place in core[-1:]]
        core = core[:-1]
    return found[::-1]


def kept_in_order(kernel: Kernel, fixed: Sequence[int], items: Sequence[int]) -> list[int]:
    """The items that can be kept when each is kept that holds with `fixed` and the items kept before it."""
    kept = list(fixed)
    _keep(kernel, kept, list(items))
    return kept[len(fixed) :]


def _keep(kernel: Kernel, kept: list[int], items: list[int]) -> None:
    """Whole halves are tried first: most items can be kept."""
    if not items:
        return
    if kernel.is_satisfiable(kept + items):
        kept += items
    elif len(items) > 1:
        half = len(items) // 2
        _keep(kernel, kept, items[:half])
        _keep(kernel, kept, items[half:])
