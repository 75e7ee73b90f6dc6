"""Delivery of events: claims one, sends it with no transaction open, stores the outcome, and repeats."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from cpq.app import App
from cpq.app.access import ENGINE, Principal
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.errors import CpqError
from cpq.base.late_modules import LateModule
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.base.webhooks import Webhook
from cpq.services.events import claims, http_post, signing
from cpq.services.events.claims import Claimed, Status

if TYPE_CHECKING:
    from cpq.base import metrics
else:
    metrics = LateModule("cpq.base.metrics")

log = logging.getLogger("cpq.events")

IDLE_SECONDS = 1.0
"""Pause between polls for due events; a poll is one read."""

ALONE_SECONDS = 30.0
"""The same for events of other tenants, while none of them calls."""

ELSEWHERE_MAX = 4
"""Deliveries for other tenants than the main one at a time."""

Receiver = tuple[str, tuple[bytes, ...]]
"""The address, and the keys that sign."""


@dataclass(frozen=True)
class Attempt:
    """The outcome of one attempt; `number` counts the attempts of its delivery."""

    event_id: str
    webhook: str
    number: int
    status: Status
    answer: str


def loops(app: App) -> list[Loop]:
    """One worker for each webhook, so that a receiver that hangs does not delay the others; a few for other tenants."""
    own = [Loop(f"events-{webhook.name}", partial(_round, app, webhook)) for webhook in app.settings.webhook_list]
    elsewhere = partial(_round_elsewhere, app)
    return own + [Loop(f"events of tenants {number}", elsewhere) for number in range(1, ELSEWHERE_MAX + 1)]


def deliver_due(app: App) -> list[Attempt]:
    """Attempt every delivery that is due now, and those that become due by it; none is attempted twice."""
    due_by = app.effects.now()
    attempts = []
    for webhook in app.of(app.settings.tenant).settings.webhook_list:
        while made := deliver_next(app, webhook, app.settings.tenant, due_by=due_by):
            attempts.append(made)
    return attempts


def deliver_next(
    app: App, webhook: Webhook, tenant_id: str = MAIN_TENANT, *, due_by: datetime | None = None
) -> Attempt | None:
    """One attempt at the delivery that has been due for longest; None when nothing is due."""
    moment, principal = due_by or app.effects.now(), replace(ENGINE, tenant_id=tenant_id)
    if not app.read_unaudited(app.new_call(principal), lambda tx: claims.is_due(tx, webhook.name, moment)):
        return None
    keys = app.of(tenant_id).settings.webhook_keys
    return _attempt(app, principal, webhook.name, lambda: (webhook.url, keys), moment)


def deliver_elsewhere(app: App) -> Attempt | None:
    """One attempt at what is due in any other tenant, to the address that its own settings have for the name."""
    moment = app.effects.now()
    found = app.read_unaudited(app.new_call(ENGINE), lambda tx: claims.due_elsewhere(tx, moment))
    if found is None:
        return None
    tenant_id, name = found

    def receiver() -> Receiver:
        settings = app.of(tenant_id).settings
        return next(webhook.url for webhook in settings.webhook_list if webhook.name == name), settings.webhook_keys

    return _attempt(app, replace(ENGINE, tenant_id=tenant_id), name, receiver, moment)


def _round(app: App, webhook: Webhook) -> float:
    return 0.0 if deliver_next(app, webhook) else IDLE_SECONDS


def _round_elsewhere(app: App) -> float:
    if deliver_elsewhere(app):
        return 0.0
    return IDLE_SECONDS if len(app.tenants) else ALONE_SECONDS


def _attempt(
    app: App, principal: Principal, webhook: str, receiver: Callable[[], Receiver], due_by: datetime
) -> Attempt | None:
    """Claim and settle are separate transactions: none is open while we wait for a receiver."""
    call = app.new_call(principal)
    ends = app.effects.monotonic() + claims.CLAIM_SECONDS / 2
    claimed = app.upkeep(call, lambda tx: claims.claim(tx, webhook, due_by))
    if claimed is None:
        return None
    body = signing.message(claimed.name, claimed.subject, claimed.number, claimed.created_at, claimed.body)
    try:
        url, keys = receiver()
    except (StopIteration, CpqError):
        answer = http_post.Answer(None, "no webhook of this name is set")
    else:
        headers = signing.headers(keys, claimed.event_id, app.effects.now(), body)
        answer = http_post.post(url, headers, body, may_send=lambda: app.effects.monotonic() < ends)
    made = app.upkeep(call, lambda tx: _settle(tx, claimed, answer))
    metrics.DELIVERIES.labels(outcome=made.status).inc()
    extra = {"event_id": made.event_id, "webhook": made.webhook, "attempt": made.number, "answer": made.answer}
    level = {Status.DELIVERED: logging.DEBUG, Status.WAITING: logging.INFO, Status.FAILED: logging.WARNING}
    log.log(level[made.status], "event %s", made.status, extra=extra)
    return made


def _settle(tx: Tx, claimed: Claimed, answer: http_post.Answer) -> Attempt:
    status, pause = Status.DELIVERED, 0.0
    if not answer.is_accepted:
        status = Status.FAILED if claimed.attempt >= signing.ATTEMPTS_MAX else Status.WAITING
        wanted = min(answer.retry_after_seconds, signing.PAUSE_SECONDS_MAX)
        least = max(signing.pause_seconds(claimed.attempt), wanted)
        pause = least + tx.effects.jitter(least / 2)
    if not claims.settle(tx, claimed, status=status, answer=answer.text, pause_seconds=pause):
        log.warning("a claim ended before its delivery did", extra={"event_id": claimed.event_id})
    return Attempt(claimed.event_id, claimed.webhook, claimed.attempt, status, answer.text)
