"""PURE. Turns a condition's tree into closures. None is unknown: what depends on it is unknown too."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

from cpq.policy.facts import WORKING, ColumnRange, FactsEnvironment, LineInputs, attribute_value
from cpq.policy.nodes import (
    MIRRORED,
    Arithmetic,
    Choice,
    Comparison,
    Fact,
    Fold,
    Junction,
    Kind,
    Literal,
    Members,
    Membership,
    Node,
    Not,
    Value,
    facts_in,
    walk,
)

Run = Callable[[FactsEnvironment, LineInputs | None], Any]
"""A compiled part: a value of its kind, or None. ArithmeticError where it cannot be worked out."""


class Trend(StrEnum):
    """How a value follows a fact: a condition that RISES with it is left alone by a smaller fact."""

    RISES = "rises"
    FALLS = "falls"
    EITHER = "either"


def compiled(node: Node) -> Run:
    return _COMPILERS[type(node)](node)


def trends(node: Node) -> dict[str, Trend]:
    """Every fact the node reads, and how the node follows it (false counts below true)."""
    match node:
        case Fact():
            return {node.name: Trend.RISES}
        case Not():
            return _flipped(trends(node.operand))
        case Junction():
            return _joined(*map(trends, node.parts))
        case Comparison() if node.operator in (">", ">="):
            return _joined(trends(node.left), _flipped(trends(node.right)))
        case Comparison() if node.operator in ("<", "<="):
            return _joined(_flipped(trends(node.left)), trends(node.right))
        case Arithmetic():
            return _arithmetic_trends(node)
        case Choice():
            return _joined(dict.fromkeys(facts_in(node.test), Trend.EITHER), trends(node.then), trends(node.otherwise))
        case Fold():
            return _fold_trends(node)
        case _:
            return dict.fromkeys(facts_in(node), Trend.EITHER)


def _arithmetic_trends(node: Arithmetic) -> dict[str, Trend]:
    left, right = trends(node.left), trends(node.right)
    if node.operator == "+":
        return _joined(left, right)
    if node.operator == "-":
        return _joined(left, _flipped(right))
    if isinstance(node.right, Literal):
        return left if _is_positive(node.right) else _flipped(left)
    if node.operator == "*" and isinstance(node.left, Literal):
        return right if _is_positive(node.left) else _flipped(right)
    return dict.fromkeys(left | right, Trend.EITHER)


def _fold_trends(node: Fold) -> dict[str, Trend]:
    where = {} if node.where is None else trends(node.where)
    if node.function == "all":
        where = _flipped(where)
    elif node.function not in ("any", "count"):
        where = dict.fromkeys(where, Trend.EITHER)
    return _joined(trends(node.body), where)


def _is_positive(literal: Literal) -> bool:
    return isinstance(literal.value, Decimal) and literal.value >= 0


def _flipped(found: Mapping[str, Trend]) -> dict[str, Trend]:
    other = {Trend.RISES: Trend.FALLS, Trend.FALLS: Trend.RISES, Trend.EITHER: Trend.EITHER}
    return {name: other[trend] for name, trend in found.items()}


def _joined(*parts: Mapping[str, Trend]) -> dict[str, Trend]:
    joined: dict[str, Trend] = {}
    for part in parts:
        for name, trend in part.items():
            joined[name] = trend if joined.get(name, trend) is trend else Trend.EITHER
    return joined


def _constant(node: Literal | Members) -> Run:
    value = node.value if isinstance(node, Literal) else node.values
    return lambda _environment, _line: value


def _fact(node: Fact) -> Run:
    name = node.name
    if name.startswith("line.attributes."):
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
    """The common case, a fact against a written value, without a call for either side."""
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

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> Decimal | None:
        # Every line is looked at, even when one is unknown: a fault must not depend on the order of the lines.
        values = []
        for line in environment.lines:
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
    condition = compiled(whole)
    if any(isinstance(part, Arithmetic) for part in walk(whole)):
        return _patient_quantifier(condition, is_any=is_any)

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
        result: bool | None = not is_any
        for line in environment.lines:
            value: bool | None = condition(environment, line)
            if value is is_any:
                return is_any
            if value is None:
                result = None
        return result

    return run


def _patient_quantifier(condition: Run, *, is_any: bool) -> Run:
    """Looks at every line although one decides: a fault must not depend on the order of the lines."""

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
        values = {condition(environment, line) for line in environment.lines}
        return is_any if is_any in values else None if None in values else not is_any

    return run


def _range_quantifier(node: Fold) -> Run | None:
    """any(line.discount > 20 for line in lines) asks only for the largest discount, worked out once a quote."""
    body = node.body
    if node.where is not None or not isinstance(body, Comparison) or body.operator in ("==", "!="):
        return None
    if isinstance(body.left, Literal):
        body = Comparison(MIRRORED[body.operator], body.right, body.left)
    fact, bound = body.left, body.right
    is_column = isinstance(fact, Fact) and fact.is_of_line and not fact.name.startswith("line.attributes.")
    if not is_column or not isinstance(bound, Literal) or bound.kind is not Kind.NUMBER:
        return None
    is_any, compare, limit = node.function == "any", _ORDERS[body.operator], bound.value
    key = ("column", fact.name.removeprefix("line."))  # type: ignore[union-attr] # A fact, as checked.
    end = 1 if (body.operator in (">", ">=")) is is_any else 0

    def run(environment: FactsEnvironment, _line: LineInputs | None) -> bool | None:
        column = environment[key]
        assert isinstance(column, ColumnRange)
        extreme = column[end]
        if extreme is not None and compare(extreme, limit) is is_any:
            return is_any
        return None if column.has_unknown else not is_any

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
