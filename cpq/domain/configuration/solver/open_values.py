"""The values that options can still have if only that option changes, and why they cannot have the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import groupby

from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.solver.explanation import kept_in_order
from cpq.domain.configuration.solver.kernel import OutOfEffortError
from cpq.domain.configuration.solver.question import Question
from cpq.domain.configuration.solver.states import States
from cpq.domain.configuration.solver.verdicts import Choice, Conflict, Domain, Possibility, ValueAnswer


class Remaining:
    """Finds what is possible for every option before any reason, so that reasons are what is missing at a limit."""

    def __init__(self, question: Question, names: Collection[str], reasons: Collection[str], reasons_max: int) -> None:
        """For the options with these names; reasons only for some of them, up to this number."""
        self._question = question
        self._names = names
        self._reasons = reasons
        self._reasons_left = reasons_max
        chosen = {choice.option for choice in question.chosen.values()}
        open_ = _Beside(question, question.chosen, [name for name in names if name not in chosen])
        self._beside = {
            name: _Beside(question, _others(question, name), [name]) if name in chosen else open_ for name in names
        }
        """The choices of all other options; options that were left out have them in common."""

        self._ever = _Beside(question, {}, names)
        self.is_timed_out = False

    def domains(self) -> tuple[Domain, ...]:
        every = [self._question.encoding.states[name] for name in self._names]
        known = [self._possibilities(states) for states in every]
        return tuple(map(self._domain, every, known))

    def _possibilities(self, states: States) -> list[Possibility]:
        """Of each state, while the choices of all other options are kept."""
        return [self._possibility(states.name, place) for place in range(states.count)]

    def _possibility(self, name: str, place: int) -> Possibility:
        beside = self._beside[name]
        if self.is_timed_out:
            return Possibility.NOW if beside.has_seen(name, place) else Possibility.UNKNOWN
        try:
            if beside.holds(name, place):
                return Possibility.NOW
            return Possibility.AFTER_CHANGE if self._ever.holds(name, place) else Possibility.NEVER
        except OutOfEffortError:
            self.is_timed_out = True
            return Possibility.UNKNOWN

    def _domain(self, states: States, known: Sequence[Possibility]) -> Domain:
        values = ((place, states.value(place)) for place in _as_declared(states))
        answers = [
            self._answer(states, place, value, known[place])
            for place, value in values
            if isinstance(value, bool | Decimal | str)
        ]
        return Domain(
            option=states.name,
            values=tuple(_ranges(states.name, answers) if states.is_long else answers),
            may_be_left_out=any(
                known[place] is Possibility.NOW for place in (states.inactive, states.unset) if place is not None
            ),
        )

    def _answer(self, states: States, place: int, value: Scalar, possibility: Possibility) -> ValueAnswer:
        is_excluded = possibility in (Possibility.AFTER_CHANGE, Possibility.NEVER)
        if is_excluded and self._reasons_left > 0 and states.name in self._reasons:
            self._reasons_left -= 1
            try:
                return self._explained(states, place, value, possibility)
            except OutOfEffortError:
                self.is_timed_out = True
        return ValueAnswer(value, None, possibility)

    def _explained(self, states: States, place: int, value: Scalar, possibility: Possibility) -> ValueAnswer:
        beside = self._beside[states.name]
        literal = self._question.encoding.literal(states.name, place)
        why = beside.clash or self._question.conflict({literal: Choice(states.name, value), **beside.choices})
        instead: list[str] = []
        if possibility is Possibility.AFTER_CHANGE:
            kept = set(beside.kept_with(literal))
            instead = [choice.option for bit, choice in beside.choices.items() if bit not in kept]
        return ValueAnswer(value, None, possibility, why, tuple(instead))


class _Beside:
    """Which states of options some valid configuration has that keeps some choices; each solution shows many."""

    def __init__(self, question: Question, choices: Mapping[int, Choice], names: Iterable[str]) -> None:
        self.choices = choices
        self._question = question
        self._names = list(names)
        self._possible: set[tuple[str, int]] = set()
        self._led: list[int] = []

    @cached_property
    def clash(self) -> Conflict | None:
        """Why the choices cannot stand together; None where they can."""
        holds = self._question.kernel.is_satisfiable(list(self.choices))
        return None if holds else self._question.conflict(self.choices)

    def kept_with(self, literal: int) -> list[int]:
        """The choices that can stay with a state that not all of them allow."""
        kernel = self._question.kernel
        if self.clash and kernel.is_satisfiable([literal, *self._kept]):
            return self._kept
        return kept_in_order(kernel, [literal], self._by_keep)

    @cached_property
    def _kept(self) -> list[int]:
        return kept_in_order(self._question.kernel, [], self._by_keep)

    @cached_property
    def _by_keep(self) -> list[int]:
        return sorted(self.choices, key=lambda bit: -self._question.keep(self.choices[bit]))

    @cached_property
    def _unseen(self) -> dict[str, dict[int, None]]:
        """Of each option the states that no solution had so far, and that unit propagation alone does not rule out."""
        encoding, kernel = self._question.encoding, self._question.kernel
        unseen = {name: dict.fromkeys(range(encoding.states[name].count)) for name in self._names}
        kernel.prefer(self._towards(unseen))
        if not kernel.is_satisfiable(list(self.choices)):
            return {name: {} for name in self._names}
        self._note(unseen)
        settled = encoding.settled.union(kernel.implied(list(self.choices)) or ())
        for name, places in unseen.items():
            bits = encoding.formula.bits(name)
            unseen[name] = {place: None for place in places if -bits[place] not in settled}
        self._led = self._towards(unseen) if len(unseen) > 1 else []
        return unseen

    def has_seen(self, name: str, place: int) -> bool:
        """Whether a solution so far had it."""
        return (name, place) in self._possible

    def holds(self, name: str, place: int) -> bool:
        unseen, kernel = self._unseen, self._question.kernel
        if place in unseen[name]:
            # The solver keeps its last solution in mind, so that it is led to something new each time.
            kernel.prefer(self._led)
            if not kernel.is_satisfiable([*self.choices, self._question.encoding.literal(name, place)]):
                del unseen[name][place]
            elif len(self._names) > 1:
                self._note(unseen)
                self._led = self._towards(unseen)
            else:
                self._see(unseen, name, place)
        return self.has_seen(name, place)

    def _see(self, unseen: Mapping[str, dict[int, None]], name: str, place: int) -> None:
        self._possible.add((name, place))
        del unseen[name][place]

    def _towards(self, unseen: Mapping[str, Mapping[int, None]]) -> list[int]:
        """Literals of a solution that would show something new of every option."""
        towards = self._question.encoding.formula.towards
        firsts = ((name, next(iter(places))) for name, places in unseen.items() if places)
        return [literal for name, place in firsts for literal in towards(name, place)]

    def _note(self, unseen: Mapping[str, dict[int, None]]) -> None:
        """What the last solution shows; a state that it was led to without effect waits for its turn."""
        model, state_in = self._question.kernel.model(), self._question.encoding.formula.state_in
        for name, places in unseen.items():
            if not places:
                continue
            place = state_in(model, name)
            if place in places:
                self._see(unseen, name, place)
            else:
                first = next(iter(places))
                del places[first]
                places[first] = None


def _others(question: Question, name: str) -> dict[int, Choice]:
    return {bit: choice for bit, choice in question.chosen.items() if choice.option != name}


def _as_declared(states: States) -> list[int]:
    if states.option.values:
        return [states.place(value) for value in states.option.values]
    return list(range(states.offset, states.count))


def _ranges(name: str, answers: Iterable[ValueAnswer]) -> Iterator[ValueAnswer]:
    """Landmarks side by side with the same answer as one range: what lies between two of them is like both."""
    for _, alike in groupby(answers, lambda one: _but_for_its_number(name, one)):
        first, *others = alike
        yield replace(first, up_to=others[-1].value) if others else first


def _but_for_its_number(name: str, answer: ValueAnswer) -> tuple[object, ...]:
    text = answer.value if isinstance(answer.value, str) else None
    return text, answer.possibility, answer.instead, answer.why and answer.why.without(name)
