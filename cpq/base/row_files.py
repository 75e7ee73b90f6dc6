"""Reads rows, each with its line number, from untrusted CSV, Excel, JSON, JSON Lines and YAML files."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import yaml

from cpq.base.errors import CpqError, bad_field
from cpq.base.row_problems import SourceRow
from cpq.base.text import with_formula
from cpq.base.workbook import read_sheet
from cpq.base.written_numbers import marked

WHOLE_FILE_BYTES_MAX = 64 * 1024 * 1024
"""JSON and YAML files are read whole; larger data must be CSV or JSON Lines, which are streamed."""

DEPTH_MAX = 32
CELL_LENGTH_MAX = 1_000_000
NUMBER_LENGTH_MAX = 400
BLANK_BYTES_MAX = 4_096
STRUCTURED = {"attributes", "specs", "options", "rules", "recommend", "relationships", "bundle", "tiers", "surcharges"}
STRUCTURED |= {"sets", "when", "then", "forbid", "compare", "requires", "excludes"}
STRUCTURED |= {"line_items", "ramp", "custom", "commitment"}
"""Columns whose cells hold JSON."""

GROUPED = ("spec", "attribute")
"""`spec.hp` and `attribute.model` are columns of the fields `specs` and `attributes`."""


Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the total."""


def read_rows(
    path: Path, section: str, progress: Progress = lambda _done, _total: None, *, sheet: str | None = None
) -> Iterator[SourceRow]:
    """The rows of a file in order. `section` applies when the file names none (a bare list, a CSV).

    `sheet` names the sheet of a workbook; without it, the first one is read.
    """
    if not path.is_file():
        raise bad_field("FILE", f"there is no file {path.name}")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise bad_field("FILE", f"{path.name} is not one of {', '.join(_READERS)}", allowed=list(_READERS))
    if sheet is not None and reader is not _read_workbook:
        raise bad_field("--sheet", f"{path.name} has no sheets; only a workbook (.xlsx) has them")
    if _is_blank(path):
        raise bad_field("FILE", f"{path.name} is empty; expected {section}: {_EXPECTED[reader]}")
    try:
        yield from _read_workbook(path, section, progress, sheet) if sheet else reader(path, section, progress)
    except UnicodeDecodeError:
        raise _fault(path, _undecodable_line(path), "not UTF-8 text") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """The one mapping of a JSON or YAML file, read as exactly as rows are."""
    suffixes = (".json", ".yaml", ".yml")
    if path.suffix.lower() not in suffixes:
        raise bad_field("FILE", f"{path.name} is not one of {', '.join(suffixes)}", allowed=list(suffixes))
    if _is_blank(path):
        raise bad_field("FILE", f"{path.name} is empty; expected names with values")
    try:
        text = _whole_text(path)
    except UnicodeDecodeError:
        raise _fault(path, _undecodable_line(path), "not UTF-8 text") from None
    if path.suffix.lower() == ".json":
        document = _JsonDocument(path, text)
        value = document.value()
        document.end()
        return _mapping(path, 1, value)
    with _yaml_faults(path, text):
        return _mapping(path, 1, _YamlDocument(path, text).whole())


def columns_of(path: Path) -> dict[str, str]:
    """Fields that a CSV spreads over several columns, each with its column: `specs.hp` is the column `spec.hp`."""
    if path.suffix.lower() != ".csv":
        return {}
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline()
        parts = [name.strip().partition(".") for name in next(csv.reader([first], delimiter=_delimiter(first)), [])]
    return {f"{group}s.{member}": f"{group}.{member}" for group, _, member in parts if group in GROUPED}


