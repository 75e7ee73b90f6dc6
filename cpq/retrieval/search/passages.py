"""PURE. Long texts in parts that can be put together again, and excerpts that show why a text was found."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator

from cpq.retrieval.search.lexicon import terms

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
    parts, start = list[str](), 0
    while len(text) - start > characters:
        ends = (_last_break(pattern, text, start, characters) for pattern in _BREAKS)
        end = next(filter(None, ends), start + characters)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]] if start < len(text) or not parts else parts


def excerpt(text: str, words: Collection[str], characters: int = EXCERPT_CHARACTERS) -> str:
    """The stretch of a text that holds most of the terms that were looked for, on one line, with … where it is cut."""
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
    """For each stretch that begins at a hit: how many different terms it holds, and where; the earliest is best."""
    places = [place for place, _ in marks]
    for number, start in enumerate(places[:200]):
        end = bisect_left(places, start + characters - 2, number)
        yield len(set().union(*(held for _, held in marks[number:end]))), -start


def _last_break(pattern: re.Pattern[str], text: str, start: int, characters: int) -> int:
    """Where the part that begins at `start` ends; 0 when there is no such place in its second half."""
    ends = [found.end() for found in pattern.finditer(text, start + characters // 2, start + characters)]
    return ends[-1] if ends else 0
