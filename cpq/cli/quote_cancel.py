"""`cpq quote cancel`: ends a quote, or its open revision."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import reason_option, step_options, take_use_case
from cpq.services import quotes


@click.command()
@reason_option
@step_options
def cancel(options: Options, quote_id: str, version: int | None, key: str | None, reason: str | None) -> None:
    """Cancel the current version. If an earlier one was sent, that one becomes current again; else the quote ends.

    \b
    Example:
      cpq quote cancel Q-06f3mv2k9e7d1xw2rjfb --reason "Asked twice." --as rita
    """
    take_use_case(options, "quote_cancel", quotes.cancel, quote_id, version=version, key=key, reason=reason)
