"""Facts from git about a folder: commit, origin and uncommitted changes. Never fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from typing_extensions import TypedDict

TIMEOUT_SECONDS = 3.0

_OWN = ("local", "worktree")
"""Git's names for the scopes of a repository's own settings."""


class GitFacts(TypedDict):
    head_commit: str | None
    origin_main: str | None
    dirty: bool | None
    """Whether something below the folder is not committed; None when git would have to run a program to find out."""


def facts(folder: Path) -> GitFacts | None:
    """None when the folder is not in a repository."""
    if _ask(folder, "rev-parse", "--is-inside-work-tree") != "true":
        return None
    status = ("status", "--porcelain", "--ignore-submodules=dirty", "--", ".")
    changes = None if _names_filters(folder) else _ask(folder, *status)
    return {
        "head_commit": _ask(folder, "rev-parse", "--short", "--verify", "--quiet", "HEAD") or None,
        "origin_main": _ask(folder, "rev-parse", "--short", "--verify", "--quiet", "origin/main") or None,
        "dirty": None if changes is None else bool(changes),
    }


def _names_filters(folder: Path) -> bool:
    """Whether the repository configures programs that `git status` would run."""
    listed = _ask(folder, "config", "--list", "--show-scope", "--includes", "--name-only")
    names = [line.split("\t", 1) for line in (listed or "").split("\n") if "\t" in line]
    return listed is None or any(scope in _OWN and name.startswith("filter.") for scope, name in names)


def _ask(folder: Path, *arguments: str) -> str | None:
    """Git's output; None when git fails. Takes no locks and runs no program that the repository configures."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    # GIT_* variables of the caller may point to another repository.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ran = subprocess.run(  # noqa: S603 - no shell, and only our own arguments
            command, cwd=folder, env=ours | quiet, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.decode("utf-8", "replace").strip() if ran.returncode == 0 else None
