"""The page of accounts, filtered by a search text."""

from __future__ import annotations

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console.visit import PAGE_ROWS, Visit
from cpq.services import catalog


def show(visit: Visit) -> Response:
    query = visit.query("q")[:100] or None

    def work(tx: Tx) -> Answer:
        page = visit.page_number()
        return dict(catalog.search_accounts(tx, query=query, active_only=False, limit=PAGE_ROWS, page=page))

    answer = visit.read("accounts", work, query=query, page=visit.page_number())
    template = "accounts_rows.html" if visit.is_part else "accounts.html"
    return visit.page(template, **answer, asked={"query": query}, given={"q": query})
