"""Every corpus that is made of tables, by the toolset that searches it."""

from __future__ import annotations

from cpq import equipment, past_quotes
from cpq.search.storing import Source

CORPORA: dict[str, tuple[Source, ...]] = {
    "equipment": (equipment.SOURCE,),
    "past_quotes": (past_quotes.LINES, past_quotes.QUOTES),
}


def sources_of(toolsets: tuple[str, ...]) -> list[Source]:
    """Those of the toolsets that are switched on."""
    return [source for toolset in toolsets for source in CORPORA.get(toolset, ())]
