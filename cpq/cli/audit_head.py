"""The part of `cpq audit` that signs the head of the chain, and reads a head that was kept."""

from __future__ import annotations

import json
from pathlib import Path

from cpq.app import Answer, App
from cpq.app.signed_head import SignedHead, key_for_heads, read_head
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.services import events

BYTES_MAX = 10_000


def sign(app: App, report: Answer) -> SignedHead:
    """The head of a chain that was just verified, signed."""
    at = to_wire(app.effects.now())
    return SignedHead(app.settings.tenant, report["sealed"], report["head"], at).signed(key_for_heads(app.audit_key))


def publish(app: App, head: SignedHead) -> None:
    """Send the head to every webhook, as an event of the subject `audit`."""
    if not app.settings.webhook_list:
        raise CpqError(Code.VALIDATION_ERROR, "There is no webhook: set CPQ_WEBHOOKS.", field="CPQ_WEBHOOKS")

    def work(tx: Tx) -> Answer:
        return {"event_id": events.publish(tx, events.EventName.AUDIT_HEAD, "audit", head.written())}

    local_app.write(app, "audit_head", work, {"seq": head.seq, "hash": head.hash})


def expected(app: App, path: Path) -> tuple[int, str]:
    """The number and hash of a kept head, whose signature is right."""
    key = key_for_heads(app.audit_key)
    try:
        with path.open("rb") as file:
            given = json.loads(file.read(BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        given = None
    head = read_head(given if isinstance(given, dict) else {})
    head.require_signed(key, app.settings.tenant)
    return head.seq, head.hash
