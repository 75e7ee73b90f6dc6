"""The page of one account: what it owns, its orders and its quotes."""

from __future__ import annotations

from urllib.parse import quote as urlquote

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console import quotes, timeline
from cpq.console.visit import Visit
from cpq.services import catalog
from cpq.services.agreements import ownership


def show(visit: Visit) -> Response:
    account_id = visit.named("account_id")
    asked = quotes.asked_of(visit)

    def work(tx: Tx) -> Answer:
        owns = None if visit.is_part or visit.is_export else ownership.of_account(tx, account_id)
        account = catalog.get_account(tx, account_id)
        return {"account": account, "owns": owns, **quotes.found(tx, visit, asked, account_id)}

    answer = visit.read("account", work, subject=account_id, account_id=account_id, **asked)
    if visit.is_export:
        return quotes.export(answer)
    address = f"/console/accounts/{urlquote(account_id)}"
    owns = answer["owns"]
    pictures = timeline.timelines(owns["spans"], owns["marks"], owns["due"]["as_of"]) if owns else []
    template = "quotes_rows.html" if visit.is_part else "account.html"
    return visit.page(template, **answer, **quotes.choices(asked), address=address, timelines=pictures)
