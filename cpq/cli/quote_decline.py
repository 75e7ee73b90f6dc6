"""`cpq quote decline`: records that the customer declined."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import reason_option, step_options, take_use_case
from cpq.services import quotes


@click.command()
@reason_option
@step_options
def decline(options: Options, quote_id: str, version: int | None, key: str | None, reason: str | None) -> None:
    """Record that the customer declined the version that was sent to them.

    \b
    Example:
      cpq quote decline Q-06f3mv2k9e7d1xw2rjfb --reason "Too late." --as rita
    """
    take_use_case(options, "quote_decline", quotes.decline, quote_id, version=version, key=key, reason=reason)
