"""Read shapes of the context tools."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class ChunkView(TypedDict):
    id: str
    chunk_type: str
    title: str
    text: str
    tags: list[str]
    metadata: dict[str, Any]
    created_at: str | None
    updated_at: str | None


class ContextHit(TypedDict):
    chunk: ChunkView
    combined_score: float
    cosine: NotRequired[float]
    """Of the vectors of the query and the chunk, -1 to 1; absent where words alone decided."""


class ContextFound(TypedDict):
    results: list[ContextHit]
    total: int
    """How many chunks pass the filters, whether or not they are among the results."""
    mode: str
    indexing: NotRequired[str]
    notice: str
    warning: NotRequired[str]
