"""Publishes webhook events for quote status changes."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.base.money import amount
from cpq.domain.quotes.quote import Quote
from cpq.services import events
from cpq.services.events import EventName


def publish(tx: Tx, name: EventName, quote: Quote) -> None:
    """Publish the new status of a locked quote's loaded version. Costs and margins are not published."""
    version = quote.version
    body = {
        "quote_id": quote.id,
        "number": quote.number,
        "owner": quote.owner,
        "version": version.number,
        "status": quote.status if quote.is_current else version.status,
        "reason": version.reason,
        "account_id": quote.account_id,
        "deal_id": version.deal_id,
        "currency": version.currency,
        "total": amount(version.total),
        "option_set": version.option_set,
        "valid_until": version.valid_until,
        "fingerprint": version.fingerprint,
        "by": tx.caller,
    }
    events.publish(tx, name, quote.id, body)
