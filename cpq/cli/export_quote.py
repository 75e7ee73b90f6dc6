"""`cpq export quote`: writes a quote as a document or as data."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cpq.app import Answer, App, Command, Outcome
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.cli.file_format import form_of
from cpq.cli.output import Meter
from cpq.services import documents
from cpq.services.documents import exporter as quote_files


@click.command("quote")
@click.argument("quote_id")
@click.option(
    "--format", "form", type=click.Choice(quote_files.FORMATS), help="Default: by the ending of FILE, else pdf."
)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
@click.option("--template", type=click.Choice(documents.EVERY_TEMPLATE), default="standard", show_default=True)
@click.option("--locale", help="Language, or language and country: de, fr_CA. Default: the account's.")
@click.option("--version", type=click.IntRange(1, 10**9), help="Default: the current one.")
@pass_options
def export_quote(
    options: Options,
    quote_id: str,
    form: str | None,
    output: Path | None,
    template: str,
    locale: str | None,
    version: int | None,
) -> None:
    """Write a quote as PDF for the customer, or as HTML, JSON, UBL or CSV.

    A version that may not go to a customer is stamped on every page. The PDF contains the JSON and the UBL.

    \b
    Example:
      cpq export quote Q-1m7j3zwg28bh5ymash00 --output offer.pdf
    """
    form = form_of(form, output.name if output else "", quote_files.FORMATS, default="pdf")
    if form == "pdf" and output is None and sys.stdout.isatty():
        raise click.UsageError("A PDF cannot be shown in a terminal: give --output FILE.")
    if output is not None and not output.parent.is_dir():
        raise click.UsageError(f"There is no folder {output.parent}: create it, or give another --output.")
    request = documents.DocumentRequest(quote_id, template, locale, version)
    with local_app.opened(options) as app:
        content = _pdf(app, request) if form == "pdf" else _text(app, request, form)
    if output is None:
        sys.stdout.buffer.write(content)
        return
    output.write_bytes(content)
    click.echo(f"Wrote {output}, {len(content):,} bytes.", err=True)


def _pdf(app: App, request: documents.DocumentRequest) -> bytes:
    asked = {**request._asdict(), "format": "pdf"}
    command = Command("export_quote", Permission.READ, asked, subject=request.quote_id)
    call = app.new_call(app.operator)
    with Meter(f"Making the PDF of {request.quote_id}", app.effects) as meter, app.admitted(call, command) as record:
        made = documents.issue(app, call, record, request, lambda done, total, _: meter(done, total))
    answer = made.answer if isinstance(made, Outcome) else made
    return documents.read_document(app.settings, answer["checksum"])


def _text(app: App, request: documents.DocumentRequest, form: str) -> bytes:
    design = documents.design_of(app.of(app.settings.tenant).settings)

    def work(tx: Tx) -> Answer:
        return {"text": quote_files.export(tx, request, form, design)}

    found = local_app.read(app, "export_quote", work, **request._asdict(), format=form)
    return str(found["text"]).encode()
