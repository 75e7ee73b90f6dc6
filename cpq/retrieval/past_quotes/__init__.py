"""Past quotes: earlier offers and their wording, from imported history and from quotes that were sent."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.retrieval.past_quotes.commands import LINES, QUOTES, get, search, search_lines, variants
    from cpq.retrieval.past_quotes.importer import import_history

export_late(__name__, __file__)

__all__ = ["LINES", "QUOTES", "get", "import_history", "search", "search_lines", "variants"]
