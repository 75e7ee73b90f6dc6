"""The two shapes of a tool's answer: its result, or `{"error": {code, message, details}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cpq.base.errors import Code, CpqError, nearest
from cpq.base.text import shown, to_wire

PROBLEMS_MAX = 20
"""How many refused arguments an answer lists, because a call may send a million unknown fields."""


@dataclass(frozen=True)
class Reply:
    """The answer for the client. `text` is the same JSON as `body`."""

    body: dict[str, Any]
    is_error: bool = False

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"]) if self.is_error else "OK"


def success(answer: Mapping[str, Any]) -> Reply:
    return Reply(with_shown_sentences(to_wire(answer)))


def failure(error: CpqError) -> Reply:
    details = with_shown_sentences(to_wire(error.details))
    for problem in details.get("problems", ()):
        with_shown_sentences(problem)
    body = {"code": error.code.value, "message": shown(error.message), "details": details or None}
    return Reply({"error": body}, is_error=True)


def with_shown_sentences(body: dict[str, Any]) -> dict[str, Any]:
    """The body, in whose sentences nothing hides that they quote. Fields that hold a text keep it as it is."""
    for name in ("message", "hint"):
        if isinstance(sentence := body.get(name), str):
            body[name] = shown(sentence)
    if isinstance(warnings := body.get("warnings"), list):
        body["warnings"] = [shown(one) if isinstance(one, str) else one for one in warnings]
    return body


def internal_failure(trace_id: str) -> Reply:
    """An answer without the cause, which only the log has, under the same trace id."""
    return failure(
        CpqError(
            Code.INTERNAL_ERROR,
            "Something went wrong on our side; nothing was changed.",
            trace_id=trace_id,
            hint="Try once more. If it fails again, give the trace_id to the operator.",
        )
    )


def invalid_arguments(error: ValidationError, schema: Mapping[str, Any]) -> CpqError:
    """Every refused argument as a JSON pointer with the reason and what is allowed instead."""
    faults = error.errors(include_url=False, include_input=False)
    problems = [_problem(fault, schema) for fault in faults[:PROBLEMS_MAX]]
    first = dict(problems[0])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{first['field'] or '/'}: {first.pop('message')}{more}"
    return CpqError(Code.VALIDATION_ERROR, message, **first, problems=problems)


def with_error_arm(schema: dict[str, Any]) -> dict[str, Any]:
    """An output schema that also accepts the error envelope, because some clients validate errors against it."""
    properties = {**schema.get("properties", {}), "error": ERROR_SCHEMA}
    arms = [{"required": schema.get("required", [])}, {"required": ["error"]}]
    widened = {key: value for key, value in schema.items() if key not in ("required", "properties")}
    return {**widened, "type": "object", "properties": properties, "anyOf": arms}


ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Present instead of the result when the call failed.",
    "properties": {
        "code": {"type": "string", "enum": [code.value for code in Code]},
        "message": {"type": "string"},
        "details": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    },
    "required": ["code", "message", "details"],
}

_BOUNDS = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "above",
    "lt": "below",
    "max_length": "maximum",
    "min_length": "minimum",
}


def _fields_beside(path: Sequence[str], schema: Mapping[str, Any]) -> list[str]:
    """The fields of the object that a wrong field was sent in: the tool's arguments, or those of a line."""
    part: Mapping[str, Any] = schema
    for name in path[:-1]:
        part = part.get("properties", {}).get(name) or part.get("items") or {}
        part = next((arm for arm in part.get("anyOf", ()) if arm.get("type") != "null"), part)
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return list(part.get("properties", ()))


def _problem(fault: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    path = [str(part) for part in fault["loc"]]
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)[:200]
    problem: dict[str, Any] = {"field": pointer, "message": str(fault["msg"]).removeprefix("Value error, ")}
    if fault["type"] == "extra_forbidden":
        known = _fields_beside(path, schema)
        owner = "this tool" if len(path) == 1 else f"/{'/'.join(path[:-1])}"
        problem |= {"message": f"is not an argument of {owner}", "allowed": known}
        if near := nearest(path[-1][:64], known):
            problem["nearest"] = near
    elif fault["type"] == "missing":
        problem["message"] = "is required"
    for name, value in fault.get("ctx", {}).items():
        if name in _BOUNDS:
            problem[_BOUNDS[name]] = value
        elif name == "expected":
            problem["allowed"] = value
    return problem
