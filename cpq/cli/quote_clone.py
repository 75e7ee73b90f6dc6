"""`cpq quote clone`: a new draft with the lines and terms of a quote."""

from __future__ import annotations

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_create import show_created
from cpq.cli.quote_lines import currency_code
from cpq.services import quotes


@click.command()
@click.argument("quote_id")
@click.option("--account", "account_id", metavar="ID", help="Another customer. Default: the same one.")
@click.option("--currency", help="Another currency, for example EUR. Default: that of the quote.")
@key_option
@as_option
@json_option
@pass_options
def clone(options: Options, quote_id: str, account_id: str | None, currency: str | None, key: str | None) -> None:
    """Create a new draft with the lines and terms of a quote, at today's prices. Approvals are not copied.

    \b
    Example:
      cpq quote clone Q-06f3mv2k9e7d1xw2rjfb --account acct_acme_001 --as rita
    """

    code = currency_code(currency) if currency else None

    def work(tx: Tx) -> Answer:
        return dict(quotes.clone(tx, quote_id, account_id=account_id, currency=code, idempotency_key=key))

    arguments = {"quote_id": quote_id, "account_id": account_id, "currency": code}
    command = Command("quote_clone", Permission.QUOTE, arguments, idempotency_key=key, subject=quote_id)
    with local_app.opened(options) as app:
        outcome = local_app.write_as_person(app, options, command, work)
    show_created(options, outcome.answer, is_replayed=outcome.replayed)
