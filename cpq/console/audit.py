"""The audit page of one quote: its entries, each checked against its seal."""

from __future__ import annotations

from dataclasses import asdict

from starlette.responses import Response

from cpq.app import Answer, audit
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.console.csv_export import csv_response
from cpq.console.visit import Visit
from cpq.services import approvals

AUDIT_MAX = 200
SORTS = {"newest": "Newest first", "oldest": "Oldest first"}
COLUMNS = ("at", "caller", "operation", "subject", "outcome", "seq", "hash", "trace_id", "is_whole")


def show(visit: Visit, *, verify: bool = False) -> Response:
    """Shows every call about a quote and its approvals; administrators can also verify the whole chain."""
    quote_id = visit.named("quote_id")

    query, sort = visit.query("q")[:100], visit.chosen("sort", tuple(SORTS), "newest")

    def work(tx: Tx) -> Answer:
        history = approvals.history(tx, quote_id)["items"]
        subjects = [quote_id, *(one["approval_id"] for one in history)]
        found = audit.about(tx.connection, tx.tenant_id, subjects, newest=AUDIT_MAX)
        entries = [{**asdict(one.entry), "is_whole": one.is_whole} for one in found]
        return {"entries": _listed(entries, query, sort)}

    def chain(tx: Tx) -> Answer:
        return asdict(audit.verify(tx.connection, tx.tenant_id))

    answer = visit.read("audit", work, subject=quote_id, quote_id=quote_id)
    if visit.is_export:
        rows = ([entry[name] for name in COLUMNS] for entry in answer["entries"])
        return csv_response("record", COLUMNS, rows, total=len(answer["entries"]))
    report = visit.read("audit_verify", chain, needs=Permission.ADMINISTER) if verify else None
    may_verify = visit.principal.may(Permission.ADMINISTER)
    return visit.page(
        "audit.html",
        **answer,
        quote_id=quote_id,
        report=report,
        may_verify=may_verify,
        entries_max=AUDIT_MAX,
        asked={"query": query, "sort": sort},
        given={"q": query, "sort": None if sort == "newest" else sort},
        sorts=SORTS,
    )


def _listed(entries: list[Answer], query: str, sort: str) -> list[Answer]:
    """The entries that have every word, in the order asked for."""
    words = query.lower().split()
    searched = ("caller", "operation", "subject", "outcome")
    found = [one for one in entries if all(any(word in str(one[name]).lower() for name in searched) for word in words)]
    return sorted(found, key=lambda one: one["at"], reverse=sort == "newest")


def verify(visit: Visit) -> Response:
    return show(visit, verify=True)
