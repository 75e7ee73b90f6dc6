"""Writes the chunk files of a source folder: Markdown by heading, Python by symbol, YAML, JSON and TOML as data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from posixpath import splitext
from typing import Any

from cpq.base.errors import Code, CpqError
from cpq.base.text import to_wire
from cpq.retrieval.context.chunk_folder import FILE_BYTES_MAX
from cpq.retrieval.context.chunks import LANGUAGES, ContextChunk, MalformedError, read_file, tags_of
from cpq.retrieval.context.python_outline import outline
from cpq.retrieval.search import folder_files, markdown
from cpq.retrieval.search.folder_files import UnreadableError
from cpq.retrieval.search.markdown import listed
from cpq.retrieval.search.passages import PART_CHARACTERS, split

FILES = {
    "documentation": "doc-chunks.json",
    "symbols": "code-symbols.json",
    "definitions": "code-definitions.json",
    "data": "code-data.json",
}
MARKDOWN = (".md", ".markdown")
DATA = (".yaml", ".yml", ".json", ".toml")
SKIPPED = ("node_modules", "__pycache__", "dist", "build", "target", "venv", "site-packages")
SOURCE_BYTES_MAX = 1024 * 1024

_SLUG = re.compile(r"[^a-z0-9]+")
_YAML_KEY = re.compile(r"""^([A-Za-z0-9_"'][^:#\n]*?)\s*:(?=\s|$)""")
_TOML_TABLE = re.compile(r"^\[+([^\]\n]+)\]+")

Progress = Callable[[int, int], None]


@dataclass
class Made:
    """Counts of the chunks in each file, and the sources that were skipped, with the reason."""

    chunks: dict[str, int] = field(default_factory=dict)
    sources: int = 0
    skipped: dict[str, str] = field(default_factory=dict)


def make(source: Path, target: Path, now: datetime, progress: Progress = lambda _done, _total: None) -> Made:
    """Write the chunk files of a folder. Each file replaces the old one in one step, so that no reader sees half of
    it."""
    try:
        found = folder_files.scan(source, (*MARKDOWN, *DATA, ".py"), skipped=SKIPPED)
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CpqError(Code.NOT_FOUND, f"{error.filename}: {error.strerror}", field="DIR") from None
    made = Made(skipped=dict(found.problems))
    by_type: dict[str, list[ContextChunk]] = {kind: [] for kind in FILES}
    ours = Path(os.path.realpath(target))
    for done, path in enumerate(sorted(found.files), 1):
        progress(done, len(found.files))
        if (Path(os.path.realpath(source)) / path).is_relative_to(ours):
            continue  # Written by an earlier run.
        try:
            text, _ = folder_files.read_text(source, path, SOURCE_BYTES_MAX)
            for chunk in chunks_of(path, text):
                by_type[chunk.chunk_type].append(chunk)
            made.sources += 1
        except UnreadableError as error:
            made.skipped[path] = str(error)
    for kind, name in FILES.items():
        chunks = list(_dated(by_type[kind], _before(target, name), to_wire(now)))
        _write(target / name, kind, chunks)
        made.chunks[name] = len(chunks)
    return made


def chunks_of(path: str, text: str) -> Iterator[ContextChunk]:
    """The chunks of one source file."""
    suffix = splitext(path)[1].lower()
    if suffix in MARKDOWN:
        yield from _documentation(path, text)
    elif suffix in DATA:
        yield from _data(path, text, suffix)
    else:
        yield from _code(path, text)


def _documentation(path: str, text: str) -> Iterator[ContextChunk]:
    document = markdown.read(text, path.rpartition("/")[2])
    given = listed(document.front_matter.get("tags") or [])
    for number, section in enumerate(document.sections, 1):
        for part, piece in enumerate(split(section.content), 1):
            mark = f"-{part}" if part > 1 else ""
            found = {"source": "markdown", "heading_path": section.heading_path, "heading_level": section.level}
            yield _chunk(
                "documentation", f"doc-{_slug(path)}-{number}{mark}", section.heading_path, piece, path, found, given
            )


def _code(path: str, text: str) -> Iterator[ContextChunk]:
    found = outline(text, splitext(path)[0].replace("/", ".").removesuffix(".__init__"))
    if found is None:
        raise UnreadableError("is not Python, or nested too deeply")
    slug, about = _slug(path), {"source": "code", "package": found.package}
    symbols = {**about, **found.counts}
    yield _chunk("symbols", f"code-symbols-{slug}", f"{path} symbols", found.symbols, path, symbols)
    for name, definition, first, last in found.definitions:
        lines = {**about, "name": name, "start_line": first, "end_line": last}
        yield _chunk("definitions", f"code-definitions-{slug}-{_slug(name)}-{first}", name, definition, path, lines)
    if found.data:
        for part, piece in enumerate(split(found.data), 1):
            yield _chunk("data", f"code-data-{slug}-{part}", f"{path} constants", piece, path, about)


def _data(path: str, text: str, suffix: str) -> Iterator[ContextChunk]:
    slug = _slug(path)
    for number, (key, section) in enumerate(_keys(text, suffix), 1):
        for part, piece in enumerate(split(section), 1):
            title = f"{path} {key}".rstrip()
            yield _chunk("data", f"data-{slug}-{number}-{part}", title, piece, path, {"source": "data", "key": key})


def _keys(text: str, suffix: str) -> Iterator[tuple[str, str]]:
    """A data file by its top-level keys, so that a chunk has one subject; comments stay in place."""
    if len(text) <= PART_CHARACTERS:
        if text.strip():
            yield "", text.strip("\r\n")
        return
    if suffix == ".json":
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise UnreadableError("is not JSON") from None
        if isinstance(found, dict):
            for key, value in found.items():
                yield key, json.dumps({key: value}, ensure_ascii=False, indent=1)
            return
    start = {".toml": _TOML_TABLE, ".json": None}.get(suffix, _YAML_KEY)
    yield from _by_lines(text, start)


def _by_lines(text: str, start: re.Pattern[str] | None) -> Iterator[tuple[str, str]]:
    key, lines = "", list[str]()
    for line in text.split("\n"):
        begins = start.match(line) if start else None
        if begins:
            if "".join(lines).strip():
                yield key, "\n".join(lines).strip("\r\n")
            key, lines = begins[1].strip("\"' "), []
        lines.append(line)
    if "".join(lines).strip():
        yield key, "\n".join(lines).strip("\r\n")


def _chunk(
    kind: str, id_: str, title: str, text: str, path: str, about: dict[str, Any], given: list[str] | None = None
) -> ContextChunk:
    metadata = {**about, "file_path": path, "language": LANGUAGES.get(splitext(path)[1].lower(), "")}
    return ContextChunk(id_, kind, title, text, tags_of(kind, given or [], metadata, text), metadata, None, None)


def _dated(chunks: list[ContextChunk], before: dict[str, ContextChunk], now: str) -> Iterator[ContextChunk]:
    """The chunks with the times of creation and last change; duplicates of an id get a number."""
    numbers: dict[str, int] = {}
    taken = {chunk.id for chunk in chunks}
    for chunk in chunks:
        if chunk.id in numbers:
            larger = count(numbers[chunk.id] + 1)
            numbers[chunk.id] = number = next(n for n in larger if f"{chunk.id}-{n}" not in taken)
            chunk = replace(chunk, id=f"{chunk.id}-{number}")
            taken.add(chunk.id)
        else:
            numbers[chunk.id] = 1
        old = before.get(chunk.id)
        dated = replace(chunk, created_at=old.created_at if old else now, updated_at=old.updated_at if old else now)
        yield dated if old is None or dated == old else replace(dated, updated_at=now)


def _before(target: Path, name: str) -> dict[str, ContextChunk]:
    try:
        return {chunk.id: chunk for chunk in read_file(folder_files.read_bytes(target, name, FILE_BYTES_MAX))}
    except (UnreadableError, MalformedError):
        return {}


def _write(path: Path, kind: str, chunks: list[ContextChunk]) -> None:
    content = {"metadata": {"chunk_type": kind}, "chunks": [chunk.as_json() for chunk in chunks]}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8", errors="replace")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _slug(text: str) -> str:
    return _SLUG.sub("-", text.lower()).strip("-") or "x"
