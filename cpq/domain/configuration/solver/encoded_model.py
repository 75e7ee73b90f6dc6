"""A model as clauses: exactly the configurations that `Model.check` accepts, with a switch for each thing to blame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from cpq.base.money import from_micro, to_micro
from cpq.domain.configuration.model import Model, when_active
from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.rules import Choose, Compare, Condition, Forbid, Rule, Table, Then
from cpq.domain.configuration.solver.formula import FALSE, TRUE, Formula, ModelTooLargeError, settled_literals
from cpq.domain.configuration.solver.states import LISTED_MAX, SHORT_MAX, States, length_of_range, states_of

OPTIONS_MAX = 20_000
RULES_MAX = 100_000
STATES_MAX = 200_000
CLAUSES_MAX = 1_000_000
SUMS_MAX = 2_000
"""The most outcomes of the other side of a comparison with a wide range."""

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Blame:
    """A rule, or what an option demands itself, with its sentence."""

    say: str
    rule_id: str | None = None
    option: str | None = None


class Encoding:
    """The clauses of a model. Nothing changes them, so one encoding serves any number of threads."""

    def __init__(
        self,
        model: Model,
        points: Mapping[str, Iterable[Scalar]] | None = None,
        *,
        has_violations: bool = False,
    ) -> None:
        """ModelTooLargeError beyond the limits. `points` are values of wide ranges that stand for themselves."""
        self.model = model
        self.formula = Formula(CLAUSES_MAX)
        if len(model.options) > OPTIONS_MAX or len(model.rules) > RULES_MAX:
            raise ModelTooLargeError(f"A product has at most {OPTIONS_MAX:,} options and {RULES_MAX:,} rules.")
        self.states = self._all_states(points or {})
        self.order = {name: place for place, name in enumerate(self.states)}
        self._switches = {blame: self.formula.new() for blame in self._blamed()}
        self.blames = {switch: blame for blame, switch in self._switches.items()}
        """By switch, the literal that puts the rule in force. Rules first, as declared, then what options demand."""

        for states in self.states.values():
            self.formula.declare(states)
        for option, conditions in model.by_dependence:
            self._demand(self.states[option.name], conditions)
        for rule in model.rules:
            self._encode(rule, [-self._switches[_blame(rule)]])
        self.orders = [[self.literal(name, p) for p in states.preferred()] for name, states in self.states.items()]
        """For each option the literals of its states, preferred ones first."""

        self.advice = self._encode_advice()
        """A literal for each recommendation that, where it holds, has it followed."""

        self.violations = {rule.id: self._violation(rule) for rule in model.rules} if has_violations else {}
        """For each rule a literal that, where it holds, has the rule broken."""

        self.formula.add(self.formula.new())  # The solver then knows every variable, also those without a clause.
        settled = settled_literals(self.formula.clauses, list(self.blames))
        self.settled = settled or frozenset()
        """What holds in every valid configuration by unit propagation alone."""

        self.in_force = [[]] if settled is None else [[one] for one in settled] + _simplified(self.formula, settled)
        """The clauses with every rule in force, which no switch can take out."""

    def literal(self, name: str, place: int) -> int:
        return self.formula.bits(name)[place]

    def read(self, model: Sequence[int]) -> dict[str, int]:
        """The state of each option in a solution."""
        return {name: self.formula.state_in(model, name) for name in self.states}

    def conditions_of(self, rule: Rule) -> list[int]:
        """The literals that hold together where the rule applies."""
        return [self._met(condition) for condition in rule.when]

    def _violation(self, rule: Rule) -> int:
        formula, own = self.formula, self.formula.new()
        for literal in self.conditions_of(rule):
            formula.add(-own, literal)
        construct = rule.construct
        if isinstance(construct, Then):
            formula.add(-own, *(self._every(*(-literal for literal in one)) for one in self._demanded(construct)))
        elif isinstance(construct, Forbid):
            for condition in construct.conditions:
                formula.add(-own, self._met(condition))
        elif isinstance(construct, Choose):
            taken = self._taken(construct)
            most, least = construct.maximum + 1, len(taken) - construct.minimum + 1
            few = formula.at_least([-literal for literal in taken], least) if construct.minimum else FALSE
            formula.add(-own, *(-self._inactive(name) for name in construct.options))
            formula.add(-own, formula.at_least(taken, most), few)
        elif isinstance(construct, Table):
            columns = [self.states[name] for name in construct.columns]
            for states in columns:
                formula.add(-own, -self._inactive(states.name))
            for row in construct.rows:
                cells = zip(columns, row, strict=True)
                formula.add(-own, *(-self.literal(s.name, s.place(value)) for s, (_, value) in cells))
        else:
            assert isinstance(construct, Compare), "a construct without clauses"
            self._break_compare(construct, own)
        return own

    def _break_compare(self, compare: Compare, own: int) -> None:
        formula = self.formula
        factors, constant = _whole_terms(compare)
        ways = []
        for name in factors:
            formula.add(-own, -self._inactive(name))
            if (unset := self.states[name].unset) is not None:
                ways.append(self.literal(name, unset))
        terms = [(self.states[name], _contributions(self.states[name], factor)) for name, factor in factors.items()]
        if all(numbers for _, numbers in terms):
            negated = [(states, {place: -number for place, number in numbers.items()}) for states, numbers in terms]
            sums = []
            if compare.operator in (">=", "=="):
                sums.append(formula.sum_at_least(negated, constant + 1))
            if compare.operator in ("<=", "=="):
                sums.append(formula.sum_at_least(terms, 1 - constant))
            ways += [self._every(literal, *(-way for way in ways)) for literal in sums]
        formula.add(-own, *ways)

    def _every(self, *literals: int) -> int:
        """A literal that, where it holds, has all of these hold."""
        own = self.formula.new()
        for literal in literals:
            self.formula.add(-own, literal)
        return own

    def _taken(self, choose: Choose) -> list[int]:
        return [self.formula.of(self.states[name], self.states[name].taken) for name in choose.options]

    def _blamed(self) -> Iterator[Blame]:
        yield from map(_blame, self.model.rules)
        for option, conditions in self.model.by_dependence:
            if conditions:
                yield _activity(option.name, conditions)
            if option.row.required and option.default is None:
                yield _requirement(option.name)

    def _all_states(self, points: Mapping[str, Iterable[Scalar]]) -> dict[str, States]:
        model = self.model
        named: defaultdict[str, list[Scalar]] = defaultdict(list)
        for name, values in points.items():
            named[name] += values
        conditional = {option.name for option, conditions in model.by_dependence if conditions}
        for condition in chain.from_iterable(conditions for _, conditions in model.by_dependence):
            named[condition.option.name] += _constants(condition)
        for rule in (*model.rules, *model.recommend):
            for condition in rule.when:
                named[condition.option.name] += _constants(condition)
            for name, value in _named_by(rule.construct):
                named[name].append(value)
        compares = [rule for rule in (*model.rules, *model.recommend) if isinstance(rule.construct, Compare)]
        cut = _ranges_to_cut(model, compares)

        def states_named(name: str) -> States:
            is_conditional, is_cut = name in conditional, name in cut
            return states_of(model.options[name], named[name], can_be_inactive=is_conditional, is_cut=is_cut)

        states = {name: states_named(name) for name in model.options}
        for rule in compares:
            _add_thresholds(rule, states, named, cut)
        states |= {name: states_named(name) for name, one in states.items() if one.is_wide}
        if sum(one.count for one in states.values()) > STATES_MAX:
            raise ModelTooLargeError(f"The options have more than {STATES_MAX:,} values.")
        return states

    def _demand(self, states: States, conditions: tuple[Condition, ...]) -> None:
        """When the option is active, and that it is not left out where it must not be."""
        formula = self.formula
        if conditions:
            switch = self._switches[_activity(states.name, conditions)]
            active = formula.of(states, states.active())
            met = [self._met(condition) for condition in conditions]
            for literal in met:
                formula.add(-switch, -active, literal)
            formula.add(-switch, active, *(-literal for literal in met))
        if states.option.row.required and states.unset is not None:
            formula.add(-self._switches[_requirement(states.name)], -self.literal(states.name, states.unset))

    def _met(self, condition: Condition) -> int:
        states = self.states[condition.option.name]
        fitting = [v for v in states.values if isinstance(v, bool | Decimal | str) and condition.meets(v)]
        mask = states.mask(fitting)
        # A condition that names what is not wanted is met by any other text.
        if states.is_wide and condition.among_keys is None:
            mask |= states.mask(v for v in states.values if not isinstance(v, bool | Decimal | str))
        return self.formula.of(states, mask)

    def _demanded(self, then: Then) -> Iterator[list[int]]:
        """For each condition literals, and one of them must hold."""
        for condition in then.conditions:
            inactive = [] if then.binds_inactive else [self._inactive(condition.option.name)]
            yield [*inactive, self._met(condition)]

    def _inactive(self, name: str) -> int:
        states = self.states[name]
        return FALSE if states.inactive is None else self.literal(name, states.inactive)

    def _encode_advice(self) -> tuple[int, ...]:
        followed = tuple(self.formula.new() for _ in self.model.recommend)
        for rule, literal in zip(self.model.recommend, followed, strict=True):
            self._encode(rule, [-literal])
        return followed

    def _encode(self, rule: Rule, without: list[int]) -> None:
        """Clauses that make the rule hold, unless one of the literals `without` does."""
        unless = [*without, *(-self._met(condition) for condition in rule.when)]
        if TRUE in unless:
            return
        construct = rule.construct
        if isinstance(construct, Then):
            for literals in self._demanded(construct):
                self.formula.add(*unless, *literals)
        elif isinstance(construct, Forbid):
            self.formula.add(*unless, *(-self._met(condition) for condition in construct.conditions))
        elif isinstance(construct, Table):
            self._encode_table(construct, unless)
        elif isinstance(construct, Compare):
            self._encode_compare(construct, unless)
        else:
            assert isinstance(construct, Choose), "a construct without clauses"
            self._encode_choose(construct, unless)

    def _encode_table(self, table: Table, unless: list[int]) -> None:
        """A literal for each row; and for each value of a column the rows it occurs in, so that it rules out others."""
        formula = self.formula
        columns = [self.states[name] for name in table.columns]
        unless = [*unless, *(self._inactive(name) for name in table.columns)]
        if len(columns) == 1:
            formula.add(*unless, formula.of(columns[0], columns[0].mask(row[0][1] for row in table.rows)))
            return
        fitting: list[dict[int, list[int]]] = [defaultdict(list) for _ in columns]
        rows = []
        for row in table.rows:
            places = [states.place(value) for states, (_, value) in zip(columns, row, strict=True)]
            own = formula.new()
            rows.append(own)
            for states, place, by_place in zip(columns, places, fitting, strict=True):
                formula.add(-own, self.literal(states.name, place))
                by_place[place].append(own)
        formula.add(*unless, *rows)
        for states, by_place in zip(columns, fitting, strict=True):
            for place, own_rows in by_place.items():
                formula.add(*unless, -self.literal(states.name, place), *own_rows)

    def _encode_compare(self, compare: Compare, unless: list[int]) -> None:
        formula = self.formula
        factors, constant = _whole_terms(compare)
        unless = [*unless, *map(self._inactive, factors)]
        for name in factors:
            if (unset := self.states[name].unset) is not None:
                formula.add(*unless, -self.literal(name, unset))
        terms = [(self.states[name], _contributions(self.states[name], factor)) for name, factor in factors.items()]
        if any(not numbers for _, numbers in terms):
            formula.add(*unless)
            return
        if compare.operator in (">=", "=="):
            formula.add(*unless, formula.sum_at_least(terms, -constant))
        if compare.operator in ("<=", "=="):
            negated = [(states, {place: -number for place, number in numbers.items()}) for states, numbers in terms]
            formula.add(*unless, formula.sum_at_least(negated, constant))

    def _encode_choose(self, choose: Choose, unless: list[int]) -> None:
        """The most holds anyway; the least only while an option of the group is active."""
        formula = self.formula
        taken = self._taken(choose)
        if choose.maximum < len(taken):
            formula.add(*unless, formula.at_least([-literal for literal in taken], len(taken) - choose.maximum))
        if choose.minimum:
            enough = [*taken] if choose.minimum == 1 else [formula.at_least(taken, choose.minimum)]
            for inactive in dict.fromkeys(map(self._inactive, choose.options)):
                formula.add(*unless, inactive, *enough)


def _simplified(formula: Formula, settled: frozenset[int]) -> list[Sequence[int]]:
    """The clauses that are not met yet, without the literals that cannot meet them."""
    return [
        [literal for literal in clause if -literal not in settled]
        for clause in formula.clauses
        if settled.isdisjoint(clause)
    ]


def _blame(rule: Rule) -> Blame:
    return Blame(rule.say, rule_id=rule.id)


def _activity(name: str, conditions: tuple[Condition, ...]) -> Blame:
    return Blame(when_active(name, conditions), option=name)


def _requirement(name: str) -> Blame:
    return Blame(f"{name} is required.", option=name)


def _constants(condition: Condition) -> list[Scalar]:
    bounds = [bound for bound in (condition.minimum, condition.maximum) if bound is not None]
    return [*(condition.among or ()), *bounds, *condition.excluded]


def _named_by(construct: object) -> Iterator[tuple[str, Scalar]]:
    """The values that a construct names, with their options."""
    if isinstance(construct, Then | Forbid):
        for condition in construct.conditions:
            yield from ((condition.option.name, value) for value in _constants(condition))
    elif isinstance(construct, Table):
        for row in construct.rows:
            yield from ((name, value) for name, (_, value) in zip(construct.columns, row, strict=True))


def _whole_terms(compare: Compare) -> tuple[dict[str, int], int]:
    """The factor of each option, and the constant, in whole numbers: the sum as millionths of millionths."""
    factors: dict[str, int] = {}
    for option, factor in compare.terms:
        factors[option.name] = factors.get(option.name, 0) + to_micro(factor)
    return factors, to_micro(compare.constant) * _MICROS


def _compared(rule: Rule) -> tuple[dict[str, int], int]:
    assert isinstance(rule.construct, Compare)
    return _whole_terms(rule.construct)


def _contributions(states: States, factor: int) -> dict[int, int]:
    return {
        place: factor * to_micro(value)
        for place, value in enumerate(states.values, states.offset)
        if isinstance(value, Decimal)
    }


def _ranges_to_cut(model: Model, compares: Iterable[Rule]) -> set[str]:
    """The long ranges, but for those that can be listed and are compared with another long one."""
    lengths = {name: length_of_range(option) for name, option in model.options.items()}
    cut = {name for name, length in lengths.items() if length > SHORT_MAX}
    together = [cut.intersection(factors) for factors, _ in map(_compared, compares)]
    return cut - {name for names in together if len(names) > 1 for name in names if lengths[name] <= LISTED_MAX}


def _add_thresholds(
    rule: Rule, states: Mapping[str, States], named: defaultdict[str, list[Scalar]], cut: set[str]
) -> None:
    """For a comparison with a wide range: the numbers of the range at which the comparison turns.

    A range that can be listed is no longer cut where they are too many.
    """
    factors, constant = _compared(rule)
    wide = [name for name, factor in factors.items() if states[name].is_wide and factor]
    if not wide:
        return
    if len(wide) > 1:
        raise ModelTooLargeError(
            f"{rule.id} compares {wide[0]} and {wide[1]}, which both have too many values to list."
        )
    sums = {constant}
    length = length_of_range(states[wide[0]].option)
    for name, factor in factors.items():
        if name != wide[0]:
            numbers = set(_contributions(states[name], factor).values()) or {0}
            sums = {known + number for known in sums for number in numbers}
            if length <= LISTED_MAX and len(sums) * 2 > length:
                cut.discard(wide[0])
                return
            if len(sums) > SUMS_MAX:
                raise ModelTooLargeError(f"{rule.id} compares {wide[0]} with more than {SUMS_MAX:,} different sums.")
    # Rounded down to a number that an option can have; its neighbours on the range are landmarks as well.
    named[wide[0]] += [from_micro(-known // factors[wide[0]]) for known in sums]
