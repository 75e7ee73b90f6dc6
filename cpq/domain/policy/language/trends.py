"""The trend of a condition with each fact, which decides whether a changed fact needs a new approval."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from cpq.domain.policy.language.nodes import (
    Arithmetic,
    Choice,
    Comparison,
    Fact,
    Fold,
    Junction,
    Literal,
    Node,
    Not,
    facts_in,
)


class Trend(StrEnum):
    """How a value follows a fact: a smaller fact never makes a condition true that RISES with it."""

    RISES = "rises"
    FALLS = "falls"
    EITHER = "either"


def trends(node: Node) -> dict[str, Trend]:
    """Every fact that the node reads, and how the node follows it (false counts below true)."""
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
