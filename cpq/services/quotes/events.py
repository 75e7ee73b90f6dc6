"""What the world hears of a quote that moved."""

from __future__ import annotations

from cpq.app.transaction import Tx
from cpq.base.money import amount
from cpq.domain.quotes.quote import Quote
from cpq.services import events
from cpq.services.events import EventName
from cpq.services.quotes import repository


def tell(tx: Tx, name: EventName, quote_id: str, *, version: int | None = None) -> Quote:
    """Publish what a locked quote, or one of its versions, has just become. No cost and no margin leave the house."""
    quote = repository.load(tx, quote_id, version=version, with_lines=False)
    told = quote.version
    body = {
        "quote_id": quote.id,
        "version": told.number,
        "status": quote.status if quote.is_current else told.status,
        "reason": told.reason,
        "account_id": quote.account_id,
        "deal_id": told.deal_id,
        "currency": quote.currency,
        "total": amount(told.total),
        "option_set": told.option_set,
        "valid_until": told.valid_until,
        "fingerprint": told.fingerprint,
        "by": tx.caller,
    }
    events.publish(tx, name, quote_id, body)
    return quote
