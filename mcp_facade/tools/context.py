"""The context toolset: one search over chunks of code, documentation and data. Agents read the docstring."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.retrieval import context
from cpq.retrieval.context import ContextFound
from mcp_facade.arguments import Listed, TopK, Word
from mcp_facade.long_question import LongQuestion
from mcp_facade.registry import tool

FILTERS_MAX = 20

ChunkType = Literal["documentation", "symbols", "definitions", "data"]


@tool(title="Search the context", toolset="context", needs=Permission.READ)
def cortex_search(
    tx: Tx,
    *,
    query: LongQuestion,
    limit: Annotated[
        TopK, Field(description=f"Number of chunks, 1 to {context.LIMIT_MAX}; other values are clamped.")
    ] = context.LIMIT_DEFAULT,
    tags: Annotated[
        list[Word],
        Field(
            max_length=FILTERS_MAX, description="Only chunks with all these tags: `python`, `code`, a folder, #topic."
        ),
        Listed,
    ] = [],  # noqa: B006
    chunk_types: Annotated[
        list[ChunkType], Field(max_length=FILTERS_MAX, description="Only these types; default: all."), Listed
    ] = [],  # noqa: B006
) -> ContextFound:
    """Find relevant context in a project's code and documentation.

    The types are `documentation` (guides and decisions), `symbols` (what a file defines), `definitions` (signatures
    with comments) and `data` (constants and settings). Filters apply before ranking: `total` is the number of chunks
    that pass them, and the best come first. `combined_score` (0 to 1) rates how well a chunk answers, `cosine` (-1 to
    1) is its likeness of meaning alone; `metadata` names its source.
    """
    return context.search(tx, query, limit=limit, tags=tags, chunk_types=chunk_types)


TOOLS = (cortex_search,)
