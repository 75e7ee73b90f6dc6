"""Read shapes of the past_quotes tools."""

from __future__ import annotations

from datetime import date
from typing import NotRequired

from typing_extensions import TypedDict

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.money import Amount
from cpq.retrieval.past_quotes.repository import HISTORY, PastLine, PastQuote
from cpq.services.catalog.views import UnitConversion

PRICE_NOTE = "Asked on that day in that quote; not a price of today."

_LINE_SHOWN = 160
_LINES_SHOWN = 8


class PastPrice(TypedDict):
    """Never without its day and quote."""

    amount: Amount
    per: str
    currency: str
    quoted_on: date
    quote_id: str
    note: str


class PastLineView(TypedDict):
    number: int
    category: str
    description: str
    model: str | None
    product_id: str | None
    quantity: Amount
    past_price: PastPrice | None


class PastQuoteHeader(TypedDict):
    quote_id: str
    origin: str
    """`history` was imported; `stored` is a quote of this system that went out."""
    customer: str | None
    customer_withheld: NotRequired[bool]
    project: str
    quoted_on: date
    currency: str
    outcome: str
    salesperson: str | None
    line_count: int


class LineHit(TypedDict):
    line_item: PastLineView
    score: float
    confidence: str
    snippet: str
    source_quote: PastQuoteHeader


class LinesFound(TypedDict):
    results: list[LineHit]
    eligible: int
    mode: str
    indexing: NotRequired[str]
    corrections: dict[str, str]
    conversions: NotRequired[list[UnitConversion]]
    hint: NotRequired[str]
    notice: str


class QuoteHit(TypedDict):
    quote: PastQuoteHeader
    score: float
    confidence: str
    summary: str


class QuotesFound(TypedDict):
    results: list[QuoteHit]
    eligible: int
    mode: str
    indexing: NotRequired[str]
    corrections: dict[str, str]
    conversions: NotRequired[list[UnitConversion]]
    notice: str


class PastQuoteDetail(TypedDict):
    quote: PastQuoteHeader
    notes: str | None
    line_items: list[PastLineView]
    notice: str


def header_view(tx: Tx, past: PastQuote) -> PastQuoteHeader:
    sees = tx.principal.may(Permission.SEE_CUSTOMERS)
    header: PastQuoteHeader = {
        "quote_id": past.id,
        "origin": past.origin,
        "customer": past.customer if sees else None,
        "project": past.project,
        "quoted_on": past.quoted_on,
        "currency": past.currency,
        "outcome": past.outcome,
        "salesperson": past.salesperson,
        "line_count": len(past.lines),
    }
    if not sees:
        header["customer_withheld"] = True
    return header


def line_view(past: PastQuote, line: PastLine) -> PastLineView:
    price: PastPrice | None = None
    if line.price is not None:
        price = {
            "amount": line.price,
            "per": "unit" if past.origin == HISTORY else "line",
            "currency": past.currency,
            "quoted_on": past.quoted_on,
            "quote_id": past.id,
            "note": PRICE_NOTE,
        }
    return {
        "number": line.number,
        "category": line.category,
        "description": line.description,
        "model": line.model,
        "product_id": line.product_id,
        "quantity": line.quantity,
        "past_price": price,
    }


def summary_of(past: PastQuote) -> str:
    """The notes or project of a quote, and its first lines."""
    lines = [f"{line.category}: {line.description[:_LINE_SHOWN].strip()}" for line in past.lines[:_LINES_SHOWN]]
    more = [f"and {len(past.lines) - _LINES_SHOWN} lines more"] if len(past.lines) > _LINES_SHOWN else []
    return "\n".join([past.notes or past.project, *lines, *more])
