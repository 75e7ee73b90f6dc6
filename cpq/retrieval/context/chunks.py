"""PURE. Context chunks: their fields and tags, the reader of chunk files, and packs that save memory."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from posixpath import splitext
from typing import Any

from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.markdown import front_matter, listed
from cpq.retrieval.search.vectors import DIMENSIONS

CHUNK_TYPES = ("documentation", "symbols", "definitions", "data")
TAG_LENGTH_MAX = 64
PACK_CHUNKS_MAX = 32
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".go": "go",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".js": "javascript",
    ".java": "java",
    ".rs": "rust",
    ".rb": "ruby",
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".md": "markdown",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
}

# A word after #, but not a heading, an anchor of a link, a reference to a line, or a colour.
_HASHTAG = re.compile(r"(?<![\w#&/(\[])#(?![0-9a-fA-F]{6}\b|[0-9a-fA-F]{3}\b)([^\W\d_][\w-]{1,63})")
_BLANK = re.compile(r"[ \t\n\r]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


class MalformedError(Exception):
    """Says what is wrong with a chunk file; the message follows the file's name."""


class DimensionError(MalformedError):
    """The file was made for another model."""


@dataclass(frozen=True, slots=True)
class ContextChunk:
    id: str
    chunk_type: str
    title: str
    text: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    created_at: str | None
    updated_at: str | None

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def source(self) -> str:
        return str(self.metadata.get("file_path") or "")


def read_file(content: bytes) -> Iterator[ContextChunk]:
    """The chunks of a file, one by one: the file is a list, or an object with a list under `chunks`.

    Vectors in the file are checked for their size and dropped: another model cannot use them. Of several chunks with
    the same id the first counts. MalformedError when the file is something else.
    """
    seen: set[str] = set()
    try:
        for place, value in enumerate(_values(content.decode("utf-8-sig")), 1):
            chunk = _chunk(value, place)
            if chunk.id not in seen:
                seen.add(chunk.id)
                yield chunk
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"is not JSON: {str(error).partition(chr(10))[0][:200]}") from None


