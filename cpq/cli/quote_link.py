"""`cpq quote link`: makes the link by which a customer accepts."""

from __future__ import annotations

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, as_option, json_option, pass_options
from cpq.cli.output import show_json
from cpq.cli.quote_step import version_option
from cpq.services import quotes
from cpq.services.quotes import acceptance_links


@click.command()
@click.argument("quote_id")
@version_option
@as_option
@json_option
@pass_options
def link(options: Options, quote_id: str, version: int | None) -> None:
    """Print a link by which the customer accepts the version that was sent to them, without an account.

    It is valid as long as the version, and printed only once.

    \b
    Example:
      cpq quote link Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    code = ""

    def work(tx: Tx) -> Answer:
        nonlocal code  # Kept out of the answer, because answers are stored.
        expected = version or quotes.get(tx, quote_id, include_pricing=False)["quote"]["version"]
        made = acceptance_links.make(tx, quote_id, expected_version=expected)
        code = made.code
        return {"link_id": made.id, "version": made.version, "expires_at": made.expires_at}

    options.subject = quote_id
    with local_app.opened(options) as app:
        id_ = local_app.quote_id(app, quote_id)
        command = Command("quote_link", Permission.QUOTE, {"quote_id": id_, "version": version}, subject=id_)
        made = local_app.write_as_person(app, options, command, work).answer
        address = f"{local_app.browser_address(app.settings)}/accept/{code}"
    if options.as_json:
        show_json({**made, "link": address})
        return
    click.echo(f"The customer accepts version {made['version']} by it until {to_wire(made['expires_at'])}:", err=True)
    click.echo(address)
