"""The past_quotes toolset: texts and offers of earlier quotes, with their sources. Agents read the docstrings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.retrieval import past_quotes
from cpq.retrieval.past_quotes.views import LinesFound, PastQuoteDetail, QuotesFound
from mcp_facade.arguments import Identifier, Question, TopK, clamped
from mcp_facade.registry import tool

TOP_K_DEFAULT = 5


@tool(title="Search past line items", toolset="past_quotes", needs=Permission.READ)
def search_line_items(
    tx: Tx,
    *,
    query: Annotated[Question, Field(description="What the line describes: `100HP oilless food grade compressor`.")],
    category: Annotated[
        Identifier | None,
        Field(description="Only lines of this category, case-insensitive: `Rotary Screw Air Compressor`."),
    ] = None,
    top_k: TopK = TOP_K_DEFAULT,
) -> LinesFound:
    """Find proven descriptions of single quote lines. Start here when you write a quote's text.

    `description` is complete and verbatim, typing errors included: copy it unchanged and name its source quote above
    it. `confidence` is `likely_good`, `analog` (similar; adapt it) or `probable_miss`; when all hits are
    `probable_miss`, nothing was found: say so in the draft instead of inventing text. `past_price` is the price of its
    date, never today's. An amount in another unit than the lines have is searched in both; `conversions` says how.
    """
    return past_quotes.search_lines(tx, query, category=category, top_k=clamped(top_k))


@tool(title="Search past quotes", toolset="past_quotes", needs=Permission.READ)
def search_past_quotes(
    tx: Tx,
    *,
    query: Annotated[Question, Field(description="The project as a whole: `turnkey air station for a dairy`.")],
    top_k: TopK = TOP_K_DEFAULT,
) -> QuotesFound:
    """Find past quotes for similar projects, to see which items belong together. Then read one with get_quote.

    For the text of a single line use search_line_items. Customer names are shown only to roles that sell.
    """
    return past_quotes.search(tx, query, top_k=clamped(top_k))


@tool(title="Get a past quote", toolset="past_quotes", needs=Permission.READ, subject="quote_id")
def get_quote(
    tx: Tx, *, quote_id: Annotated[Identifier, Field(description="The `quote_id` of a hit.")]
) -> PastQuoteDetail:
    """Read one past quote with all its lines, word for word. For current quotes use quote_get."""
    return past_quotes.get(tx, quote_id)


TOOLS = (search_line_items, search_past_quotes, get_quote)
