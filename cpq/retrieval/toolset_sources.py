"""The table sources of each toolset."""

from __future__ import annotations

from cpq.retrieval import equipment, past_quotes
from cpq.retrieval.search.table_source import Source
from cpq.retrieval.web import repository as web

SOURCES: dict[str, tuple[Source, ...]] = {
    "equipment": (equipment.SOURCE,),
    "past_quotes": (past_quotes.LINES, past_quotes.QUOTES),
    "web": (web.SOURCE,),
}


def sources_of(toolsets: tuple[str, ...]) -> list[Source]:
    """The sources of these toolsets."""
    return [source for toolset in toolsets for source in SOURCES.get(toolset, ())]
