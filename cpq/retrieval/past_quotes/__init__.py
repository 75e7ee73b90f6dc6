"""Past quotes: what was offered before and in which words, from imported history and from quotes that went out."""

from __future__ import annotations

from cpq.retrieval.past_quotes.importer import import_history
from cpq.retrieval.past_quotes.search import LINES, QUOTES, get, search, search_lines, variants

__all__ = ["LINES", "QUOTES", "get", "import_history", "search", "search_lines", "variants"]
