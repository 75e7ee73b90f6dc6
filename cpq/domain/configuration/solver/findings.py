"""What is wrong with a model itself: values that nobody can choose, rules that contradict each other or say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from cpq.domain.configuration.model import Model
from cpq.domain.configuration.options import shown
from cpq.domain.configuration.solver.configurator import CONFLICTS_OF_SEARCH_MAX, PROPAGATIONS_MAX, Configurator
from cpq.domain.configuration.solver.encoded_model import Blame, Encoding
from cpq.domain.configuration.solver.explanation import minimal_conflict
from cpq.domain.configuration.solver.kernel import GLUCOSE, Effort, Kernel, OutOfEffortError
from cpq.domain.configuration.solver.states import AnyText, States


class Fault(StrEnum):
    NEVER_SOLD = "never_sold"
    DEAD_VALUE = "dead_value"
    DEAD_OPTION = "dead_option"
    DEFAULT_UNREACHABLE = "default_unreachable"
    DEFAULTS_CLASH = "defaults_clash"
    RULE_NEVER_APPLIES = "rule_never_applies"
    RULE_CONTRADICTED = "rule_contradicted"
    RULE_REDUNDANT = "rule_redundant"
    NOT_FINISHED = "not_finished"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, what it is about, and the fewest sentences of the model that make it so."""

    fault: Fault
    about: str
    message: str
    because: tuple[str, ...] = ()


def findings(model: Model, engine: str = GLUCOSE) -> Iterator[Finding]:
    """The faults of a model, in the order of its options and rules. A search that takes too long is a finding too."""
    encoding = Encoding(model, has_violations=True)
    try:
        with _Review(encoding, engine) as review:
            if not review.holds([]):
                yield Finding(Fault.NEVER_SOLD, "", "No configuration is valid.", review.because([]))
                return
            for states in encoding.states.values():
                yield from review.of_option(states)
            yield from review.of_rules()
        yield from _clash(model, engine)
    except OutOfEffortError:
        yield Finding(Fault.NOT_FINISHED, "", "The search took too long; there may be more.")


class _Review:
    """A solver with every rule in force, and one with switches for the reasons. Each look has its own limit."""

    def __init__(self, encoding: Encoding, engine: str) -> None:
        self._encoding = encoding
        self._effort = Effort(0, 0)
        self._kernel = Kernel(encoding.in_force, self._effort, engine)
        self._switched = Kernel(encoding.formula.clauses, self._effort, engine)
        self._seen: set[int] = set()

    def __enter__(self) -> _Review:
        return self

    def __exit__(self, *_: object) -> None:
        self._kernel.close()
        self._switched.close()

    def holds(self, literals: list[int]) -> bool:
        self._renew()
        found = self._kernel.is_satisfiable(literals)
        if found:
            self._seen.update(self._kernel.model())
        return found

    def because(self, literals: list[int], without: Blame | None = None) -> tuple[str, ...]:
        self._renew()
        switches = [switch for switch, blame in self._encoding.blames.items() if blame != without]
        rules = minimal_conflict(self._switched, literals, switches)
        return tuple(self._encoding.blames[switch].say for switch in sorted(rules))

    def of_option(self, states: States) -> Iterator[Finding]:
        literals = {place: self._encoding.literal(states.name, place) for place in range(states.offset, states.count)}
        dead = [p for p, literal in literals.items() if literal not in self._seen and not self.holds([literal])]
        if dead and len(dead) == len(literals):
            valueless = [-self._encoding.literal(states.name, place) for place in range(states.offset)]
            message = f"{states.name} can never have a value."
            yield Finding(Fault.DEAD_OPTION, states.name, message, self.because(valueless))
            return
        default = None if states.option.default is None else states.neutral
        because = {place: self.because([literals[place]]) for place in dead}
        for row in _rows(dead, lambda place: (place == default, because[place]), is_long=states.is_long):
            value, up_to = states.value(row[0]), states.value(row[-1])
            if isinstance(value, AnyText) or value is None or up_to is None or isinstance(up_to, AnyText):
                continue
            fault = Fault.DEFAULT_UNREACHABLE if row[0] == default else Fault.DEAD_VALUE
            what, span = "The default " if row[0] == default else "", f" to {shown(up_to)}" if len(row) > 1 else ""
            message = f"{what}{states.name}={shown(value)}{span} is in no valid configuration."
            yield Finding(fault, states.name, message, because[row[0]])

    def of_rules(self) -> Iterator[Finding]:
        """A rule that never applies says nothing; neither does one that the others imply."""
        encoding = self._encoding
        rules = [blame for blame in encoding.blames.values() if blame.rule_id]
        switches = {blame: switch for switch, blame in encoding.blames.items()}
        for rule, blame in zip(encoding.model.rules, rules, strict=True):
            others = [switch for switch in switches.values() if switch != switches[blame]]
            applies = encoding.conditions_of(rule)
            self._renew()
            if rule.when and not self.holds(applies):
                if self._switched.is_satisfiable([*others, *applies]):
                    message = f"{rule.id} forbids its own condition: wherever it applies it cannot hold."
                    yield Finding(Fault.RULE_CONTRADICTED, rule.id, message, self.because(applies))
                else:
                    message = f"{rule.id} never applies: its condition is never met."
                    yield Finding(Fault.RULE_NEVER_APPLIES, rule.id, message, self.because(applies, blame))
                continue
            broken = [encoding.violations[rule.id]]
            self._renew()
            if not self._switched.is_satisfiable([*others, *broken]):
                message = f"{rule.id} says nothing that the options and the other rules do not say."
                yield Finding(Fault.RULE_REDUNDANT, rule.id, message, self.because(broken, blame))

    def _renew(self) -> None:
        self._effort.conflicts, self._effort.propagations = CONFLICTS_OF_SEARCH_MAX, PROPAGATIONS_MAX


def _rows(places: Iterable[int], alike: Callable[[int], object], *, is_long: bool) -> Iterator[list[int]]:
    """Places side by side that are alike; each alone where they are not many."""
    numbered = enumerate(places)
    for _, row in groupby(numbered, lambda one: (one[1] - one[0], alike(one[1])) if is_long else one):
        yield [place for _, place in row]


def _clash(model: Model, engine: str) -> Iterator[Finding]:
    """Defaults that break a rule among themselves: a line without choices is invalid."""
    verdict = Configurator(model, engine=engine).check({})
    for conflict in verdict.conflicts:
        message = f"The defaults contradict a rule: {conflict.words()}"
        yield Finding(Fault.DEFAULTS_CLASH, conflict.choices[0].option, message)
    if verdict.is_timed_out:
        raise OutOfEffortError
