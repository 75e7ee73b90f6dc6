"""The values that options can still have if only that option changes, and why they cannot have the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property

from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.solver.explanation import kept_in_order
from cpq.domain.configuration.solver.kernel import Kernel, OutOfEffortError
from cpq.domain.configuration.solver.question import Question
from cpq.domain.configuration.solver.states import AnyText, States
from cpq.domain.configuration.solver.verdicts import Choice, Domain, Possibility, ValueAnswer


class Remaining:
    """Counts the reasons it gives: they are what takes time."""

    def __init__(self, question: Question, names: Collection[str], reasons: Collection[str], reasons_max: int) -> None:
        """For the options with these names; reasons only for some of them."""
        self._question = question
        self._reasons = reasons
        self._reasons_left = reasons_max
        chosen = {choice.option for choice in question.chosen.values()}
        self._open = _Beside(question, question.chosen, [name for name in names if name not in chosen])
        """What is possible beside all the choices: options that were left out share it."""

        self._ever = _Beside(question, (), names)
        self.is_timed_out = False

    def domain(self, name: str) -> Domain:
        states = self._question.encoding.states[name]
        places = [place for place in _as_declared(states) if not isinstance(states.value(place), AnyText)]
        try:
            possible = self._possible(states)
        except OutOfEffortError:
            self.is_timed_out = True
            possible = None
        answers = [self._answer(states, place, possible) for place in places if place >= states.offset]
        valueless = [place for place in (states.inactive, states.unset) if place is not None]
        return Domain(
            option=name,
            values=tuple(_ranges(answers) if states.is_wide else answers),
            may_be_left_out=possible is not None and any(place in possible for place in valueless),
        )

    def value(self, name: str, value: Scalar) -> ValueAnswer:
        states = self._question.encoding.states[name]
        place = states.place(value)
        literal = self._question.encoding.literal(name, place)
        others = [other for other, choice in self._question.chosen.items() if choice.option != name]
        try:
            is_possible = self._question.kernel.is_satisfiable([*others, literal])
        except OutOfEffortError:
            self.is_timed_out = True
            return ValueAnswer(value, None, Possibility.UNKNOWN)
        return self._answer(states, place, {place} if is_possible else set(), value)

    def _possible(self, states: States) -> set[int]:
        """The states that some valid configuration has which keeps the choices of all other options."""
        question = self._question
        others = [other for other, choice in question.chosen.items() if choice.option != states.name]
        beside = self._open if len(others) == len(question.chosen) else _Beside(question, others, [states.name])
        literals = (question.encoding.literal(states.name, place) for place in range(states.count))
        return {place for place, literal in enumerate(literals) if beside.holds(literal)}

    def _answer(
        self, states: States, place: int, possible: set[int] | None, value: Scalar | None = None
    ) -> ValueAnswer:
        shown = states.value(place) if value is None else value
        assert isinstance(shown, bool | Decimal | str), "a value to show"
        if possible is None:
            return ValueAnswer(shown, None, Possibility.UNKNOWN)
        if place in possible:
            return ValueAnswer(shown, None, Possibility.NOW)
        try:
            return self._excluded(states, place, shown)
        except OutOfEffortError:
            self.is_timed_out = True
            return ValueAnswer(shown, None, Possibility.UNKNOWN)

    def _excluded(self, states: States, place: int, value: Scalar) -> ValueAnswer:
        question = self._question
        literal = question.encoding.literal(states.name, place)
        others = {other: choice for other, choice in question.chosen.items() if choice.option != states.name}
        is_ever = self._ever.holds(literal)
        possibility = Possibility.AFTER_CHANGE if is_ever else Possibility.NEVER
        if self._reasons_left <= 0 or states.name not in self._reasons:
            return ValueAnswer(value, None, possibility)
        self._reasons_left -= 1
        why = question.conflict(others, {literal: Choice(states.name, value)})
        instead: list[str] = []
        if is_ever:
            by_keep = sorted(others, key=lambda other: -question.keep(others[other]))
            kept = set(kept_in_order(question.kernel.is_satisfiable, [literal], by_keep))
            instead = [choice.option for other, choice in others.items() if other not in kept]
        return ValueAnswer(value, None, possibility, why, tuple(instead))


class _Beside:
    """Which states of options some valid configuration has beside the assumed literals; each solution shows many."""

    def __init__(self, question: Question, assumed: Iterable[int], names: Iterable[str]) -> None:
        self._question = question
        self._assumed = list(assumed)
        self._names = list(names)
        self._possible: set[int] = set()
        self._last: list[int] = []

    @cached_property
    def _unseen(self) -> dict[int, None]:
        """Those that no solution had so far, and that unit propagation alone does not rule out."""
        encoding, kernel = self._question.encoding, self._question.kernel
        literals = dict.fromkeys(literal for name in self._names for literal in encoding.formula.bits(name))
        kernel.prefer(list(literals))
        if not kernel.is_satisfiable(self._assumed):
            return {}
        self._note(kernel, literals)
        for settled in encoding.settled.union(kernel.implied(self._assumed) or ()):
            literals.pop(-settled, None)
        return literals

    def holds(self, literal: int) -> bool:
        unseen, kernel = self._unseen, self._question.kernel
        if literal in unseen:
            # The solver keeps the last solution in mind, so that it must be led away from it each time.
            kernel.prefer([*(-seen for seen in self._last), *unseen])
            if kernel.is_satisfiable([*self._assumed, literal]):
                self._note(kernel, unseen)
            else:
                del unseen[literal]
        return literal in self._possible

    def _note(self, kernel: Kernel, unseen: dict[int, None]) -> None:
        model = kernel.model()
        self._last = [literal for literal in unseen if model[abs(literal) - 1] == literal]
        self._possible.update(self._last)
        for literal in self._last:
            del unseen[literal]


def _as_declared(states: States) -> list[int]:
    if states.option.values:
        return [states.place(value) for value in states.option.values]
    return list(range(states.offset, states.count))


def _ranges(answers: Sequence[ValueAnswer]) -> Iterator[ValueAnswer]:
    """Landmarks side by side with the same answer as one range: what lies between two of them is like both."""
    first = last = None
    for answer in answers:
        if last is not None and first is not None and _is_alike(last, answer):
            last = answer
            continue
        if first is not None and last is not None:
            yield _range(first, last)
        first = last = answer
    if first is not None and last is not None:
        yield _range(first, last)


def _is_alike(one: ValueAnswer, other: ValueAnswer) -> bool:
    return isinstance(other.value, Decimal) and one.possibility == other.possibility and one.instead == other.instead


def _range(first: ValueAnswer, last: ValueAnswer) -> ValueAnswer:
    up_to = None if last is first else last.value
    return ValueAnswer(first.value, up_to, first.possibility, first.why, first.instead)
