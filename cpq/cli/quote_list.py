"""`cpq quote list`: pages of quotes, newest first."""

from __future__ import annotations

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table
from cpq.services import catalog, quotes

LIMIT_MAX = 1_000


@click.command("list")
@click.option("--account", metavar="ID", help="Only quotes for this account.")
@click.option("--status", help="Only quotes with this status: draft, approved, sent …")
@click.option("--owner", metavar="NAME", help="Only quotes of this seller.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="Quotes per page.")
@click.option("--page", type=click.IntRange(1, 10**9), default=1, show_default=True, help="Number of the page, from 1.")
@json_option
@pass_options
def list_(options: Options, account: str | None, status: str | None, owner: str | None, limit: int, page: int) -> None:
    """List quotes, newest first.

    \b
    Example:
      cpq quote list --account acct_acme_001 --status sent
    """

    def work(tx: Tx) -> Answer:
        if account is not None:
            catalog.get_account(tx, account)  # Unknown is an error here; a tool answers an empty list.
        return dict(quotes.list_quotes(tx, account_id=account, status=status, owner=owner, limit=limit, page=page))

    with local_app.opened(options) as app:
        answer = local_app.read(
            app, "quote_list", work, account_id=account, status=status, owner=owner, limit=limit, page=page
        )
    if options.as_json:
        show_json(answer)
        return
    columns = (
        "quote",
        "number",
        "version",
        "account",
        "name",
        "status",
        "total",
        "",
        "valid until",
        "created",
        "owner",
    )
    rows = [
        (
            item["id"],
            item["number"],
            item["version"],
            item["account_id"],
            item["account_name"],
            item["status"],
            readable(item["total"], item["currency"]),
            item["currency"],
            item["valid_until"],
            to_wire(item["created_at"]),
            item["owner"],
        )
        for item in answer["items"]
    ]
    if rows:
        show_table(columns, rows, numbers=("version", "total"))
    where = answer["pagination"]
    more = f"; --page {page + 1} has more" if where["has_more"] else ""
    click.echo(f"{len(rows):,} of {where['total']:,} quotes{more}.")
