"""`cpq agreements list`: pages of agreements, the newest first."""

from __future__ import annotations

from datetime import datetime

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table
from cpq.domain.agreements.agreement import AgreementStatus
from cpq.services import agreements, catalog

LIMIT_MAX = 1_000


@click.command("list")
@click.option("--account", metavar="ID", help="Only agreements of this account.")
@click.option("--status", type=click.Choice([one.value for one in AgreementStatus]), help="Only with this status.")
@click.option("--ends-before", type=click.DateTime(["%Y-%m-%d"]), help="Only those whose term ends before this day.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="Agreements per page.")
@click.option("--page", type=click.IntRange(1, 10**9), default=1, show_default=True, help="Number of the page, from 1.")
@json_option
@pass_options
def list_(
    options: Options, account: str | None, status: str | None, ends_before: datetime | None, limit: int, page: int
) -> None:
    """List agreements, the newest first, and say when accepted quotes are missing.

    \b
    Example:
      cpq agreements list --status active
    """
    day = ends_before.date() if ends_before else None

    def work(tx: Tx) -> Answer:
        if account is not None:
            catalog.get_account(tx, account)  # Unknown is an error here; a tool answers an empty list.
        known = AgreementStatus(status) if status else None
        return dict(
            agreements.list_agreements(tx, account_id=account, ends_before=day, status=known, limit=limit, page=page)
        )

    with local_app.opened(options) as app:
        answer = local_app.read(
            app, "agreement_list", work, account_id=account, status=status, ends_before=day, limit=limit, page=page
        )
    if options.as_json:
        show_json(answer)
        return
    columns = ("agreement", "account", "name", "status", "starts", "ends", "arr", "", "orders")
    rows = [
        (
            one["id"],
            one["account_id"],
            one["account_name"],
            one["status"] + (f" into {one['renewed_into']}" if one["renewed_into"] else ""),
            one["start_date"],
            one["end_date"] or "no end",
            readable(one["arr"], one["currency"]),
            one["currency"],
            one["order_count"],
        )
        for one in answer["items"]
    ]
    if rows:
        show_table(columns, rows, numbers=("arr", "orders"))
    where = answer["pagination"]
    more = f"; --page {page + 1} has more" if where["has_more"] else ""
    click.echo(f"{len(rows):,} of {where['total']:,} agreements{more}.")
    if note := answer.get("message"):
        click.echo(note)
