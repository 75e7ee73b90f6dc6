"""The pages of an order: who accepted when, and the billing schedule as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from cpq.services.documents.printed_quote import Content, PrintedQuote, Row

ROWS_MAX = 500
"""Amounts of single lines; a longer schedule prints what is due on each day."""


@dataclass(frozen=True)
class ScheduledRow:
    due: str
    name: str
    """Empty where the row is a whole day."""
    period: str
    amount: str


@dataclass(frozen=True)
class OrderPages:
    accepted: str
    evidence: str
    schedule: tuple[ScheduledRow, ...]
    total: str
    """Of the schedule: the net of the order."""


def order_pages(printed: PrintedQuote, order: Content) -> OrderPages:
    t, dues = printed.tongue, order["schedule"]
    # The seller who recorded it, or the customer's link; the kind of caller is of no interest to a reader.
    name = str(order["accepted_by"]).partition(":")[2] or str(order["accepted_by"])
    rows = _rows(printed, dues) if len(dues) <= ROWS_MAX else _days(printed, dues)
    return OrderPages(
        t.label("order_accepted", day=_day(printed, order["accepted_on"]), name=t.text(name)),
        t.text(order["evidence"] or ""),
        tuple(rows),
        t.amount(sum((due["amount"] for due in dues), Decimal(0)), printed.currency),
    )


def order_facts(printed: PrintedQuote, order: Content) -> Iterable[Row]:
    t = printed.tongue
    yield Row(t.label("agreement"), t.text(order["agreement_id"]))
    yield Row(t.label("order_number"), t.text(order["number"]))
    yield Row(t.label("date"), _day(printed, order["accepted_on"]))
    yield Row(t.label("effective"), _day(printed, order["effective_date"]))


def _rows(printed: PrintedQuote, dues: Iterable[Content]) -> Iterable[ScheduledRow]:
    t = printed.tongue
    for due in dues:
        days = [_day(printed, due[name]) for name in ("start_date", "end_date")]
        yield ScheduledRow(
            _day(printed, due["due_date"]),
            t.text(due["product_name"]),
            " – ".join(days) if due["is_period"] else "",
            t.amount(due["amount"], printed.currency),
        )


def _days(printed: PrintedQuote, dues: Iterable[Content]) -> Iterable[ScheduledRow]:
    amounts: dict[str, Decimal] = {}
    for due in dues:
        amounts[due["due_date"]] = amounts.get(due["due_date"], Decimal(0)) + due["amount"]
    for day, total in sorted(amounts.items()):
        yield ScheduledRow(_day(printed, day), "", "", printed.tongue.amount(total, printed.currency))


def _day(printed: PrintedQuote, day: str) -> str:
    return printed.tongue.day(date.fromisoformat(day), is_short=True)
