"""PURE. What is left of a page once it is read: its title, its blocks in order, its pictures and its links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

TITLE_LENGTH_MAX = 200
ALT_LENGTH_MAX = 200
CAPTION_LENGTH_MAX = 300
BLOCKS_MAX = 50_000
CHARACTERS_MAX = 10_000_000
"""Written for one page, also what is written again around it: lists in lists, padded tables."""

LINKS_MAX = 400
REFERENCES_MAX = 5_000
"""Links and pictures whose addresses are looked at, also those that lead nowhere or twice to the same page."""

IMAGES_MAX = 200

TOO_LONG = "The page is longer than what is kept of one."

BlockKind = Literal["heading", "text", "code", "table"]

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
"""Control characters, and what shows nothing or turns the direction of text: an unseen order is not for the model."""


class Block(NamedTuple):
    """A paragraph, list, table, listing or heading, as Markdown text. `level` is that of a heading, 1 to 6."""

    kind: BlockKind
    text: str
    level: int = 0


@dataclass(frozen=True)
class Image:
    """A picture, by its address. `block` is the place of the block it stands in or before."""

    url: str
    alt: str
    caption: str
    block: int


@dataclass(frozen=True)
class Link:
    """Where a page leads to. `is_navigation` when it stands in a menu or a footer rather than in the text."""

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
    """The names in a line, for sets of tags that are read at a glance."""
    return frozenset(text.split())


def tidy(text: str) -> str:
    """One line: blanks collapsed, unseen characters gone. Most text is plain ASCII, which takes a glance."""
    collapsed = " ".join(text.split())
    if collapsed.isascii() and collapsed.isprintable():
        return collapsed
    return " ".join(_UNSEEN.sub("", collapsed).split())


def seen(text: str) -> str:
    """The text without what nobody can see in it."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


def line(text: str, longest: int) -> str:
    """One line of at most so many characters: blanks collapsed, unseen characters gone."""
    collapsed = tidy(text[: longest * 4])
    return collapsed if len(collapsed) <= longest else collapsed[: longest - 1].rstrip() + "…"
