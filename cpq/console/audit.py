"""The audit page of one quote: its entries, each checked against its seal."""

from __future__ import annotations

from dataclasses import asdict

from starlette.responses import Response

from cpq.app import Answer, audit
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.console.visit import Visit
from cpq.services import approvals

AUDIT_MAX = 200


def show(visit: Visit, *, verify: bool = False) -> Response:
    """Shows every call about a quote and its approvals; administrators can also verify the whole chain."""
    quote_id = visit.named("quote_id")

    def work(tx: Tx) -> Answer:
        history = approvals.history(tx, quote_id)["items"]
        subjects = [quote_id, *(one["approval_id"] for one in history)]
        found = audit.about(tx.connection, tx.tenant_id, subjects, newest=AUDIT_MAX)
        return {"entries": [{**asdict(one.entry), "is_whole": one.is_whole} for one in found]}

    def chain(tx: Tx) -> Answer:
        return asdict(audit.verify(tx.connection, tx.tenant_id))

    answer = visit.read("audit", work, subject=quote_id, quote_id=quote_id)
    report = visit.read("audit_verify", chain, needs=Permission.ADMINISTER) if verify else None
    may_verify = visit.principal.may(Permission.ADMINISTER)
    return visit.page(
        "audit.html", **answer, quote_id=quote_id, report=report, may_verify=may_verify, entries_max=AUDIT_MAX
    )


def verify(visit: Visit) -> Response:
    return show(visit, verify=True)
