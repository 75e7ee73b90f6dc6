"""PURE. A page that was read: its title, its blocks in order, its pictures and its links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

TITLE_LENGTH_MAX = 200
ALT_LENGTH_MAX = 200
CAPTION_LENGTH_MAX = 300
BLOCKS_MAX = 50_000
CHARACTERS_MAX = 10_000_000
"""Limit for the text of one page, with what nested lists and padded tables add."""

LINKS_MAX = 400
REFERENCES_MAX = 5_000
"""Links and pictures whose addresses are resolved, with invalid and repeated ones."""

IMAGES_MAX = 200

TOO_LONG = "The page is longer than what is kept of one."

BlockKind = Literal["heading", "text", "code", "table"]

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
"""Control and invisible characters, and those that change the direction of text: they could hide instructions."""


class Block(NamedTuple):
    """A paragraph, list, table, listing or heading as Markdown. `level` is the level of a heading, 1 to 6."""

    kind: BlockKind
    text: str
    level: int = 0


@dataclass(frozen=True)
class Image:
    """A picture by its address. `block` is the position of the block that contains or follows it."""

    url: str
    alt: str
    caption: str
    block: int


@dataclass(frozen=True)
class Link:
    """A link of a page. `is_navigation` when it is in a menu or a footer and not in the text."""

    url: str
    text: str
    is_navigation: bool = False


@dataclass(frozen=True)
class Page:
    title: str
    blocks: tuple[Block, ...]
    images: tuple[Image, ...] = ()
    links: tuple[Link, ...] = ()
    warning: str | None = None


def names(text: str) -> frozenset[str]:
    """The names in a line, for readable sets of tags."""
    return frozenset(text.split())


def tidy(text: str) -> str:
    """One line: blanks collapsed, invisible characters removed. Fast for plain ASCII."""
    collapsed = " ".join(text.split())
    if collapsed.isascii() and collapsed.isprintable():
        return collapsed
    return " ".join(_UNSEEN.sub("", collapsed).split())


def seen(text: str) -> str:
    """The text without invisible characters."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


def line(text: str, longest: int) -> str:
    """One line of at most `length` characters: blanks collapsed, invisible characters removed."""
    collapsed = tidy(text[: longest * 4])
    return collapsed if len(collapsed) <= longest else collapsed[: longest - 1].rstrip() + "…"
