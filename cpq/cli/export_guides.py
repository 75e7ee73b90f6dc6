"""`cpq export guides`: writes the guides as a file for `cpq import guides`."""

from __future__ import annotations

from typing import IO

import click

from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.services import guided_selling
from cpq.services.catalog import exporter


@click.command("guides")
@click.option(
    "--output", metavar="FILE", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="Default: stdout."
)
@pass_options
def export_guides(options: Options, output: IO[str]) -> None:
    """Write all guides for guided selling as YAML. Importing the file again changes nothing.

    \b
    Example:
      cpq export guides --output guides.yaml
    """
    with local_app.opened(options) as app:
        guides = local_app.read(app, "export_guides", lambda tx: {"guides": guided_selling.export_guides(tx)})
    exporter.write_yaml(output, guides)
    click.echo(f"Exported {len(guides['guides']):,} guides.", err=True)
