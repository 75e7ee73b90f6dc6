"""The best solutions by several costs, each more important than the next, and one of them that never varies.

Core-guided (OLL): cores say what must be paid, counters what may be paid next. Cores differ from solver to solver, but
the least cost and the set of best solutions do not, and within that set the first one in a given order is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cpq.domain.configuration.solver.kernel import Kernel

CORE_SHRUNK_MAX = 40


class Optimiser:
    """Narrows the solutions of a kernel, cost by cost. Weights are whole numbers of any size."""

    def __init__(self, kernel: Kernel, new: Callable[[], int], settled: frozenset[int], fixed: Iterable[int]) -> None:
        """The fixed literals must hold together; `settled` ones hold in every solution."""
        self._kernel = kernel
        self.new = new
        self._settled = settled
        self.fixed = list(dict.fromkeys(fixed))
        """What every best solution so far has, and what only they have."""

    def minimise(self, costs: Mapping[int, int]) -> int:
        """The least sum of the weights of those literals that hold. From here on it is paid, and no more."""
        wishes, paid = _positive(costs)
        counters: _Counters = {}
        paid += self._pay_what_follows(wishes, counters)
        for least in _strata(wishes):
            while True:
                asked = [wish for wish, weight in wishes.items() if weight >= least]
                if self._kernel.is_satisfiable([*self.fixed, *asked]):
                    break
                core = self._shrunk([wish for wish in self._kernel.core() if wish in wishes])
                paid += self._relax(core, wishes, counters)
                if len(core) == 1:
                    paid += self._pay_what_follows(wishes, counters)
        self.fixed += wishes
        return paid

    def first(self, orders: Iterable[Sequence[int]]) -> list[int]:
        """The best solution that has, for each option in turn, the first possible of its literals; as a model."""
        kernel = self._kernel
        orders = list(orders)
        kernel.prefer([literal for order in orders for literal in (order[0], *(-other for other in order[1:]))])
        holds = kernel.is_satisfiable(self.fixed)
        assert holds, "the best solutions are solutions"
        model = kernel.model()
        known = self._settled.union(kernel.implied(self.fixed) or ())
        for order in orders:
            for literal in order:
                if _has(model, literal):
                    break
                if -literal in known:
                    continue
                if kernel.is_satisfiable([*self.fixed, literal]):
                    model = kernel.model()
                    break
            else:
                raise AssertionError("an option has a state")
            if literal not in known:
                self.fixed.append(literal)
        return model

    def _pay_what_follows(self, wishes: dict[int, int], counters: _Counters) -> int:
        """Wishes that unit propagation alone settles are paid or met without a search."""
        paid, settled = 0, self._settled
        while True:
            settled = settled.union(self._kernel.implied(self.fixed) or ())
            broken = [wish for wish in wishes if -wish in settled]
            if not broken:
                break
            for wish in broken:
                weight = wishes.pop(wish)
                paid += weight
                self._count_on(wish, weight, wishes, counters)
        for wish in [wish for wish in wishes if wish in settled]:
            del wishes[wish]
        return paid

    def _shrunk(self, core: list[int]) -> list[int]:
        """A smaller core, by a few cheap calls: small cores pay more with fewer counters."""
        for _ in range(3):
            if len(core) <= 1 or self._kernel.is_satisfiable([*self.fixed, *core]):
                break
            smaller = [wish for wish in self._kernel.core() if wish in set(core)]
            if len(smaller) >= len(core):
                break
            core = smaller
        place = 0
        while 1 < len(core) <= CORE_SHRUNK_MAX and place < len(core):
            rest = core[:place] + core[place + 1 :]
            if self._kernel.is_satisfiable([*self.fixed, *rest]):
                place += 1
            else:
                found = set(self._kernel.core())
                core = core[:place] + [wish for wish in rest[place:] if wish in found]
        return core

    def _relax(self, core: list[int], wishes: dict[int, int], counters: _Counters) -> int:
        """Pay for one wish of the core; one more broken wish of it costs again."""
        assert core, "what is fixed holds together"
        weight = min(wishes[wish] for wish in core)
        for wish in core:
            wishes[wish] -= weight
            if not wishes[wish]:
                del wishes[wish]
            self._count_on(wish, weight, wishes, counters)
        if len(core) == 1:
            self.fixed.append(-core[0])
        else:
            self._count(_Counter(self, self._kernel, [-wish for wish in core]), 2, weight, wishes, counters)
        return weight

    def _count_on(self, wish: int, weight: int, wishes: dict[int, int], counters: _Counters) -> None:
        if wish in counters:
            counter, count = counters[wish]
            self._count(counter, count + 1, weight, wishes, counters)

    def _count(self, counter: _Counter, count: int, weight: int, wishes: dict[int, int], counters: _Counters) -> None:
        if count <= counter.size:
            wish = -counter.output(count)
            wishes[wish] = wishes.get(wish, 0) + weight
            counters[wish] = counter, count


class _Counter:
    """A totalizer that grows on demand: output k holds when at least k of the inputs do."""

    def __init__(self, optimiser: Optimiser, kernel: Kernel, inputs: Sequence[int]) -> None:
        self.size = len(inputs)
        self._optimiser = optimiser
        self._kernel = kernel
        self._outputs: list[int] = list(inputs) if len(inputs) == 1 else []
        half = len(inputs) // 2
        self._halves = [_Counter(optimiser, kernel, part) for part in (inputs[:half], inputs[half:]) if half]

    def output(self, count: int) -> int:
        """The literal of `at least this number`; count is at most the size."""
        while len(self._outputs) < count:
            self._extend()
        return self._outputs[count - 1]

    def _extend(self) -> None:
        count = len(self._outputs) + 1
        own = self._optimiser.new()
        left, right = self._halves
        for of_left in range(max(0, count - right.size), min(count, left.size) + 1):
            of_right = count - of_left
            inputs = [left.output(of_left)] if of_left else []
            inputs += [right.output(of_right)] if of_right else []
            self._kernel.add([*(-literal for literal in inputs), own])
        self._outputs.append(own)


_Counters = dict[int, tuple[_Counter, int]]


def _positive(costs: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Wishes that cost where they are not met, and what is paid whatever happens."""
    wishes: dict[int, int] = {}
    paid = 0
    for literal, weight in costs.items():
        if weight < 0:
            paid += weight
        if weight:
            wish = -literal if weight > 0 else literal
            wishes[wish] = wishes.get(wish, 0) + abs(weight)
    for wish in [wish for wish in wishes if wish > 0 and -wish in wishes]:
        common = min(wishes[wish], wishes[-wish])
        paid += common
        for one in (wish, -wish):
            wishes[one] -= common
            if not wishes[one]:
                del wishes[one]
    return wishes, paid


def _strata(wishes: Mapping[int, int]) -> Iterator[int]:
    """Heavy wishes first; each bound is at most half of the one before, and the last takes every wish.

    Weights change while cores are paid, so the bounds are read again each time.
    """
    least = max(wishes.values(), default=0)
    while least > 1:
        yield least
        least = max((weight for weight in wishes.values() if weight <= least // 2), default=1)
    yield 1


def _has(model: Sequence[int], literal: int) -> bool:
    return (model[abs(literal) - 1] > 0) == (literal > 0)
