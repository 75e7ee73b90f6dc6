"""`cpq quote verify`: checks whether a PDF was issued here, and whether its version is current."""

from __future__ import annotations

from pathlib import Path

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs
from cpq.services import documents


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@pass_options
def verify(options: Options, file: Path) -> int:
    """Check whether a PDF was issued here, for which version, and whether that is the current approved one.

    Exit code 1 when the file is not an unchanged issued document.

    \b
    Example:
      cpq quote verify offer.pdf
    """
    content = file.read_bytes()

    def work(tx: Tx) -> Answer:
        return dict(documents.verify(tx, content=content))

    with local_app.opened(options) as app:
        found = local_app.read(app, "quote_verify_pdf", work, file=file.name)
    if options.as_json:
        show_json(found)
    else:
        _show_verified(found)
    return 0 if found["verdict"] == "issued" else 1


def _show_verified(found: Answer) -> None:
    click.echo(found["message"])
    issued_at = found["issued_at"]
    total = readable(found["total"], found["currency"]) if found["total"] is not None else None
    pairs = [
        ("verdict", found["verdict"]),
        ("current and approved", "yes" if found["is_current_approved"] else "no"),
        ("number", found["number"]),
        ("quote", found["quote_id"]),
        ("version", found["version"]),
        ("current version", found["current_version"]),
        ("status", found["version_status"]),
        ("total", f"{total} {found['currency']}" if total else None),
        ("template", found["template"]),
        ("locale", found["locale"]),
        ("stamp", found["stamp"]),
        ("issued", to_wire(issued_at) if issued_at else None),
        ("fingerprint", found["fingerprint"]),
        ("checksum", found["checksum"]),
    ]
    show_pairs(pairs)
