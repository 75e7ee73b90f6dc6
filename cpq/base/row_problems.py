"""Rows of an imported file, and what is wrong with them: every problem with its line, its field and a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from cpq.base.errors import Code, CpqError, nearest


class SourceRow(NamedTuple):
    """One row of a file: its section, its line and its values."""

    section: str
    line: int
    values: dict[str, Any]


class Problem(NamedTuple):
    """Why a row is refused: its line in the file, the wrong field and the reason."""

    line: int
    field: str
    message: str
    nearest: list[str] | None = None


def faults(error: ValidationError, line: int, known: Iterable[str]) -> list[Problem]:
    """Every problem a model found in a row; for an unknown field the message suggests the nearest known one."""
    return [
        Problem(line, ".".join(filter(_is_name, map(str, fault["loc"]))) or "row", _message(fault, known))
        for fault in error.errors(include_url=False, include_input=False)
    ]


def require_none(problems: Sequence[Problem], count: int) -> None:
    """Raise VALIDATION_ERROR with the problems of a file, ordered by line; `count` is their total number."""
    if not problems:
        return
    first = f" (the first {len(problems):,} are listed)" if count > len(problems) else ""
    raise CpqError(
        Code.VALIDATION_ERROR,
        f"{count:,} problem{'s' if count > 1 else ''} in the file{first}; nothing was imported.",
        problems=[
            {name: value for name, value in problem._asdict().items() if value is not None}
            for problem in sorted(problems, key=lambda problem: problem.line)
        ],
    )


def spans(lines: Iterable[int]) -> list[str]:
    """Line numbers in order, consecutive ones as a range: `2-4`, `9`."""
    found: list[list[int]] = []
    for line in sorted({*lines} - {0}):
        if found and line == found[-1][-1] + 1:
            found[-1][1:] = [line]
        else:
            found.append([line])
    return ["-".join(map(str, span)) for span in found]


def _is_name(part: str) -> bool:
    """Whether the part is a name from the file. Pydantic adds validators of unions and `[key]` to the path."""
    return not part.startswith(("function-after[", "function-before[", "[key]"))


def _message(fault: Mapping[str, Any], known: Iterable[str]) -> str:
    if fault["type"] == "extra_forbidden":
        hint = nearest(str(fault["loc"][-1]).lower(), known)
        return "is not a known field" + (f"; did you mean {hint[0]}?" if hint else "")
    return str(fault["msg"]).removeprefix("Value error, ")
