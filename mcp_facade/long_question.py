"""The argument type of questions to pages and chunks: it takes a pasted text."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from mcp_facade.arguments import non_blank

LENGTH_MAX = 100_000

LongQuestion = Annotated[
    str,
    Field(min_length=1, max_length=LENGTH_MAX, description="What you want to know, in plain words."),
    BeforeValidator(non_blank("query parameter is required")),
]
