"""`cpq quote accept`: records that the customer accepted."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_step import take, version_option
from cpq.services import quotes


@click.command()
@click.argument("quote_id")
@click.option("--option-set", metavar="NAME", help="The accepted alternative, when the quote has several.")
@version_option
@key_option
@as_option
@json_option
@pass_options
def accept(options: Options, quote_id: str, version: int | None, key: str | None, option_set: str | None) -> None:
    """Record that the customer accepted the version that was sent to them.

    \b
    Example:
      cpq quote accept Q-06f3mv2k9e7d1xw2rjfb --as rita
    """
    take(
        options,
        "quote_accept",
        quote_id,
        lambda tx, expected: quotes.accept(tx, quote_id, expected_version=expected, option_set=option_set),
        {"expected_version": version, "option_set": option_set},
        key=key,
    )
