"""`cpq agreements revenue`: recurring revenue over time, and how much of it stays."""

from __future__ import annotations

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table
from cpq.services import agreements


@click.command()
@json_option
@pass_options
def revenue(options: Options) -> None:
    """Show the recurring revenue of a year (ARR) on the first day of each month and today, and net retention.

    ARR is the net price of one period of every line that is owned on the day, times the periods of a year. Net
    retention is the ARR of today of the accounts that brought any a year ago, in percent of theirs then. Currencies
    are never added.

    \b
    Example:
      cpq agreements revenue --json
    """

    def work(tx: Tx) -> Answer:
        return dict(agreements.revenue(tx))

    with local_app.opened(options) as app:
        answer = local_app.read(app, "agreements_revenue", work)
    if options.as_json:
        show_json(answer)
        return
    rows = [
        (one["day"], readable(value, currency), currency)
        for one in answer["days"]
        for currency, value in one["arr"].items()
    ]
    show_table(("day", "arr", ""), rows, numbers=("arr",))
    for one in answer["retention"]:
        since = readable(one["before"], one["currency"])
        click.echo(f"Net retention since {answer['since']}: {one['percent']} % of {since} {one['currency']}.")
