"""Arrays in one file that is mapped into memory: a process reads of it what it needs, and the system keeps the rest."""

from __future__ import annotations

import json
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.packed_texts import Arrays

_MAGIC = b"cpqindex"
_ALIGNED = 64
_LEFT_SECONDS = 3600
_HEAD_BYTES_MAX = 64 * 1024 * 1024


class Mapped(NamedTuple):
    arrays: dict[str, NDArray[Any]]
    about: Any
    """The description that the writer added, from JSON."""


def write(path: Path, arrays: Arrays, about: Any) -> None:
    """Write the file for the operator alone, whole or not at all; processes that have the old one mapped keep it."""
    placed: dict[str, tuple[str, tuple[int, ...], int]] = {}
    place = 0
    for name, array in arrays.items():
        placed[name] = (array.dtype.str, array.shape, place)
        place += _padded(array.nbytes)
    head = json.dumps({"arrays": placed, "size": place, "about": about}).encode()
    head += b" " * (_padded(len(head) + 16) - len(head) - 16)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_MAGIC + len(head).to_bytes(8, "little") + head)
            for array in arrays.values():
                file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
                file.write(b"\0" * (_padded(array.nbytes) - array.nbytes))
            file.flush()
            os.fsync(file.fileno())
        _remove_left(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read(path: Path) -> Mapped | None:
    """The arrays of a file; None when the file is missing or not whole. Writing to an array changes only memory."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
            size = int.from_bytes(start[8:], "little")
            if start[:8] != _MAGIC or size > _HEAD_BYTES_MAX:
                return None
            head = json.loads(file.read(size))
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None
    if len(content) != 16 + size + head["size"]:
        return None
    arrays = {
        name: np.frombuffer(content, dtype, int(np.prod(shape)), 16 + size + place).reshape(shape)
        for name, (dtype, shape, place) in head["arrays"].items()
    }
    return Mapped(arrays, head["about"])


def _remove_left(path: Path, new: Path) -> None:
    """Remove what writers left behind that were killed an hour or longer ago."""
    now = new.stat().st_mtime
    for other in path.parent.glob(f"{path.name}.*.new"):
        with suppress(FileNotFoundError):
            if now - other.stat().st_mtime > _LEFT_SECONDS:
                other.unlink()


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
