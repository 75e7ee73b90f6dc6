"""The alternatives of a quote: their totals, and all of them side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cpq.services.documents.line_table import PADDING_MM, millimetres
from cpq.services.documents.printed_quote import NO_PRICE, Content, PrintedQuote, Row
from cpq.services.documents.totals import totals_of

SETS_ABREAST_MAX = 4


@dataclass(frozen=True)
class Alternative:
    name: str
    is_selected: bool
    totals: tuple[Row, ...]


@dataclass(frozen=True)
class ComparedCell:
    amount: str
    quantity: str = ""
    recurring: str = ""


@dataclass(frozen=True)
class ComparedRow:
    name: str
    sku: str
    """With the price of one billing period, where it recurs."""
    cells: tuple[ComparedCell, ...]
    is_group: bool = False


@dataclass(frozen=True)
class Comparison:
    """Alternatives side by side; those that do not fit the page follow in further tables."""

    sets: tuple[Alternative, ...]
    rows: tuple[ComparedRow, ...]
    totals: tuple[tuple[str, tuple[str, ...]], ...]
    width: int
    """Width of the column of an alternative, in millimetres."""


def alternative(printed: PrintedQuote, one: Content) -> Alternative:
    name = one["name"] or printed.tongue.label("title")
    return Alternative(printed.tongue.text(name), one["is_selected"], tuple(totals_of(printed, one)))


def comparisons(printed: PrintedQuote) -> Iterable[Comparison]:
    for start in range(0, len(printed.sets), SETS_ABREAST_MAX):
        sets = printed.sets[start : start + SETS_ABREAST_MAX]
        columns = [_cells(printed, one) for one in sets]
        keys = dict.fromkeys(key for column in columns for key in column)
        groups: dict[str, list[ComparedRow]] = {}
        for product_id, nth in keys:
            product = printed.product(product_id)
            cells = tuple(column.get((product_id, nth), ComparedCell("–")) for column in columns)
            periods = dict.fromkeys(cell.recurring for cell in cells if cell.recurring)
            below = " · ".join((printed.tongue.text(product["sku"]), *periods))
            row = ComparedRow(printed.tongue.text(product["name"]), below, cells)
            groups.setdefault(printed.tongue.text(product["category_name"]), []).append(row)
        rows: list[ComparedRow] = []
        for name, inside in groups.items():
            rows += [ComparedRow(name, "", (), is_group=True), *inside]
        totals = tuple(_compared_totals(printed, sets))
        figures = [
            *(text for column in columns for cell in column.values() for text in (cell.amount, cell.quantity)),
            *(v for _, vs in totals for v in vs),
        ]
        width = math.ceil(max(map(millimetres, figures)) + 2 * PADDING_MM)
        yield Comparison(tuple(alternative(printed, one) for one in sets), tuple(rows), totals, max(width, 26))


def _cells(printed: PrintedQuote, one: Content) -> dict[tuple[str, int], ComparedCell]:
    """The price of each product in one alternative; a product on two lines gets two rows."""
    cells: dict[tuple[str, int], ComparedCell] = {}
    t, times = printed.tongue, Counter[str]()
    for line in one["lines"]:
        asked = printed.asked[line["number"]]
        product_id = asked["product_id"]
        nth = times[product_id]
        times[product_id] += 1
        if printed.has_no_price(line["number"]):
            cells[product_id, nth] = ComparedCell(NO_PRICE, t.label("usage_title"))
            continue
        quantity = f"{t.label('quantity')} {t.number(1 if 'ramp' in asked else line['quantity'])}"
        amount = t.amount(line.get("difference", line["line_total"]), printed.currency)
        cells[product_id, nth] = ComparedCell(amount, quantity, printed.recurring(line))
    return cells


def _compared_totals(printed: PrintedQuote, sets: Sequence[Content]) -> Iterable[tuple[str, tuple[str, ...]]]:
    t = printed.tongue
    labels = {
        "subtotal": "subtotal",
        "discount_total": "discount_total",
        "net": "net_total",
        "tax_total": "tax_total",
    }
    if not any(one["discount_total"] and "credit_total" not in one for one in sets):
        labels = {"net": "net_total", "tax_total": "tax_total"}
    for name, label in labels.items():
        sign = -1 if name == "discount_total" else 1
        yield t.label(label), tuple(t.amount(sign * one[name], printed.currency) for one in sets)
    yield t.label("total"), tuple(t.money(one["total"], printed.currency) for one in sets)
