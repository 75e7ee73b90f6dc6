"""`cpq copy`: moves to another database, SQLite or PostgreSQL."""

from __future__ import annotations

import re
from dataclasses import asdict

import click

from cpq.app import App, Command
from cpq.app.access import Permission
from cpq.base import running_servers
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services import backups

_URL = re.compile(r"sqlite:///.+|postgresql\+psycopg://.+", re.DOTALL)
DIGEST_SHOWN = 16


@click.command()
@click.option(
    "--to", "url", metavar="URL", required=True, help="An empty database: postgresql+psycopg:// or sqlite:///"
)
@json_option
@pass_options
def copy(options: Options, url: str) -> None:
    """Copy all tables of one moment to another database, and compare rows and digests of each table there.

    All of it is copied or nothing: after an interruption run it again. The documents stay in CPQ_HOME, so keep using
    the same home with the new CPQ_DATABASE_URL. Stop the servers first, because later changes are not in the copy.

    \b
    Example:
      cpq copy --to postgresql+psycopg://cpq@db.local/quotewright
    """
    local_app.require_all_tenants(options)
    with local_app.opened(options) as app:
        other = _target(app.settings, url)
        named = Command("copy", Permission.ADMINISTER, {"to": other.database_name})
        with app.admitted(app.new_call(app.operator), named), Meter("Copying", app.effects) as meter:
            into = App(other, app.effects)
            try:
                copied = backups.copy(app, into, meter)
            finally:
                into.close()
        servers = running_servers.running(app.settings.home)
    if options.as_json:
        show_json({**asdict(copied), "to": other.database_name})
        return
    rows = [(name, count, copied.digests[name][:DIGEST_SHOWN]) for name, count in copied.rows.items() if count]
    show_table(("table", "rows", "digest, the same in both"), rows, numbers=("rows",))
    empty = sum(not count for count in copied.rows.values())
    total = f"{sum(copied.rows.values()):,} rows in {counted(len(rows), 'table')}; {empty} are empty"
    click.echo(f"Copied to {other.database_name} as of {copied.made_at}: {total}.")
    for tenant, head in copied.audit_heads.items():
        click.echo(f"The audit chain of {tenant} is whole there. Head: {head}")
    if servers:
        click.echo(
            f"A server of this home runs ({servers[0].address}): its later changes are not in the copy.", err=True
        )
    click.echo(f"Next: set CPQ_DATABASE_URL to it, with CPQ_HOME={app.settings.home}, and run `cpq doctor`.")


def _target(settings: Settings, url: str) -> Settings:
    if _URL.fullmatch(url) is None:
        hint = "postgresql+psycopg://USER@HOST/DATABASE, or sqlite:///FILE"
        raise CpqError(
            Code.VALIDATION_ERROR, "The address is of no database that can be used.", field="--to", hint=hint
        )
    return settings.model_copy(update={"database_url": url})
