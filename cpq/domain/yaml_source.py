"""Reads untrusted YAML that people write, such as a policy file, and remembers the place of every value in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import yaml

from cpq.base.text import clean

BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 12
NUMBER_LENGTH_MAX = 30

Path = Sequence[str | int]


class Problem(NamedTuple):
    """A problem of a file with its place; lines and columns count from 1."""

    file: str
    line: int
    column: int
    message: str
    nearest: tuple[str, ...] = ()

    def details(self) -> dict[str, object]:
        near = {"nearest": list(self.nearest)} if self.nearest else {}
        return {"file": self.file, "line": self.line, "column": self.column, "message": self.message, **near}


class Place(NamedTuple):
    line: int
    column: int
    at: int


class UnreadableError(Exception):
    """The text is not YAML, or uses YAML that is not allowed here."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Marked:
    """A value and its place. A mapping also has the places of its names."""

    value: Decimal | str | bool | list[Marked] | dict[str, Marked] | None
    mark: Place
    end: int
    names: dict[str, Place] = field(default_factory=dict)

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {name: item.plain() for name, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


@dataclass(frozen=True)
class Document:
    file: str
    text: str
    root: Marked

    def problem(self, path: Path, message: str, near: Sequence[str] = (), offset: int | None = None) -> Problem:
        """A problem at the value under `path`, `offset` characters into it; at the name if there is no value."""
        node, mark = self._at(path)
        if offset is not None and node is not None and isinstance(node.value, str):
            line, column = self._place_in(node, offset)
            return Problem(self.file, line, column, message, tuple(near))
        return Problem(self.file, mark.line, mark.column, message, tuple(near))

    def problem_at_name(self, path: Path, message: str, near: Sequence[str] = ()) -> Problem:
        """A problem with the name itself, the last of `path`."""
        owner, mark = self._at(path[:-1])
        if owner is not None and isinstance(path[-1], str):
            mark = owner.names.get(path[-1], mark)
        return Problem(self.file, mark.line, mark.column, message, tuple(near))

    def known_part(self, path: Path) -> Path:
        """The longest part of the path that leads to a value."""
        return next(path[:length] for length in range(len(path), -1, -1) if self._at(path[:length])[0] is not None)

    def _at(self, path: Path) -> tuple[Marked | None, Place]:
        node = self.root
        for part in path:
            inside: Marked | None = None
            if isinstance(node.value, dict) and isinstance(part, str):
                inside = node.value.get(part)
            elif isinstance(node.value, list) and isinstance(part, int):
                inside = node.value[part] if part < len(node.value) else None
            if inside is None:
                return None, node.mark
            node = inside
        return node, node.mark

    def _place_in(self, node: Marked, offset: int) -> tuple[int, int]:
        """YAML folds blanks and escapes quotes; everything else is in the text in the same order."""
        value = str(node.value)
        position, end = node.mark.at, node.end
        if self.text[position : position + 1] in ("|", ">"):
            position = self.text.find("\n", position) + 1
        elif self.text[position : position + 1] in ("'", '"'):
            position += 1
        wanted = value[: offset + 1].strip() or value[:1]
        found = position
        for character in wanted:
            if not character.isspace():
                here = self.text.find(character, position, end)
                if here < 0:
                    break  # Written as an escape; this place is close enough.
                found, position = here, here + 1
        beyond = 1 if offset >= len(value.rstrip()) else 0
        before = self.text[: found + beyond]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


def too_large() -> str:
    return f"such a file has at most {BYTES_MAX // 1024**2} MB"


def read_document(file: str, text: str) -> Document:
    """The whole file as one mapping; UnreadableError with the reason when it cannot be read."""
    if len(text) > BYTES_MAX:
        raise UnreadableError(Problem(file, 1, 1, too_large()))
    try:
        return Document(file, text, _Builder(file, text).root())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise UnreadableError(Problem(file, line, column, f"not YAML: {error.problem}")) from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise UnreadableError(Problem(file, line, 1, f"not YAML: {error.reason}")) from None


NOTHING = "the file is empty; write `{}` if it has no content"
"""A program that saves a file empties it first: the caps must not vanish at that moment, or when the disk is full."""


class _Builder:
    """Builds from the parser's events: PyYAML's own composer overflows the stack when nested deeply enough."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))

    def root(self) -> Marked:
        first = next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise self._refusal(_start(first), NOTHING)
        root = self._value(next(self._events))
        if not isinstance(root.value, dict | None):
            raise self._refusal(root.mark, "the file is a mapping of names to values")
        next(self._events)  # The document ends.
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refusal(_start(after), "a second document begins")
        if root.value is None:
            raise self._refusal(root.mark, NOTHING)
        return root

    def _value(self, event: Any, depth: int = 1) -> Marked:
        if depth > DEPTH_MAX:
            raise self._refusal(_start(event), f"nested more than {DEPTH_MAX} levels deep")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            # A few of them can expand a small file to a huge one.
            raise self._refusal(_start(event), "anchors and aliases are not allowed")
        if event.tag is not None:
            raise self._refusal(_start(event), f"the tag {event.tag} is not allowed")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(_start(event), depth)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            return Marked(items, _start(event), _end(item))
        return Marked(self._scalar(event), _start(event), _end(event))

    def _mapping(self, mark: Place, depth: int) -> Marked:
        values: dict[str, Marked] = {}
        names: dict[str, Place] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refusal(_start(event), "a name is a single word or text")
            name = self._clean(event)
            if name in names:
                raise self._refusal(_start(event), f"{name} is given twice, first on line {names[name].line}")
            names[name] = _start(event)
            values[name] = self._value(next(self._events), depth + 1)
        return Marked(values, mark, _end(event), names)

    def _scalar(self, event: Any) -> Decimal | str | bool | None:
        """Only unambiguous values: no `yes`, no `017`, no `12:30`, no float. The rest is text."""
        text = self._clean(event)
        if not event.implicit[0]:
            return text
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        return Decimal(text) if len(text) <= NUMBER_LENGTH_MAX and _NUMBER.fullmatch(text) else text

    def _clean(self, event: Any) -> str:
        try:
            return clean(str(event.value))
        except ValueError as error:
            raise self._refusal(_start(event), str(error)) from None

    def _refusal(self, mark: Place, message: str) -> UnreadableError:
        return UnreadableError(Problem(self._file, mark.line, mark.column, message))


def _start(event: Any) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1, mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