def _read_csv(path: Path, section: str, progress: Progress) -> Iterator[SourceRow]:
    total = path.stat().st_size
    csv.field_size_limit(CELL_LENGTH_MAX)
    with path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = _delimiter(first)
        reader = csv.reader(chain([first], file), strict=True, delimiter=delimiter)
        try:
            header = [name.strip() for name in next(reader, [])]
            if len(set(header)) < len(header):
                raise _fault(path, 1, "two columns have the same name")
            is_plain = delimiter == "," and STRUCTURED.isdisjoint(header) and not any("." in name for name in header)
            start = reader.line_num + 1
            for count, cells in enumerate(reader):
                if cells:
                    if is_plain and len(cells) == len(header) and not any(cell[:1] == "'" for cell in cells):
                        pairs = zip(header, cells, strict=True)
                        values: dict[str, Any] = {name: cell for name, cell in pairs if cell and not cell.isspace()}
                    else:
                        written = cells if delimiter == "," else list(map(marked, cells))
                        values = _csv_values(path, start, header, written)
                    yield SourceRow(section, start, values)
                start = reader.line_num + 1
                if count % 1000 == 0:
                    progress(raw.tell(), total)
        except csv.Error as error:
            raise _fault(path, reader.line_num, str(error)) from None
    progress(total, total)


def _delimiter(header: str) -> str:
    """What separates the columns: the comma, or the semicolon or tab of a program that writes decimal commas."""
    return max(",;\t", key=header.count)


def _read_workbook(path: Path, section: str, progress: Progress, sheet: str | None = None) -> Iterator[SourceRow]:
    header: list[str] = []
    for line, cells in read_sheet(path, sheet):
        if not header:
            header = _header(path, line, cells)
        elif any(cell is not None for cell in cells):
            yield SourceRow(section, line, _csv_values(path, line, header, cells[: _width(cells)]))
        if line % 1000 == 0:
            progress(line, line)


def _header(path: Path, line: int, cells: list[Any]) -> list[str]:
    header = [str("" if name is None else name).strip() for name in cells[: _width(cells)]]
    if "" in header:
        raise _fault(path, line, "a column has no name")
    if len(set(header)) < len(header):
        raise _fault(path, line, "two columns have the same name")
    return header


def _width(cells: list[Any]) -> int:
    """How many cells there are up to the last one that is filled."""
    return max((place for place, cell in enumerate(cells, 1) if cell is not None), default=0)


def _csv_values(path: Path, line: int, header: list[str], cells: list[Any]) -> dict[str, Any]:
    """The values of one row without blank cells: `spec.hp` and `attribute.model` columns grouped, JSON cells parsed."""
    values: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=False):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            continue
        cell = with_formula(cell) if isinstance(cell, str) else cell
        group, dot, member = name.partition(".")
        if dot and group in GROUPED:
            collected = values.setdefault(f"{group}s", {})
            if not isinstance(collected, dict) or member in collected:
                raise _fault(path, line, f"{name} is also given by the column {group}s")
            collected[member] = cell
        elif name in STRUCTURED:
            values[name] = _json_cell(str(cell))
        else:
            values[name] = cell
    if len(cells) > len(header):
        values["more cells than the header has names"] = len(cells) - len(header)
    return values


def _json_cell(cell: str) -> Any:
    try:
        return _shallow(_JSON.decode(cell))
    except (ValueError, RecursionError):
        return cell  # The field's own validation reports it.


def _read_json_lines(path: Path, section: str, progress: Progress) -> Iterator[SourceRow]:
    total, done = path.stat().st_size, 0
    with path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            done += len(raw)
            if line % 1000 == 0:
                progress(done, total)
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8").strip()
            if text:
                yield SourceRow(section, line, _mapping(path, line, _json_line(path, line, text)))
    progress(total, total)


def _json_line(path: Path, line: int, text: str) -> Any:
    try:
        return _shallow(_JSON.decode(text))
    except json.JSONDecodeError as error:
        raise _fault(path, line, error.msg) from None
    except (ValueError, RecursionError) as error:
        raise _fault(path, line, _reason(error)) from None


