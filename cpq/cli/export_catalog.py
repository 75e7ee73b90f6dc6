"""`cpq export catalog`: writes the products as a file for `cpq import`."""

from __future__ import annotations

import shutil
import tempfile
from typing import IO

import click

from cpq.app import Answer, App
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.cli.file_format import form_of
from cpq.cli.output import Meter
from cpq.services.catalog import exporter

FORMATS = ("json", "csv", "yaml")


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
    form = form_of(form, output.name, FORMATS, default="json")
    # Written to a temporary file first: a read that is repeated must not leave half a catalogue in the output.
    with local_app.opened(options) as app, tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as draft:
        counts = _write_catalog(app, form, draft)
        draft.seek(0)
        shutil.copyfileobj(draft, output)
    click.echo(
        f"Exported {' and '.join(f'{count:,} {kind}' for kind, count in counts.items()) or 'nothing'}.", err=True
    )


def _write_catalog(app: App, form: str, draft: IO[str]) -> Answer:
    with Meter("Exporting the catalogue", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            draft.seek(0)
            draft.truncate()
            return dict(exporter.write_catalog(tx, form, draft, meter))

        return local_app.read(app, "export_catalog", work, format=form)
