"""`cpq agreements due`: renewals and notices of the next days."""

from __future__ import annotations

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table
from cpq.services import agreements, catalog


@click.command()
@click.option("--account", metavar="ID", help="Only agreements of this account.")
@click.option("--days", type=click.IntRange(0, 3650), help="How far ahead. Default: renewal_due_days of the policies.")
@json_option
@pass_options
def due(options: Options, account: str | None, days: int | None) -> None:
    """List agreements that end soon, and lines without an end whose notice is due, the soonest first.

    \b
    Example:
      cpq agreements due --days 30
    """

    def work(tx: Tx) -> Answer:
        if account is not None:
            catalog.get_account(tx, account)
        return dict(agreements.due(tx, account_id=account, days=days))

    with local_app.opened(options) as app:
        answer = local_app.read(app, "agreements_due", work, account_id=account, days=days)
    if options.as_json:
        show_json(answer)
        return
    if answer["renewals"]:
        columns = ("ends", "days left", "agreement", "account", "name", "arr", "")
        rows = [
            (
                one["end_date"],
                one["days_left"],
                one["agreement_id"],
                one["account_id"],
                one["account_name"],
                readable(one["arr"], one["currency"]),
                one["currency"],
            )
            for one in answer["renewals"]
        ]
        show_table(columns, rows, numbers=("days left", "arr"))
        click.echo()
    if answer["notices"]:
        columns = ("notice by", "days left", "period starts", "line", "product", "account", "name")
        rows = [
            (
                one["notice_date"],
                one["days_left"],
                one["period_start"],
                one["line_id"],
                one["product_name"],
                one["account_id"],
                one["account_name"],
            )
            for one in answer["notices"]
        ]
        show_table(columns, rows, numbers=("days left",))
        click.echo()
    click.echo(answer["message"])
    if not answer["is_whole"]:
        click.echo("There is more than is listed; ask for fewer --days or one --account.")
