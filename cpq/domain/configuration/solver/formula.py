"""Clauses over the states of options: one literal for each set of states, counts and sums."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from math import inf
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cpq.domain.configuration.solver.states import States

TRUE = 1
FALSE = -1

DIRECT_MAX = 6
"""An option of more states gets a ladder of literals `at least this state`, which sums and ranges use."""


TERMS_MAX = 200
SUM_CLAUSES_MAX = 50_000
"""Of one comparison: one that needs more has sums that nobody oversees."""


class ModelTooLargeError(ValueError):
    """A model beyond the limits of the solver; the message says which part."""


class Formula:
    """Clauses, and the variables they use. It grows while a model is compiled, and is only read afterwards."""

    def __init__(self, clauses_max: int) -> None:
        self.clauses: list[Sequence[int]] = [[TRUE]]
        self.top = 1
        self._clauses_max = clauses_max
        self._bits: dict[str, list[int]] = {}
        self._ladders: dict[str, list[int]] = {}
        self._descents: dict[str, list[int]] = {}
        """The ladders, negated."""

        self._sets: dict[tuple[str, int], int] = {}

    def new(self) -> int:
        self.top += 1
        return self.top

    def add(self, *literals: int) -> None:
        """A clause: at least one of these literals holds."""
        if TRUE in literals:
            return
        if len(self.clauses) >= self._clauses_max:
            raise ModelTooLargeError(f"The rules need more than {self._clauses_max:,} clauses.")
        self.clauses.append([literal for literal in literals if literal != FALSE])

    def declare(self, states: States) -> None:
        """Give the option exactly one state."""
        count = states.count
        if count == 0:
            self.add()
            self._bits[states.name] = []
        elif count == 1:
            self._bits[states.name] = [TRUE]
        elif count == 2:
            own = self.new()
            self._bits[states.name] = [-own, own]
        elif count <= DIRECT_MAX:
            bits = self._bits[states.name] = [self.new() for _ in range(count)]
            self.add(*bits)
            for place, bit in enumerate(bits):
                for other in bits[:place]:
                    self.add(-bit, -other)
        else:
            self._climb(states.name, count)

    def bits(self, name: str) -> Sequence[int]:
        """The literal of each state."""
        return self._bits[name]

    def state_in(self, model: Sequence[int], name: str) -> int:
        """The state of an option in a solution."""
        steps = self._ladders.get(name)
        if steps is not None:
            return bisect_left(steps, True, 1, len(steps) - 1, key=lambda step: model[step - 1] < 0) - 1
        return next(place for place, bit in enumerate(self._bits[name]) if (model[abs(bit) - 1] > 0) == (bit > 0))

    def towards(self, name: str, place: int) -> list[int]:
        """Literals that lead a search to this state: of a ladder each step, because its steps are decided first."""
        bits, steps = self._bits[name], self._ladders.get(name)
        if steps is None:
            return [-bit for bit in bits[:place]] + [bits[place]] + [-bit for bit in bits[place + 1 :]]
        return [*steps[1 : place + 1], *self._descents[name][place + 1 : -1], bits[place]]

    def of(self, states: States, mask: int) -> int:
        """The literal that holds exactly when the option is in one of these states."""
        full = (1 << states.count) - 1
        if mask == 0 or mask == full:
            return TRUE if mask else FALSE
        if mask.bit_count() == 1:
            return self._bits[states.name][mask.bit_length() - 1]
        if (full ^ mask).bit_count() == 1:
            return -self._bits[states.name][(full ^ mask).bit_length() - 1]
        if (known := self._sets.get((states.name, mask))) is None:
            known = self._define(states, mask)
            self._sets[states.name, mask], self._sets[states.name, full ^ mask] = known, -known
        return known

    def at_least(self, literals: Sequence[int], count: int) -> int:
        """A literal that, where it holds, makes at least this number of these hold."""
        if count <= 0:
            return TRUE
        if count > len(literals):
            return FALSE
        if count == 1:
            own = self.new()
            self.add(-own, *literals)
            return own
        # Row k has, for each place, the literal `k more of the literals from this place on`.
        below = [TRUE] * (len(literals) + 1)
        for needed in range(1, count + 1):
            row = [FALSE] * (len(literals) + 1)
            for place in range(len(literals) - needed, -1, -1):
                row[place] = self._either(literals[place], below[place + 1], row[place + 1])
            below = row
        return below[0]

    def sum_at_least(self, terms: Sequence[tuple[States, Mapping[int, int]]], bound: int) -> int:
        """A literal that, where it holds, makes the sum of the options' numbers at least the bound.

        A term gives the contribution of each state of its option that has a number; other states are not its business.
        Partial sums that leave the same to the rest share a node.
        """
        return _Sum(self, terms).node(0, bound).literal

    def _either(self, literal: int, rest: int, without: int) -> int:
        """A literal that implies: this literal and the rest, or what holds without it."""
        if without == TRUE or (literal == TRUE and rest == TRUE):
            return TRUE
        if without == FALSE and FALSE in (literal, rest):
            return FALSE
        own = self.new()
        self.add(-own, literal, without)
        self.add(-own, rest, without)
        return own

    def _climb(self, name: str, count: int) -> None:
        steps = [TRUE, *(self.new() for _ in range(count - 1)), FALSE]
        self._ladders[name], self._descents[name] = steps, [-step for step in steps]
        bits = self._bits[name] = []
        for place in range(count):
            low, high = steps[place], steps[place + 1]
            self.add(low, -high)
            bits.append(self._both(low, -high))

    def _both(self, one: int, other: int) -> int:
        if TRUE in (one, other):
            return other if one == TRUE else one
        own = self.new()
        self.add(-own, one)
        self.add(-own, other)
        self.add(own, -one, -other)
        return own

    def _define(self, states: States, mask: int) -> int:
        steps = self._ladders.get(states.name)
        runs = _runs(mask)
        if steps is not None and len(runs) == 1:
            (low, high) = runs[0]
            return self._both(steps[low], -steps[high])
        parts = (
            [self.of(states, ((1 << high) - 1) ^ ((1 << low) - 1)) for low, high in runs]
            if steps
            else [bit for place, bit in enumerate(self._bits[states.name]) if mask >> place & 1]
        )
        own = self.new()
        self.add(-own, *parts)
        for part in parts:
            self.add(own, -part)
        return own


def settled_literals(clauses: Sequence[Sequence[int]], facts: Sequence[int]) -> frozenset[int] | None:
    """What follows from the facts by unit propagation; None when that is a contradiction."""
    watchers: dict[int, list[int]] = {}
    open_count = []
    for place, clause in enumerate(clauses):
        open_count.append(len(clause))
        for literal in clause:
            watchers.setdefault(-literal, []).append(place)
    queue = [*facts, *(clause[0] for clause in clauses if len(clause) == 1)]
    settled: set[int] = set()
    while queue:
        literal = queue.pop()
        if literal in settled:
            continue
        if -literal in settled:
            return None
        settled.add(literal)
        for place in watchers.get(literal, ()):
            open_count[place] -= 1
            if open_count[place] == 0:
                return None
            if open_count[place] == 1:
                queue += [other for other in clauses[place] if -other not in settled]
    return None if [] in clauses else frozenset(settled)


class _Node(NamedTuple):
    """A literal that implies `the rest of the sum is at least b`, the same for every b from low to high."""

    literal: int
    low: float
    high: float


class _Sum:
    """A sum of terms as a decision diagram, each term on one level."""

    def __init__(self, formula: Formula, terms: Sequence[tuple[States, Mapping[int, int]]]) -> None:
        if len(terms) > TERMS_MAX:
            raise ModelTooLargeError(f"A comparison has {len(terms)} options; {TERMS_MAX} are the most.")
        self._formula = formula
        self._terms = [(states, sorted(term.items(), key=itemgetter(1))) for states, term in terms]
        self._terms.sort(key=lambda term: term[1][0][1] - term[1][-1][1])  # The widest first, which merges most.
        self._least = [0]
        self._most = [0]
        for _, numbers in reversed(self._terms):
            self._least.insert(0, self._least[0] + numbers[0][1])
            self._most.insert(0, self._most[0] + numbers[-1][1])
        self._known: list[list[_Node]] = [[] for _ in terms]
        self._left = SUM_CLAUSES_MAX

    def node(self, level: int, bound: int) -> _Node:
        if bound <= self._least[level]:
            return _Node(TRUE, -inf, self._least[level])
        if bound > self._most[level]:
            return _Node(FALSE, self._most[level] + 1, inf)
        known = self._known[level]
        place = bisect_right(known, bound, key=attrgetter("low")) - 1
        if place >= 0 and bound <= known[place].high:
            return known[place]
        made = self._make(level, bound)
        known.insert(bisect_right(known, made.low, key=attrgetter("low")), made)
        return made

    def _make(self, level: int, bound: int) -> _Node:
        states, numbers = self._terms[level]
        if level + 1 == len(self._terms):
            first = bisect_left(numbers, bound, key=itemgetter(1))
            enough = sum(1 << state for state, _ in numbers[first:])
            literal = self._formula.of(states, _widened(states, enough))
            return _Node(literal, numbers[first - 1][1] + 1, numbers[first][1])
        own, low, high, mask = self._formula.new(), -inf, inf, 0
        for place, (state, number) in enumerate(numbers):
            mask |= 1 << state
            if place + 1 < len(numbers) and numbers[place + 1][1] == number:
                continue
            child = self.node(level + 1, bound - number)
            low, high = max(low, child.low + number), min(high, child.high + number)
            # With at most this number from here, the rest gives what is missing.
            self._left -= 1
            if not self._left:
                raise ModelTooLargeError(f"A comparison needs more than {SUM_CLAUSES_MAX:,} clauses.")
            if child.literal != TRUE:
                self._formula.add(-own, -self._formula.of(states, _widened(states, mask)), child.literal)
        return _Node(own, low, high)


def _widened(states: States, mask: int) -> int:
    """Makes a mask of values a row of states without a gap where it may: states without a number do not matter."""
    return mask | ((1 << states.offset) - 1) if mask >> states.offset & 1 else mask


def _runs(mask: int) -> list[tuple[int, int]]:
    """The rows of ones in the bits: first, and one after the last."""
    runs, place = [], 0
    while mask >> place:
        low = place + ((mask >> place) & -(mask >> place)).bit_length() - 1
        rest = ~(mask >> low)
        place = low + (rest & -rest).bit_length() - 1
        runs.append((low, place))
    return runs
