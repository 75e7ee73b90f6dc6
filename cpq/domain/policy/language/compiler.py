"""Compiles a condition's tree into closures. None is unknown, and so is everything that depends on it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import repeat
from typing import Any

from cpq.domain.policy.facts import WORKING, ColumnRange, FactsEnvironment, KnownColumn, LineInputs, attribute_value
from cpq.domain.policy.language.nodes import (
    MIRRORED,
    Arithmetic,
    Choice,
    Comparison,
    Fact,
    Fold,
    Junction,
    Literal,
    Members,
    Membership,
    Node,
    Not,
    Value,
    walk,
)

Run = Callable[[FactsEnvironment, LineInputs | None], Any]
"""A compiled part: a value of its kind, or None. ArithmeticError where it cannot be evaluated."""

Column = Callable[[FactsEnvironment], Sequence[Any]]
"""The same for every line and its parts at once; several times as fast."""

COLUMNS_MAX = 10_000
KEPT_LINES_MAX = 1_000
"""For larger quotes a column is computed again, not cached: thousands of rules would fill the memory."""


def compiled(node: Node) -> Run:
    return _COMPILERS[type(node)](node)


@lru_cache(maxsize=COLUMNS_MAX)
def column(node: Node) -> Column:
    """The part's values for all pieces, in their order. A second call for the same part and quote gets the same list.

    Equal parts of different rules are one function, and a violated rule needs its lines once more.
    """
    work = _column(node)

    def kept(environment: FactsEnvironment) -> Sequence[Any]:
        found: Any = environment.get(kept)
        if found is None:
            found = work(environment)
            if len(environment.pieces) <= KEPT_LINES_MAX:
                environment[kept] = found
        return found  # type: ignore[no-any-return] # A column is cached under its own function.

    return kept


def _column(node: Node) -> Column:
    if not any(isinstance(part, Fact) and part.is_of_line for part in walk(node)):
        same = compiled(node)
        return lambda environment: [same(environment, None)] * len(environment.pieces)
    # A division is evaluated line by line, because `and` may exclude a line from it.
    if not any(isinstance(part, Arithmetic) for part in walk(node)):
        if isinstance(node, Fact) and not node.is_attribute:
            key = ("column", node.name)
            return lambda environment: environment[key].values  # type: ignore[attr-defined] # Columns are kept so.
        if isinstance(node, Comparison):
            return _comparison_column(node)
        if isinstance(node, Junction):
            return _junction_column(node)
    each = compiled(node)
    return lambda environment: [each(environment, line) for line in environment.pieces]


def _constant(node: Literal | Members) -> Run:
    value = node.value if isinstance(node, Literal) else node.values
    return lambda _environment, _line: value


def _fact(node: Fact) -> Run:
    name = node.name
    if node.is_attribute:
        word, kind, absent = name.removeprefix("line.attributes."), node.kind, node.absent
        return lambda _environment, line: attribute_value(line.attributes, word, kind, absent)  # type: ignore[union-attr] # Only read where a line is.
    if node.is_of_line:
        get = operator.attrgetter(name.removeprefix("line."))
        return lambda _environment, line: get(line)
    return lambda environment, _line: environment[name]


def _arithmetic(node: Arithmetic) -> Run:
    left, right = compiled(node.left), compiled(node.right)
    work = {"+": WORKING.add, "-": WORKING.subtract, "*": WORKING.multiply, "/": WORKING.divide}[node.operator]

    def run(environment: FactsEnvironment, line: LineInputs | None) -> Decimal | None:
        first, second = left(environment, line), right(environment, line)
        return None if first is None or second is None else work(first, second)

    return run


def _comparison(node: Comparison) -> Run:
    if isinstance(node.left, Literal) and not isinstance(node.right, Literal):
        node = Comparison(MIRRORED[node.operator], node.right, node.left)
    compare = _ORDERS[node.operator]
    if isinstance(node.right, Literal):
        return _comparison_with(compare, node.left, node.right.value)
    left, right = compiled(node.left), compiled(node.right)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        first, second = left(environment, line), right(environment, line)
        return None if first is None or second is None else compare(first, second)

    return run


def _comparison_with(compare: Callable[[Any, Any], bool], node: Node, bound: Value) -> Run:
    """The common case, a fact compared with a literal, without a call for either side."""
    if isinstance(node, Fact) and not node.is_of_line:
        name = node.name

        def run_fact(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
            value = environment[name]
            return None if value is None else compare(value, bound)

        return run_fact
    get = compiled(node)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        value = get(environment, line)
        return None if value is None else compare(value, bound)

    return run


def _comparison_column(node: Comparison) -> Column:
    if isinstance(node.left, Literal):
        node = Comparison(MIRRORED[node.operator], node.right, node.left)
    compare = _ORDERS[node.operator]
    if isinstance(node.left, Fact) and not node.left.is_attribute and isinstance(node.right, Literal):
        key, bound = ("column", node.left.name), node.right.value

        def run_fact(environment: FactsEnvironment) -> list[bool | None]:
            found = environment[key]
            assert isinstance(found, KnownColumn)
            if not found.has_unknown:
                return list(map(compare, found.values, repeat(bound)))
            return [None if value is None else compare(value, bound) for value in found.values]

        return run_fact
    left, right = column(node.left), column(node.right)

    def run(environment: FactsEnvironment) -> list[bool | None]:
        pairs = zip(left(environment), right(environment), strict=True)
        return [None if first is None or second is None else compare(first, second) for first, second in pairs]

    return run


def _junction_column(node: Junction) -> Column:
    columns = [column(part) for part in node.parts]
    decided = node.operator == "or"
    join = operator.or_ if decided else operator.and_

    def run(environment: FactsEnvironment) -> Sequence[bool | None]:
        result = columns[0](environment)
        for following in columns[1:]:
            more = following(environment)
            try:
                result = list(map(join, result, more))
            except TypeError:  # Some are unknown.
                result = [_joined(first, second, decided=decided) for first, second in zip(result, more, strict=True)]
        return result

    return run


def _joined(first: bool | None, second: bool | None, *, decided: bool) -> bool | None:
    if first is decided or second is decided:
        return decided
    return None if first is None or second is None else not decided


def _membership(node: Membership) -> Run:
    item, members = compiled(node.item), compiled(node.members)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        value, values = item(environment, line), members(environment, line)
        if value is None or values is None:
            return None
        return bool(value in values)

    return run


def _not(node: Not) -> Run:
    operand = compiled(node.operand)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        value = operand(environment, line)
        return None if value is None else value is False

    return run


def _junction(node: Junction) -> Run:
    parts = tuple(map(compiled, node.parts))
    decided = node.operator == "or"

    if len(parts) == 2:
        return _pair(*parts, decided=decided)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        result: bool | None = not decided
        for part in parts:
            value: bool | None = part(environment, line)
            if value is decided:
                return decided
            if value is None:
                result = None
        return result

    return run


def _pair(left: Run, right: Run, *, decided: bool) -> Run:
    def run(environment: FactsEnvironment, line: LineInputs | None) -> bool | None:
        first: bool | None = left(environment, line)
        if first is decided:
            return decided
        second: bool | None = right(environment, line)
        if second is decided:
            return decided
        return None if first is None or second is None else not decided

    return run


def _choice(node: Choice) -> Run:
    test, then, otherwise = compiled(node.test), compiled(node.then), compiled(node.otherwise)

    def run(environment: FactsEnvironment, line: LineInputs | None) -> Value | None:
        chosen = test(environment, line)
        if chosen is None:
            return None
        value: Value | None = then(environment, line) if chosen else otherwise(environment, line)
        return value

    return run


def _fold(node: Fold) -> Run:
    if node.function in ("any", "all"):
        return _range_quantifier(node) or _quantifier(node)
    body = compiled(node.body)
    where = compiled(node.where) if node.where else None
    finish = _FINISHERS[node.function]
    # The parts of a bundle are checked, but neither counted nor summed again.
    lines_of = operator.attrgetter("pieces" if node.function in ("min", "max") else "lines")

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> Decimal | None:
        # Every line is evaluated, even if one is unknown: a fault must not depend on the order of the lines.
        values = []
        for line in lines_of(environment):
            chosen = True if where is None else where(environment, line)
            if chosen is not False:
                value = body(environment, line)
                values.append(value if chosen else None)
        return None if None in values else finish(values)

    return run


def _quantifier(node: Fold) -> Run:
    """any(body if where) is any(where and body); all(body if where) is all(not where or body)."""
    is_any = node.function == "any"
    whole = node.body
    if node.where is not None:
        whole = Junction("and", (node.where, whole)) if is_any else Junction("or", (Not(node.where), whole))
    values_of = column(whole)

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
        # Every line is evaluated, even if one decides: a fault must not depend on the order of the lines.
        values = values_of(environment)
        return is_any if is_any in values else None if None in values else not is_any

    return run


def _range_quantifier(node: Fold) -> Run | None:
    """any(line.discount > 20 for line in lines) needs only the largest discount, computed once per quote."""
    body = node.body
    if node.where is not None or not isinstance(body, Comparison) or body.operator in ("==", "!="):
        return None
    if isinstance(body.left, Literal):
        body = Comparison(MIRRORED[body.operator], body.right, body.left)
    fact, bound = body.left, body.right
    if not (isinstance(fact, Fact) and fact.is_of_line) or fact.is_attribute or not isinstance(bound, Literal):
        return None
    is_any, compare, limit = node.function == "any", _ORDERS[body.operator], bound.value
    key = ("range", fact.name)
    end = 1 if (body.operator in (">", ">=")) is is_any else 0

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
        found = environment[key]
        assert isinstance(found, ColumnRange)
        extreme = found[end]
        if extreme is not None and compare(extreme, limit) is is_any:
            return is_any
        return None if found.has_unknown else not is_any

    return run


def _total(values: list[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = WORKING.add(total, value)
    return total


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_FINISHERS: dict[str, Callable[[list[Any]], Decimal | None]] = {
    "sum": _total,
    "count": lambda values: Decimal(sum(values)),
    # The largest of nothing is unknown.
    "max": lambda values: max(values, default=None),
    "min": lambda values: min(values, default=None),
}
_COMPILERS: dict[type[Node], Callable[[Any], Run]] = {
    Literal: _constant,
    Members: _constant,
    Fact: _fact,
    Arithmetic: _arithmetic,
    Comparison: _comparison,
    Membership: _membership,
    Not: _not,
    Junction: _junction,
    Choice: _choice,
    Fold: _fold,
}
