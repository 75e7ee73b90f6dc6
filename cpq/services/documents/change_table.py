"""The lines of a quote that changes an agreement: what the customer has, what changes, and what they will have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from cpq.services.documents.agreement_change import REMOVED
from cpq.services.documents.printed_quote import NO_PRICE, Content, PrintedQuote, Row


@dataclass(frozen=True)
class ChangedLine:
    """A line as it is printed: quantities before, by how much, and after; amounts for the days of the line."""

    mark: str
    """What happens to it, in words: a line that goes has to be seen without its figures."""
    is_removed: bool
    named: str
    before: str
    by: str
    after: str
    price: str
    credit: str
    difference: str


def changed_line(printed: PrintedQuote, priced: Content, asked: Content) -> ChangedLine | None:
    change = asked.get("change")
    if change is None:
        return None
    t, currency = printed.tongue, printed.currency
    before, after = Decimal(change["quantity_before"]), Decimal(change["quantity_after"])
    has_no_price = printed.has_no_price(priced["number"])
    figures = {"before": t.number(before), "after": t.number(after)}
    return ChangedLine(
        mark=_mark(printed, change),
        is_removed=change["action"] == REMOVED,
        named=t.label("named_change", name=t.text(asked["product_name"]), **figures),
        by=t.figure(f"+{t.number(after - before)}") if after > before else t.number(after - before),
        price=NO_PRICE if has_no_price else t.amount(priced["line_total"], currency),
        credit=t.amount(-priced["credit"], currency) if priced["credit"] else t.amount(0, currency),
        difference=NO_PRICE if has_no_price and not priced["credit"] else t.amount(priced["difference"], currency),
        **figures,
    )


def change_details(printed: PrintedQuote, priced: Content, change: Content) -> Iterable[str]:
    """What the columns of the table leave out: the discount within the price, and what is not given back."""
    t, currency = printed.tongue, printed.currency
    if off := priced["discount_amount"]:
        percent = Decimal(priced["discount_pct"]).quantize(Decimal("0.01"), ROUND_HALF_UP).normalize()
        figures = t.figure(f"{t.percent(percent)}\u2002{t.amount(-off, currency)}")
        yield f"{t.label('discount')}{t.label('colon')} {figures}"
    if change["not_credited"]:
        yield t.label("not_credited", amount=t.amount(change["not_credited"], currency))


def change_totals(printed: PrintedQuote, chosen: Content) -> Iterable[Row]:
    """The first rows of the totals: they add up to the net, as the columns of the table do."""
    t, currency = printed.tongue, printed.currency
    yield Row(t.label("new_price_total"), t.amount(chosen["net"] + chosen["credit_total"], currency))
    yield Row(t.label("credit_total"), t.amount(-chosen["credit_total"], currency))


def _mark(printed: PrintedQuote, change: Content) -> str:
    t, start = printed.tongue, change["start_date"]
    if change["action"] == REMOVED and start:
        return t.label("mark_remove", day=t.day(date.fromisoformat(start), is_short=True))
    return t.label(f"mark_{change['action']}")
