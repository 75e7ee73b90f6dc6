"""`cpq quote send`: records that the current version went to the customer."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import step_options, take_use_case
from cpq.services import quotes


@click.command()
@step_options
def send(options: Options, quote_id: str, version: int | None, key: str | None) -> None:
    """Record that the current version was sent to the customer. It must be priced, and approved where policies ask.

    \b
    Example:
      cpq quote send Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take_use_case(options, "quote_send", quotes.send, quote_id, version=version, key=key)
