"""PURE. For each term the passages that hold it, in little memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress, count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cpq.domain.catalog.spelling import may_be_misspelt
from cpq.retrieval.search.lexicon import stem
from cpq.retrieval.search.packed_texts import Arrays, Texts

SPELT = "\2"
"""Prefix of words as written, which correct misspelt words."""

Rows = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.int64)


class Terms(Protocol):
    """The places of terms by name, in a fixed order; a dict, or terms of a mapped file."""

    def get(self, term: str, /) -> int | None: ...
    def values(self) -> Collection[int]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


class Postings:
    """For each term the rows that hold it, in one array. A word that is the only one with its stem shares the stem's
    rows."""

    def __init__(self, numbers: Terms, starts: Rows, rows: NDArray[np.int32]) -> None:
        self._numbers = numbers
        self._starts = starts
        self._rows = rows

    @classmethod
    def of(cls, texts: Iterable[tuple[Collection[str], Collection[str]]]) -> Postings:
        """From the terms of each text and its words as written; the stem of each word is among the terms."""
        terms, words = _Numbered(), _Numbered()
        for held, written in texts:
            terms.add(held)
            words.add(written)
        numbers, of_term, rows = terms.pairs()
        spelt, of_word, their_rows = words.pairs()
        is_known = np.fromiter(map(may_be_misspelt, spelt), bool, len(spelt))
        places = np.cumsum(is_known, dtype=np.int32) + np.int32(len(numbers) - 1)
        kept = is_known[of_word]
        known = compress(spelt, is_known.tolist())
        numbers |= {SPELT + word: number for number, word in enumerate(known, len(numbers))}
        return cls._sorted(
            numbers, np.concatenate([of_term, places[of_word[kept]]]), np.concatenate([rows, their_rows[kept]])
        )

    @classmethod
    def merged(cls, parts: Sequence[tuple[Postings, Rows, int]]) -> Postings:
        """From several segments: the rows of each that stay, in their new order, and the terms that these rows hold."""
        numbers: dict[str, int] = {}
        found, rows, first = [], [], 0
        for postings, kept, size in parts:
            new_row = np.full(size, -1, np.int32)
            new_row[kept] = np.arange(first, first + len(kept), dtype=np.int32)
            of_term, held = postings._pairs()
            moved = new_row[held]
            of_term = of_term[moved >= 0]
            stays = np.bincount(of_term, minlength=len(postings._numbers)) > 0
            left = compress(postings._numbers, stays.tolist())
            renumbered = np.zeros(len(stays), np.int32)
            renumbered[stays] = [numbers.setdefault(term, len(numbers)) for term in left]
            found.append(renumbered[of_term])
            rows.append(moved[moved >= 0])
            first += len(kept)
        return cls._sorted(numbers, np.concatenate(found), np.concatenate(rows))

    @classmethod
    def _sorted(cls, numbers: dict[str, int], terms_: NDArray[np.int32], rows: NDArray[np.int32]) -> Postings:
        """From pairs of a term's number and a row."""
        counts = np.bincount(terms_, minlength=len(numbers)).tolist()
        places = np.arange(len(numbers), dtype=np.int32)
        for term, number in numbers.items():
            if term[0] == SPELT and counts[of_stem := numbers[stem(term[1:])]] == counts[number]:
                places[number] = of_stem
        is_own = places == np.arange(len(numbers))
        places = (np.cumsum(is_own, dtype=np.int32) - 1)[places]
        kept = is_own[terms_]
        terms_, rows = places[terms_[kept]], rows[kept]
        starts = np.zeros(int(is_own.sum()) + 1, np.int64)
        np.cumsum(np.bincount(terms_, minlength=len(starts) - 1), out=starts[1:])
        return cls(dict(zip(numbers, places.tolist(), strict=True)), starts, rows[np.argsort(terms_, kind="stable")])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything for a file; see `mapped`."""
        written = sorted((term.encode("utf-8", "surrogatepass"), place) for term, place in self._items())
        places = np.array([place for _, place in written], np.int32)
        terms = Texts.arrays("terms", (term for term, _ in written))
        return {**terms, "terms.places": places, "postings.starts": self._starts, "postings.rows": self._rows}

    @classmethod
    def mapped(cls, arrays: Arrays) -> Postings:
        terms = SortedTerms(Texts.of(arrays, "terms"), arrays["terms.places"])
        return cls(terms, arrays["postings.starts"], arrays["postings.rows"])

    def _items(self) -> Iterable[tuple[str, int]]:
        return zip(self._numbers, self._numbers.values(), strict=True)

    def _pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For every term, by its position, every row that holds it."""
        places = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        starts, lengths = self._starts[places], np.diff(self._starts)[places]
        of_term = np.repeat(np.arange(len(places), dtype=np.int32), lengths)
        before = np.cumsum(lengths) - lengths
        return of_term, self._rows[np.arange(len(of_term)) + np.repeat(starts - before, lengths)]

    def terms(self) -> Iterable[str]:
        return self._numbers

    def rows(self, term: str) -> NDArray[Any]:
        number = self._numbers.get(term)
        return NO_ROWS if number is None else self._rows[self._starts[number] : self._starts[number + 1]]


class SortedTerms:
    """Terms in the order of their bytes, which stay in a file and are found by halving."""

    def __init__(self, terms: Texts, places: NDArray[np.int32]) -> None:
        self._terms = terms
        self._places = places

    def get(self, term: str, /) -> int | None:
        wanted = term.encode("utf-8", "surrogatepass")
        place = bisect_left(range(len(self._terms)), wanted, key=lambda one: bytes(self._terms.content(one)))
        is_known = place < len(self._terms) and self._terms.content(place) == wanted
        return int(self._places[place]) if is_known else None

    def values(self) -> list[int]:
        places: list[int] = self._places.tolist()
        return places

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)


def common(lists: Sequence[Rows]) -> Rows:
    """The rows that are in all of these lists."""
    shortest, *others = sorted(lists, key=len)
    for other in others:
        if not len(shortest):
            break
        shortest = shortest[is_among(shortest, other)]
    return shortest


def is_among(rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Which of the rows are in a list that is in order."""
    if not len(others):
        return np.zeros(len(rows), bool)
    places = np.searchsorted(others, rows)
    found: NDArray[np.bool_] = others[np.minimum(places, len(others) - 1)] == rows
    return found


class _Numbered:
    """Numbers for names in the order of their first use, and the rows that have them."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._found: list[NDArray[np.int32]] = [np.empty(0, np.int32)]

    def add(self, names: Collection[str]) -> None:
        self._found.append(np.fromiter(map(self._numbers.__getitem__, names), np.int32, len(names)))

    def pairs(self) -> tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32]]:
        """The numbers by name, and pairs of a number and a row."""
        lengths = [len(row) for row in self._found[1:]]
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        return dict(self._numbers), np.concatenate(self._found), rows
