"""`cpq export`: writes the catalogue as a file for `cpq import`, and quotes as documents or data."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from cpq.app import Answer, App, Command, Outcome
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, pass_options
from cpq.cli.output import Meter
from cpq.services import documents
from cpq.services.catalog import exporter
from cpq.services.documents import exporter as quote_files

FORMATS = ("json", "csv", "yaml")


@click.group()
def export() -> None:
    """Write the catalogue as a file for `cpq import`, or a quote as a document or as data.

    \b
    Example:
      cpq export catalog --output catalog.yaml
    """


@export.command("catalog")
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
    form = _form_of(form, output.name, FORMATS, default="json")
    # Written to a temporary file first: a read that is repeated must not leave half a catalogue in the output.
    with local_app.opened(options) as app, tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as draft:
        counts = _write_catalog(app, form, draft)
        draft.seek(0)
        shutil.copyfileobj(draft, output)
    click.echo(
        f"Exported {' and '.join(f'{count:,} {kind}' for kind, count in counts.items()) or 'nothing'}.", err=True
    )


@export.command("quote")
@click.argument("quote_id")
@click.option(
    "--format", "form", type=click.Choice(quote_files.FORMATS), help="Default: by the ending of FILE, else pdf."
)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
@click.option("--template", type=click.Choice(documents.TEMPLATES), default="standard", show_default=True)
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
    form = _form_of(form, output.name if output else "", quote_files.FORMATS, default="pdf")
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


def _form_of(form: str | None, output: str, forms: Sequence[str], *, default: str) -> str:
    """The format that was given, else the one of the file ending. A contradiction is refused."""
    ending = Path(output).suffix.lower()
    meant = _ALSO.get(ending, ending.removeprefix("."))
    if form is None and ending and meant not in forms:
        known = ", ".join(f".{one}" for one in (*forms, *(also[1:] for also, one in _ALSO.items() if one in forms)))
        raise click.UsageError(f"{output} ends in {ending}, which is not one of {known}: rename it, or give --format.")
    if form is not None and meant != form and meant in forms:
        raise click.UsageError(f"--format is {form}, but {output} ends in {ending}: leave one out, or make them agree.")
    return form or meant or default


_ALSO = {".yml": "yaml", ".xml": "ubl", ".htm": "html"}
"""Other file endings of a format."""


def _pdf(app: App, request: documents.DocumentRequest) -> bytes:
    asked = {**request._asdict(), "format": "pdf"}
    command = Command("export_quote", Permission.READ, asked, subject=request.quote_id)
    call = app.new_call(OPERATOR)
    with Meter(f"Making the PDF of {request.quote_id}", app.effects) as meter, app.admitted(call, command) as record:
        made = documents.issue(app, call, record, request, lambda done, total, _: meter(done, total))
    answer = made.answer if isinstance(made, Outcome) else made
    return documents.read_document(app.settings, answer["checksum"])


def _text(app: App, request: documents.DocumentRequest, form: str) -> bytes:
    design = documents.design_of(app.settings)

    def work(tx: Tx) -> Answer:
        return {"text": quote_files.export(tx, request, form, design)}

    found = local_app.read(app, "export_quote", work, **request._asdict(), format=form)
    return str(found["text"]).encode()


def _write_catalog(app: App, form: str, draft: IO[str]) -> Answer:
    with Meter("Exporting the catalogue", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            draft.seek(0)
            draft.truncate()
            return dict(exporter.write_catalog(tx, form, draft, meter))

        return local_app.read(app, "export_catalog", work, format=form)
