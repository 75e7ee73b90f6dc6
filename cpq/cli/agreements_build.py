"""`cpq agreements build`: makes the orders of quotes that were accepted before orders existed."""

from __future__ import annotations

from collections.abc import Callable

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services import agreements, orders

NAMED_MAX = 20


@click.command()
@json_option
@pass_options
def build(options: Options) -> int:
    """Make the order and the agreement of every quote that was accepted before orders existed.

    It can be stopped and repeated: each order is made once. Who accepted, and when, comes from the customer's link,
    the events or the audit record; where no record has it, the order says `unknown`. Nothing is published.
    Exit code 1 when a quote stays without an order.

    \b
    Example:
      cpq agreements build
    """
    with local_app.opened(options) as app, Meter("Making orders", app.effects) as meter:
        total = app.read_unaudited(app.new_call(app.operator), orders.waiting)

        def write(work: Callable[[Tx], Answer]) -> Answer:
            return local_app.write(app, "agreements_build", work, {})

        built = agreements.build(write, total, meter)
    if options.as_json:
        show_json(built)
        return 1 if built["refused"] else 0
    click.echo(f"{counted(built['built'], 'order')} made; {counted(built['waiting'], 'accepted quote')} left.")
    if built["unknown"]:
        named = ", ".join(built["unknown"][:NAMED_MAX])
        click.echo(f"No record says who accepted {counted(len(built['unknown']), 'quote')}, and when: {named}")
    if built["refused"]:
        show_table(("quote", "why not"), [(one["quote_id"], one["message"]) for one in built["refused"]])
    return 1 if built["refused"] else 0
