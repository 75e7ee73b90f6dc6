"""Reads a file of guides and compares it with the catalogue; every problem has its line and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cpq.base.errors import Code, CpqError, nearest
from cpq.domain.catalog import units
from cpq.domain.configuration.options import Option, Scalar, number, one_of, shown
from cpq.domain.guided_selling.guide import GuidesFile, GuideShape, Mention, mentions, require_unique
from cpq.domain.yaml_shapes import read_shape
from cpq.domain.yaml_source import Document, Problem, UnreadableError, read_document


@dataclass
class Known:
    """What a catalogue has under one name: the kinds of its values, the values that can be listed, and units."""

    values: set[Scalar] = field(default_factory=set)
    free: set[type] = field(default_factory=set)
    """Types whose every value is possible."""

    units: set[str] = field(default_factory=set)

    def has_numbers(self) -> bool:
        return Decimal in self.free or any(isinstance(value, Decimal) for value in self.values)

    def has(self, value: Scalar) -> bool:
        return type(value) in self.free or any(type(one) is type(value) and one == value for one in self.values)


Catalogue = Mapping[str, Known]


@dataclass(frozen=True)
class GuidesRead:
    """The guides of a readable file."""

    document: Document
    guides: tuple[GuideShape, ...]

    def problems(self, place: int, catalogue: Catalogue, categories: Iterable[str]) -> Iterator[Problem]:
        """What the guide names and the catalogue does not have."""
        guide, known = self.guides[place], set(categories)
        for index, category in enumerate(guide.categories):
            if category not in known:
                where = ("guides", place, "categories", index)
                yield self.document.problem(where, f"there is no category {category}", nearest(category, known))
        if not known.issuperset(guide.categories):
            return
        for mention in mentions(guide):
            path = ("guides", place, *mention.path)
            message = _fault(mention, catalogue.get(mention.name))
            if message and mention.name in catalogue:
                yield self.document.problem(path, message)
            elif message:
                yield self.document.problem(path, message, nearest(mention.name, catalogue))


def read_guides(file: str, text: str) -> GuidesRead:
    """The guides of a file; VALIDATION_ERROR names every problem with its line and column."""
    problems: list[Problem] = []
    try:
        document = read_document(file, text)
    except UnreadableError as error:
        raise invalid([error.problem]) from None
    read = read_shape(document, GuidesFile, problems)
    if problems or read is None:
        raise invalid(problems)
    assert isinstance(read.shape, GuidesFile)
    guides = read.shape.guides
    try:
        require_unique("the guide", (guide.id for guide in guides))
    except ValueError as error:
        raise invalid([document.problem(("guides",), str(error))]) from None
    return GuidesRead(document, guides)


def invalid(problems: Sequence[Problem]) -> CpqError:
    ordered = sorted(set(problems))
    first, more = ordered[0], f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    return CpqError(
        Code.VALIDATION_ERROR,
        f"{first.file}, line {first.line}, column {first.column}: {first.message}{more}; nothing was imported.",
        problems=[problem.details() for problem in ordered],
    )


def known_names(
    specs: Iterable[Mapping[str, Any]], attributes: Iterable[Mapping[str, Any]], options: Iterable[Option]
) -> dict[str, Known]:
    """What categories and products have under each name."""
    found: dict[str, Known] = {}
    for declared in (*specs, *attributes):
        for name, definition in declared.items():
            _add(found.setdefault(name, Known()), definition.get("kind") or definition["type"], definition)
    for option in options:
        known = found.setdefault(option.name, Known())
        known.values.update(option.possible())
        if not option.possible():
            known.free.add(Decimal if option.kind == "number" else str)
        if option.row.unit:
            known.units.add(option.row.unit)
    return found


def _add(known: Known, kind: str, definition: Mapping[str, Any]) -> None:
    if kind == "enum":
        known.values.update(definition["values"])
    elif kind == "boolean":
        known.free.add(bool)
    else:
        known.free.add(Decimal if kind in ("number", "integer") else str)
    if definition.get("unit"):
        known.units.add(definition["unit"])


def _fault(mention: Mention, known: Known | None) -> str | None:
    if known is None:
        return f"no product of these categories has an option, a spec or an attribute {mention.name}"
    if mention.is_number and not known.has_numbers():
        return f"{mention.name} is not a number"
    if mention.unit is not None and known.units and not any(_is_same(mention.unit, unit) for unit in known.units):
        return f"{mention.name} is in {' or '.join(sorted(known.units))}, not in {mention.unit}"
    for value in mention.values:
        typed = value if isinstance(value, bool | str) else number(value)
        if not known.has(typed):
            listed = sorted(known.values, key=str)
            words = f"; it is {one_of(tuple(listed))}" if listed else ""
            return f"{mention.name} is never {shown(typed)}{words}"
    return None


def _is_same(unit: str, other: str) -> bool:
    known = units.unit_named(unit)
    return unit.casefold() == other.casefold() or (known is not None and known == units.unit_named(other))
