"""A refusal that offers choices: each gets the refused call again with that choice made, ready to send."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

from cpq.base.errors import CpqError, next_call


def add_next_calls(error: CpqError, tool: str, arguments: Mapping[str, Any]) -> None:
    """Give each choice of each problem a `next_call`, unless the rule that refused knew a better one.

    Where several lines may choose the same, all of them do, so that one more call is enough.
    """
    listed = cast("list[dict[str, Any]]", error.details.get("problems", []))
    asking = [problem for problem in (error.details, *listed) if isinstance(problem.get("choices"), list)]
    for problem in asking:
        for choice in cast("list[dict[str, Any]]", problem["choices"]):
            fields = {str(other["field"]) for other in asking if _offers(other, choice, _last(problem))}
            call = _with(arguments, fields, choice)
            if call is not None:
                choice.setdefault("next_call", next_call(tool, **call))


def _offers(problem: Mapping[str, Any], choice: Mapping[str, Any], name: str) -> bool:
    return _last(problem) == name and any(other.get(name) == choice.get(name) for other in problem["choices"])


def _last(problem: Mapping[str, Any]) -> str:
    return str(problem["field"]).rpartition("/")[2]


def _with(arguments: Mapping[str, Any], fields: set[str], choice: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments with the choice at these JSON pointers; None where one is not among the arguments."""
    changed: Any = copy.deepcopy(dict(arguments))
    for field in fields:
        *path, name = field.removeprefix("/").split("/")
        part: Any = changed
        for step in path:
            part = part[int(step)] if isinstance(part, list) else part.get(step) if isinstance(part, dict) else None
        if not isinstance(part, dict) or name not in choice:
            return None
        part[name] = choice[name]
    return cast("dict[str, Any]", changed)
