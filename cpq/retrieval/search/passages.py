"""PURE. Splits long texts into parts, and makes excerpts that show why a text was found."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator

from cpq.retrieval.search.lexicon import terms

PART_CHARACTERS = 1_200
"""About the length that the model reads, and that an agent reads at a glance."""

EXCERPT_CHARACTERS = 240

_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?;:])\s"), re.compile(r"\s"))
"""Places to cut a text, best first."""

_WORD = re.compile(r"\S+")


def split(text: str, characters: int = PART_CHARACTERS) -> list[str]:
    """The text in parts of at most `characters`, cut between paragraphs, lines, sentences or words.

    Nothing is lost or added: the joined parts are the text.
    """
    parts, start = list[str](), 0
    while len(text) - start > characters:
        ends = (_last_break(pattern, text, start, characters) for pattern in _BREAKS)
        end = next(filter(None, ends), start + characters)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]] if start < len(text) or not parts else parts


def excerpt(text: str, words: Collection[str], characters: int = EXCERPT_CHARACTERS) -> str:
    """The window of a text with the most terms of the query, on one line, with … where it is cut."""
    flat = " ".join(text.split())
    if len(flat) <= characters:
        return flat
    wanted = set(words)
    marks = [(found.start(), held) for found in _WORD.finditer(flat) if (held := terms(found[0]) & wanted)]
    start = -max(_windows(marks, characters), default=(0, 0))[1]
    cut = flat[start : start + characters - 2]
    cut = cut if start + len(cut) >= len(flat) else cut.rsplit(" ", 1)[0]
    return f"{'…' if start else ''}{cut}{'…' if start + len(cut) < len(flat) else ''}"


def _windows(marks: list[tuple[int, set[str]]], characters: int) -> Iterator[tuple[int, int]]:
    """For each window that begins at a hit: its number of different terms, and its start negated, so that the first
    wins."""
    places = [place for place, _ in marks]
    for number, start in enumerate(places[:200]):
        end = bisect_left(places, start + characters - 2, number)
        yield len(set().union(*(held for _, held in marks[number:end]))), -start


def _last_break(pattern: re.Pattern[str], text: str, start: int, characters: int) -> int:
    """The end of the part that begins at `start`; 0 without a break in its second half."""
    ends = [found.end() for found in pattern.finditer(text, start + characters // 2, start + characters)]
    return ends[-1] if ends else 0
