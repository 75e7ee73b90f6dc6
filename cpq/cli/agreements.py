"""`cpq agreements`: the group of the commands about what customers own; each is in a file beside this one."""

from __future__ import annotations

import click

from cpq.cli.lazy_group import LazyGroup

AGREEMENT_COMMANDS = {
    "list": ("cpq.cli.agreements_list:list_", "List what customers own."),
    "show": ("cpq.cli.agreements_show:show", "Show an agreement as of a day: lines, prices, orders."),
    "due": ("cpq.cli.agreements_due:due", "List renewals and notices of the next days."),
    "revenue": ("cpq.cli.agreements_revenue:revenue", "Show recurring revenue by month, and net retention."),
    "verify": ("cpq.cli.agreements_verify:verify", "Prove stored agreements by folding their orders again."),
    "build": ("cpq.cli.agreements_build:build", "Make the orders of quotes that were accepted before orders existed."),
}


@click.group(cls=LazyGroup, lazy=AGREEMENT_COMMANDS)
def agreements_() -> None:
    """Show what customers own, which renewals are due, and prove it from their orders.

    \b
    Example:
      cpq agreements list --account acct_acme_001
      cpq agreements due --days 30
    """
