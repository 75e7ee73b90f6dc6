"""What is due without anybody asking: requests whose time is over end, and those that waited long go further up."""

from __future__ import annotations

from dataclasses import replace

from cpq.access import ENGINE, Permission
from cpq.app import App, Command
from cpq.approvals import announcing, storing
from cpq.approvals.rounds import StepStatus
from cpq.db import AnyRow, Tx
from cpq.quotes import storing as quote_rows

QUOTES_MAX = 200


def sweep(tx: Tx, *, quotes_max: int = QUOTES_MAX) -> dict[str, int]:
    """Write down what time has done, and how often. Reads tell the same without it: they compare times themselves."""
    counts = {"expired": 0, "withdrawn": 0, "escalated": 0}
    due = storing.overdue(tx, quotes_max)
    for quote_id in due:
        for done in _sweep_quote(tx, quote_id):
            counts[done] += 1
    return {**counts, "quotes": len(due), "has_more": int(len(due) == quotes_max)}


def sweep_if_due(app: App) -> bool:
    """Sweep when there is something to sweep, to the end and for every tenant; how often does not matter.

    A look costs nothing, a write would be on record every minute.
    """
    tenants = app.look(app.new_call(ENGINE), lambda tx: {"tenants": storing.tenants_overdue(tx)})["tenants"]
    command = Command("approvals_sweep", Permission.ADMINISTER)
    for tenant_id in tenants:
        has_more = True
        while has_more:
            call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
            has_more = bool(app.write(call, command, lambda tx: dict(sweep(tx))).answer["has_more"])
    return bool(tenants)


def _sweep_quote(tx: Tx, quote_id: str) -> list[str]:
    found = quote_rows.load(tx, quote_id, for_update=True, with_lines=False)
    rows = [row for row in storing.of_quote(tx, quote_id) if row.status == "pending"]
    done = [
        _end(tx, row, is_live=found.status == "pending_approval" and row.version == found.root.version) for row in rows
    ]
    return [word for word in done if word]


def _end(tx: Tx, row: AnyRow, *, is_live: bool) -> str | None:
    status = storing.step_of(row).at(tx.now, is_live=is_live).status
    if status is StepStatus.EXPIRED:
        storing.close(tx, row, status, reason="Nobody decided in time.")
        announcing.expired(tx, row)
        return status.value
    if status is StepStatus.WITHDRAWN:
        storing.close(tx, row, status, reason="The quote has moved on since it was asked.")
        announcing.decided(tx, row, "withdrawn")
        return status.value
    if row.escalates_at is not None and row.escalates_at <= tx.now and row.escalated_at is None:
        storing.mark_escalated(tx, row)
        announcing.escalated(tx, row)
        return "escalated"
    return None
