"""Lists and reads the files below a root folder, never outside of it, in any encoding."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FILES_MAX = 100_000
FILE_BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 64

_CAN_OPEN_BELOW = os.open in os.supports_dir_fd


class Stamp(NamedTuple):
    """Identifies a version of a file: a changed file has another stamp."""

    modified_ns: int
    changed_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        return cls(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


@dataclass
class Listing:
    """The result of a scan, by path below the root, with `/` as separator on every system."""

    files: dict[str, Stamp] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """Files and folders that cannot be used, and why."""

    def may_still_hold(self, path: str) -> bool:
        """Whether a missing file may be in a folder that could not be read."""
        return any(path.startswith(f"{folder}/") for folder in self.problems)


class UnreadableError(Exception):
    """Says why a file cannot be used; the message follows the file's name."""


def scan(root: Path, suffixes: Collection[str], *, skipped: Collection[str] = ()) -> Listing:
    """All files with one of the suffixes, without hidden files, skipped folders, and anything outside the root.

    OSError when the root itself cannot be read.
    """
    listing = Listing()
    real_root = os.path.realpath(root)
    waiting = [(real_root, "", 0)]
    while waiting:
        folder, prefix, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if name not in skipped and depth < DEPTH_MAX:
                            waiting.append((entry.path, f"{prefix}{name}/", depth + 1))
                    elif entry.is_symlink() and os.path.isdir(entry.path):
                        if name not in skipped:
                            listing.problems[_shown(f"{prefix}{name}")] = "is a link to a folder, which is not followed"
                    elif os.path.splitext(name)[1].lower() in suffixes:
                        _note(listing, entry, f"{prefix}{name}", real_root)
        except OSError as error:
            if not prefix:
                raise
            listing.problems[_shown(prefix.rstrip("/"))] = f"cannot be opened: {error.strerror}"
    return listing


def _note(listing: Listing, entry: os.DirEntry[str], path: str, root: str) -> None:
    """Add one file. A link counts as the file it points to, if that is below the root."""
    try:
        if entry.is_symlink():
            target = os.path.realpath(entry.path)
            if not target.startswith(f"{root}{os.sep}"):
                listing.problems[_shown(path)] = "leads out of the folder"
                return
        found = entry.stat()
    except OSError as error:
        listing.problems[_shown(path)] = f"cannot be looked at: {error.strerror}"
        return
    if not stat.S_ISREG(found.st_mode):
        listing.problems[_shown(path)] = "is not a file"
    elif not _is_text(path):
        listing.problems[_shown(path)] = "has a name that is not UTF-8"
    elif len(listing.files) >= FILES_MAX:
        listing.problems[_shown(path)] = f"is one of more than {FILES_MAX:,} files"
    else:
        listing.files[path] = Stamp.of(found)


def read_text(root: Path, path: str, bytes_max: int = FILE_BYTES_MAX) -> tuple[str, str | None]:
    """The text of a file, and what is wrong with its encoding; UnreadableError when it is not text."""
    data = read_bytes(root, path, bytes_max)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16"), None
        except UnicodeDecodeError:
            raise UnreadableError("is neither UTF-8 nor UTF-16 text") from None
    if b"\0" in data:
        raise UnreadableError("is not text")
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "is not UTF-8; read as Windows-1252"


def read_bytes(root: Path, path: str, bytes_max: int) -> bytes:
    """The content of a file below the root. Never waits for a pipe, never follows a link created meanwhile."""
    real_root = os.path.realpath(root)
    target = os.path.realpath(os.path.join(real_root, path))
    if not target.startswith(f"{real_root}{os.sep}"):
        raise UnreadableError("leads out of the folder")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(_opened(real_root, target, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError("is not a file")
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {error.strerror}") from None
    if len(data) > bytes_max:
        raise UnreadableError(f"is larger than {bytes_max // 1024**2} MB")
    return data


def _opened(root: str, target: str, flags: int) -> int:
    """Opens the folders one by one where the system can, so that none is replaced by a link in between."""
    if not _CAN_OPEN_BELOW:
        return os.open(target, flags)
    *parents, name = os.path.relpath(target, root).split(os.sep)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for parent in parents:
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()
