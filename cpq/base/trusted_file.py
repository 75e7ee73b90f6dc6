"""Files of the operator that decide or sign: read only when nobody else could have written or, for a key, read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cpq.base.errors import Code, CpqError

BYTES_MAX = 1_000_000


def trusted_text(path: Path, kind: str, *, is_secret: bool = False) -> str:
    """The text of a file that only this user (or root) could have written; nobody else may read a secret one.

    FileNotFoundError when it does not exist; VALIDATION_ERROR names what is wrong with it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            _require_trusted(path, kind, os.fstat(descriptor), is_secret=is_secret)
            content = file.read(BYTES_MAX + 1)
    except (PermissionError, IsADirectoryError) as error:
        raise _refused(path, kind, f"cannot be read: {error.strerror}", "Make it readable, or remove it.") from None
    if len(content) > BYTES_MAX:
        raise _refused(path, kind, f"is larger than {BYTES_MAX:,} bytes", f"A {kind} has a few lines.")
    return content.decode(errors="replace")


def _require_trusted(path: Path, kind: str, status: os.stat_result, *, is_secret: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _refused(path, kind, "is not a file", "Remove it.")
    if os.name != "posix":
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _refused(path, kind, "belongs to another user", f"Check its content, then: chown $(id -u) {path}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(path, kind, "can be changed by other users", f"Check its content, then: chmod go-w {path}")
    if is_secret and status.st_mode & (stat.S_IRGRP | stat.S_IROTH):
        raise _refused(path, kind, "can be read by other users", f"Make a new one, then: chmod 600 {path}")


def _refused(path: Path, kind: str, reason: str, hint: str) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, f"The {kind} {path} {reason}.", field=str(path), hint=hint)
