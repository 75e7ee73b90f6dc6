"""The page of searches: what callers searched for, how well it was found, and what they often did not find."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.console.csv_export import csv_response
from cpq.console.visit import Visit
from cpq.services.reports import query_report

COLUMNS = ("at", "caller", "tool", "query", "hits", "score", "confidence", "mode", "is_failed", "id")
TOOL_LENGTH_MAX = 64


def show(visit: Visit) -> Response:
    tool = visit.query("tool")[:TOOL_LENGTH_MAX] or None
    failed_only = visit.chosen("failed", ("yes",), "") == "yes"
    query = visit.query("q")[:100] or None

    def work(tx: Tx) -> Answer:
        listed = query_report.queries(tx, tool=tool, failed_only=failed_only, query=query, **visit.shown_rows())
        frequent = [] if visit.is_export or visit.is_part else query_report.often_failed(tx, tool=tool)
        return {**listed, "tools": query_report.by_tool(tx), "frequent": frequent}

    asked: dict[str, Any] = {"tool": tool, "failed_only": failed_only, "query": query}
    answer = visit.read("searches", work, needs=Permission.SEE_QUERIES, **asked, page=visit.page_number())
    if visit.is_export:
        rows = ([item[name] for name in COLUMNS] for item in answer["items"])
        return csv_response("searches", COLUMNS, rows, total=answer["pagination"]["total"])
    template = "searches_rows.html" if visit.is_part else "searches.html"
    given = {"q": query, "tool": tool, "failed": "yes" if failed_only else None}
    days = visit.app.settings.query_retention_days
    return visit.page(template, **answer, asked=asked, given=given, days=days)
