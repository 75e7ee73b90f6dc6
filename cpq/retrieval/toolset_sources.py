"""The table sources of each toolset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpq.base.late_modules import LateModule
from cpq.retrieval import equipment, past_quotes
from cpq.retrieval.search.table_source import Source

if TYPE_CHECKING:
    from cpq.retrieval.web import repository as web
else:
    web = LateModule("cpq.retrieval.web.repository")


def sources_of(toolsets: tuple[str, ...]) -> list[Source]:
    """The sources of these toolsets; of the others, not even the modules are loaded."""
    sources: list[Source] = []
    if "equipment" in toolsets:
        sources += [equipment.SOURCE]
    if "past_quotes" in toolsets:
        sources += [past_quotes.LINES, past_quotes.QUOTES]
    if "web" in toolsets:
        sources += [web.SOURCE]
    return sources
