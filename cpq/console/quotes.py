"""The page of quotes: filtered by a search text and a state, sorted, and exported."""

from __future__ import annotations

from typing import Any, get_args

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console.csv_export import csv_response
from cpq.console.visit import Visit
from cpq.services import quotes
from cpq.services.quotes.listed_quotes import ListState, QuoteList, Sort

SORTS = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "biggest": "Biggest first",
    "smallest": "Smallest first",
    "account": "By account",
    "owner": "By owner",
    "valid_until": "By last valid day",
}
COLUMNS = [
    *("id", "number", "version", "account_id", "account_name", "deal_id", "state", "currency", "total"),
    *("valid_until", "created_at", "created_by", "owner"),
]


def show(visit: Visit) -> Response:
    asked = asked_of(visit)
    answer = visit.read("quotes", lambda tx: found(tx, visit, asked), **asked, page=visit.page_number())
    if visit.is_export:
        return export(answer)
    template = "quotes_rows.html" if visit.is_part else "quotes.html"
    return visit.page(template, **answer, **choices(asked), address="/console/quotes")


def asked_of(visit: Visit) -> dict[str, Any]:
    """The filters in the address where they are valid, else the defaults."""
    return {
        "state": visit.chosen("status", tuple(ListState), "") or None,
        "query": visit.query("q")[:100] or None,
        "sort": visit.chosen("sort", get_args(Sort), "newest"),
    }


def found(tx: Tx, visit: Visit, asked: dict[str, Any], account_id: str | None = None) -> Answer:
    state = ListState(asked["state"]) if asked["state"] else None
    wanted = {**asked, "state": state, "account_id": account_id}
    listed: QuoteList = quotes.list_for_people(tx, **wanted, **visit.shown_rows())
    return dict(listed)


def export(answer: Answer) -> Response:
    rows = ([item[name] for name in COLUMNS] for item in answer["items"])
    return csv_response("quotes", COLUMNS, rows, total=answer["pagination"]["total"])


def choices(asked: dict[str, Any]) -> dict[str, Any]:
    """What the filters of a list of quotes show."""
    sort = None if asked["sort"] == "newest" else asked["sort"]
    given = {"q": asked["query"], "status": asked["state"], "sort": sort}
    return {"asked": asked, "given": given, "statuses": tuple(ListState), "sorts": SORTS}
