"""A feature model: features with their groups, and constraints between features as propositional formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Operator(StrEnum):
    NOT = "!"
    AND = "&"
    OR = "|"
    IMPLIES = "=>"
    EQUALS = "<=>"


@dataclass(frozen=True, slots=True)
class Formula:
    """A junction of formulas; without an operator the name of a feature."""

    operator: Operator | None
    name: str = ""
    parts: tuple[Formula, ...] = ()


@dataclass(slots=True)
class Group:
    """Features below one feature, and how many of them it demands."""

    kind: str
    """`mandatory` and `optional` concern each feature, `or`, `alternative` and `[n..m]` all together."""

    minimum: int
    maximum: int | None
    members: list[Feature] = field(default_factory=list)
    line: int = 0


@dataclass(slots=True)
class Feature:
    name: str
    line: int
    groups: list[Group] = field(default_factory=list)


class Constraint(NamedTuple):
    formula: Formula
    text: str
    line: int


class Loss(NamedTuple):
    """A part of a file that has no counterpart here."""

    line: int
    part: str
    reason: str


@dataclass
class FeatureModel:
    root: Feature
    constraints: list[Constraint] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def features(self) -> Iterator[Feature]:
        """Every feature, each before those below it, in the order of the file."""
        waiting = [self.root]
        while waiting:
            feature = waiting.pop()
            yield feature
            waiting += [one for group in reversed(feature.groups) for one in reversed(group.members)]
