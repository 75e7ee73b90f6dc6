"""One question to a compiled model: the given choices as literals, solvers made for it alone, and the work left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property

from cpq.domain.configuration.options import ChoiceError, Scalar, spelled
from cpq.domain.configuration.solver.encoded_model import Encoding
from cpq.domain.configuration.solver.explanation import minimal_conflict
from cpq.domain.configuration.solver.kernel import Effort, Kernel
from cpq.domain.configuration.solver.states import AnyText, State, States
from cpq.domain.configuration.solver.verdicts import Change, Choice, Conflict, Suggestion


class Question:
    """Choices in declared order. Use it as a context, which frees the solvers."""

    def __init__(self, encoding: Encoding, choices: Mapping[str, object], effort: Effort, engine: str) -> None:
        self.encoding = encoding
        self.wanted: dict[str, int] = {}
        """The states of the choices that can be read."""

        self.typed: dict[str, Scalar] = {}
        self.unread: dict[str, object] = {}
        """Choices of known options that can not."""

        self.near: dict[str, Scalar] = {}
        """Of those that are numbers for a range, the next number that the range takes."""

        self.unknown = {name: choices[name] for name in sorted(choices.keys() - encoding.states.keys())}
        self._effort = effort
        self._engine = engine
        self._open = ExitStack()
        self._top = encoding.formula.top
        self._meaning: dict[int, list[int]] = {}
        """Literals of this question alone, as literals of the model that hold together exactly then."""

        for name, states in encoding.states.items():
            if (given := choices.get(name)) is not None:
                self._take(states, given)

    def __enter__(self) -> Question:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def kernel(self) -> Kernel:
        """With every rule in force."""
        return self._open.enter_context(Kernel(self.encoding.in_force, self._effort, self._engine))

    @cached_property
    def _switched(self) -> Kernel:
        """With the rules whose switch is assumed."""
        return self._open.enter_context(Kernel(self.encoding.formula.clauses, self._effort, self._engine))

    def new(self) -> int:
        self._top += 1
        return self._top

    def bit(self, name: str) -> int:
        """The literal of the given choice."""
        return self.encoding.literal(name, self.wanted[name])

    def bits(self, names: Iterable[str] | None = None) -> list[int]:
        return [self.bit(name) for name in (self.wanted if names is None else names)]

    def any_of(self, literals: Sequence[int]) -> int:
        """A literal that holds wherever one of these does."""
        if len(literals) == 1:
            return literals[0]
        own = self.new()
        for literal in literals:
            self.kernel.add([-literal, own])
        return own

    @cached_property
    def chosen(self) -> dict[int, Choice]:
        """The given choices by their literals."""
        return {self.bit(name): Choice(name, self.typed[name]) for name in self.wanted}

    @cached_property
    def defaulted(self) -> dict[int, Choice]:
        """Options that were left out, by a literal that keeps them at the default, or without a value."""
        found = {}
        for name, states in self.encoding.states.items():
            neutral = states.neutral
            if name in self.wanted or name in self.unread or neutral is None:
                continue
            others = [place for place in range(states.count) if place not in (states.inactive, neutral)]
            if others:
                literal = -self.any_of([self.encoding.literal(name, place) for place in others])
                self._meaning[literal] = [-self.encoding.literal(name, place) for place in others]
                found[literal] = Choice(name, states.option.default, is_default=True)
        return found

    def conflict(self, items: Mapping[int, Choice]) -> Conflict:
        """The minimal conflict among items that do not hold together."""
        blamed = minimal_conflict(self.kernel, [], list(items))
        assumed = [base for literal in blamed for base in self._meaning.get(literal, [literal])]
        rules = minimal_conflict(self._switched, assumed, list(self.encoding.blames))
        choices = sorted((items[literal] for literal in blamed), key=lambda choice: self.encoding.order[choice.option])
        return Conflict(tuple(choices), tuple(self.encoding.blames[switch] for switch in sorted(rules)))

    def keep(self, choice: Choice) -> int:
        return self.encoding.states[choice.option].option.row.keep

    def given_up(self, model: Sequence[int]) -> list[int]:
        """The literals of the choices that a solution does not have."""
        state_in = self.encoding.formula.state_in
        return [self.bit(name) for name, place in self.wanted.items() if state_in(model, name) != place]

    def suggestion(self, solution: Sequence[int], surcharges: Mapping[str, Mapping[str, int]]) -> Suggestion:
        """A solution as choices, and how it differs from the given ones."""
        places = self.encoding.read(solution)
        choices: dict[str, Scalar] = {}
        needs = []
        added = []
        for name, states in self.encoding.states.items():
            place = places[name]
            value = self._given_in(states, place)
            if isinstance(value, AnyText):
                needs.append(name)
            elif value is not None:
                choices[name] = value
            is_open = name not in self.wanted and name not in self.unread
            if is_open and place not in (states.inactive, states.neutral) and not isinstance(value, AnyText):
                added.append(Choice(name, value))
        given = [name for name in choices if name in self.wanted or name in self.unread]
        model = self.encoding.model
        return Suggestion(
            choices=choices,
            given={
                name: choices[name]
                for name in [*given, *(choice.option for choice in added if choice.value is not None)]
            },
            changes=tuple(self._changes(choices, needs)),
            added=tuple(added),
            surcharge=sum(by.get(spelled(choices[name]), 0) for name, by in surcharges.items() if name in choices),
            needs=tuple(needs),
            advice=model.check(choices).advice if model.recommend else (),
        )

    def _given_in(self, states: States, place: int) -> State | None:
        """The value in a state: the given one, or the next to it, where the state stands for it."""
        given = self.typed.get(states.name, self.near.get(states.name))
        return states.value(place) if given is None or states.place(given) != place else given

    def _changes(self, choices: Mapping[str, Scalar], needs: Sequence[str]) -> Iterator[Change]:
        for name in self.encoding.states:
            if name in self.unread:
                yield Change(name, self.unread[name], choices.get(name))
            elif name in self.wanted and not _is_same(self.typed[name], choices.get(name)):
                yield Change(name, self.typed[name], choices.get(name))
        for name, before in self.unknown.items():
            yield Change(name, before, None)

    def _take(self, states: States, given: object) -> None:
        try:
            value = states.option.read(given)
        except ChoiceError:
            self.unread[states.name] = given
            if (near := states.near(given)) is not None:
                self.near[states.name] = near
        else:
            self.typed[states.name] = value
            self.wanted[states.name] = states.place(value)


def _is_same(one: Scalar, other: Scalar | None) -> bool:
    return type(one) is type(other) and one == other
