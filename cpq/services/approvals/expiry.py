"""Expiry and escalation: ends expired requests, and escalates those that waited too long."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from cpq.app import Answer, App, Command, recorded_state
from cpq.app.access import ENGINE, Permission
from cpq.app.recorded_state import StateDiffersError
from cpq.app.transaction import Tx
from cpq.domain.approvals.approval_request import ApprovalRequest, RequestStatus
from cpq.services.approvals import events, repository
from cpq.services.approvals.requests import close_expired
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes import transitions

log = logging.getLogger("cpq.approvals")

QUOTES_MAX = 200


def sweep(tx: Tx, after: str = "", *, quotes_max: int = QUOTES_MAX) -> Answer:
    """Store expiries and escalations of the quotes after this one, and count them; `after` is where to go on.

    Reads do not depend on it: they compare times themselves.
    """
    counts = {RequestStatus.EXPIRED.value: 0, RequestStatus.WITHDRAWN.value: 0, "escalated": 0}
    due = repository.overdue(tx, quotes_max, after)
    for quote_id in due:
        try:
            for done in _sweep_quote(tx, quote_id):
                counts[done] += 1
        except StateDiffersError as error:  # Raised before anything is changed; the other quotes must not wait for it.
            log.error("a quote is not swept", extra={"reason": error.message})
    return {**counts, "quotes": len(due), "after": due[-1] if len(due) == quotes_max else ""}


def sweep_if_due(app: App) -> bool:
    """Sweep every tenant completely, if there is something to sweep; it may be called at any interval.

    The check is a read without an audit entry; an unconditional sweep would add one every minute.
    """
    tenants = app.read_unaudited(app.new_call(ENGINE), repository.tenants_overdue)
    command = Command("approvals_sweep", Permission.ADMINISTER)
    for tenant_id in tenants:
        after, is_more = "", True
        while is_more:
            call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
            after = app.write(call, command, partial(sweep, after=after)).answer["after"]
            is_more = bool(after)
    return bool(tenants)


def _sweep_quote(tx: Tx, quote_id: str) -> list[str]:
    quote = quote_rows.load(tx, quote_id, for_update=True, with_lines=False)
    recorded_state.require(tx, quote_id, also=recorded_state.APPROVALS)
    requests = [one for one in repository.of_quote(tx, quote_id) if one.status.is_open]
    expired = close_expired(tx, quote, requests)
    left = [one for one in requests if one.id not in expired]
    done = [_end(tx, one, step.status) for one, step in zip(left, repository.steps(tx, quote, left), strict=True)]
    if quote.has_lapsed:
        transitions.lapse(tx, quote)
    return [*(RequestStatus.EXPIRED.value for _ in expired), *(word for word in done if word)]


def _end(tx: Tx, request: ApprovalRequest, status: RequestStatus) -> str | None:
    if status is RequestStatus.WITHDRAWN:
        repository.close(tx, request, status, reason="The quote has changed since the request.")
        events.decided(tx, request, status)
        return status.value
    if request.is_escalated(tx.now) and request.escalated_at is None:
        repository.mark_escalated(tx, request)
        events.escalated(tx, request)
        return "escalated"
    return None
