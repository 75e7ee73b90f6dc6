"""The operator's file of settings: `.env` in a home that was named, or the one `--env-file` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cpq.base.errors import Code, CpqError
from cpq.base.trusted_file import trusted_text

HOME_DEFAULT = Path(".cpq")
KIND = "file of settings"
"""A setting decides whose policies apply, so only the operator may have written it."""


def read_variables(environ: Mapping[str, str], env_file: Path | None, home: Path | None) -> dict[str, str]:
    """The variables of the operator's file, overridden by those of the environment."""
    return {**(_named(env_file) if env_file else _of_home(environ, home)), **environ}


def _named(path: Path) -> dict[str, str]:
    try:
        return _parsed(trusted_text(path, KIND))
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
    return read_file(named / ".env")


def read_file(path: Path) -> dict[str, str]:
    """The variables of a file that only the operator could have written; none when there is no file."""
    try:
        return _parsed(trusted_text(path, KIND))
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _parsed(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip().removeprefix("export ").strip(): value.strip().strip("'\"") for name, value in pairs}
