"""What the world hears of a quote that moved."""

from __future__ import annotations

from cpq import events
from cpq.db import Tx
from cpq.events import EventName
from cpq.quotes import storing
from cpq.quotes.storing import Quote
from cpq.views import amount


def tell(tx: Tx, name: EventName, quote_id: str) -> Quote:
    """Publish what a locked quote has just become, and answer it. No cost and no margin leave the house."""
    found = storing.load(tx, quote_id)
    root, version = found.root, found.version
    body = {
        "quote_id": root.id,
        "version": version.version,
        "status": found.status,
        "reason": version.reason,
        "account_id": root.account_id,
        "deal_id": root.deal_id,
        "currency": root.currency,
        "total": amount(root.total),
        "option_set": version.option_set,
        "valid_until": root.valid_until,
        "fingerprint": version.fingerprint,
        "by": tx.caller,
    }
    events.publish(tx, name, quote_id, body)
    return found
