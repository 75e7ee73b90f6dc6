"""Typing errors: which words may be misspelt, and which known words are near enough to replace them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

NEAR_WORDS_MAX = 8

FEW_HITS = 10
"""With fewer exact hits than this, a search also looks for words that are a typing error away."""


def may_be_misspelt(word: str) -> bool:
    """Only words of four letters and more are corrected; numbers and codes are taken as typed."""
    return 4 <= len(word) <= 24 and word.isalpha()


def shortened(word: str) -> Iterator[str]:
    """The word, and the word without one letter (two if it is long): similar words share one of these."""
    for missing in range(_distance_max(word) + 1):
        for kept in combinations(word, len(word) - missing):
            yield "".join(kept)


def nearest_words(word: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that a small typing error could have turned into `word`, nearest first."""
    near = [(distance(word, other), other) for other in set(candidates) - {word}]
    return [other for steps, other in sorted(near) if steps <= _distance_max(word, other)][:NEAR_WORDS_MAX]


def distance(one: str, other: str) -> int:
    """The number of letters to add, drop, change or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, theirs in enumerate(other, 1):
            step = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                step = min(step, last[j - 2] + 1)
            row.append(step)
    return row[-1]


def _distance_max(word: str, other: str = "") -> int:
    """Two for long words, but not for very long ones: `shortened` drops only one letter there, to limit its size."""
    return 2 if len(word) >= 8 and max(len(word), len(other)) <= 16 else 1
