"""`cpq tenant`: creates, lists, suspends and resumes tenants."""

from __future__ import annotations

from collections.abc import Callable

import click

from cpq.app import Answer, tenant_registry
from cpq.app.access import Permission
from cpq.app.tenant_registry import Tenant, TenantState
from cpq.app.transaction import Tx
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_table


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
