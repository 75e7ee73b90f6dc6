"""Reads a folder of policy files, runs their cases, and detects cheaply whether the folder has changed since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from cpq.base.errors import Code, CpqError
from cpq.domain.policy.files.builder import build, invalid
from cpq.domain.policy.files.cases import CaseResult, run_cases
from cpq.domain.policy.files.shapes import FILES
from cpq.domain.policy.policy_set import PolicySet
from cpq.domain.yaml_source import BYTES_MAX, Problem, too_large

Stamp = tuple[tuple[str, int, int, int, int], ...]
"""Name, times of change, size and inode of every policy file: every edit changes one of them."""


class Loaded(NamedTuple):
    """A set of policies and the texts of the files that it was built from."""

    policies: PolicySet
    texts: Mapping[str, str]


TEST_SUFFIX = "_test.yaml"
FILES_MAX = 1_000


def load(directory: Path, deciders: Collection[str] | None = None) -> PolicySet:
    """The policies of a folder; CONFIGURATION_INVALID lists everything that is wrong in `details.problems`.

    To reload: keep the set and the `stamp` taken before loading; when the stamp differs, load again, and keep the old
    set when that fails. Equal `content_hash` means that no policy changed.
    `deciders` are the roles that may decide; None skips that check.
    """
    return load_with_texts(directory, deciders).policies


def load_with_texts(directory: Path, deciders: Collection[str] | None = None) -> Loaded:
    """`load`, and what it read: `build` makes the same set of that."""
    texts = _texts(directory, is_test=False)
    return Loaded(build(texts, deciders), texts)


def run_tests(directory: Path, deciders: Collection[str] | None = None) -> list[CaseResult]:
    """Runs every case of the `*_test.yaml` files against the policies beside them."""
    return load_with_cases(directory, deciders)[1]


def load_with_cases(directory: Path, deciders: Collection[str] | None = None) -> tuple[PolicySet, list[CaseResult]]:
    """The policies, and the result of every case beside them; an unreadable file of cases is a problem, too."""
    policies = load(directory, deciders)
    return policies, run_cases(policies, _texts(directory, is_test=True))


def stamp(directory: Path) -> Stamp:
    """The stamp of a folder, cheap to take. Take it before `load`, so that an edit in between is noticed next time."""
    found = []
    for path in _paths(directory):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # Removed in the meantime; the next listing differs.
        found.append((path.name, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _texts(directory: Path, *, is_test: bool) -> dict[str, str]:
    texts: dict[str, str] = {}
    problems = []
    for path in _paths(directory):
        if path.name.endswith(TEST_SUFFIX) is not is_test:
            continue
        # A file of another kind is only listed, not read.
        found = _text(path) if is_test or path.name in FILES else ""
        if isinstance(found, Problem):
            problems.append(found)
        else:
            texts[path.name] = found
    if problems:
        raise invalid(problems)
    return texts


def _text(path: Path) -> str | Problem:
    try:
        if path.exists() and not path.is_file():
            return Problem(path.name, 1, 1, "cannot be read: it is not a file")  # Opening a pipe would block.
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        return Problem(path.name, 1, 1, f"cannot be read: {error.strerror}")
    if len(content) > BYTES_MAX:
        return Problem(path.name, 1, 1, too_large())
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return Problem(path.name, line, 1, "not UTF-8 text")


def _paths(directory: Path) -> list[Path]:
    try:
        if not directory.is_dir():
            raise _unusable(f"There is no folder of policies {directory.name!r}.")
        found = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise _unusable(f"The folder of policies {directory.name!r} cannot be read: {error.strerror}.") from error
    if len(found) > FILES_MAX:
        raise _unusable(f"The folder of policies {directory.name!r} has more than {FILES_MAX:,} files.")
    return found


def _unusable(message: str) -> CpqError:
    return CpqError(Code.CONFIGURATION_INVALID, message, setting="CPQ_POLICIES_DIR")
