"""What the world hears of a quote that moved."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.base.money import amount
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes import repository
from cpq.services.quotes.repository import Quote


def tell(tx: Tx, name: EventName, quote_id: str, *, version: int | None = None) -> Quote:
    """Publish what a locked quote, or one of its versions, has just become. No cost and no margin leave the house."""
    found = repository.load(tx, quote_id, version=version, with_lines=False)
    root, told = found.root, found.version
    body = {
        "quote_id": root.id,
        "version": told.version,
        "status": found.status if told.version == root.version else told.status,
        "reason": told.reason,
        "account_id": root.account_id,
        "deal_id": told.deal_id,
        "currency": root.currency,
        "total": amount(told.total),
        "option_set": told.option_set,
        "valid_until": told.valid_until,
        "fingerprint": told.fingerprint,
        "by": tx.caller,
    }
    events.publish(tx, name, quote_id, body)
    return found
