"""`cpq quote withdraw`: takes the pending approval requests of a quote back."""

from __future__ import annotations

from collections.abc import Mapping

import click

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_step import take
from cpq.services import approvals


@click.command()
@click.argument("quote_id")
@click.option("--reason", help="The reason, in one sentence.")
@key_option
@as_option
@json_option
@pass_options
def withdraw(options: Options, quote_id: str, reason: str | None, key: str | None) -> None:
    """Withdraw all pending approval requests of a quote. The person who asked may, and an administrator.

    \b
    Example:
      cpq quote withdraw Q-06f3mv2k9e7d1xw2rjfb --reason "The customer wants more seats." --as rita
    """

    def work(tx: Tx, _expected: int) -> Mapping[str, object]:
        pending = approvals.status(tx, quote_id)["pending_requests"]
        if not pending:
            raise CpqError(
                Code.CONFLICT,
                "Nobody is asked about this quote now; there is nothing to withdraw.",
                next_call=next_call("approval_status", quote_id=quote_id),
            )
        withdrawn = [approvals.withdraw(tx, one["approval_id"], reason=reason) for one in pending]
        roles = ", ".join(one["approver_role"] for one in withdrawn)
        return {**withdrawn[-1], "message": f"Withdrawn: {roles}. {withdrawn[-1]['message']}"}

    take(options, "approval_withdraw", quote_id, work, {"reason": reason}, key=key, needs=Permission.WITHDRAW)
