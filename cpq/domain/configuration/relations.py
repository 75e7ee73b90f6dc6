"""Relationships between the products of one quote: required, excluded and recommended products."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cpq.domain.pricing.request import ChosenComponent

PROBLEMS_MAX = 20
DEPTH_MAX = 8
"""The depth to which bundles within bundles are opened; it also stops a bundle that contains itself."""


class Relation(StrEnum):
    REQUIRES = "requires"
    EXCLUDES = "excludes"
    RECOMMENDS = "recommends"
    COMPONENT = "component"
    SUBSTITUTE = "substitute"


class QuotedProduct(NamedTuple):
    """The product and quantity of a line, and the components that the buyer chose for each piece."""

    product_id: str
    quantity: int | Decimal = 1
    chosen: tuple[ChosenComponent, ...] = ()


class ProductRelation(NamedTuple):
    """One relationship of a product, as the catalogue declares it."""

    product_id: str
    kind: Relation
    other_id: str
    quantity: int = 1


@dataclass(frozen=True, slots=True)
class Related:
    """A relationship that a quote violates: its owner, the line, and the other product."""

    line: int
    """The index of the first line concerned, from 0."""

    product_id: str
    """The product that declares the relationship: the line's own, or a component of it."""

    kind: Relation
    other_id: str
    message: str
    missing: int | Decimal | None = None
    """The missing quantity of the other product."""

    other_line: int | None = None
    """The line of the excluded product."""


@dataclass(frozen=True, slots=True)
class CheckedRelations:
    """The first 20 problems and the first 20 recommendations, by line and then as declared."""

    problems: tuple[Related, ...]
    problem_count: int
    advice: tuple[Related, ...]


def check_relations(lines: Sequence[QuotedProduct], relations: Iterable[ProductRelation]) -> CheckedRelations:
    """Check what the products of a quote require, exclude and recommend; pass the relations of components too.

    Components of a bundle count as quoted, and their requirements and exclusions apply as if they were quoted alone.
    Exclusions inside one line are ignored: the author of the bundle has decided that.
    """
    quote = _Quote(lines, relations)
    problems = sorted([*quote.requirements(), *quote.exclusions()], key=lambda problem: problem.line)
    advice = sorted(quote.recommendations(), key=lambda advice: advice.line)
    return CheckedRelations(tuple(problems[:PROBLEMS_MAX]), len(problems), tuple(advice[:PROBLEMS_MAX]))


class _Quote:
    """The products of a quote with their components."""

    def __init__(self, lines: Sequence[QuotedProduct], relations: Iterable[ProductRelation]) -> None:
        self._declared: dict[str, list[ProductRelation]] = defaultdict(list)
        for relation in relations:
            self._declared[relation.product_id].append(relation)
        named = {line.product_id for line in lines} | {part.product_id for line in lines for part in line.chosen}
        contents = {product_id: self._contents(product_id) for product_id in named}
        self._quoted = [line.product_id for line in lines]
        self._quantity: defaultdict[str, int | Decimal] = defaultdict(int)
        self._lines: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(lines):
            inside = Counter(contents[line.product_id])
            for part in line.chosen:
                inside.update({id_: count * part.quantity for id_, count in contents[part.product_id].items()})
            for product_id, count in inside.items():
                self._quantity[product_id] += count * line.quantity
                self._lines[product_id].append(index)

    def requirements(self) -> Iterator[Related]:
        for relation, line in self._of_kind(Relation.REQUIRES):
            missing = relation.quantity - self._quantity[relation.other_id]
            if missing > 0:
                what = relation.other_id if relation.quantity == 1 else f"{relation.quantity} × {relation.other_id}"
                message = f"{self._named(relation, line)} requires {what} in the quote."
                yield Related(line, relation.product_id, relation.kind, relation.other_id, message, missing=missing)

    def exclusions(self) -> Iterator[Related]:
        """Each pair of products once, whichever of them declares it."""
        seen: set[frozenset[str]] = set()
        for relation, _ in self._of_kind(Relation.EXCLUDES):
            pair = frozenset((relation.product_id, relation.other_id))
            apart = _apart(self._lines[relation.product_id], self._lines.get(relation.other_id, []))
            if apart is None or pair in seen:
                continue
            seen.add(pair)
            line, other = apart
            message = f"{self._named(relation, line)} and {relation.other_id} exclude each other in one quote."
            yield Related(line, relation.product_id, relation.kind, relation.other_id, message, other_line=other)

    def recommendations(self) -> Iterator[Related]:
        """Recommendations of the quoted products only; for the parts of a bundle its author has chosen."""
        for product_id in dict.fromkeys(self._quoted):
            for relation in self._declared.get(product_id, ()):
                if relation.kind is Relation.RECOMMENDS and not self._quantity[relation.other_id]:
                    message = f"{product_id} goes well with {relation.other_id}."
                    line = self._quoted.index(product_id)
                    yield Related(line, product_id, relation.kind, relation.other_id, message)

    def _of_kind(self, kind: Relation) -> Iterator[tuple[ProductRelation, int]]:
        """The relationships of all quoted products, each once, with the first line that has it."""
        for product_id, lines in self._lines.items():
            for relation in self._declared.get(product_id, ()):
                if relation.kind is kind:
                    yield relation, lines[0]

    def _named(self, relation: ProductRelation, line: int) -> str:
        quoted = self._quoted[line]
        return quoted if quoted == relation.product_id else f"{relation.product_id} in {quoted}"

    def _contents(self, product_id: str) -> Mapping[str, int]:
        """The product and all components of one piece of it."""
        if all(relation.kind is not Relation.COMPONENT for relation in self._declared.get(product_id, ())):
            return {product_id: 1}
        contents: Counter[str] = Counter()
        level = {product_id: 1}
        for _ in range(DEPTH_MAX):
            if not level:
                break
            contents.update(level)
            inside: dict[str, int] = defaultdict(int)
            for outer, count in level.items():
                for relation in self._declared.get(outer, ()):
                    if relation.kind is Relation.COMPONENT:
                        inside[relation.other_id] += count * relation.quantity
            level = inside
        return contents


def _apart(lines: list[int], others: list[int]) -> tuple[int, int] | None:
    """The first two different lines, one of each list. Two of each are enough: only one can be the same."""
    pairs = [(line, other) for line in lines[:2] for other in others[:2] if line != other]
    return min(pairs, key=max, default=None)
