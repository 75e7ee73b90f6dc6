"""`cpq quote unlink`: revokes links by which a customer accepts."""

from __future__ import annotations

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, as_option, json_option, pass_options
from cpq.cli.output import show_json
from cpq.services.quotes import acceptance_links


@click.command()
@click.argument("quote_id")
@click.argument("link_id", required=False)
@as_option
@json_option
@pass_options
def unlink(options: Options, quote_id: str, link_id: str | None) -> None:
    """Revoke a link by which the customer accepts, or all unused links of the quote. Nobody can use them any more.

    \b
    Example:
      cpq quote unlink Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    options.subject = quote_id
    with local_app.opened(options) as app:
        id_ = local_app.quote_id(app, quote_id)

        def work(tx: Tx) -> Answer:
            return {"quote_id": id_, "revoked": acceptance_links.revoke(tx, id_, link_id)}

        command = Command("quote_unlink", Permission.QUOTE, {"quote_id": id_, "link_id": link_id}, subject=id_)
        answer = local_app.write_as_person(app, options, command, work).answer
    if options.as_json:
        show_json(answer)
        return
    revoked = answer["revoked"]
    click.echo(f"Revoked: {', '.join(revoked)}." if revoked else "There was no link to revoke.")
