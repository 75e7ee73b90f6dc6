"""The values that options can still have if only that option changes, and why they cannot have the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.solver.explanation import kept_in_order
from cpq.domain.configuration.solver.kernel import OutOfEffortError
from cpq.domain.configuration.solver.question import Question
from cpq.domain.configuration.solver.states import AnyText, States
from cpq.domain.configuration.solver.verdicts import Choice, Domain, Possibility, ValueAnswer


class Remaining:
    """Counts the reasons it gives: they are what takes time in a large model."""

    def __init__(self, question: Question, reasons_max: int) -> None:
        self._question = question
        self._reasons_left = reasons_max
        self._open: dict[int, bool] = {}
        """What is known of literals beside all the choices: options that were left out share it."""

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
        question, kernel = self._question, self._question.kernel
        literals = {question.encoding.literal(states.name, place): place for place in range(states.count)}
        others = [other for other, choice in question.chosen.items() if choice.option != states.name]
        known = self._open if len(others) == len(question.chosen) else {}
        if not known:
            if not kernel.is_satisfiable(others):
                return set()
            self._note(known, kernel.model())
            settled = question.encoding.settled.union(kernel.implied(others) or ())
            known.update((-literal, False) for literal in settled)
        for literal in literals:
            if known.get(literal) is None:
                kernel.prefer([other for other in literals if known.get(other) is None])
                known[literal] = kernel.is_satisfiable([*others, literal])
                if known[literal]:
                    self._note(known, kernel.model())
        return {place for literal, place in literals.items() if known[literal]}

    def _note(self, known: dict[int, bool], model: Sequence[int]) -> None:
        known.update((literal, True) for literal in model)

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
        is_ever = question.kernel.is_satisfiable([literal])
        possibility = Possibility.AFTER_CHANGE if is_ever else Possibility.NEVER
        if self._reasons_left <= 0:
            return ValueAnswer(value, None, possibility)
        self._reasons_left -= 1
        why = question.conflict(others, {literal: Choice(states.name, value)})
        instead: list[str] = []
        if is_ever:
            by_keep = sorted(others, key=lambda other: -question.keep(others[other]))
            kept = set(kept_in_order(question.kernel.is_satisfiable, [literal], by_keep))
            instead = [choice.option for other, choice in others.items() if other not in kept]
        return ValueAnswer(value, None, possibility, why, tuple(instead))


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
