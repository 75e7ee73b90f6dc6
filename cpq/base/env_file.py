"""The operator's file of settings: `.env` in a home that was named, or the one `--env-file` names."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cpq.base.errors import Code, CpqError

HOME_DEFAULT = Path(".cpq")
BYTES_MAX = 1_000_000


def read_variables(environ: Mapping[str, str], env_file: Path | None, home: Path | None) -> dict[str, str]:
    """The variables of the operator's file, overridden by those of the environment."""
    return {**(_named(env_file) if env_file else _of_home(environ, home)), **environ}


def _named(path: Path) -> dict[str, str]:
    try:
        return _parsed(_trusted_text(path))
    except FileNotFoundError:
        raise CpqError(
            Code.VALIDATION_ERROR, f"There is no file {path}.", field="--env-file", hint="Name a file of settings."
        ) from None


def _of_home(environ: Mapping[str, str], home: Path | None) -> dict[str, str]:
    """The file of a home that the operator named. The default home is a part of the current folder, whose files may
    come with a download: they belong to the user, and still somebody else wrote them."""
    named = home or (Path(environ["CPQ_HOME"]) if environ.get("CPQ_HOME") else None)
    if named is None:
        return {}
    try:
        return _parsed(_trusted_text(named / ".env"))
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _trusted_text(path: Path) -> str:
    """The file's text, if only this user (or root) could have written it: a setting decides whose policies apply."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            _require_trusted(path, os.fstat(descriptor))
            content = file.read(BYTES_MAX + 1)
    except (PermissionError, IsADirectoryError) as error:
        raise _refused(path, f"cannot be read: {error.strerror}", "Make it readable, or remove it.") from None
    if len(content) > BYTES_MAX:
        raise _refused(path, f"is larger than {BYTES_MAX:,} bytes", "A file of settings has a few lines.")
    return content.decode(errors="replace")


def _require_trusted(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _refused(path, "is not a file", "Remove it.")
    if os.name != "posix":
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _refused(path, "belongs to another user", f"Check its content, then: chown $(id -u) {path}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(path, "can be changed by other users", f"Check its content, then: chmod go-w {path}")


def _refused(path: Path, reason: str, hint: str) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, f"The file of settings {path} {reason}.", field=str(path), hint=hint)


def _parsed(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip().removeprefix("export ").strip(): value.strip().strip("'\"") for name, value in pairs}
