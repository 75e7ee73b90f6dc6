"""PURE. Long texts in parts that can be put together again, and excerpts that show why a text was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cpq.search.wording import terms

PART_CHARACTERS = 1_200
"""About what the model reads of a text, and what an agent reads at a glance."""

EXCERPT_CHARACTERS = 240

_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?;:])\s"), re.compile(r"\s"))
"""Where a text may be cut, the best places first."""

_WORD = re.compile(r"\S+")


def split(text: str, characters: int = PART_CHARACTERS) -> list[str]:
    """The text in parts of at most so many characters, cut between paragraphs, lines, sentences or words.

    Nothing is lost or added: the parts joined are the text.
    """
    parts = []
    start = 0
    while len(text) - start > characters:
        breaks = (_last_break(pattern, text, start, start + characters) for pattern in _BREAKS)
        end = next(filter(None, breaks), start + characters)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]] if start < len(text) or not parts else parts


def excerpt(text: str, words: Collection[str], characters: int = EXCERPT_CHARACTERS) -> str:
    """The stretch of a text that holds most of the terms that were looked for, on one line, with … where it is cut."""
    flat = " ".join(text.split())
    if len(flat) <= characters:
        return flat
    wanted = set(words)
    marks = [(found.start(), terms(found[0]) & wanted) for found in _WORD.finditer(flat)]
    starts = [start for start, held in marks if held]
    best = max(_windows(starts, marks, characters), default=(0, 0, 0))
    start = -best[1]
    cut = flat[start : start + characters - 2]
    cut = cut if start + len(cut) >= len(flat) else cut.rsplit(" ", 1)[0]
    return f"{'…' if start else ''}{cut}{'…' if start + len(cut) < len(flat) else ''}"


def _windows(starts: list[int], marks: list[tuple[int, set[str]]], characters: int) -> Iterator[tuple[int, int, int]]:
    """For each stretch that begins at a hit: how many different terms it holds, and where; the earliest is best."""
    for start in starts[:200]:
        held = set().union(*(found for place, found in marks if start <= place < start + characters - 2))
        yield len(held), -start, 0


def _last_break(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where the part between these ends; 0 when there is no such place in its second half."""
    ends = [found.end() for found in pattern.finditer(text, (start + end) // 2, end)]
    return ends[-1] if ends else 0
