"""Past quotes: what was offered before and in which words, from imported history and from quotes that went out."""

from __future__ import annotations

from cpq.past_quotes.finding import LINES, QUOTES, get, search, search_lines, variants
from cpq.past_quotes.importing import import_history

__all__ = ["LINES", "QUOTES", "get", "import_history", "search", "search_lines", "variants"]
