"""`cpq quote decline`: records that the customer declined."""

from __future__ import annotations

import click

from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_step import take, version_option
from cpq.services import quotes


@click.command()
@click.argument("quote_id")
@click.option("--reason", help="The reason, in one sentence.")
@version_option
@key_option
@as_option
@json_option
@pass_options
def decline(options: Options, quote_id: str, version: int | None, key: str | None, reason: str | None) -> None:
    """Record that the customer declined the version that was sent to them.

    \b
    Example:
      cpq quote decline Q-06f3mv2k9e7d1xw2rjfb --reason "Too late." --as rita
    """
    take(
        options,
        "quote_decline",
        quote_id,
        lambda tx, expected: quotes.decline(tx, quote_id, expected_version=expected, reason=reason),
        {"expected_version": version, "reason": reason},
        key=key,
    )
