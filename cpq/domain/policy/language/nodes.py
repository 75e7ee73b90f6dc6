"""The nodes of a parsed condition: a small tree of values, each with its kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal as Words
from typing import NamedTuple

Value = Decimal | str | bool
Folding = Words["any", "all", "sum", "min", "max", "count"]
Order = Words["<", "<=", ">", ">=", "==", "!="]

MIRRORED: dict[Order, Order] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
OPPOSITE: dict[Order, Order] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class Kind(StrEnum):
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    TEXTS = "set of text"
    NUMBERS = "set of numbers"
    LINES = "list of lines"


class Declared(NamedTuple):
    """A name that a condition may use. `absent` is the value of an attribute that the product does not have."""

    kind: Kind
    absent: Value | None = None
    words: frozenset[str] = frozenset()
    """All possible texts; empty when it can be any text."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    kind: Kind


@dataclass(frozen=True, slots=True)
class Members:
    """A written set, such as `{"EUR", "GBP"}`."""

    values: frozenset[Value]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Fact:
    """A declared fact of the quote (`net`), of a line (`line.net`) or a line's attribute (`line.attributes.hp`)."""

    name: str
    kind: Kind
    absent: Value | None = None

    @property
    def is_of_line(self) -> bool:
        return self.name.startswith("line.")

    @property
    def is_attribute(self) -> bool:
        return self.name.startswith("line.attributes.")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: Words["+", "-", "*", "/"]
    left: Node
    right: Node
    kind: Kind = Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: Order
    left: Node
    right: Node
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Membership:
    item: Node
    members: Node
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Junction:
    """`and` or `or` of two or more conditions."""

    operator: Words["and", "or"]
    parts: tuple[Node, ...]
    kind: Kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Choice:
    """`then if test else otherwise`."""

    test: Node
    then: Node
    otherwise: Node
    kind: Kind


@dataclass(frozen=True, slots=True)
class Fold:
    """`function(body for line in lines if where)`."""

    function: Folding
    body: Node
    where: Node | None
    kind: Kind


Node = Literal | Members | Fact | Arithmetic | Comparison | Membership | Not | Junction | Choice | Fold


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Arithmetic() | Comparison():
            return node.left, node.right
        case Membership():
            return node.item, node.members
        case Not():
            return (node.operand,)
        case Junction():
            return node.parts
        case Choice():
            return node.test, node.then, node.otherwise
        case Fold():
            return (node.body,) if node.where is None else (node.body, node.where)
        case Literal() | Members() | Fact():
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it."""
    yield node
    for child in children(node):
        yield from walk(child)


def depth(node: Node) -> int:
    return 1 + max(map(depth, children(node)), default=0)


def facts_in(node: Node) -> frozenset[str]:
    return frozenset(part.name for part in walk(node) if isinstance(part, Fact))