def _read_json(path: Path, section: str, progress: Progress) -> Iterator[SourceRow]:
    """A list of rows, or an object of named lists; decoded row by row, to know each row's line."""
    document = _JsonDocument(path, _whole_text(path))
    start = document.take("[{")
    if start == "[":
        yield from document.rows(section, progress)
    elif not document.is_next("}"):
        names: set[str] = set()
        while True:
            name = document.value()
            if not isinstance(name, str) or name in names:
                raise document.fault(f"{name!r} is given twice" if name in names else "expected a name")
            names.add(name)
            document.take(":")
            document.take("[", "a list of rows")
            yield from document.rows(name, progress)
            if document.take(",}") == "}":
                break
    document.end()


class _JsonDocument:
    """A position in a JSON text, and the line it is on."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._position = self._counted = 0
        self._line = 1

    def rows(self, section: str, progress: Progress) -> Iterator[SourceRow]:
        """The items of a list whose opening bracket has been consumed."""
        if self.is_next("]"):
            return
        while True:
            line = self._line_here()
            yield SourceRow(section, line, _mapping(self._path, line, self.value()))
            progress(self._position, len(self._text))
            if self.take(",]") == "]":
                return

    def value(self) -> Any:
        line = self._line_here()
        try:
            value, self._position = _JSON.raw_decode(self._text, self._position)
            return _shallow(value)
        except json.JSONDecodeError as error:
            raise _fault(self._path, error.lineno, error.msg) from None
        except (ValueError, RecursionError) as error:
            raise _fault(self._path, line, _reason(error)) from None

    def take(self, allowed: str, name: str = "") -> str:
        self._skip_blanks()
        found = self._text[self._position : self._position + 1]
        if not found or found not in allowed:
            raise self.fault(f"expected {name or ' or '.join(allowed)}")
        self._position += 1
        return found

    def is_next(self, wanted: str) -> bool:
        """Whether `wanted` comes next; if so, consume it."""
        self._skip_blanks()
        is_there = self._text.startswith(wanted, self._position)
        self._position += is_there
        return is_there

    def end(self) -> None:
        self._skip_blanks()
        if self._position < len(self._text):
            raise self.fault("there is text after the end")

    def fault(self, reason: str) -> CpqError:
        return _fault(self._path, self._line_here(), reason)

    def _line_here(self) -> int:
        self._skip_blanks()
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self._position)
        self._position = blanks.end() if blanks else self._position


def _read_yaml(path: Path, section: str, progress: Progress) -> Iterator[SourceRow]:
    text = _whole_text(path)
    with _yaml_faults(path, text):
        yield from _YamlDocument(path, text).rows(section, progress)


@contextmanager
def _yaml_faults(path: Path, text: str) -> Iterator[None]:
    """Turn what the parser refuses into the line of the file."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _fault(path, line, str(error.problem)) from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise _fault(path, line, str(error.reason)) from None


