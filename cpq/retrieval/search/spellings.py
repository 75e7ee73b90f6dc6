"""PURE. The words of a corpus as written, to correct misspelt words of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.packed_texts import Arrays, Texts


class Spellings:
    """Words of a corpus. They are compared by their sets of letters, thousands at a time."""

    def __init__(self, words: Sequence[str], letters: NDArray[np.uint32], lengths: NDArray[np.int32]) -> None:
        self._words = words
        self._letters = letters
        self._lengths = lengths

    @classmethod
    def of(cls, found: Iterable[str]) -> Spellings:
        words = sorted(set(found))
        letters = np.array([_letters_of(word) for word in words], np.uint32)
        return cls(words, letters, np.array([len(word) for word in words], np.int32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything for a file; see `mapped`."""
        words = Texts.arrays("spellings", self._words)
        return {**words, "spellings.letters": self._letters, "spellings.lengths": self._lengths}

    @classmethod
    def mapped(cls, arrays: Arrays) -> Spellings:
        return cls(Texts.of(arrays, "spellings"), arrays["spellings.letters"], arrays["spellings.lengths"])

    def resembling(self, word: str) -> list[str]:
        """The words that share nearly all letters with a word; `words.nearest_words` decides which of them are near."""
        steps = 2 if len(word) >= 8 else 1
        differing = np.bitwise_count(self._letters ^ np.uint32(_letters_of(word)))
        near = np.flatnonzero((differing <= 2 * steps) & (np.abs(self._lengths - len(word)) <= steps))
        return [self._words[place] for place in near.tolist()]


def _letters_of(word: str) -> int:
    found = 0
    for letter in word:
        found |= 1 << (ord(letter) % 32)
    return found
