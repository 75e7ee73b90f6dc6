"""`cpq export prices`: writes the prices as a file for `cpq import`."""

from __future__ import annotations

from typing import IO

import click

from cpq.cli.common_options import Options, pass_options
from cpq.cli.export_catalog import FORMATS, write_file
from cpq.services.catalog import exporter


@click.command("prices")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the ending of FILE, else json.")
@click.option(
    "--output", metavar="FILE", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="Default: stdout."
)
@pass_options
def export_prices(options: Options, form: str | None, output: IO[str]) -> None:
    """Write all prices, with the price books in JSON and YAML.

    Importing the file again changes nothing. Into another database, import the catalogue before it, and the accounts
    that have agreed prices. The file has costs: keep it where only those read it who may see margins.

    \b
    Example:
      cpq export prices --output prices.csv
    """
    write_file(options, "prices", exporter.write_prices, form, output)
