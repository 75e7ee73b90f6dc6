"""What a quote changes in an agreement, as JSON values of its document. Other quotes have none of these fields."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cpq.base.money import amount
from cpq.base.text import to_wire
from cpq.domain.pricing.result import PricedLine
from cpq.domain.quotes.quote import Quote, QuoteLine

Content = dict[str, Any]

REMOVED = "remove"


def of_quote(found: Quote) -> Content:
    """The agreement, and the day from which it changes."""
    change = found.version.agreement
    if change is None:
        return {}
    agreement = {
        "kind": change.kind,
        "agreement_id": change.agreement_id,
        "also": [id_ for id_, _ in change.also],
        "effective_date": to_wire(change.effective),
        "end_date": to_wire(change.end),
    }
    return {"agreement": agreement}


def of_line(row: QuoteLine) -> Content:
    """What happens to a line of the agreement, in units."""
    agreed = row.special.agreed if row.special else None
    if agreed is None or row.special is None:
        return {}
    change = {
        "action": agreed.action,
        "start_date": to_wire(row.special.start_date),
        "quantity_before": Decimal(agreed.quantity_before or 0),
        "quantity_after": 0 if agreed.action == REMOVED else row.quantity,
        "not_credited": amount(agreed.kept),
    }
    return {"change": change}


def of_price(line: PricedLine, credit: int) -> Content:
    """What a line gives back; `line_total` is of what it sells, and the differences of all lines add up to the net."""
    return {"credit": amount(credit), "difference": amount(line.net - credit)}
