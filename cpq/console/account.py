"""The page of one account, with its quotes."""

from __future__ import annotations

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console.visit import PAGE_ROWS, Visit
from cpq.services import catalog, quotes


def show(visit: Visit) -> Response:
    account_id = visit.named("account_id")

    def work(tx: Tx) -> Answer:
        page = visit.page_number()
        found = quotes.list_quotes(tx, account_id=account_id, status=None, limit=PAGE_ROWS, page=page)
        return {"account": catalog.get_account(tx, account_id), **found}

    answer = visit.read("account", work, subject=account_id, account_id=account_id)
    return visit.page("account.html", **answer, given={})
