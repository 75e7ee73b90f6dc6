"""PURE. The words of passages in their order, two bytes each: finds the passages that hold a phrase word for word."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.packed_texts import Arrays

Rows = NDArray[np.int64]
_CACHED_MAX = 200_000
_FEW = 8
"""With fewer candidates than this part of all passages, only their words are compared."""


class Sequences:
    """For each passage its words in order, as short hashes in one array.

    Two words may share a hash. The caller passes only rows that hold every word, and then it takes a second accident,
    words of the same hash side by side, to mistake a passage for one with the phrase.
    """

    def __init__(self, hashes: NDArray[np.uint16], ends: Rows) -> None:
        self._hashes = hashes
        self._ends = ends
        """Where the words of each row end; they begin where those of the row before end."""

    @classmethod
    def of(cls, passages: Sequence[NDArray[np.uint16]]) -> Sequences:
        """From the words of each passage, hashed."""
        hashes = np.concatenate([np.empty(0, np.uint16), *passages])
        return cls(hashes, np.cumsum([len(row) for row in passages], dtype=np.int64))

    @classmethod
    def merged(cls, parts: Sequence[tuple[Sequences, Rows]]) -> Sequences:
        """The rows of each part that stay, in their new order."""
        hashes = [part._hashes[part._places(rows)] for part, rows in parts]
        lengths = [part._lengths()[rows] for part, rows in parts]
        return cls(np.concatenate(hashes), np.cumsum(np.concatenate(lengths), dtype=np.int64))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything for a file; see `mapped`."""
        return {"sequences": self._hashes, "sequences.ends": self._ends}

    @classmethod
    def mapped(cls, arrays: Arrays) -> Sequences:
        return cls(arrays["sequences"], arrays["sequences.ends"])

    def _lengths(self) -> Rows:
        return np.diff(self._ends, prepend=0)

    def counts(self, phrase: Sequence[str], rows: Rows) -> Rows:
        """How often each of these rows, which are in order, holds the words side by side."""
        wanted = [_HASHES[word] for word in phrase]
        if len(rows) * _FEW < len(self._ends):
            return _counted(self._hashes[self._places(rows)], wanted, np.cumsum(self._lengths()[rows]))
        return _counted(self._hashes, wanted, self._ends)[rows]

    def _places(self, rows: Rows) -> Rows:
        """Where the words of these rows are."""
        lengths = self._lengths()[rows]
        moved = self._ends[rows] - np.cumsum(lengths)
        return np.arange(int(lengths.sum())) + np.repeat(moved, lengths)


def hashed(words: Sequence[str]) -> NDArray[np.uint16]:
    return np.fromiter(map(_HASHES.__getitem__, words), np.uint16, len(words))


def _counted(hashes: NDArray[np.uint16], wanted: Sequence[int], ends: Rows) -> Rows:
    """For each row, how often it holds these hashes side by side."""
    last = len(hashes) - len(wanted) + 1
    if last < 1:
        return np.zeros(len(ends), np.int64)
    places = np.flatnonzero(hashes[:last] == wanted[0])
    for step, word in enumerate(wanted[1:], 1):
        places = places[hashes[places + step] == word]
    of = np.searchsorted(ends, places, side="right")
    of = of[places + len(wanted) <= ends[of]]
    return np.bincount(of, minlength=len(ends))


class _Hashes(dict[str, int]):
    """Cache of the hash of every word."""

    def __missing__(self, word: str) -> int:
        if len(self) > _CACHED_MAX:
            self.clear()
        self[word] = zlib.crc32(word.encode("utf-8", "surrogatepass")) & 0xFFFF
        return self[word]


_HASHES = _Hashes()