def tags_of(chunk_type: str, given: Iterable[object], metadata: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """Every tag of a chunk, sorted: the given ones, its type, language and folders, and whether it is code.

    A documentation chunk also has the `tags` of its front matter and its #hashtags.
    """
    path = str(metadata.get("file_path") or "")
    found = [str(tag) for tag in given] + [chunk_type, *path.split("/")[:-1]]
    found.append(str(metadata.get("language") or LANGUAGES.get(splitext(path)[1].lower(), "")))
    if chunk_type == "documentation":
        found += listed(front_matter(text).get("tags") or [])
        found += _HASHTAG.findall(_CODE.sub(" ", text)) if "#" in text else []
    elif chunk_type in ("symbols", "definitions") or metadata.get("source") == "code":
        found.append("code")
    return tuple(sorted({tag for tag in map(normal_tag, found) if tag and tag != "."}))


def normal_tag(tag: str) -> str:
    """Tags are compared without case and without #."""
    return " ".join(tag.split()).lstrip("#").casefold()[:TAG_LENGTH_MAX]


@dataclass(frozen=True, slots=True)
class Packed:
    """A few chunks of one source, replaced together."""

    document_id: str
    content: bytes | memoryview

    def chunks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(zlib.decompress(self.content))
        return found

    def chunk(self, found_id: str) -> dict[str, Any]:
        """The chunk with this id in the index; see `searchable`."""
        wanted = found_id.removesuffix(f"\0{self.document_id}")
        return next(chunk for chunk in self.chunks() if chunk["id"] == wanted)


def packed(file: str, chunks: Iterable[ContextChunk]) -> Iterator[Packed]:
    """The chunks of a chunk file in packs; small packs, because reading one chunk unpacks the whole pack."""
    counts: Counter[str] = Counter()
    for source, run in groupby(chunks, attrgetter("source")):
        while group := [chunk.as_json() for chunk in islice(run, PACK_CHUNKS_MAX)]:
            counts[source] += 1
            content = json.dumps(group, separators=(",", ":")).encode()
            yield Packed(f"{file}\0{source}\0{counts[source]}", zlib.compress(content, 1))


def searchable(pack: Packed) -> Iterator[Chunk]:
    """The passages of a pack. Equal scores are ordered by chunk id."""
    for chunk in pack.chunks():
        yield Chunk(
            id=f"{chunk['id']}\0{pack.document_id}",
            document_id=pack.document_id,
            title=chunk["title"],
            text=chunk["text"],
            words=f"{' '.join(chunk['tags'])} {chunk['metadata'].get('file_path') or ''}",
            tags=[type_tag(chunk["chunk_type"]), *map(own_tag, chunk["tags"])],
            is_prose=True,
            payload=pack,
        )


def type_tag(chunk_type: str) -> str:
    return f"type:{chunk_type}"


def own_tag(tag: str) -> str:
    return f"tag:{tag}"


def _chunk(value: object, place: int) -> ContextChunk:
    if not isinstance(value, dict):
        raise MalformedError(f"has something else than a chunk in place {place}")
    given = ((name, value.get(name)) for name in ("id", "title", "text", "chunk_type"))
    texts: dict[str, Any] = {name: "" if text is None else text for name, text in given}
    wrong = next((name for name, text in texts.items() if not isinstance(text, str)), None)
    if wrong or not texts["id"]:
        raise MalformedError(f"has a chunk in place {place} whose {wrong or 'id'} is not a text")
    vector = value.get("embedding")
    if vector is not None and (size := len(vector) if isinstance(vector, list) else -1) != DIMENSIONS:
        raise _other_model(size)
    kind = texts["chunk_type"] or CHUNK_TYPES[0]
    tags, metadata = value.get("tags") or [], value.get("metadata") or {}
    if kind not in CHUNK_TYPES or not isinstance(tags, list) or not isinstance(metadata, dict):
        raise MalformedError(f"has a chunk in place {place} with another chunk_type, tags or metadata than there are")
    moments = (value.get(name) for name in ("created_at", "updated_at"))
    created, updated = (moment if isinstance(moment, str) else None for moment in moments)
    tags = tags_of(kind, tags, metadata, texts["text"])
    metadata = {name: part for name, part in metadata.items() if name != "embedding"}
    return ContextChunk(texts["id"], kind, texts["title"], texts["text"], tags, metadata, created, updated)


def _values(text: str) -> Iterator[object]:
    """The values of the list, one by one: a large file takes many times its size as objects."""
    reader = _Reader(text)
    has_list = False
    if reader.next() == "[":
        has_list = True
        yield from reader.items()
    elif reader.next() == "{":
        for _ in reader.places("{", "}"):
            name = reader.value()
            reader.take(":")
            if name == "chunks" and reader.next() == "[":
                has_list = True
                yield from reader.items()
                continue
            value = reader.value()
            dimensions = value.get("dimensions") if name == "metadata" and isinstance(value, dict) else None
            if dimensions not in (None, DIMENSIONS):
                raise _other_model(dimensions)
    else:
        reader.value()
    if reader.next():
        raise ValueError(f"there is text after its end, at character {reader.place}")
    if not has_list:
        raise MalformedError("holds no list of chunks")


class _Reader:
    """A position in a JSON text."""

    def __init__(self, text: str) -> None:
        self.place = 0
        self._text = text

    def next(self) -> str:
        """The next character that is not blank; empty at the end."""
        self.place = _BLANK.match(self._text, self.place).end()  # type: ignore[union-attr] # It always matches.
        return self._text[self.place : self.place + 1]

    def take(self, mark: str) -> None:
        if self.next() != mark:
            raise ValueError(f"there is no {mark} at character {self.place}")
        self.place += 1

    def places(self, opening: str, closing: str) -> Iterator[None]:
        """Stops before every value between the brackets."""
        self.take(opening)
        if self.next() != closing:
            yield
            while self.next() == ",":
                self.take(",")
                yield
        self.take(closing)

    def items(self) -> Iterator[object]:
        return (self.value() for _ in self.places("[", "]"))

    def value(self) -> object:
        self.next()
        value, end = _DECODER.raw_decode(self._text, self.place)
        if _HALF.search(self._text, self.place, end):  # Half a surrogate pair cannot be sent as UTF-8.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        self.place = end
        return value


def _other_model(size: object) -> DimensionError:
    return DimensionError(f"has vectors of {size} dimensions instead of {DIMENSIONS}: it was made for another model")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
