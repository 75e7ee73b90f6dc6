"""`cpq agreements show`: what an agreement is on a day."""

from __future__ import annotations

from datetime import datetime

import click

from cpq.app import Answer
from cpq.base.money import readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.services import agreements


@click.command()
@click.argument("agreement_id")
@click.option("--as-of", type=click.DateTime(["%Y-%m-%d"]), help="Any day, past or future. Default: today.")
@json_option
@pass_options
def show(options: Options, agreement_id: str, as_of: datetime | None) -> None:
    """Show an agreement on a day: its lines with quantity and price, recurring revenue, and its orders.

    \b
    Example:
      cpq agreements show A-06f3mv2k9e7d1xw2rjfb --as-of 2027-01-01
    """
    day = as_of.date() if as_of else None
    with local_app.opened(options) as app:
        found = local_app.read(
            app,
            "agreement_get",
            lambda tx: dict(agreements.get(tx, agreement_id, as_of=day)),
            agreement_id=agreement_id,
            as_of=day,
        )
    if options.as_json:
        show_json(found)
    else:
        _show(found)


def _show(found: Answer) -> None:
    agreement, currency = found["agreement"], found["agreement"]["currency"]
    due = found["next_billing"]
    pairs = [
        ("agreement", agreement["id"]),
        ("account", f"{agreement['account_name']} ({agreement['account_id']})"),
        ("status", f"{agreement['status']} on {found['as_of']}"),
        ("term", f"{agreement['start_date']} to {agreement['end_date'] or 'no end'}"),
        ("arr", f"{readable(agreement['arr'], currency)} {currency}"),
        ("mrr", f"{readable(found['mrr'], currency)} {currency}"),
        ("next billing", f"{due['due_date']}: {readable(due['amount'], currency)} {currency}" if due else None),
        ("next renewal", found["next_renewal"]),
        ("renewed into", agreement["renewed_into"]),
    ]
    show_pairs(pairs)
    click.echo()
    if found["lines"]:
        columns = ("line", "product", "quantity", "price", "", "period", "discount %", "since", "ends")
        rows = [
            (
                line["line_id"],
                line["product_name"],
                str(line["quantity"]),
                readable(line["unit_price_per_period"], currency),
                currency,
                line["billing_period"],
                str(line["discount_pct"]),
                line["start_date"],
                line["end_date"] or "no end",
            )
            for line in found["lines"]
        ]
        show_table(columns, rows, numbers=("quantity", "price", "discount %"))
    click.echo(found["message"])
    click.echo()
    orders = [
        (one["number"], one["kind"], one["effective_date"], readable(one["net"], currency), currency)
        for one in found["orders"]
    ]
    show_table(("order", "kind", "effective", "net", ""), orders, numbers=("net",))
