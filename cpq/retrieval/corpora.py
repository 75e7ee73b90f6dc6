"""Every corpus that is made of tables, by the toolset that searches it."""

from __future__ import annotations

from cpq.retrieval import equipment, past_quotes
from cpq.retrieval.search.table_corpus import Source
from cpq.retrieval.web import repository as web

CORPORA: dict[str, tuple[Source, ...]] = {
    "equipment": (equipment.SOURCE,),
    "past_quotes": (past_quotes.LINES, past_quotes.QUOTES),
    "web": (web.SOURCE,),
}


def sources_of(toolsets: tuple[str, ...]) -> list[Source]:
    """Those of the toolsets that are switched on."""
    return [source for toolset in toolsets for source in CORPORA.get(toolset, ())]
