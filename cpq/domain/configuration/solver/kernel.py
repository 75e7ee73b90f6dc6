"""The one file that knows the SAT solver: a formula under assumptions, with a limit on the work.

A kernel lives for one question, so no answer and no limit depends on what was asked before. pysat is imported when the
first kernel is made: a process that only checks complete configurations never loads it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cpq.base.late_modules import LateModule

_solvers = LateModule("pysat.solvers")

GLUCOSE = "glucose4"

LIGHT_MAX = 100_000
"""Up to this number of clauses a propagation counts once, up to twice the number twice: it takes as much longer."""


class OutOfEffortError(Exception):
    """The work that a question may take is used up; what is known so far stands."""


class Effort:
    """The work that one question may still take: conflicts, and propagated literals, which stand for time."""

    def __init__(self, conflicts: int, propagations: int) -> None:
        self.conflicts = conflicts
        self.propagations = propagations

    @property
    def is_spent(self) -> bool:
        return self.conflicts <= 0 or self.propagations <= 0

    def spend(self, *, conflicts: int = 0, propagations: int = 0) -> None:
        self.conflicts -= conflicts
        self.propagations -= propagations
        if self.is_spent:
            raise OutOfEffortError


class Kernel:
    """Clauses in a solver. Use it as a context: the solver's memory is not Python's."""

    def __init__(self, clauses: Collection[Sequence[int]], effort: Effort, engine: str = GLUCOSE) -> None:
        self._effort = effort
        self._weight = 1 + len(clauses) // LIGHT_MAX
        self._solver: Any = _solvers.Solver(name=engine, bootstrap_with=clauses)
        self._seen = (0, 0)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._solver.delete()

    def is_satisfiable(self, assumptions: Sequence[int] = ()) -> bool:
        """Whether the clauses hold together with these literals; OutOfEffortError when that takes too long."""
        effort, solver = self._effort, self._solver
        effort.spend(propagations=len(assumptions) + 1)
        solver.conf_budget(effort.conflicts)
        solver.prop_budget(1 + effort.propagations // self._weight)
        # With expect_interrupt the solver releases the interpreter's lock while it works.
        answer = solver.solve_limited(assumptions=assumptions, expect_interrupt=True)
        stats = solver.accum_stats()
        seen = stats["conflicts"], stats["propagations"]
        conflicts, propagations = seen[0] - self._seen[0], seen[1] - self._seen[1]
        self._seen = seen
        effort.spend(conflicts=conflicts, propagations=propagations * self._weight)
        if answer is None:
            raise OutOfEffortError
        return bool(answer)

    def model(self) -> list[int]:
        """The solution of the last call that found one: the literal of variable n stands at n - 1."""
        found: list[int] = self._solver.get_model()
        return found

    def core(self) -> list[int]:
        """Some of the assumptions of the last call that found no solution, which have none together."""
        found: list[int] = self._solver.get_core() or []
        return found

    def implied(self, assumptions: Sequence[int]) -> list[int] | None:
        """What follows from these literals by unit propagation alone; None when that is a contradiction."""
        self._effort.spend(propagations=len(assumptions) + 1)
        holds, literals = self._solver.propagate(assumptions=assumptions)
        return literals if holds else None

    def add(self, clause: Sequence[int]) -> None:
        self._solver.add_clause(clause)

    def prefer(self, literals: Sequence[int]) -> None:
        """Values to try first; a hint that changes no answer of `is_satisfiable`."""
        self._solver.set_phases(literals=literals)
