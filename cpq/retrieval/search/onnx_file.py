"""Reads the tensors of an ONNX file without a protocol-buffer library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of a model file by name, as a view into the file."""
    content = np.memmap(path, np.uint8, mode="r").data
    graph = next(value for field, value in _fields(content) if field == 7)
    tensors = (value for field, value in _fields(graph) if field == 5)
    return dict(_tensor(tensor) for tensor in tensors)


def _tensor(content: memoryview) -> tuple[str, NDArray[Any]]:
    dimensions: list[int] = []
    name, raw, kind = "", memoryview(b""), 1
    for field, value in _fields(content):
        if field == 1:
            dimensions += [value] if isinstance(value, int) else _varints(value)
        elif field == 2:
            kind = value
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = value
    kinds = {1: np.float32, 3: np.int8, 7: np.int64, 9: np.bool_}
    return name, np.frombuffer(raw, kinds[kind]).reshape(dimensions)


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol-buffer message: integers, and all other values as bytes."""
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(content, place)
            yield tag >> 3, value
            continue
        length, place = _varint(content, place) if kind == 2 else (8 if kind == 1 else 4, place)
        yield tag >> 3, content[place : place + length]
        place += length


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _varints(content: memoryview) -> list[int]:
    values, place = [], 0
    while place < len(content):
        value, place = _varint(content, place)
        values.append(value)
    return values
