"""Choices: a word of a closed list, and refusals that offer the refused call again with a choice made."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar, cast

from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call

_OF_ARGUMENTS = (Code.VALIDATION_ERROR, Code.NOT_FOUND, Code.CONFLICT)
COPIES_MAX = 80_000
"""How many bytes the copies of a refused call may have together: each choice of a large call would repeat it whole."""


def add_next_calls(error: CpqError, tool: str, arguments: Mapping[str, Any]) -> None:
    """Give each choice of the first problem a `next_call`, unless the rule that refused knew a better one.

    Where several lines may choose the same, all of them do, so that one more call is enough; the list of problems
    therefore does not repeat the calls. Of a large call there are none: field, choices and hint say what to add.
    """
    choices = error.details.get("choices")
    if not isinstance(choices, list) or _size(arguments) * len(choices) > COPIES_MAX:
        return
    listed = cast("list[dict[str, Any]]", error.details.get("problems", []))
    asking = [problem for problem in (error.details, *listed) if isinstance(problem.get("choices"), list)]
    # New objects: the first of the listed problems has the same ones.
    error.details["choices"] = [_sendable(choice, asking, tool, arguments) for choice in choices]


def add_repair(error: CpqError, tool: str, arguments: Mapping[str, Any]) -> None:
    """Where only options are wrong and valid ones are known, the refused call with those as its `next_call`."""
    listed = cast("list[dict[str, Any]]", error.details.get("problems", []))
    valid = {str(problem["field"]): problem["valid_attributes"] for problem in listed if "valid_attributes" in problem}
    lines = {field.partition("/attributes")[0] for field in valid}
    is_all = all(
        problem.get("code") == Code.CONFIGURATION_INVALID
        # What is missing across the lines of a quote is in no line.
        and str(problem.get("field", "")).partition("/attributes")[0] in lines
        for problem in listed
    )
    if not valid or not is_all or _size(arguments) > COPIES_MAX:
        return
    call: dict[str, Any] | None = dict(arguments)
    for field, attributes in valid.items():
        at = f"{field.partition('/attributes')[0]}/attributes"
        call = call and _with(call, {at}, {"attributes": attributes})
    if call is not None:
        error.details["next_call"] = next_call(tool, **call)


def add_look(error: CpqError, tool: str, arguments: Mapping[str, Any]) -> None:
    """A refusal of a tool about agreements or orders that knows no better `next_call` leads to what there is."""
    kind = tool.partition("_")[0]
    if kind not in ("agreement", "order") or error.code not in _OF_ARGUMENTS or "next_call" in error.details:
        return
    field = f"{kind}_id"
    named = arguments.get(field)
    if isinstance(named, str) and named.strip() and error.details.get("field") != f"/{field}":
        error.details["next_call"] = next_call(f"{kind}_get", **{field: named})
    else:
        error.details["next_call"] = next_call(f"{kind}_list")


def _sendable(
    choice: Mapping[str, Any], asking: list[dict[str, Any]], tool: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    name = _last(asking[0])
    call = _with(arguments, {str(one["field"]) for one in asking if _offers(one, choice, name)}, choice)
    return dict(choice) if call is None or "next_call" in choice else {**choice, "next_call": next_call(tool, **call)}


def _size(arguments: Mapping[str, Any]) -> int:
    return len(json.dumps(dict(arguments), default=str))


def _offers(problem: Mapping[str, Any], choice: Mapping[str, Any], name: str) -> bool:
    return _last(problem) == name and any(other.get(name) == choice.get(name) for other in problem["choices"])


def _last(problem: Mapping[str, Any]) -> str:
    return str(problem.get("field", "")).rpartition("/")[2]


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
        if name == "selling_model":
            part.pop("billing_period", None)  # The word has it.
    return cast("dict[str, Any]", changed)


_Word = TypeVar("_Word", bound=StrEnum)


def one_of(words: type[_Word], given: str, field: str) -> _Word:
    """The word of a closed list; VALIDATION_ERROR with the list."""
    try:
        return words(given.strip().casefold())
    except ValueError:
        known = [word.value for word in words]
        raise bad_field(
            field, f"{given!r} is not one of the words.", allowed=known, nearest=nearest(given, known) or None
        ) from None
