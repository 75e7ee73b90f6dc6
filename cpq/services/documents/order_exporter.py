"""An order as data: JSON as `order_get` answers it with the whole schedule, CSV, and a UBL 2.1 Order."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.money import amount
from cpq.base.text import shown, to_wire, without_formula
from cpq.domain.agreements.order import Order
from cpq.services.catalog import get_account
from cpq.services.documents.content import gather
from cpq.services.documents.design import Design
from cpq.services.documents.locale import choose_locale
from cpq.services.documents.order_content import of_order
from cpq.services.documents.ubl import order_xml
from cpq.services.orders import repository as order_repository
from cpq.services.orders.views import detail, phase_view
from cpq.services.quotes import repository as quote_repository

FORMATS = ("json", "csv", "ubl")

COLUMNS = (
    "order", "kind", "quote", "agreement_id", "line", "line_id", "what", "product_id", "product_name", "selling_model",
    "billing_period", "quantity", "start_date", "end_date", "periods", "unit_price_per_period", "currency", "amount",
)  # fmt: skip


def export(tx: Tx, order_id: str, form: str, design: Design) -> str:
    """An order by its id or number, as text in one of the formats."""
    order = order_repository.load_order(tx, order_id)
    if form == "json":
        whole = detail(order, include_schedule=True, schedule_max=None)
        return json.dumps(to_wire(whole), ensure_ascii=False, indent=2) + "\n"
    return _csv(order) if form == "csv" else _ubl(tx, order, design)


def _csv(order: Order) -> str:
    """A row for what each line sells in each of its phases, and one for what it gives back; they add up to the net."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for row in _rows(order):
        writer.writerow({name: _cell(to_wire(value)) for name, value in row.items()})
    return file.getvalue()


def _rows(order: Order) -> Iterator[dict[str, Any]]:
    for line in order.lines:
        sold = (line.phases or line.replaced)[0].sold
        same = {
            "order": order.number,
            "kind": order.kind.value,
            "quote": order.quote_number,
            "agreement_id": line.agreement_id,
            "line": line.number,
            "line_id": line.id,
            "product_id": sold.product_id,
            "product_name": sold.product_name,
            "selling_model": sold.selling_model,
            "billing_period": sold.billing_period,
            "currency": order.currency,
        }
        if credit := line.credit(order.minor_unit):
            yield {**same, "what": "credit", "start_date": line.effective, "amount": amount(-credit)}
        for phase in line.phases:
            view = {name: value for name, value in phase_view(phase).items() if name != "net"}
            yield {**same, **view, "what": "sold", "amount": amount(phase.value)}


def _ubl(tx: Tx, order: Order, design: Design) -> str:
    quote = quote_repository.load(tx, order.quote_id, version=order.quote_version)
    locale = choose_locale(None, get_account(tx, order.account_id)["locale"], design.labels)
    # Data has no limit of lines, like that of a template that lists none.
    content = gather(tx, quote, "executive_summary", design, None, locale)
    return order_xml(design.brand, {**content, "order": of_order(order, quote.time_zone)})


def _cell(value: object) -> object:
    return without_formula(shown(value)) if isinstance(value, str) else value
