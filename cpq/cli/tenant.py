"""`cpq tenant`: creates, lists, suspends, resumes, exports and deletes tenants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from cpq.app import Answer, Command, tenant_registry
from cpq.app.access import Permission
from cpq.app.tenant_registry import Tenant, TenantState
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json, show_pairs, show_table
from cpq.services import backups, tenant_removal


@click.group()
def tenant() -> None:
    """Create, list, suspend and resume tenants: sellers on one installation, each with data of its own.

    The tenant main is there from the start. Other commands work for the tenant of --tenant or CPQ_TENANT.

    \b
    Example:
      cpq tenant create acme --name "Acme Ltd"
    """


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@click.option("--name", help="The name for people; else the id.")
@json_option
@pass_options
def create(options: Options, tenant_id: str, name: str | None) -> None:
    """Create a tenant without any data. ID has small letters, digits and -, and cannot be changed.

    \b
    Example:
      cpq tenant create acme --name "Acme Ltd"
    """
    made = _write(options, "create", tenant_id, lambda tx: tenant_registry.create(tx, tenant_id, name or tenant_id))
    if options.as_json:
        show_json(made)
        return
    click.echo(f"The tenant {tenant_id} is created.")
    click.echo(f"Next: `cpq --tenant {tenant_id} import catalog FILE`, then `cpq --tenant {tenant_id} token create …`.")


@tenant.command("list")
@json_option
@pass_options
def list_(options: Options) -> None:
    """Show all tenants.

    \b
    Example:
      cpq tenant list
    """
    with local_app.opened_for_all(options) as app:
        found = local_app.read(
            app,
            "tenant_list",
            lambda tx: [_row(one) for one in tenant_registry.listed(tx.connection)],
            needs=Permission.ADMINISTER,
        )
    if options.as_json:
        show_json({"items": found})
    else:
        show_table(list(found[0]), [list(row.values()) for row in map(to_wire, found)])


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@json_option
@pass_options
def suspend(options: Options, tenant_id: str) -> None:
    """Refuse every call of a tenant at once: tools, console, links, commands. Its data is kept.

    \b
    Example:
      cpq tenant suspend acme
    """
    _set_state(options, "suspend", tenant_id, TenantState.SUSPENDED)


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@json_option
@pass_options
def resume(options: Options, tenant_id: str) -> None:
    """Answer the calls of a suspended tenant again.

    \b
    Example:
      cpq tenant resume acme
    """
    _set_state(options, "resume", tenant_id, TenantState.ACTIVE)


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@click.argument("target", metavar="FILE|DIR", type=click.Path(path_type=Path))
@json_option
@pass_options
def export(options: Options, tenant_id: str, target: Path) -> None:
    """Write all rows, documents, policies and templates of one tenant into FILE, a backup for `cpq restore`.

    \b
    Example:
      cpq tenant export acme /mnt/backups
    """
    call = Command("tenant_export", Permission.ADMINISTER, {"tenant": tenant_id}, subject=tenant_id)
    with local_app.opened_for_all(options) as app, app.admitted(app.new_call(app.operator), call):
        with app.database.reading() as connection:
            tenant_registry.find(connection, tenant_id)
        with Meter(f"Exporting {tenant_id}", app.effects) as meter:
            saved = backups.save(app, target, meter, tenant_id=tenant_id)
    if options.as_json:
        show_json(asdict(saved))
        return
    rows = f"{sum(saved.rows.values()):,} rows"
    show_pairs([("file", saved.path), ("checksum", saved.checksum), ("rows", rows), ("documents", saved.documents)])


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@click.option("--yes", "typed", metavar="ID", help="The id once more, instead of the question for it.")
@json_option
@pass_options
def delete(options: Options, tenant_id: str, typed: str | None) -> None:
    """Delete a suspended tenant: all rows, its documents and its folder. Nothing brings it back but an export.

    \b
    Example:
      cpq tenant delete acme --yes acme
    """
    if typed is None and sys.stdin.isatty():
        typed = click.prompt(f"Type {tenant_id} to delete everything of it", default="", show_default=False, err=True)
    if typed != tenant_id:
        hint = f"`cpq tenant delete {tenant_id} --yes {tenant_id}`"
        raise CpqError(Code.VALIDATION_ERROR, "The id was not repeated. Nothing was deleted.", field="--yes", hint=hint)
    with local_app.opened_for_all(options) as app:
        removed = tenant_removal.remove(app, tenant_id)
    if options.as_json:
        show_json(asdict(removed))
    else:
        click.echo(f"The tenant {tenant_id} is deleted: {removed.rows:,} rows, {removed.documents:,} documents.")


def _set_state(options: Options, name: str, tenant_id: str, state: TenantState) -> None:
    made = _write(options, name, tenant_id, lambda tx: tenant_registry.set_state(tx, tenant_id, state))
    if options.as_json:
        show_json(made)
    else:
        click.echo(f"The tenant {tenant_id} is {state}.")


def _write(options: Options, name: str, tenant_id: str, work: Callable[[Tx], Tenant]) -> Answer:
    """A change of the registry, on the record of the main tenant."""
    with local_app.opened_for_all(options) as app:
        return local_app.write(
            app, f"tenant_{name}", lambda tx: _row(work(tx)), {"tenant": tenant_id}, subject=tenant_id
        )


def _row(one: Tenant) -> Answer:
    return {"id": one.id, "name": one.name, "state": one.state.value, "created_at": one.created_at}
