"""`cpq quote accept`: records that the customer accepted."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import step_options, take_use_case
from cpq.services import quotes


@click.command()
@click.option("--option-set", metavar="NAME", help="The accepted alternative, when the quote has several.")
@click.option("--evidence", metavar="TEXT", help="How the customer accepted: `PO 4711`. The order shows it.")
@step_options
def accept(
    options: Options,
    quote_id: str,
    version: int | None,
    key: str | None,
    option_set: str | None,
    evidence: str | None,
) -> None:
    """Record that the customer accepted the version that was sent to them.

    \b
    Example:
      cpq quote accept Q-06f3mv2k9e7d1xw2rjfb --evidence "PO 4711" --as rita
    """
    chosen = {"option_set": option_set, "evidence": evidence}
    take_use_case(options, "quote_accept", quotes.accept, quote_id, version=version, key=key, **chosen)
