"""`cpq quote request`: asks for the approvals that the policies want."""

from __future__ import annotations

from collections.abc import Mapping

import click

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_step import take
from cpq.services import approvals


@click.command()
@click.argument("quote_id")
@click.option("--why", "justification", required=True, help="Why this deal deserves approval; the approver reads it.")
@click.option("--role", help="A role to ask besides those that the policies require.")
@key_option
@as_option
@json_option
@pass_options
def request(options: Options, quote_id: str, justification: str, role: str | None, key: str | None) -> None:
    """Ask for approval of the current version. A person with the role decides; waiting approves nothing.

    \b
    Example:
      cpq quote request Q-06f3mv2k9e7d1xw2rjfb --why "Third order this year." --as rita
    """

    def work(tx: Tx, _expected: int) -> Mapping[str, object]:
        return approvals.request(tx, quote_id, justification=justification, role=role)

    arguments = {"justification": justification, "approver_role": role}
    take(options, "approval_request", quote_id, work, arguments, key=key, needs=Permission.REQUEST_APPROVAL)
