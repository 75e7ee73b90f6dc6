"""The totals of an option set, from the subtotal to the total."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from cpq.services.documents.printed_quote import Content, PrintedQuote, Row


def totals_of(printed: PrintedQuote, chosen: Content) -> Iterable[Row]:
    """From the subtotal to the total; the other rows add up to the last one."""
    t, currency = printed.tongue, printed.currency
    if chosen["discount_total"]:
        yield Row(t.label("subtotal"), t.amount(chosen["subtotal"], currency))
        yield Row(t.label("discount_total"), t.amount(-chosen["discount_total"], currency))
    yield Row(t.label("net_total"), t.amount(chosen["net"], currency))
    rates: dict[Decimal, list[Content]] = {}
    for group in chosen["tax_groups"]:
        rates.setdefault(Decimal(group["rate_pct"]), []).append(group)
    for rate, groups in rates.items():
        base, tax = (sum((Decimal(group[name]) for group in groups), Decimal(0)) for name in ("base", "tax"))
        label = t.label("tax", rate=t.percent(rate), base=t.amount(base, currency))
        yield Row(label, t.amount(tax, currency))
    yield Row(t.label("total"), t.money(chosen["total"], currency), is_total=True)
