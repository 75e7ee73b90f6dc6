"""`cpq quote revise`: opens the next version of a quote as a draft."""

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
def revise(options: Options, quote_id: str, version: int | None, key: str | None) -> None:
    """Open the next version as a draft, at today's prices. A sent version stays valid until the new one is sent.

    \b
    Example:
      cpq quote revise Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take(
        options,
        "quote_revise",
        quote_id,
        lambda tx, expected: quotes.revise(tx, quote_id, expected_version=expected),
        {"expected_version": version},
        key=key,
    )
