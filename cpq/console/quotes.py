"""The page of quotes, filtered by a search text and a status."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console.visit import PAGE_ROWS, Visit
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services import quotes


def show(visit: Visit) -> Response:
    status = visit.query("status")
    asked: dict[str, Any] = {
        "status": status if status in tuple(QuoteStatus) else None,
        "query": visit.query("q")[:100] or None,
        "account_id": None,
    }

    def work(tx: Tx) -> Answer:
        return dict(quotes.list_quotes(tx, **asked, limit=PAGE_ROWS, page=visit.page_number()))

    answer = visit.read("quotes", work, **asked, page=visit.page_number())
    given = {"q": asked["query"], "status": asked["status"]}
    template = "quotes_rows.html" if visit.is_part else "quotes.html"
    return visit.page(template, **answer, asked=asked, given=given, statuses=tuple(QuoteStatus))
