"""PURE. The vectors of the passages of one segment: one of each text, added as they are computed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.index_columns import strings
from cpq.retrieval.search.packed_texts import Texts
from cpq.retrieval.search.postings import NO_ROWS, Rows
from cpq.retrieval.search.vectors import DIMENSIONS, Vector

_BLOCK = 1024
_HASH = np.dtype("V16")

Mask = NDArray[np.bool_]


def text_hash(text: str) -> bytes:
    """The key of a stored vector: the same text is embedded once."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class PassageVectors:
    """The first text of each passage, in the order of the passages, and after these the further texts of some."""

    def __init__(self, texts: Sequence[Sequence[str]], *, with_vectors: bool) -> None:
        firsts = [each[0] for each in texts]
        further = [(row, text) for row, each in enumerate(texts) for text in each[1:]]
        every = list(chain(firsts, (text for _, text in further)))
        self.owners: Rows = np.array([row for row, _ in further], np.int64)
        """The passages of the further texts."""
        self.hashes: NDArray[np.void] = np.array([text_hash(text) for text in every], _HASH)
        self.digits = np.zeros((len(every) if with_vectors else 0, DIMENSIONS), np.int8)
        self.scales = np.zeros(len(every), np.float32)
        """0 until the vector is there, and written after it, so that a reader sees a whole vector or none."""
        self.missing = self._without_vector() if with_vectors else {}
        """The places of the texts without a vector, by hash."""
        self.texts: NDArray[Any] | Texts = strings(every) if with_vectors else strings(())
        """The texts to embed; emptied when every text has its vector."""

    @classmethod
    def mapped(cls, hashes: NDArray[np.void], digits: NDArray[np.int8], scales: NDArray[np.float32]) -> PassageVectors:
        """From a file; each passage has one text."""
        made = cls((), with_vectors=False)
        made.hashes, made.digits, made.scales = hashes.view(_HASH), digits, scales
        return made

    @classmethod
    def merged(cls, parts: Sequence[tuple[PassageVectors, Rows]]) -> PassageVectors:
        """The vectors of these passages of each part, in their order."""
        whole = cls((), with_vectors=False)
        further = [part._further(rows) for part, rows in parts]
        starts = np.cumsum([0, *(len(rows) for _, rows in parts)])
        whole.owners = np.concatenate(
            [
                start + np.searchsorted(rows, part.owners[places])
                for start, (part, rows), places in zip(starts.tolist(), parts, further, strict=False)
            ]
        ).astype(np.int64)
        pairs = [*parts, *((part, part.count + places) for (part, _), places in zip(parts, further, strict=True))]
        whole.hashes = np.concatenate([part.hashes[places] for part, places in pairs])
        with_vectors = any(len(part.digits) for part, _ in parts)
        if with_vectors:
            whole.digits = np.concatenate([part.digits[places] for part, places in pairs])
        whole.scales = np.concatenate([part.scales[places] for part, places in pairs])
        whole.missing = whole._without_vector() if with_vectors else {}
        if whole.missing:
            whole.texts = np.concatenate(
                [part.texts[places] if len(part.texts) else strings([""] * len(places)) for part, places in pairs]
            )
        return whole

    @property
    def count(self) -> int:
        """How many passages there are."""
        return len(self.hashes) - len(self.owners)

    def hashes_of(self, alive: Mask) -> Iterator[bytes]:
        """The hashes of all texts of these passages."""
        yield from (name.tobytes() for name in self.hashes[np.concatenate([alive, alive[self.owners]])])

    def waiting(self) -> Mask:
        """The passages with a text that has no vector yet."""
        lack: Mask = self.scales == 0
        found = lack[: self.count].copy()
        found[self.owners[lack[self.count :]]] = True
        return found

    def similarity(self, vector: Vector, rows: Rows) -> tuple[NDArray[np.float64], Mask]:
        """The cosine of the query with the nearest text of each row, and which rows have a vector; 0 for the others."""
        if not len(self.digits):
            return np.zeros(len(rows), np.float64), np.zeros(len(rows), bool)
        found, has_vector = self._products(vector, rows)
        if len(self.owners):
            places = np.arange(self.count, len(self.hashes))
            further, is_made = self._products(vector, places)
            best = np.full(self.count, -np.inf)
            np.maximum.at(best, self.owners[is_made], further[is_made])
            found = np.where(has_vector, np.maximum(found, best[rows]), found)
        return found, has_vector

    def _products(self, vector: Vector, places: Rows) -> tuple[NDArray[np.float64], Mask]:
        scales = self.scales[places]  # Read before the digits, because they are written after them.
        asked = vector.digits.astype(np.float32)
        products = np.empty(len(places), np.float32)
        block = np.empty((min(_BLOCK, len(places)), DIMENSIONS), np.float32)
        is_all = len(places) == len(self.digits)
        for start in range(0, len(places), _BLOCK):
            end = min(start + _BLOCK, len(places))
            part = block[: end - start]
            np.copyto(part, self.digits[start:end] if is_all else self.digits[places[start:end]], casting="unsafe")
            np.matmul(part, asked, out=products[start:end])
        return products.astype(np.float64) * scales * vector.scale, scales > 0

    def fill(self, vectors: Mapping[bytes, Vector]) -> int:
        """Add vectors; returns how many texts they belong to."""
        known = [name for name in vectors if name in self.missing]
        for name in known:
            for place in self.missing.pop(name):
                self.digits[place] = vectors[name].digits
                self.scales[place] = vectors[name].scale
        self._spare_texts()
        return len(known)

    def forget(self, rows: Collection[int]) -> None:
        """Drop the missing vectors of removed passages."""
        for place in self._places(rows):
            name = self.hashes[place].tobytes()
            if place in (waiting := self.missing.get(name, ())):
                self.missing[name] = [other for other in waiting if other != place]
                if len(waiting) == 1:
                    del self.missing[name]
        self._spare_texts()

    def text(self, name: bytes) -> str | None:
        """The text with this hash, when it waits for a vector."""
        places = self.missing.get(name)
        return str(self.texts[places[0]]) if places else None

    def of(self, rows: Collection[int]) -> dict[bytes, Vector]:
        """The vectors of all texts of these passages, by hash."""
        return {
            self.hashes[place].tobytes(): Vector(self.digits[place], float(self.scales[place]))
            for place in self._places(rows)
            if self.scales[place]
        }

    def _places(self, rows: Collection[int]) -> Iterable[int]:
        return chain(rows, (self.count + self._further(np.array(list(rows), np.int64))).tolist())

    def _further(self, rows: Rows) -> Rows:
        """Which of the further texts belong to these passages."""
        return np.flatnonzero(np.isin(self.owners, rows)) if len(self.owners) else NO_ROWS

    def _spare_texts(self) -> None:
        if not self.missing and len(self.texts):
            self.texts = strings(())
            self.missing = {}  # A dict keeps its size when it is emptied.

    def _without_vector(self) -> dict[bytes, list[int]]:
        missing: dict[bytes, list[int]] = {}
        for place in np.flatnonzero(self.scales == 0).tolist():
            missing.setdefault(self.hashes[place].tobytes(), []).append(place)
        return missing
