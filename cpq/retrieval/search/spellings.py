"""PURE. The words of a corpus as written, to correct misspelt words of a query."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class Spellings:
    """Words of a corpus. They are compared by their sets of letters, thousands at a time."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.words = frozenset(words)

    def resembling(self, word: str) -> list[str]:
        """The words that share nearly all letters with a word; `words.nearest_words` decides which of them are near."""
        words, letters, lengths = self._letters
        steps = 2 if len(word) >= 8 else 1
        differing = np.bitwise_count(letters ^ np.uint32(_letters_of(word)))
        near = np.flatnonzero((differing <= 2 * steps) & (np.abs(lengths - len(word)) <= steps))
        return [words[place] for place in near.tolist()]

    @cached_property
    def _letters(self) -> tuple[list[str], NDArray[np.uint32], NDArray[np.int32]]:
        words = list(self.words)
        letters = np.array([_letters_of(word) for word in words], np.uint32)
        return words, letters, np.array([len(word) for word in words], np.int32)


def _letters_of(word: str) -> int:
    found = 0
    for letter in word:
        found |= 1 << (ord(letter) % 32)
    return found
