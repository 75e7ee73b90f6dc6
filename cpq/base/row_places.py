"""Where in a YAML file the values of its rows stand: the line and column of what a problem names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

NAMED_BY = ("id", "name")
"""What an item of a list is called by in the field of a problem, where that is not its number."""


class Place(NamedTuple):
    line: int
    column: int


class _Node(NamedTuple):
    place: Place
    text: str = ""
    parts: tuple[tuple[str, Place, _Node], ...] = ()
    """The members of a mapping with their names, or the items of a list with their numbers."""


def places(path: Path, problems: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Place]:
    """For each problem, as the line of a row and a field of it, the place of the field in a YAML file.

    A field such as `rules.R1.say` that is not there has the place of the nearest thing around it that is. The file must
    have been read before: nothing in it is nested too deeply.
    """
    wanted: dict[int, set[str]] = {}
    for line, field in problems:
        wanted.setdefault(line, set()).add(field)
    found: dict[tuple[int, str], Place] = {}
    events = yaml.parse(path.read_text(encoding="utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for event in events:
        if isinstance(event, yaml.MappingStartEvent) and _place(event).line in wanted:
            row = _node(event, events)
            for field in wanted.pop(row.place.line):
                found[row.place.line, field] = _inside(row, field)
    return found


def _node(event: yaml.Event, events: Iterator[Any]) -> _Node:
    parts: list[tuple[str, Place, _Node]] = []
    if isinstance(event, yaml.SequenceStartEvent):
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            parts.append((str(len(parts)), _place(item), _node(item, events)))
    elif isinstance(event, yaml.MappingStartEvent):
        while not isinstance(name := next(events), yaml.MappingEndEvent):
            parts.append((name.value, _place(name), _node(next(events), events)))
    return _Node(_place(event), str(getattr(event, "value", "")), tuple(parts))


def _inside(node: _Node, field: str) -> Place:
    """The place of the innermost part that the field names; names may have dots themselves."""
    place, left = node.place, field
    while left:
        inner = next((one for one in node.parts if any(_begins(left, name) for name in _names(one))), None)
        if inner is None:
            break
        name = max((name for name in _names(inner) if _begins(left, name)), key=len)
        place, node, left = inner[1], inner[2], left[len(name) + 1 :]
    return place


def _names(part: tuple[str, Place, _Node]) -> list[str]:
    name, _, inner = part
    return [name, *(one.text for called, _, one in inner.parts if called in NAMED_BY and one.text)]


def _begins(field: str, name: str) -> bool:
    return field == name or field.startswith(f"{name}.")


def _place(event: yaml.Event) -> Place:
    assert event.start_mark is not None
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)
