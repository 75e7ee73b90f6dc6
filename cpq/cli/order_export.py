"""`cpq order export`: writes an order as data."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.cli.file_format import form_of
from cpq.services import documents
from cpq.services.documents import order_exporter


@click.command("export")
@click.argument("order_id")
@click.option(
    "--format", "form", type=click.Choice(order_exporter.FORMATS), help="Default: by the ending of FILE, else json."
)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
@pass_options
def export_order(options: Options, order_id: str, form: str | None, output: Path | None) -> None:
    """Write an order as JSON with its whole billing schedule, as CSV, or as a UBL 2.1 Order.

    The PDF of an order is a template of its quote: `cpq export quote --template order_confirmation`.

    \b
    Example:
      cpq order export SO-2026-000001 --format ubl --output order.xml
    """
    form = form_of(form, output.name if output else "", order_exporter.FORMATS, default="json")
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"There is no folder {output.parent}: create it, or give another --output.")
    with local_app.opened(options) as app:
        design = documents.design_of(app.of(app.settings.tenant).settings)

        def work(tx: Tx) -> Answer:
            return {"text": order_exporter.export(tx, order_id, str(form), design)}

        found = local_app.read(app, "order_export", work, order_id=order_id, format=form)
    content = str(found["text"]).encode()
    if output is None:
        sys.stdout.buffer.write(content)
        return
    output.write_bytes(content)
    click.echo(f"Wrote {output}, {len(content):,} bytes.", err=True)