class _YamlDocument:
    """Builds values from the parser's events, because PyYAML's own composer overflows the stack on deep nesting."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._length = len(text)
        self._events = yaml.parse(text, Loader=_LOADER)

    def rows(self, section: str, progress: Progress) -> Iterator[SourceRow]:
        root = self._root()
        if root is None:
            return
        if isinstance(root, yaml.SequenceStartEvent):
            yield from self._items(section, progress)
        elif isinstance(root, yaml.MappingStartEvent):
            for name, event in self._members():
                if not isinstance(event, yaml.SequenceStartEvent):
                    raise self._fault(event, "expected a list of rows")
                yield from self._items(name, progress)
        else:
            raise self._fault(root, "neither a list of rows nor named lists of rows")
        self._end()

    def whole(self) -> Any:
        """The whole document as one value."""
        root = self._root()
        value = self._value(root) if root is not None else None
        self._end()
        return value

    def _root(self) -> yaml.Event | None:
        """The first event of the document; None for an empty stream."""
        next(self._events)  # Start of the stream.
        return None if isinstance(next(self._events), yaml.StreamEndEvent) else next(self._events)

    def _end(self) -> None:
        next(self._events)  # End of the document.
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._fault(after, "a second document begins")

    def _items(self, section: str, progress: Progress) -> Iterator[SourceRow]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            line = _line(event)
            yield SourceRow(section, line, _mapping(self._path, line, self._value(event)))
            progress(min(event.end_mark.index, self._length), self._length)

    def _members(self) -> Iterator[tuple[str, yaml.Event]]:
        """The names of a mapping, each with the first event of its value."""
        names: set[str] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._fault(event, "a name must be a single word or text")
            if event.value in names:
                raise self._fault(event, f"{event.value!r} is given twice")
            names.add(event.value)
            yield event.value, next(self._events)

    def _value(self, event: yaml.Event, depth: int = 1) -> Any:
        if depth > DEPTH_MAX:
            raise self._fault(event, _TOO_DEEP)
        if isinstance(event, yaml.AliasEvent):
            # A few aliases can expand a small file to a huge one.
            raise self._fault(event, "anchors and aliases are not allowed")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            return items
        if isinstance(event, yaml.MappingStartEvent):
            return {name: self._value(item, depth + 1) for name, item in self._members()}
        assert isinstance(event, yaml.ScalarEvent), event
        return _scalar(event)

    def _fault(self, event: yaml.Event, reason: str) -> CpqError:
        return _fault(self._path, _line(event), reason)


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.line + 1


def _scalar(event: yaml.ScalarEvent) -> Any:
    """Read only unambiguous values: no `yes`, no `017`, no `12:30`, no float. The field reads the rest as text."""
    text = str(event.value)
    is_plain = event.implicit[0] and event.tag is None
    if not is_plain or len(text) > NUMBER_LENGTH_MAX:
        return text
    if text.lower() in _YAML_WORDS:
        return _YAML_WORDS[text.lower()]
    if _YAML_NUMBER.fullmatch(text):
        return _number(text) if "." in text else int(text)
    return text


def _whole_text(path: Path) -> str:
    if path.stat().st_size > WHOLE_FILE_BYTES_MAX:
        raise bad_field(
            "FILE", f"{path.name} is larger than 64 MB; use CSV or JSON Lines", maximum=WHOLE_FILE_BYTES_MAX
        )
    return path.read_text(encoding="utf-8-sig")


def _is_blank(path: Path) -> bool:
    with path.open("rb") as file:
        return not file.read(BLANK_BYTES_MAX).removeprefix(codecs.BOM_UTF8).strip() and not file.read(1)


def _mapping(path: Path, line: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(path, line, "a row must be a mapping of names to values")
    return value


def _fault(path: Path, line: int, reason: str) -> CpqError:
    return bad_field("FILE", f"{path.name}, line {line}: {reason}")


def _undecodable_line(path: Path) -> int:
    """Find the line again, because readers decode in blocks and report only the position in the block."""
    with path.open("rb") as file:
        return next((number for number, line in enumerate(file, 1) if not _is_utf8(line)), 1)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shallow(value: Any) -> Any:
    """The value; ValueError if it is nested more deeply than any row needs."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for part in level
            if isinstance(part, dict | list)
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


def _reason(error: Exception) -> str:
    return _TOO_DEEP if isinstance(error, RecursionError) else str(error)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return values


def _whole(text: str) -> int:
    if len(text) > NUMBER_LENGTH_MAX:
        raise ValueError("a number has too many digits")
    return int(text)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:40]} is out of range") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_number, parse_int=_whole, parse_constant=_refuse_constant
)
_BLANKS = re.compile(r"[ \t\n\r]*")
_YAML_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*|[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?)")
_YAML_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_TOO_DEEP = f"nested more than {DEPTH_MAX} levels deep"
_READERS: dict[str, Callable[[Path, str, Progress], Iterator[SourceRow]]] = {
    ".csv": _read_csv,
    ".xlsx": _read_workbook,
    ".jsonl": _read_json_lines,
    ".json": _read_json,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}
_EXPECTED: dict[Any, str] = {
    _read_csv: "a row with the column names, then one row per record",
    _read_workbook: "a row with the column names, then one row per record",
    _read_json_lines: "a JSON object on each line",
    _read_json: "a list of JSON objects",
    _read_yaml: "a list of rows",
}
