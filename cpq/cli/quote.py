"""`cpq quote`: the group of the commands about quotes; each is in a file of its own beside this one."""

from __future__ import annotations

import click

from cpq.cli.lazy_group import LazyGroup

QUOTE_COMMANDS = {
    "list": ("cpq.cli.quote_list:list_", "List quotes, newest first."),
    "show": ("cpq.cli.quote_show:show", "Show a quote: terms, dates, lines, totals and hashes."),
    "price": ("cpq.cli.quote_price:price", "Price a quote exactly and check it against the policies."),
    "explain": ("cpq.cli.quote_explain:explain", "Explain a price, from list price to total."),
    "diff": ("cpq.cli.quote_explain:diff", "Compare two versions of a quote."),
    "replay": ("cpq.cli.quote_replay:replay", "Prove stored prices by pricing them again."),
    "verify": ("cpq.cli.quote_verify:verify", "Check whether a PDF was issued here, and is current."),
}


@click.group(cls=LazyGroup, lazy=QUOTE_COMMANDS)
def quote() -> None:
    """Show and price quotes, explain and prove their prices, and verify their PDFs.

    \b
    Example:
      cpq quote list --status draft
    """
