"""The page of accounts: filtered by a search text, sorted, and exported."""

from __future__ import annotations

from typing import Any, get_args

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console.csv_export import csv_response
from cpq.console.visit import Visit
from cpq.services import catalog
from cpq.services.catalog.accounts import AccountSort

COLUMNS = ("id", "name", "segment", "region", "country", "currency", "active")
SORTS = {"name": "By name", "country": "By country", "currency": "By currency", "segment": "By segment"}


def show(visit: Visit) -> Response:
    query = visit.query("q")[:100] or None
    sort: Any = visit.chosen("sort", get_args(AccountSort), "name")

    def work(tx: Tx) -> Answer:
        shown = visit.shown_rows()
        return dict(catalog.search_accounts(tx, query=query, active_only=False, sort=sort, **shown))

    answer = visit.read("accounts", work, query=query, sort=sort, page=visit.page_number())
    if visit.is_export:
        rows = ([item[name] for name in COLUMNS] for item in answer["items"])
        return csv_response("accounts", COLUMNS, rows, total=answer["pagination"]["total"])
    template = "accounts_rows.html" if visit.is_part else "accounts.html"
    given = {"q": query, "sort": None if sort == "name" else sort}
    return visit.page(template, **answer, asked={"query": query, "sort": sort}, given=given, sorts=SORTS)
