"""What is due without anybody asking: requests whose time is over end, and those that waited long go further up."""

from __future__ import annotations

from dataclasses import replace

from cpq.app import App, Command
from cpq.app.access import ENGINE, Permission
from cpq.app.transaction import Tx
from cpq.domain.approvals.rounds import StepStatus
from cpq.services.approvals import events, repository
from cpq.services.quotes import repository as quote_rows
from cpq.storage.statements import AnyRow

QUOTES_MAX = 200


def sweep(tx: Tx, *, quotes_max: int = QUOTES_MAX) -> dict[str, int]:
    """Write down what time has done, and how often. Reads tell the same without it: they compare times themselves."""
    counts = {"expired": 0, "withdrawn": 0, "escalated": 0}
    due = repository.overdue(tx, quotes_max)
    for quote_id in due:
        for done in _sweep_quote(tx, quote_id):
            counts[done] += 1
    return {**counts, "quotes": len(due), "has_more": int(len(due) == quotes_max)}


def sweep_if_due(app: App) -> bool:
    """Sweep when there is something to sweep, to the end and for every tenant; how often does not matter.

    A look costs nothing, a write would be on record every minute.
    """
    tenants = app.read_unaudited(app.new_call(ENGINE), repository.tenants_overdue)
    command = Command("approvals_sweep", Permission.ADMINISTER)
    for tenant_id in tenants:
        has_more = True
        while has_more:
            call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
            has_more = bool(app.write(call, command, lambda tx: dict(sweep(tx))).answer["has_more"])
    return bool(tenants)


def _sweep_quote(tx: Tx, quote_id: str) -> list[str]:
    found = quote_rows.load(tx, quote_id, for_update=True, with_lines=False)
    rows = [row for row in repository.of_quote(tx, quote_id) if row.status == "pending"]
    done = [
        _end(tx, row, is_live=found.status == "pending_approval" and row.version == found.root.version) for row in rows
    ]
    return [word for word in done if word]


def _end(tx: Tx, row: AnyRow, *, is_live: bool) -> str | None:
    status = repository.step_of(row).at(tx.now, is_live=is_live).status
    if status is StepStatus.EXPIRED:
        repository.close(tx, row, status, reason="Nobody decided in time.")
        events.expired(tx, row)
        return status.value
    if status is StepStatus.WITHDRAWN:
        repository.close(tx, row, status, reason="The quote has moved on since it was asked.")
        events.decided(tx, row, "withdrawn")
        return status.value
    if row.escalates_at is not None and row.escalates_at <= tx.now and row.escalated_at is None:
        repository.mark_escalated(tx, row)
        events.escalated(tx, row)
        return "escalated"
    return None
