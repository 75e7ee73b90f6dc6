"""PURE. What a condition demands of each fact, as ranges and sets: enough to see that it never holds or is implied."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from cpq.policy.facts import LINE_FACTS, QUOTE_FACTS
from cpq.policy.nodes import (
    MIRRORED,
    OPPOSITE,
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
    """Numbers between two ends; None is open for ever."""

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
    """Where the condition holds (or, negated, does not). What cannot be taken apart counts as one unknown word."""
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
        case Fold() if node.function == "any" and not negated and not region(_whole(node)):
            return ()
        case _:
            return _opaque(node, negated)


def is_never(node: Node) -> bool:
    return not region(node)


def implies(first: Region, second: Region) -> bool:
    """Whether everything in `first` is surely in `second`."""
    return all(any(_is_within(box, other) for other in second) for box in first)


def key(found: Region) -> frozenset[frozenset[tuple[Node, Range | Words]]]:
    """Equal for conditions that demand the same."""
    return frozenset(frozenset(box.items()) for box in found)


def limits(node: Node) -> Range:
    """The bounds a number never leaves, as its declaration says."""
    if isinstance(node, Fold) and node.function in ("min", "max"):
        return limits(node.body)
    if not isinstance(node, Fact):
        return Range()
    name = node.name.removeprefix("line.")
    declared = (LINE_FACTS if node.is_of_line else QUOTE_FACTS).get(name)
    if declared is None:
        return Range()
    return Range(declared.low, declared.low is not None, declared.high, declared.high is not None)


def _whole(fold: Fold) -> Node:
    return fold.body if fold.where is None else Junction("and", (fold.where, fold.body))


def _comparison(node: Comparison, negated: bool) -> Region:
    operator = OPPOSITE[node.operator] if negated else node.operator
    left, right = node.left, node.right
    if isinstance(left, Literal):
        left, right, operator = right, left, MIRRORED[operator]
    if not isinstance(right, Literal) or isinstance(left, Literal):
        return _opaque(node, negated)
    if left.kind is Kind.NUMBER:
        assert isinstance(right.value, Decimal)
        return _boxes(left, _ranges(operator, right.value))
    if left.kind is Kind.BOOLEAN:
        return region(left, negated=(operator == "==") is not right.value)
    return ({left: Words(frozenset({right.value}), is_excluded=operator == "!=")},)


def _membership(item: Node, members: Members, negated: bool) -> Region:
    if members.kind is Kind.TEXTS:
        return ({item: Words(members.values, is_excluded=negated)},)
    numbers = sorted(value for value in members.values if isinstance(value, Decimal))
    if not negated:
        return _boxes(item, [Range(number, True, number, True) for number in numbers])
    ends = [None, *numbers, None]
    return _boxes(item, [Range(low, False, high, False) for low, high in pairwise(ends)])


def _ranges(operator: Order, bound: Decimal) -> list[Range]:
    return {
        ">": [Range(low=bound)],
        ">=": [Range(low=bound, is_low_in=True)],
        "<": [Range(high=bound)],
        "<=": [Range(high=bound, is_high_in=True)],
        "==": [Range(bound, True, bound, True)],
        "!=": [Range(high=bound), Range(low=bound)],
    }[operator]


def _boxes(node: Node, ranges: list[Range]) -> Region:
    known = limits(node)
    return tuple({node: met} for part in ranges if not (met := part.meet(known)).is_empty)


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


def _is_within(box: Box, other: Box) -> bool:
    return all(node in box and box[node].is_within(domain) for node, domain in other.items())  # type: ignore[arg-type] # As above.


def _low_key(end: tuple[Decimal | None, bool]) -> tuple[bool, Decimal, bool]:
    return end[0] is not None, end[0] or Decimal(0), end[1]


def _high_key(end: tuple[Decimal | None, bool]) -> tuple[bool, Decimal, bool]:
    return end[0] is None, end[0] or Decimal(0), end[1]
