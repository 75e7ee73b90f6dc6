"""`cpq quote review`: a person has looked at what is marked for review."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options
from cpq.cli.quote_step import step_options, take_use_case
from cpq.services import quotes


@click.command()
@click.option("--line", "line_id", help="Only the marks of this line, by its id. Default: all marks of the quote.")
@step_options
def review(options: Options, quote_id: str, version: int | None, key: str | None, line_id: str | None) -> None:
    """Close the marks for review of a quote. While one is open, the quote has no PDF and cannot be sent.

    \b
    Example:
      cpq quote review Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take_use_case(options, "quote_review", quotes.close_review, quote_id, version=version, key=key, line_id=line_id)
