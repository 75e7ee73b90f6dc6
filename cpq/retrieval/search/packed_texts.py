"""PURE. Many texts in two arrays, which may lie in a mapped file: a text becomes an object when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name, of a file."""


class Texts(Sequence[str]):
    """Texts one after the other in an array of bytes, and where each ends."""

    def __init__(self, content: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._content = content.data
        self._ends = ends

    @classmethod
    def arrays(cls, name: str, texts: Iterable[str | bytes | memoryview]) -> dict[str, NDArray[Any]]:
        """The two arrays for a file."""
        written = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
        ends = np.cumsum([0, *map(len, written)], dtype=np.int64)[1:]
        return {name: np.frombuffer(b"".join(written), np.uint8), f"{name}.ends": ends}

    @classmethod
    def of(cls, arrays: Arrays, name: str) -> Texts:
        return cls(arrays[name], arrays[f"{name}.ends"])

    def __len__(self) -> int:
        return len(self._ends)

    def content(self, place: int) -> memoryview:
        """The bytes of a text."""
        return self._content[int(self._ends[place - 1]) if place else 0 : int(self._ends[place])]

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    @overload
    def __getitem__(self, place: NDArray[np.int64]) -> NDArray[Any]: ...

    def __getitem__(self, place: int | slice | NDArray[np.int64]) -> str | list[str] | NDArray[Any]:
        if isinstance(place, slice):
            return [self._text(each) for each in range(*place.indices(len(self)))]
        if isinstance(place, np.ndarray):
            return np.array([self._text(each) for each in place.tolist()], StringDType())
        return self._text(int(place))

    def __iter__(self) -> Iterator[str]:
        return map(self._text, range(len(self)))

    def _text(self, place: int) -> str:
        return str(self.content(place), "utf-8", "surrogatepass")
