"""`cpq order show`: an order with its lines, its amounts and what is due on each day."""

from __future__ import annotations

from typing import cast

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.services.orders import views
from cpq.services.orders.views import OrderDetail, OrderLineView


@click.command()
@click.argument("order_id")
@json_option
@pass_options
def show(options: Options, order_id: str) -> None:
    """Show an order by its id or number: who accepted it, its lines, and what is due when, before tax.

    \b
    Example:
      cpq order show SO-2026-000001
    """

    def work(tx: Tx) -> Answer:
        return dict(views.get(tx, order_id, include_schedule=options.as_json))

    with local_app.opened(options) as app:
        found = cast("OrderDetail", local_app.read(app, "order_show", work, order_id=order_id))
    if options.as_json:
        show_json(found)
        return
    _show_header(found)
    currency = found["order"]["currency"]
    click.echo()
    columns = ("line", "product", "id", "quantity", "from", "to", "credit", "net")
    rows = [_line(line, currency) for line in found["lines"]]
    show_table(columns, rows, numbers=("line", "quantity", "credit", "net"))
    click.echo()
    dues = [(due["due_date"], readable(due["amount"], currency)) for due in found["schedule_by_day"]]
    show_table(("due", f"{currency} before tax"), dues, numbers=(f"{currency} before tax",))


def _show_header(found: OrderDetail) -> None:
    header = found["order"]
    currency = header["currency"]
    show_pairs(
        [
            ("order", header["id"]),
            ("number", header["number"]),
            ("kind", header["kind"]),
            ("account", header["account_id"]),
            ("agreement", header["agreement_id"]),
            ("quote", f"{header['quote_id']} ({header['quote_number']}), version {header['version']}"),
            ("effective", header["effective_date"]),
            ("acceptance", f"{to_wire(header['accepted_at'])} by {header['accepted_by']}"),
            ("evidence", found["evidence"]),
            ("net", f"{readable(header['net'], currency)} {currency}"),
            ("tax", f"{readable(header['tax_total'], currency)} {currency}"),
            ("total", f"{readable(header['total'], currency)} {currency}"),
            ("fingerprint", found["fingerprint"]),
        ]
    )


def _line(line: OrderLineView, currency: str) -> tuple[object, ...]:
    """A line from its first to its last day; one that ends has none any more."""
    phases = line["phases"]
    first, last = (phases[0], phases[-1]) if phases else (None, None)
    return (
        line["number"],
        line["product_name"],
        line["line_id"],
        first["quantity"] if first else 0,
        first["start_date"] if first else line["effective_date"],
        last["end_date"] if last else "ends",
        readable(-line["credit"], currency),
        readable(line["net"], currency),
    )
