"""PURE. A page in memory: its sections in searchable parts, with outline and text packed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from posixpath import basename
from typing import NamedTuple

from cpq.retrieval.search import markdown
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.markdown import Scalar, listed
from cpq.retrieval.search.passages import split


class Part(NamedTuple):
    """A passage of a page: a whole section, or one of the parts of a long one."""

    section_path: str
    heading: str
    level: int
    number: int
    parts: int
    start: int
    end: int

    @property
    def heading_path(self) -> str:
        return f"{self.section_path} [part {self.number}/{self.parts}]" if self.parts > 1 else self.section_path


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    title: str
    """The first heading of level 1, else the file name."""
    last_modified: datetime
    total_chars: int
    front_matter: dict[str, Scalar | list[Scalar]]
    problem: str | None
    outline: str
    """The parts as JSON; as objects they take three times the memory."""
    packed: bytes
    """The texts of all parts, joined and compressed to a third of the size."""

    def parts(self) -> list[Part]:
        return [Part(*values) for values in json.loads(self.outline)]

    def text(self) -> str:
        return zlib.decompress(self.packed).decode()

    def section(self, heading_path: str) -> list[Part]:
        """The parts of the section with exactly this breadcrumb; the breadcrumb of a part also finds its section."""
        parts = self.parts()
        found = [part for part in parts if part.section_path == heading_path]
        if not found:
            of = next((part.section_path for part in parts if part.heading_path == heading_path), None)
            found = [part for part in parts if part.section_path == of]
        return found

    def found(self, chunk_id: str) -> Part:
        """The part with this id in the index; see `chunks_of`."""
        return self.parts()[int(chunk_id.removeprefix(f"{self.path}\0"))]


def page_of(path: str, text: str, last_modified: datetime, problem: str | None = None) -> Page:
    """Builds a page from the text of a file."""
    name = basename(path)
    document = markdown.read(text, name)
    parts: list[Part] = []
    texts: list[str] = []
    place = 0
    for section in document.sections:
        pieces = split(section.content)
        for number, piece in enumerate(pieces, 1):
            end = place + len(piece)
            parts.append(Part(section.heading_path, section.heading, section.level, number, len(pieces), place, end))
            texts.append(piece)
            place = end
    # Half a surrogate pair, as in broken UTF-16, cannot be sent as UTF-8.
    packed = zlib.compress("".join(texts).encode("utf-8", "replace"), 1)
    return Page(
        path=path,
        title=document.title or name,
        last_modified=last_modified,
        total_chars=place,
        front_matter=document.front_matter,
        problem=problem or document.problem,
        outline=json.dumps(parts, ensure_ascii=False, separators=(",", ":")),
        packed=packed,
    )


def chunks_of(page: Page) -> Iterator[Chunk]:
    """The passages of a page. Equal scores are ordered by path, then by position in the page."""
    text = page.text()
    title, tags = page.front_matter.get("title"), page.front_matter.get("tags")
    words = " ".join([page.path, str(title or ""), *listed(tags or [])])
    for number, part in enumerate(page.parts()):
        yield Chunk(
            id=f"{page.path}\0{number:06}",
            document_id=page.path,
            title=part.section_path,
            text=text[part.start : part.end],
            words=words,
            is_prose=True,
            payload=page,
        )
