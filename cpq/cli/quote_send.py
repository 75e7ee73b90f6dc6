"""`cpq quote send`: records that the current version went to the customer."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_step import take, version_option
from cpq.services import quotes


@click.command()
@click.argument("quote_id")
@version_option
@key_option
@as_option
@json_option
@pass_options
def send(options: Options, quote_id: str, version: int | None, key: str | None) -> None:
    """Record that the current version was sent to the customer. It must be priced, and approved where policies ask.

    \b
    Example:
      cpq quote send Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take(
        options,
        "quote_send",
        quote_id,
        lambda tx, expected: quotes.send(tx, quote_id, expected_version=expected),
        {"expected_version": version},
        key=key,
    )
