"""`cpq export catalog`: writes the products as a file for `cpq import`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import IO

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.cli.file_format import form_of
from cpq.cli.output import Meter
from cpq.services.catalog import exporter

FORMATS = ("json", "csv", "yaml")

Writer = Callable[[Tx, str, IO[str], exporter.Progress], dict[str, int]]


@click.command("catalog")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the ending of FILE, else json.")
@click.option(
    "--output", metavar="FILE", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="Default: stdout."
)
@pass_options
def export_catalog(options: Options, form: str | None, output: IO[str]) -> None:
    """Write all products, with their categories in JSON and YAML.

    Importing the file again changes nothing. Use csv for very large catalogues; it is read in pieces.

    \b
    Example:
      cpq export catalog --output products.csv
    """
    write_file(options, "catalog", exporter.write_catalog, form, output)


def write_file(options: Options, what: str, writer: Writer, form: str | None, output: IO[str]) -> None:
    """Write rows of the database to a file, as the command `export_<what>`."""
    form = form_of(form, output.name, FORMATS, default="json")
    # Written to a temporary file first: a read that is repeated must not leave half a catalogue in the output.
    with local_app.opened(options) as app, tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as draft:
        with Meter(f"Exporting the {what}", app.effects) as meter:

            def work(tx: Tx) -> Answer:
                draft.seek(0)
                draft.truncate()
                return dict(writer(tx, form, draft, meter))

            counts = local_app.read(app, f"export_{what}", work, format=form)
        draft.seek(0)
        shutil.copyfileobj(draft, output)
    listed = " and ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items())
    click.echo(f"Exported {listed or 'nothing'}.", err=True)
