"""The rules between options: conditions, and the five constructs with their checks.

An option without a value matches no condition. No rule applies to an inactive option, but `requires` asks for it. An
active option that was left out matches nothing: a `then`, `table` or `compare` that applies requires it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from cpq.base.errors import nearest
from cpq.domain.configuration.options import (
    EXACT,
    NONE,
    ChoiceError,
    Key,
    Option,
    Problem,
    Scalar,
    keys,
    number,
    one_of,
    shown,
)

if TYPE_CHECKING:
    from cpq.domain.configuration.declarations import RuleRow


@dataclass(frozen=True, slots=True)
class Facts:
    """A configuration as the rules see it."""

    values: Mapping[str, Scalar]
    """The choices by option; an option that is not here was left out, is inactive, or uncertain."""

    inactive: Set[str]
    uncertain: Set[str]
    """Options with their own problem: they do not violate a rule as well."""

    def binds(self, name: str) -> bool:
        return name not in self.inactive and name not in self.uncertain


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one option: among values, within bounds, and not among excluded values."""

    option: Option
    among: tuple[Scalar, ...] | None = None
    among_keys: frozenset[Key] | None = None
    minimum: Decimal | None = None
    maximum: Decimal | None = None
    excluded: tuple[Scalar, ...] = ()
    excluded_keys: frozenset[Key] = frozenset()

    def meets(self, value: Scalar) -> bool:
        if self.among_keys is not None:
            return (type(value), value) in self.among_keys
        if self.minimum is not None and not (isinstance(value, Decimal) and value >= self.minimum):
            return False
        if self.maximum is not None and not (isinstance(value, Decimal) and value <= self.maximum):
            return False
        return not self.excluded_keys or (type(value), value) not in self.excluded_keys

    def is_met(self, facts: Facts) -> bool:
        value = facts.values.get(self.option.name)
        return value is not None and self.meets(value)

    def words(self) -> str:
        parts = [f"is {one_of(self.among)}"] if self.among is not None else []
        parts += [f"is at least {shown(self.minimum)}"] if self.minimum is not None else []
        parts += [f"is at most {shown(self.maximum)}"] if self.maximum is not None else []
        parts += [f"is not {one_of(self.excluded)}"] if self.excluded else []
        return f"{self.option.name} {' and '.join(parts)}"

    def problem(self) -> Problem:
        """The problem when this condition is violated: the option, and the values or bounds that meet it."""
        allowed = tuple(value for value in self.option.possible() if self.meets(value))
        return _breach(self.option.name, allowed or self.among, minimum=self.minimum, maximum=self.maximum)


class Construct(Protocol):
    """The demand of a rule that applies."""

    def breach(self, facts: Facts) -> Problem | None: ...


@dataclass(frozen=True, slots=True)
class Then:
    """Every one of these conditions is met by its option."""

    conditions: tuple[Condition, ...]
    binds_inactive: bool = False
    """Whether an inactive option must meet its condition, too, and so has to become active."""

    def breach(self, facts: Facts) -> Problem | None:
        for condition in self.conditions:
            name = condition.option.name
            is_bound = facts.binds(name) or (self.binds_inactive and name in facts.inactive)
            if is_bound and not condition.is_met(facts):
                return condition.problem()
        return None


@dataclass(frozen=True, slots=True)
class Forbid:
    """These conditions are never met together."""

    conditions: tuple[Condition, ...]

    def breach(self, facts: Facts) -> Problem | None:
        if not all(condition.is_met(facts) for condition in self.conditions):
            return None
        return _breach(self.conditions[0].option.name if len(self.conditions) == 1 else None)


@dataclass(frozen=True, slots=True)
class Table:
    """Only these combinations exist."""

    columns: tuple[str, ...]
    rows: Mapping[tuple[Key, ...], None]
    """In the written order; a mapping, for quick lookup."""

    def breach(self, facts: Facts) -> Problem | None:
        if not all(map(facts.binds, self.columns)):
            return None
        values = map(facts.values.get, self.columns)
        chosen = tuple((type(value), value) for value in values)
        return None if chosen in self.rows else self._repair(chosen)

    def _repair(self, chosen: tuple[tuple[type, Scalar | None], ...]) -> Problem:
        """Names the last column whose change alone is enough: tables put dependent columns last."""
        for place in reversed(range(len(self.columns))):
            before, after = chosen[:place], chosen[place + 1 :]
            fitting = [row[place][1] for row in self.rows if row[:place] == before and row[place + 1 :] == after]
            if fitting:
                return _breach(self.columns[place], tuple(fitting))
        return _breach(None)


