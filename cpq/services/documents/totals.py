"""The totals of an option set, from the subtotal to the total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from cpq.services.documents.change_table import change_totals
from cpq.services.documents.locale import Tongue
from cpq.services.documents.printed_quote import Content, PrintedQuote, Row


def totals_of(printed: PrintedQuote, chosen: Content) -> Iterable[Row]:
    """From the subtotal to the total; the other rows add up to the last one."""
    t, currency = printed.tongue, printed.currency
    if "credit_total" in chosen:
        yield from change_totals(printed, chosen)
    elif chosen["discount_total"]:
        yield Row(t.label("subtotal"), t.amount(chosen["subtotal"], currency))
        yield Row(t.label("discount_total"), t.amount(-chosen["discount_total"], currency))
    yield Row(t.label("net_total"), t.amount(chosen["net"], currency))
    for name, rate, base, tax in _tax_rows(t, chosen["tax_groups"]):
        on = t.amount(base, currency)
        label = t.label("named_tax", name=name, rate=rate, base=on) if name else t.label("tax", rate=rate, base=on)
        yield Row(label, t.amount(tax, currency))
    total = chosen["total"] if "credit_total" not in chosen else abs(chosen["total"])  # The label says whose it is.
    yield Row(t.label(total_label(chosen)), t.money(total, currency), is_total=True)


def total_label(chosen: Content) -> str:
    """The label of the total: of a change of an agreement it is due, or it is the customer's."""
    if "credit_total" not in chosen:
        return "total"
    return "amount_due" if chosen["total"] >= 0 else "amount_back"


def _tax_rows(tongue: Tongue, groups: Sequence[Content]) -> Iterable[tuple[str | None, str, Decimal, Decimal]]:
    """Name, rate, base and tax of each tax group; a rate of several groups is followed by their codes.

    Prices that were stored before there were codes have one row for each rate.
    """
    rows: dict[tuple[str | None, Decimal, str | None], tuple[Decimal, Decimal]] = {}
    for group in groups:
        key = group.get("tax_name"), Decimal(group["rate_pct"]), group.get("category_code")
        base, tax = rows.get(key, (Decimal(0), Decimal(0)))
        rows[key] = base + group["base"], tax + group["tax"]
    codes = Counter((name, rate) for name, rate, _ in rows)
    for (name, rate, code), (base, tax) in rows.items():
        shown = tongue.percent(rate)
        yield name, (f"{shown} ({code})" if codes[name, rate] > 1 else shown), base, tax
