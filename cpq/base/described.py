"""A sentence about a field of an answer, for the schema that agents read; it needs no pydantic to be declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Described:
    """Stands in `Annotated` where `pydantic.Field(description=…)` would: commands that list quotes load no pydantic."""

    text: str

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(schema), "description": self.text}
