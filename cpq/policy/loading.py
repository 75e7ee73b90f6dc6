"""Reads a folder of policy files, runs their cases, and tells cheaply whether the folder has changed since."""

from __future__ import annotations

from pathlib import Path

from cpq.errors import Code, CpqError
from cpq.policy.building import build, invalid
from cpq.policy.cases import CaseResult, run_cases
from cpq.policy.document import BYTES_MAX, Problem
from cpq.policy.model import PolicySet

Stamp = tuple[tuple[str, int, int, int, int], ...]
"""Name, times of change, size and inode of every policy file: whatever touches a file changes one of them."""

TEST_SUFFIX = "_test.yaml"


def load(directory: Path) -> PolicySet:
    """The policies of a folder; CONFIGURATION_INVALID with `details.problems` names all that is wrong.

    To reload: keep the set and the `stamp` taken before loading; when the stamp differs, load again, and keep the old
    set when that fails. Equal `content_hash` means that nothing of consequence changed.
    """
    return build(_texts(directory, is_test=False))


def run_tests(directory: Path) -> list[CaseResult]:
    """Runs every case of the `*_test.yaml` files against the policies beside them."""
    return run_cases(load(directory), _texts(directory, is_test=True))


def stamp(directory: Path) -> Stamp:
    """A few file-system looks. Take it before `load`, so that an edit in between is seen the next time."""
    found = []
    for path in _paths(directory):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # Removed while we looked; the listing of the next look differs.
        found.append((path.name, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _texts(directory: Path, *, is_test: bool) -> dict[str, str]:
    texts, problems = {}, []
    for path in _paths(directory):
        if path.name.endswith(TEST_SUFFIX) is not is_test:
            continue
        try:
            with path.open("rb") as file:
                texts[path.name] = file.read(BYTES_MAX + 1).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            problems.append(Problem(path.name, line, 1, "not UTF-8 text"))
        except OSError as error:
            problems.append(Problem(path.name, 1, 1, f"cannot be read: {error.strerror}"))
    if problems:
        raise invalid(problems)
    return texts


def _paths(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise CpqError(
            Code.CONFIGURATION_INVALID,
            f"There is no folder of policies {directory.name!r}.",
            setting="CPQ_POLICIES_DIR",
        )
    try:
        return sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise CpqError(
            Code.CONFIGURATION_INVALID,
            f"The folder of policies {directory.name!r} cannot be read: {error.strerror}.",
            setting="CPQ_POLICIES_DIR",
        ) from error
