"""`cpq backup`: writes everything that is not derived into one file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cpq.app import Command
from cpq.app.access import Permission
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_pairs
from cpq.services import backups


@click.command()
@click.argument("target", metavar="FILE|DIR", type=click.Path(path_type=Path))
@click.option("--with-audit-key", is_flag=True, help="Also put the key in that signs the audit record: a secret.")
@json_option
@pass_options
def backup(options: Options, target: Path, with_audit_key: bool) -> None:
    """Write all tables of one moment, their documents, the policies and the templates into FILE, or a new file in DIR.

    Servers may run and write meanwhile. The file appears under its name when it is complete; only you can read it. Its
    manifest has the SHA-256 of each part, and with an audit key a signature. The audit key and the settings in .env are
    not in it: keep those elsewhere.

    \b
    Example:
      cpq backup /mnt/backups
    """
    call = Command("backup", Permission.ADMINISTER, {"target": str(target)})
    local_app.require_all_tenants(options)
    with local_app.opened(options) as app, app.admitted(app.new_call(app.operator), call):
        with Meter("Backing up", app.effects) as meter:
            saved = backups.save(app, target, meter, with_audit_key=with_audit_key)
        has_key = app.audit_key is not None
    if options.as_json:
        show_json(asdict(saved))
        return
    key = "in the backup" if saved.has_audit_key else "not in the backup: keep it elsewhere" if has_key else None
    show_pairs(
        [
            ("file", saved.path),
            ("bytes", saved.bytes),
            ("checksum", saved.checksum),
            ("as of", saved.made_at),
            ("schema", saved.schema_version),
            ("rows", f"{sum(saved.rows.values()):,} in {counted(len(saved.rows), 'table')}"),
            ("documents", saved.documents),
            *[(f"audit head of {one['tenant_id']}", f"{one['seq']}:{one['hash']}") for one in saved.audit_heads],
            ("signed", "by the audit key" if saved.is_signed else "no: there is no audit key"),
            ("audit key", key),
        ]
    )
    if saved.missing_documents:
        lost = counted(len(saved.missing_documents), "document")
        click.echo(f"The file of {lost} is lost or changed; `cpq repair` renders it again.", err=True)
