"""The page of one account, with its quotes."""

from __future__ import annotations

from urllib.parse import quote as urlquote

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console import quotes
from cpq.console.visit import Visit
from cpq.services import catalog


def show(visit: Visit) -> Response:
    account_id = visit.named("account_id")
    asked = quotes.asked_of(visit)

    def work(tx: Tx) -> Answer:
        return {"account": catalog.get_account(tx, account_id), **quotes.found(tx, visit, asked, account_id)}

    answer = visit.read("account", work, subject=account_id, account_id=account_id, **asked)
    if visit.is_export:
        return quotes.export(answer)
    address = f"/console/accounts/{urlquote(account_id)}"
    template = "quotes_rows.html" if visit.is_part else "account.html"
    return visit.page(template, **answer, **quotes.choices(asked), address=address)