@dataclass(frozen=True, slots=True)
class Compare:
    """A sum of options times factors, plus a constant, is at least, at most or exactly 0."""

    terms: tuple[tuple[Option, Decimal], ...]
    constant: Decimal
    operator: str

    def breach(self, facts: Facts) -> Problem | None:
        total = self.constant
        for option, factor in self.terms:
            if not facts.binds(option.name):
                return None
            value = facts.values.get(option.name)
            if value is None:
                continue
            assert isinstance(value, Decimal)
            total = EXACT.fma(factor, value, total)
        for option, _ in self.terms:
            if option.name not in facts.values:
                return _breach(option.name, option.possible())
        return None if _holds(total, self.operator) else self._repair(facts, total)

    def _repair(self, facts: Facts, total: Decimal) -> Problem:
        """The value of the first option that alone would meet the comparison, if it is an exact number."""
        option, factor = self.terms[0]
        value = facts.values[option.name]
        if abs(factor) != 1 or sum(other is option for other, _ in self.terms) > 1 or not isinstance(value, Decimal):
            return _breach(None)
        bound = EXACT.subtract(value, EXACT.multiply(total, factor))
        is_floor = self.operator == "==" or (self.operator == ">=") == (factor > 0)
        is_ceiling = self.operator == "==" or not is_floor
        condition = Condition(option, minimum=bound if is_floor else None, maximum=bound if is_ceiling else None)
        return _breach(None) if _is_never_met(condition) else condition.problem()


