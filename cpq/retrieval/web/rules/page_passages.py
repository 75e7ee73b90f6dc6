"""PURE. Splits a page into passages: each stays in its section, has the headings above it, and keeps tables whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cpq.retrieval.search.passages import PART_CHARACTERS, split
from cpq.retrieval.web.rules.link_text import is_markdown_menu
from cpq.retrieval.web.rules.page import Block, Image, Page
from cpq.retrieval.web.rules.token_count import count_tokens

WHOLE_CHARACTERS_MAX = 4 * PART_CHARACTERS
"""Tables and listings up to this size are never cut."""

HEAD_CHARACTERS_MAX = 500
"""A longer table head or opening line of a listing is not repeated."""

CHUNKS_MAX = 5_000

_TABLE_RULE = re.compile(r"[|:\- ]*-[|:\- ]*")
_FENCE = re.compile(r"\s{0,3}(`{3,}+|~{3,}+)")


@dataclass(frozen=True)
class Passage:
    """A searchable part of a page. `headings` are those above it, from the top."""

    ordinal: int
    headings: tuple[str, ...]
    text: str
    tokens: int
    images: tuple[Image, ...] = ()


def passages_of(page: Page) -> list[Passage]:
    """The passages in order. Headings are in `headings`, not in the text; blocks of nothing but links are left out."""
    made: list[Passage] = []
    for headings, numbered in _sections(page.blocks):
        for text, first, last in _parts(numbered):
            images = tuple(image for image in page.images if first <= image.block <= last)
            made.append(Passage(len(made), headings, text, count_tokens(text), images))
            if len(made) == CHUNKS_MAX:
                return made
    return made


def _sections(blocks: tuple[Block, ...]) -> Iterator[tuple[tuple[str, ...], list[tuple[int, Block]]]]:
    """Runs of blocks under the same headings, each block with its position on the page."""
    path: list[tuple[int, str]] = []
    gathered: list[tuple[int, Block]] = []
    for place, block in enumerate(blocks):
        if block.kind == "text" and is_markdown_menu(block.text):
            continue
        if block.kind != "heading":
            gathered.append((place, block))
            continue
        if gathered:
            yield tuple(text for _, text in path), gathered
            gathered = []
        path = [(level, text) for level, text in path if level < block.level]
        path.append((block.level, block.text))
    if gathered:
        yield tuple(text for _, text in path), gathered


def _parts(numbered: list[tuple[int, Block]]) -> Iterator[tuple[str, int, int]]:
    """Blocks joined up to the size of a passage, with the positions of the first and the last."""
    gathered: list[str] = []
    size = first = last = 0
    for place, block in numbered:
        for piece in _pieces(block):
            if gathered and size + len(piece) > PART_CHARACTERS:
                yield "\n\n".join(gathered), first, last
                gathered, size = [], 0
            if not gathered:
                first = place
            gathered.append(piece)
            size += len(piece) + 2
            last = place
    if gathered:
        yield "\n\n".join(gathered), first, last


def _pieces(block: Block) -> list[str]:
    """A block whole if possible; a long table or listing by lines, with its head or fences repeated."""
    if block.kind == "text":
        return [part for part in map(str.strip, split(block.text)) if part]
    if len(block.text) <= WHOLE_CHARACTERS_MAX:
        return [block.text]
    lines = block.text.split("\n")
    head, body, tail = _table_parts(lines) if block.kind == "table" else _listing_parts(lines)
    return ["\n".join([*head, *part, *tail]) for part in _runs(body)]


def _table_parts(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The head that each piece begins with, the rows, and an empty end."""
    head = lines[:2]
    is_head = len(head) == 2 and sum(map(len, head)) <= HEAD_CHARACTERS_MAX and _TABLE_RULE.fullmatch(head[1])
    return (head, lines[2:], []) if is_head else ([], lines, [])


def _listing_parts(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The opening line, content and closing line of a listing, also when the page does not close it."""
    found = _FENCE.match(lines[0])
    if not found or len(lines[0]) > HEAD_CHARACTERS_MAX:
        return [], lines, []
    last = lines[-1].strip()
    is_closed = len(lines) > 1 and last.startswith(found[1]) and not last.strip(found[1][0])
    return lines[:1], lines[1:-1] if is_closed else lines[1:], [found[1]]


def _runs(lines: list[str]) -> Iterator[list[str]]:
    gathered: list[str] = []
    size = 0
    for line in lines:
        for part in split(line, PART_CHARACTERS):
            if gathered and size + len(part) > PART_CHARACTERS:
                yield gathered
                gathered, size = [], 0
            gathered.append(part)
            size += len(part) + 1
    if gathered:
        yield gathered
