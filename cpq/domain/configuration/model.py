"""The options and rules of one product, ready to complete and check the choices of a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cpq.base.errors import nearest
from cpq.base.text import clean_line
from cpq.domain.configuration.options import NAME_LENGTH_MAX, ChoiceError, Option, Problem, Scalar, scalar, shown
from cpq.domain.configuration.rules import Condition, Facts, Rule

PROBLEMS_MAX = 20
NOTES_MAX = 100


@dataclass(frozen=True, slots=True)
class Checked:
    """A completed configuration and its problems. It keeps refused values as they were given."""

    choices: dict[str, Any]
    problems: tuple[Problem, ...]
    """The first 20: options in declared order, unknown names, then rules in declared order."""

    problem_count: int
    advice: tuple[str, ...]
    """The sentences of recommendations that are not followed; the configuration is still valid."""


@dataclass(frozen=True)
class Model:
    """The result of `compile_model`. It has no state: one model serves any number of threads."""

    options: Mapping[str, Option]
    """In declared order."""

    by_dependence: tuple[tuple[Option, tuple[Condition, ...]], ...]
    """Each option with its `active_when`, after all the options it depends on."""

    rules: tuple[Rule, ...]
    recommend: tuple[Rule, ...]

    def check(self, choices: Mapping[str, object]) -> Checked:
        """Complete the choices with the defaults of active options, and report every problem.

        A choice of null is the same as no choice. Without options the choices are free notes: any single values.
        """
        if not self.options:
            return _check_notes(choices)
        reading = self._read(choices)
        facts = Facts(reading.values, reading.inactive, reading.uncertain)
        unknown = sorted(choices.keys() - self.options.keys())
        problems = [reading.problems[name] for name in self.options if name in reading.problems]
        problems += map(self._unknown, unknown[:PROBLEMS_MAX])
        problems += [problem for rule in self.rules if (problem := rule.problem(facts))]
        return Checked(
            choices=dict(self._completed(choices, reading.typed, unknown)),
            problems=tuple(problems[:PROBLEMS_MAX]),
            problem_count=len(problems) + max(0, len(unknown) - PROBLEMS_MAX),
            advice=tuple(rule.say for rule in self.recommend if rule.problem(facts)),
        )

    def _read(self, choices: Mapping[str, object]) -> _Reading:
        reading = _Reading()
        for option, conditions in self.by_dependence:
            is_active = not conditions or reading.is_active(conditions)
            reading.take(option, choices.get(option.name), conditions, is_active)
        return reading

    def _completed(
        self, choices: Mapping[str, object], typed: Mapping[str, Scalar], unknown: list[str]
    ) -> Iterator[tuple[str, object]]:
        for name in self.options:
            value = typed.get(name, choices.get(name))
            if value is not None:
                yield name, value
        for name in unknown:
            yield name, choices[name]

    def _unknown(self, name: str) -> Problem:
        like = nearest(name, self.options) if len(name) <= NAME_LENGTH_MAX else []
        hint = f" Did you mean {like[0]}?" if like else ""
        message = f"There is no option {shown(name)}.{hint}"
        return Problem(name[:NAME_LENGTH_MAX], None, message, tuple(self.options), nearest=tuple(like) or None)


@dataclass
class _Reading:
    """Choices under check: from the given values to values that the rules can use."""

    values: dict[str, Scalar] = field(default_factory=dict)
    typed: dict[str, Scalar] = field(default_factory=dict)
    """Also the readable values of options that may be inactive, which no rule uses."""

    inactive: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    problems: dict[str, Problem] = field(default_factory=dict)

    def is_active(self, conditions: tuple[Condition, ...]) -> bool | None:
        """None when that depends on an option with a problem of its own."""
        is_certain = True
        for condition in conditions:
            if condition.option.name in self.uncertain:
                is_certain = False
            else:
                value = self.values.get(condition.option.name)
                if value is None or not condition.meets(value):
                    return False
        return True if is_certain else None

    def take(self, option: Option, given: object, conditions: tuple[Condition, ...], is_active: bool | None) -> None:
        name = option.name
        if is_active is False:
            self.inactive.add(name)
            if given is not None:
                self.problems[name] = Problem(name, None, when_active(name, conditions))
            return
        if is_active is None:
            self.uncertain.add(name)
        if given is not None:
            self._take_given(option, given)
        elif is_active and option.default is not None:
            self.typed[name] = self.values[name] = option.default
        elif is_active and option.row.required:
            self._refuse(option.missing())

    def _take_given(self, option: Option, given: object) -> None:
        try:
            value = option.read(given)
        except ChoiceError as refused:
            self._refuse(refused.problem)
            return
        self.typed[option.name] = value
        if option.name not in self.uncertain:
            self.values[option.name] = value

    def _refuse(self, problem: Problem) -> None:
        assert problem.option is not None
        self.problems[problem.option] = problem
        self.uncertain.add(problem.option)


def when_active(name: str, conditions: tuple[Condition, ...]) -> str:
    """The sentence for an option that was chosen although it is inactive."""
    return f"{name} applies only when {' and '.join(condition.words() for condition in conditions)}."


def _check_notes(choices: Mapping[str, object]) -> Checked:
    """A product without options has no rules: its attributes are kept as given, if they can be stored."""
    kept = dict(choices)
    problems = []
    if len(choices) > NOTES_MAX:
        message = f"A line has at most {NOTES_MAX} attributes."
        problems.append(Problem(None, None, message, maximum=Decimal(NOTES_MAX)))
    for name in sorted(choices):
        try:
            kept[name] = _note(name, choices[name])
        except ValueError as error:
            problems.append(Problem(name[:NAME_LENGTH_MAX], None, f"{shown(name)} {error}."))
    return Checked(kept, tuple(problems[:PROBLEMS_MAX]), len(problems), ())


def _note(name: str, value: object) -> object:
    """The value, with text in one Unicode form, and a binary float as the decimal it was written as."""
    if len(name) > NAME_LENGTH_MAX or clean_line(name) != name:
        raise ValueError(f"is not a name of up to {NAME_LENGTH_MAX} characters without blanks around it")
    typed = None if value is None else scalar(value)
    return typed if isinstance(value, str | float) else value