@dataclass(frozen=True, slots=True)
class Choose:
    """Bounds on how many of these options are taken; false, 0, blank, `none`, left out or inactive are not taken."""

    options: tuple[str, ...]
    minimum: int
    maximum: int

    def breach(self, facts: Facts) -> Problem | None:
        if not any(map(facts.binds, self.options)):
            return None
        taken = sum(is_taken(facts.values.get(name)) for name in self.options)
        perhaps = sum(name in facts.uncertain for name in self.options)
        if taken > self.maximum or taken + perhaps < self.minimum:
            return _breach(None, minimum=Decimal(self.minimum), maximum=Decimal(self.maximum))
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence, a condition, and the demand when it applies."""

    id: str
    say: str
    when: tuple[Condition, ...]
    construct: Construct

    def problem(self, facts: Facts) -> Problem | None:
        """None when the rule holds or does not apply."""
        for condition in self.when:
            if not condition.is_met(facts):
                return None
        breach = self.construct.breach(facts)
        return breach and replace(breach, rule_id=self.id, message=self.say)


def compile_rule(row: RuleRow, options: Mapping[str, Option]) -> Rule:
    """Compile a rule; ValueError when it uses a word, an option or a value that does not exist."""
    when = () if row.when is None else compile_conditions(row.when, options)
    if row.requires is not None:
        when += (_taken(_option(options, row.requires[0])),)
    return Rule(row.id, row.say, when, _construct(row, options))


def compile_conditions(wanted: Mapping[str, object], options: Mapping[str, Option]) -> tuple[Condition, ...]:
    """Conditions that must all be met, in the written order."""
    if not wanted:
        raise ValueError("a condition names at least one option")
    return tuple(_condition(_option(options, name), value) for name, value in wanted.items())


def _construct(row: RuleRow, options: Mapping[str, Option]) -> Construct:
    if row.then is not None:
        return Then(compile_conditions(row.then, options))
    if row.forbid is not None:
        return Forbid(compile_conditions(row.forbid, options))
    if row.table is not None:
        return _table(row.table, options)
    if row.compare is not None:
        return _compare(row.compare, options)
    if row.requires is not None:
        return Then(tuple(_taken(_option(options, name)) for name in row.requires[1:]), binds_inactive=True)
    if row.excludes is not None:
        return _choose({"from": row.excludes, "max": 1}, options)
    assert row.choose is not None, "a rule has exactly one construct"
    return _choose(row.choose, options)


def _taken(option: Option) -> Condition:
    """The condition that an option is taken, as `choose` counts it."""
    possible = option.possible()
    if possible:
        among = tuple(filter(is_taken, possible))
        if not among:
            raise ValueError(f"no value of {option.name} takes anything")
        return Condition(option, among=among, among_keys=keys(among))
    excluded: tuple[Scalar, ...] = (Decimal(0),) if option.kind == "number" else ("", NONE)
    return Condition(option, excluded=excluded, excluded_keys=keys(excluded))


def _option(options: Mapping[str, Option], name: str) -> Option:
    if name not in options:
        raise ValueError(f"{shown(name)} is not an option{_did_you_mean(name, options)}")
    return options[name]


def _condition(option: Option, wanted: object) -> Condition:
    """A value, a list of allowed values, or a mapping of `min`, `max` and `not`."""
    if not isinstance(wanted, Mapping):
        among = _values(option, wanted)
        return Condition(option, among=among, among_keys=keys(among))
    _known_words(wanted, ("min", "max", "not"))
    if not wanted:
        raise ValueError(f"the condition on {option.name} is empty")
    if option.kind != "number" and not wanted.keys().isdisjoint(("min", "max")):
        raise ValueError(f"min and max need a number, and {option.name} is not one")
    excluded = _values(option, wanted["not"]) if "not" in wanted else ()
    low = _number(f"the min of {option.name}", wanted["min"]) if "min" in wanted else None
    high = _number(f"the max of {option.name}", wanted["max"]) if "max" in wanted else None
    condition = Condition(option, minimum=low, maximum=high, excluded=excluded, excluded_keys=keys(excluded))
    if (low is not None and high is not None and low > high) or _is_never_met(condition):
        raise ValueError(f"no value meets the condition that {condition.words()}")
    return condition


def _values(option: Option, wanted: object) -> tuple[Scalar, ...]:
    listed = wanted if isinstance(wanted, list | tuple) else [wanted]
    if not listed:
        raise ValueError(f"the condition on {option.name} lists no value")
    try:
        return tuple(option.read(value) for value in listed)
    except ChoiceError as refused:
        raise ValueError(refused.problem.message.removesuffix(".")) from None


def _is_never_met(condition: Condition) -> bool:
    possible, row = condition.option.possible(), condition.option.row
    if possible:
        return not any(map(condition.meets, possible))
    low, high = condition.minimum, condition.maximum
    return (low is not None and row.max is not None and low > row.max) or (
        high is not None and row.min is not None and high < row.min
    )


def _table(wanted: Mapping[str, object], options: Mapping[str, Option]) -> Table:
    _known_words(wanted, ("columns", "rows"))
    columns, rows = wanted.get("columns"), wanted.get("rows")
    if not isinstance(columns, list | tuple) or not columns or len(set(columns)) < len(columns):
        raise ValueError("a table has columns, each named once")
    if not isinstance(rows, list | tuple) or not rows:
        raise ValueError("a table has rows")
    named = [_option(options, name) for name in columns]
    typed = []
    for place, row in enumerate(rows, 1):
        if not isinstance(row, list | tuple) or len(row) != len(columns):
            raise ValueError(f"row {place} of the table does not have one value for each column")
        cells = [_cell(option, value) for option, value in zip(named, row, strict=True)]
        typed.append(tuple((type(cell), cell) for cell in cells))
    return Table(tuple(columns), dict.fromkeys(typed))


def _cell(option: Option, value: object) -> Scalar:
    if isinstance(value, list | tuple):
        raise ValueError(f"{option.name} has a list where a table has one value")
    return _values(option, value)[0]


def _compare(wanted: Mapping[str, object], options: Mapping[str, Option]) -> Compare:
    _known_words(wanted, ("left", "op", "right"))
    operator = wanted.get("op")
    if operator not in _OPERATORS:
        raise ValueError(f"op is {one_of(_OPERATORS)}, not {shown(operator)}")
    terms: list[tuple[Option, Decimal]] = []
    constant = Decimal(0)
    for side, sign in (("left", Decimal(1)), ("right", Decimal(-1))):
        part = wanted.get(side)
        if not isinstance(part, Mapping) or not part:
            raise ValueError(f"a comparison has a {side} side")
        for name, factor in part.items():
            signed = EXACT.multiply(sign, _number(f"the factor of {name}", factor))
            if name == "const":
                constant = EXACT.add(constant, signed)
            elif (option := _option(options, name)).kind != "number":
                raise ValueError(f"only numbers are compared, and {name} is not one")
            else:
                terms.append((option, signed))
    if not terms:
        raise ValueError("a comparison names at least one option")
    return Compare(tuple(terms), constant, str(operator))


def _number(what: str, value: object) -> Decimal:
    try:
        return number(value)
    except ValueError as error:
        raise ValueError(f"{what} {error}") from None


def _choose(wanted: Mapping[str, object], options: Mapping[str, Option]) -> Choose:
    _known_words(wanted, ("from", "min", "max"))
    group = wanted.get("from")
    if not isinstance(group, list | tuple) or not group or len(set(group)) < len(group):
        raise ValueError("a choice is made from options, each named once")
    if "min" not in wanted and "max" not in wanted:
        raise ValueError("a choice has a min, a max, or both")
    low, high = _number("min", wanted.get("min", 0)), _number("max", wanted.get("max", len(group)))
    if not (0 <= low <= high <= len(group) and low == int(low) and high == int(high)):
        raise ValueError(f"min and max are whole numbers from 0 to {len(group)}, min not above max")
    return Choose(tuple(_option(options, name).name for name in group), int(low), int(high))


def _known_words(wanted: Mapping[str, object], known: tuple[str, ...]) -> None:
    for name in wanted:
        if name not in known:
            raise ValueError(f"{shown(name)} is not one of {', '.join(known)}{_did_you_mean(name, known)}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    like = nearest(name, known)
    return f"; did you mean {like[0]}?" if like else ""


def _breach(
    option: str | None,
    allowed: tuple[Scalar, ...] | None = None,
    *,
    minimum: Decimal | None = None,
    maximum: Decimal | None = None,
) -> Problem:
    """A problem that the rule completes with its id and sentence."""
    return Problem(option, None, "", allowed or None, minimum, maximum)


def _holds(total: Decimal, operator: str) -> bool:
    return total >= 0 if operator == ">=" else total <= 0 if operator == "<=" else total == 0


def is_taken(value: Scalar | None) -> bool:
    return value.strip() not in ("", NONE) if isinstance(value, str) else bool(value)


_OPERATORS = (">=", "<=", "==")
