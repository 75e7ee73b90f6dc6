"""Conditions as ranges and sets of each fact, to find conditions that are never true or lie inside another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

from cpq.base.money import plain
from cpq.domain.policy.facts import LINE_FACTS, QUOTE_FACTS
from cpq.domain.policy.language.nodes import (
    MIRRORED,
    OPPOSITE,
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
    Order,
    Value,
)

BOXES_MAX = 64


class Range(NamedTuple):
    """Numbers between two ends; None means no end."""

    low: Decimal | None = None
    is_low_in: bool = False
    high: Decimal | None = None
    is_high_in: bool = False

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and not (self.is_low_in and self.is_high_in))

    def meet(self, other: Range) -> Range:
        low = max((self.low, not self.is_low_in), (other.low, not other.is_low_in), key=_low_key)
        high = min((self.high, self.is_high_in), (other.high, other.is_high_in), key=_high_key)
        return Range(low[0], not low[1], high[0], high[1])

    def is_within(self, other: Range) -> bool:
        return self.is_empty or self.meet(other) == self


class Words(NamedTuple):
    """One of the values, or none of them."""

    values: frozenset[Value]
    is_excluded: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.is_excluded and not self.values

    def meet(self, other: Words) -> Words:
        if self.is_excluded and other.is_excluded:
            return Words(self.values | other.values, is_excluded=True)
        if self.is_excluded:
            return Words(other.values - self.values)
        return Words(self.values - other.values if other.is_excluded else self.values & other.values)

    def is_within(self, other: Words) -> bool:
        return self.is_empty or self.meet(other) == self


Box = Mapping[Node, Range | Words]
"""All of these hold at once."""

Region = tuple[Box, ...]
"""At least one of the boxes holds; no box means never."""


def region(node: Node, *, negated: bool = False) -> Region:
    """Where the condition is true (negated: false). A part that cannot be analysed counts as one unknown word."""
    match node:
        case Literal():
            return ({},) if node.value is not negated else ()
        case Not():
            return region(node.operand, negated=not negated)
        case Junction():
            parts = [region(part, negated=negated) for part in node.parts]
            joined = _all_of(parts) if (node.operator == "and") is not negated else _any_of(parts)
            return joined if joined is not None else _opaque(node, negated)
        case Comparison():
            return _comparison(node, negated)
        case Membership() if isinstance(node.members, Members):
            return _membership(node.item, node.members, negated)
        case Fold() if node.function in ("any", "all"):
            return _fold(node, negated)
        case _:
            return _opaque(node, negated)


def is_never(node: Node) -> bool:
    return not region(node)


def both(first: Region, second: Region) -> Region:
    """Where both are true; only the first if the result would have too many boxes."""
    met = _all_of([first, second])
    return first if met is None else met


def is_inside(box: Box, other: Box) -> bool:
    """Whether `box` is certainly inside `other`."""
    return all(node in box and box[node].is_within(domain) for node, domain in other.items())  # type: ignore[arg-type] # A fact has one kind of domain.


def key(found: Region) -> frozenset[frozenset[tuple[Node, Range | Words]]]:
    """A key that is equal for equivalent conditions."""
    return frozenset(frozenset(box.items()) for box in found)


def limits(node: Node) -> Range:
    """The declared bounds of a number."""
    if isinstance(node, Fold):
        return _fold_limits(node)
    if isinstance(node, Choice):
        return _hull(limits(node.then), limits(node.otherwise))
    if not isinstance(node, Fact):
        return Range()
    name = node.name.removeprefix("line.")
    declared = (LINE_FACTS if node.is_of_line else QUOTE_FACTS).get(name)
    if declared is None:
        return Range()
    return Range(declared.low, declared.low is not None, declared.high, declared.high is not None)


def worst(over: Node, where: Node | None, *, is_falling: bool) -> Node:
    """The number in `any(over > x for line in lines if where)`: the largest, or the smallest, of the lines.

    Without a filter it equals `max`, since a quote has a line. With a filter there may be no line, where `max` is
    unknown and `any` is false: then it gets its own name, which no condition can write.
    """
    if where is None:
        return Fold("min" if is_falling else "max", over, None, Kind.NUMBER)
    return Fold("all" if is_falling else "any", over, where, Kind.NUMBER)


def _whole(fold: Fold) -> Node:
    return fold.body if fold.where is None else Junction("and", (fold.where, fold.body))


def _fold(node: Fold, negated: bool) -> Region:
    """`all(x)` is `not any(not x)`, and `any(x > 5)` limits the largest x: one form for equivalent conditions."""
    body = node.body
    if node.function == "all":
        body, negated = _opposite(body), not negated
    if not negated and not region(_whole(Fold("any", body, node.where, Kind.BOOLEAN))):
        return ()
    if negated and node.where is None and not region(body, negated=True):
        return ()  # It would have to be false for the one line that every quote has.
    compared = _against_number(body)
    if compared is not None and compared[1] not in ("==", "!="):
        over, operator, bound = compared
        measured = worst(over, node.where, is_falling=operator in ("<", "<="))
        return within(measured, _ranges(OPPOSITE[operator] if negated else operator, bound))
    return _opaque(Fold("any", body, node.where, Kind.BOOLEAN), negated)


def _opposite(node: Node) -> Node:
    if isinstance(node, Not):
        return node.operand
    if isinstance(node, Comparison):
        return Comparison(OPPOSITE[node.operator], node.left, node.right)
    return Not(node)


def _against_number(node: Node) -> tuple[Node, Order, Decimal] | None:
    """A comparison of one number, after sums and factors are moved over, with a literal."""
    if not isinstance(node, Comparison) or node.left.kind is not Kind.NUMBER:
        return None
    if isinstance(node.right, Literal) and not isinstance(node.left, Arithmetic | Literal):
        assert isinstance(node.right.value, Decimal)
        return node.left, node.operator, node.right.value  # The form of nearly all conditions.
    left, right = _linear(node.left), _linear(node.right)
    if left is None or right is None or None not in (left.base, right.base):
        return None
    if left.base is None:
        left, right, operator = right, left, MIRRORED[node.operator]
    else:
        operator = node.operator
    if left.base is None or not left.factor:
        return None
    bound = (right.rest - left.rest) / left.factor
    exact = _as_decimal(bound)
    if exact is None:
        return None
    return left.base, operator if left.factor > 0 else MIRRORED[operator], exact


class _Linear(NamedTuple):
    """A number as factor times base plus rest; without a base it is the rest."""

    base: Node | None
    factor: Fraction
    rest: Fraction


def _linear(node: Node) -> _Linear | None:
    """None where there are two bases, or where it is not linear."""
    if isinstance(node, Literal):
        return _Linear(None, Fraction(0), Fraction(node.value)) if isinstance(node.value, Decimal) else None
    if not isinstance(node, Arithmetic):
        return _Linear(node, Fraction(1), Fraction(0))
    left, right = _linear(node.left), _linear(node.right)
    if left is None or right is None:
        return None
    if node.operator in ("+", "-"):
        return _added(left, right, 1 if node.operator == "+" else -1)
    if node.operator == "*" and left.base is None:
        left, right = right, left
    if right.base is not None or (node.operator == "/" and not right.rest):
        return None
    factor = right.rest if node.operator == "*" else 1 / right.rest
    return _Linear(left.base, left.factor * factor, left.rest * factor)


def _added(left: _Linear, right: _Linear, sign: int) -> _Linear | None:
    bases = {part.base for part in (left, right) if part.base is not None}
    if len(bases) > 1:
        return None
    factor = left.factor + sign * right.factor
    return _Linear(bases.pop() if bases else None, factor, left.rest + sign * right.rest)


def _as_decimal(number: Fraction) -> Decimal | None:
    """None when the result is not a finite decimal."""
    try:
        return plain(_EXACT.divide(Decimal(number.numerator), Decimal(number.denominator)))
    except ArithmeticError:
        return None


def _comparison(node: Comparison, negated: bool) -> Region:
    if node.left.kind is Kind.NUMBER:
        return _number_comparison(node, negated)
    operator = OPPOSITE[node.operator] if negated else node.operator
    left, right = node.left, node.right
    if isinstance(left, Literal):
        left, right, operator = right, left, MIRRORED[operator]
    if isinstance(left, Literal) and isinstance(right, Literal):
        return ({},) if (left.value == right.value) is (operator == "==") else ()
    if not isinstance(right, Literal):
        return _opaque(node, negated)
    if left.kind is Kind.BOOLEAN:
        return region(left, negated=(operator == "==") is not right.value)
    return ({left: Words(frozenset({right.value}), is_excluded=operator == "!=")},)


def _number_comparison(node: Comparison, negated: bool) -> Region:
    operator = OPPOSITE[node.operator] if negated else node.operator
    compared = _against_number(Comparison(operator, node.left, node.right))
    if compared is not None:
        base, order, bound = compared
        return within(base, _ranges(order, bound))
    left, right = _linear(node.left), _linear(node.right)
    both = _added(left, right, -1) if left is not None and right is not None else None
    if both is not None and not both.factor:
        # No variable is left: 5 > 6, net < net, discount == discount + 1.
        return ({},) if _HOLDS[operator](both.rest, 0) else ()
    if both is not None and both.base is not None:
        single = _as_decimal(-both.rest / both.factor)
        if single is not None:
            return within(both.base, _ranges(operator if both.factor > 0 else MIRRORED[operator], single))
    return _opaque(node, negated)


def _membership(item: Node, members: Members, negated: bool) -> Region:
    if members.kind is Kind.TEXTS:
        return ({item: Words(members.values, is_excluded=negated)},)
    numbers = sorted(value for value in members.values if isinstance(value, Decimal))
    if not negated:
        return within(item, [Range(number, True, number, True) for number in numbers])
    ends = [None, *numbers, None]
    return within(item, [Range(low, False, high, False) for low, high in pairwise(ends)])


def _ranges(operator: Order, bound: Decimal) -> list[Range]:
    return {
        ">": [Range(low=bound)],
        ">=": [Range(low=bound, is_low_in=True)],
        "<": [Range(high=bound)],
        "<=": [Range(high=bound, is_high_in=True)],
        "==": [Range(bound, True, bound, True)],
        "!=": [Range(high=bound), Range(low=bound)],
    }[operator]


def within(node: Node, ranges: list[Range]) -> Region:
    """Where the number is in one of the ranges."""
    known = limits(node)
    found = [met for part in ranges if not (met := part.meet(known)).is_empty]
    # A range that covers the declared bounds is no restriction.
    return ({},) if known in found else tuple({node: met} for met in found)


def _fold_limits(node: Fold) -> Range:
    inside = limits(node.body) if node.body.kind is Kind.NUMBER else Range()
    if node.function in ("min", "max"):
        return inside
    if node.function == "sum" and inside.low is not None and inside.low >= 0:
        return Range(Decimal(0), True)
    if node.function == "count":
        return Range(Decimal(0), True) if region(_whole(node)) else Range(Decimal(0), True, Decimal(0), True)
    return Range()


def _hull(one: Range, other: Range) -> Range:
    """The range that covers both."""
    low = min((one.low, not one.is_low_in), (other.low, not other.is_low_in), key=_low_key)
    high = max((one.high, one.is_high_in), (other.high, other.is_high_in), key=_high_key)
    return Range(low[0], not low[1] if low[0] is not None else False, high[0], high[1])


def _opaque(node: Node, negated: bool) -> Region:
    return ({node: Words(frozenset({not negated}))},)


def _any_of(parts: list[Region]) -> Region | None:
    boxes = tuple(box for part in parts for box in part)
    return boxes if len(boxes) <= BOXES_MAX else None


def _all_of(parts: list[Region]) -> Region | None:
    boxes: list[Box] = [{}]
    for part in parts:
        boxes = [met for box in boxes for other in part if (met := _meet(box, other)) is not None]
        if len(boxes) > BOXES_MAX:
            return None
    return tuple(boxes)


def _meet(box: Box, other: Box) -> Box | None:
    met = dict(box)
    for node, domain in other.items():
        mine = met.get(node)
        both = domain if mine is None else mine.meet(domain)  # type: ignore[arg-type] # A fact has one kind of domain.
        if both.is_empty:
            return None
        met[node] = both
    return met


_EXACT = Context(prec=40, traps=[Inexact, DivisionByZero, InvalidOperation])
_HOLDS: Mapping[Order, Callable[[Fraction, int], bool]] = {
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
    "==": eq,
    "!=": ne,
}


def _low_key(end: tuple[Decimal | None, bool]) -> tuple[bool, Decimal, bool]:
    return end[0] is not None, end[0] or Decimal(0), end[1]


def _high_key(end: tuple[Decimal | None, bool]) -> tuple[bool, Decimal, bool]:
    return end[0] is None, end[0] or Decimal(0), end[1]
