"""Past quotes: earlier offers and their wording, from imported history and from quotes that were sent."""

from __future__ import annotations

from cpq.retrieval.past_quotes.commands import LINES, QUOTES, get, search, search_lines, variants
from cpq.retrieval.past_quotes.importer import import_history

__all__ = ["LINES", "QUOTES", "get", "import_history", "search", "search_lines", "variants"]
