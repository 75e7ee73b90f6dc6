"""`cpq quote revise`: opens the next version of a quote as a draft."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import step_options, take_use_case
from cpq.services import quotes


@click.command()
@step_options
def revise(options: Options, quote_id: str, version: int | None, key: str | None) -> None:
    """Open the next version as a draft, at today's prices. A sent version stays valid until the new one is sent.

    \b
    Example:
      cpq quote revise Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take_use_case(options, "quote_revise", quotes.revise, quote_id, version=version, key=key)
