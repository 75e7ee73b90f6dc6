"""The file of a backup: a ZIP whose last part, the manifest, has the SHA-256 of each other part."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from cpq.base.errors import Code, CpqError
from cpq.base.private_folder import make_private

MANIFEST = "manifest.json"
CHUNK = 1 << 20
MANIFEST_BYTES_MAX = 1 << 30
_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)


class Writer:
    """Writes parts one after the other, and keeps the checksum and size of each."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=1)
        self.parts: dict[str, dict[str, Any]] = {}

    def add(self, name: str, chunks: Iterable[bytes], *, is_packed: bool = False) -> None:
        """Add a part; `is_packed` for what is compressed already."""
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
        checksum, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as part:
            for chunk in chunks:
                checksum.update(chunk)
                size += len(chunk)
                part.write(chunk)
        self.parts[name] = {"sha256": checksum.hexdigest(), "bytes": size}

    def finish(self, manifest: str) -> None:
        self._zip.writestr(MANIFEST, manifest)
        self._zip.close()


@contextmanager
def written(target: Path) -> Iterator[Writer]:
    """A new file for the operator alone, which gets its name when it is complete and on the disk."""
    with _named_faults(target):
        make_private(target.parent)
        _remove_leftovers(target)
        descriptor, name = tempfile.mkstemp(prefix=_prefix(target), dir=target.parent)
    fresh = Path(name)
    try:
        with _named_faults(target), os.fdopen(descriptor, "w+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield Writer(file)
            file.flush()
            os.fsync(file.fileno())
            try:
                target.hardlink_to(fresh)  # Unlike a rename, it replaces nothing.
            except FileExistsError:
                raise exists_already(target) from None
            _sync_folder(target.parent)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def _named_faults(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CpqError(
            Code.UNAVAILABLE,
            f"The backup {target} could not be written: {os.strerror(error.errno or 0)}.",
            hint="Make its folder writable and leave room on its disk; what was written of it is gone.",
        ) from error


def exists_already(target: Path) -> CpqError:
    return CpqError(
        Code.CONFLICT,
        f"There is already a file {target}.",
        hint="Give another name, or a folder: the name is then new.",
    )


class Reader:
    """Reads the parts of a backup, and refuses what is not as the manifest has it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise CpqError(Code.NOT_FOUND, f"There is no file {path}.") from None
        except _DAMAGE:
            raise self.refused(_broken_part(path)) from None
        self.manifest: dict[str, Any] = self._read_manifest()
        self.parts: dict[str, dict[str, Any]] = self.manifest["parts"]

    def close(self) -> None:
        self._zip.close()

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(part["bytes"] for part in self.parts.values())

    def require_whole(self, name: str) -> None:
        """Read a part to its end; CONFLICT names it when a byte differs, is missing or too many."""
        checksum, left = hashlib.sha256(), int(self.parts[name]["bytes"])
        for chunk in self.chunks(name):
            checksum.update(chunk)
            left -= len(chunk)
            if left < 0:
                break
        if left or checksum.hexdigest() != self.parts[name]["sha256"]:
            raise self.refused(f"the part {name} is not as it was written")

    def require_no_more(self) -> None:
        """CONFLICT names a part that the manifest does not know."""
        for name in self._zip.namelist():
            if name != MANIFEST and name not in self.parts:
                raise self.refused(f"the part {name} is not in its manifest")

    def chunks(self, name: str) -> Iterator[bytes]:
        with self._opened(name) as part:
            while chunk := part.read(CHUNK):
                yield chunk

    def lines(self, name: str) -> Iterator[bytes]:
        with self._opened(name) as part:
            for line in part:
                yield line.rstrip(b"\n")

    def content(self, name: str) -> bytes:
        return b"".join(self.chunks(name))

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        try:
            with self._zip.open(name) as part:
                yield part
        except KeyError:
            raise self.refused(f"the part {name} is missing") from None
        except _DAMAGE:
            raise self.refused(f"the part {name} is damaged") from None

    def _read_manifest(self) -> dict[str, Any]:
        with self._opened(MANIFEST) as part:
            written = part.read(MANIFEST_BYTES_MAX)
        try:
            manifest = json.loads(written)
            for one in (*manifest["parts"].values(), *manifest["tables"]):
                _require_whole_numbers(one)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self.refused(f"the part {MANIFEST} cannot be read") from None
        return dict(manifest)

    def refused(self, reason: str) -> CpqError:
        return CpqError(
            Code.CONFLICT,
            f"The backup {self._path} is not whole: {reason}. Nothing was changed.",
            hint="Take another copy of this backup, or an older one.",
        )


def _require_whole_numbers(one: dict[str, Any]) -> None:
    for name in ("bytes", "rows"):
        if not isinstance(one.get(name, 0), int):
            raise TypeError(name)


def _broken_part(path: Path) -> str:
    """Which part is cut off, by the headers before each part: the list at the end is missing."""
    size, place, name = path.stat().st_size, 0, ""
    with path.open("rb") as file:
        while len(header := file.read(_LOCAL_HEADER.size)) == _LOCAL_HEADER.size:
            mark, _, _, _, _, _, _, packed, _, name_size, extra_size = _LOCAL_HEADER.unpack(header)
            if mark != b"PK\x03\x04":
                break
            name = file.read(name_size).decode(errors="replace")
            extra = file.read(extra_size)
            if packed == 0xFFFFFFFF and len(extra) >= 20:
                packed = struct.unpack_from("<Q", extra, 12)[0]
            place += _LOCAL_HEADER.size + name_size + extra_size + packed
            if place > size:
                return f"the part {name} is cut off"
            file.seek(place)
    return (
        f"the list of parts at its end is cut off or damaged; {name} is the last one before it"
        if name
        else ("it does not begin like a backup")
    )


def _prefix(target: Path) -> str:
    return f".{target.name}.incoming-"


def _remove_leftovers(target: Path) -> None:
    """Remove what backups to this name left when they were killed; one that still runs holds a lock."""
    for path in target.parent.glob(f"{_prefix(target)}*"):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
