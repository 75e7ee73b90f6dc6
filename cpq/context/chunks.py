"""PURE. Chunks of context: what one holds, which tags it has, and how many are packed into little memory."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import splitext
from typing import Any

from cpq.search.index import Chunk
from cpq.search.markdown import front_matter, listed
from cpq.search.vectors import DIMENSIONS

CHUNK_TYPES = ("documentation", "symbols", "definitions", "data")
TAG_LENGTH_MAX = 64
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

# A word after #, but no heading, no anchor of a link, no reference to a line, and no colour.
_HASHTAG = re.compile(r"(?<![\w#&/(\[])#(?![0-9a-fA-F]{6}\b|[0-9a-fA-F]{3}\b)([^\W\d_][\w-]{1,63})")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


class MalformedError(Exception):
    """Says what is wrong with a chunk file; the words follow its name."""


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


def read_file(content: bytes) -> list[ContextChunk]:
    """The chunks of a file: a list of them, or an object with such a list under `chunks`.

    Vectors in it are measured and dropped, each as it is read: they say nothing to another model, and are large.
    """
    try:
        found = _DECODER.decode(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"is not JSON: {str(error).partition(chr(10))[0][:200]}") from None
    if isinstance(found, dict):
        head = found.get("metadata")
        if isinstance(head, dict) and head.get("dimensions") not in (None, DIMENSIONS):
            raise _other_model(head["dimensions"])
        found = found.get("chunks")
    if not isinstance(found, list):
        raise MalformedError("holds no list of chunks")
    if b"\\ud" in content.lower():  # Half a character, written as JSON can write it, cannot be sent to anybody.
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return list(_once(_chunk(value, place) for place, value in enumerate(found, 1)))


def tags_of(chunk_type: str, given: Iterable[object], metadata: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """Every tag of a chunk, in order: those given, its type, language, folders, whether code or documentation.

    Of documentation also what its front matter lists under `tags` and its #hashtags.
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
    """The chunks of one source file, replaced together."""

    document_id: str
    content: bytes

    def chunk(self, place: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(zlib.decompress(self.content))[place]
        return found


def packed(file: str, chunks: Sequence[ContextChunk]) -> Iterator[tuple[Packed, Sequence[ContextChunk]]]:
    """The chunks of a chunk file by the source they are of, each group packed."""
    groups: dict[str, list[ContextChunk]] = {}
    for place, chunk in enumerate(chunks):
        # Chunks without a source are taken a few at a time.
        groups.setdefault(chunk.source or f"\0{place // 32}", []).append(chunk)
    for source, group in groups.items():
        content = json.dumps([chunk.as_json() for chunk in group], separators=(",", ":"))
        yield Packed(f"{file}\0{source}", zlib.compress(content.encode(), 1)), group


def searchable(pack: Packed, group: Sequence[ContextChunk]) -> Iterator[Chunk]:
    """What is searched of a group. Equal scores come in the order of the chunks' ids."""
    for place, chunk in enumerate(group):
        yield Chunk(
            id=f"{chunk.id}\0{pack.document_id}",
            document_id=pack.document_id,
            title=chunk.title,
            text=chunk.text,
            words=f"{' '.join(chunk.tags)} {chunk.source}",
            tags=[type_tag(chunk.chunk_type), *map(own_tag, chunk.tags)],
            is_prose=True,
            payload=(pack, place),
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
    size = value.get("embedding")
    if size not in (None, DIMENSIONS):
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


def _once(chunks: Iterable[ContextChunk]) -> Iterator[ContextChunk]:
    """Of chunks with the same id the first."""
    seen: set[str] = set()
    for chunk in chunks:
        if chunk.id not in seen:
            seen.add(chunk.id)
            yield chunk


def _other_model(size: object) -> DimensionError:
    return DimensionError(f"has vectors of {size} dimensions instead of {DIMENSIONS}: it was made for another model")


def _without_vector(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("embedding") is not None:
        vector = value["embedding"]
        value["embedding"] = len(vector) if isinstance(vector, list) else -1
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


_DECODER = json.JSONDecoder(object_hook=_without_vector, parse_constant=_refuse)
