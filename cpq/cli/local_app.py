"""The engine behind the commands: an open `App`, and calls as the operator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import click
import sqlalchemy as sa

from cpq.app import Answer, App, Command, Outcome, tokens, unusable
from cpq.app.access import Permission, Principal
from cpq.app.transaction import Tx
from cpq.base import running_servers
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options
from cpq.services import quotes
from cpq.storage import migrations

Work = Callable[[Tx], Answer]

T = TypeVar("T")


@contextmanager
def opened(options: Options) -> Iterator[App]:
    """The engine on a ready database; CpqError with the next step when the database is not ready."""
    app = App(settings_of(options), options.effects)
    try:
        app.require_schema()
        app.require_tenant()
        yield app
    finally:
        app.close()


@contextmanager
def opened_for_all(options: Options) -> Iterator[App]:
    """The engine for a command over all tenants, in the name of the main one, whichever tenant is named."""
    app = App(settings_of(options).model_copy(update={"tenant": MAIN_TENANT}), options.effects)
    try:
        app.require_schema()
        yield app
    finally:
        app.close()


def read(
    app: App, name: str, work: Callable[[Tx], T], *, needs: Permission = Permission.READ, **arguments: object
) -> T:
    return app.read(app.new_call(app.operator), Command(name, needs, arguments), work)


def write(
    app: App,
    name: str,
    work: Work,
    arguments: Mapping[str, object],
    subject: str | None = None,
    principal: Principal | None = None,
) -> Answer:
    """A write as the operator; every write of the command line needs the permission to administer."""
    command = Command(name, Permission.ADMINISTER, arguments, subject=subject)
    return app.write(app.new_call(principal or app.operator), command, work).answer


def write_as_person(
    app: App,
    options: Options,
    command: Command,
    work: Work,
) -> Outcome:
    """A write in the name of the person of `--as`, with their rights only."""
    assert options.person is not None, "the command has as_option"
    return app.write(app.new_call(person(app, options, options.person)), command, work)


def person(app: App, options: Options, name: str) -> Principal:
    """The person to act as, with the roles of their valid tokens; their secret or an administrator's is needed."""
    presented = secret(app, options)
    command = Command("principal_find", Permission.READ, {"name": name})
    return app.read(app.new_call(app.operator), command, lambda tx: tokens.act_as(tx, presented, name))


def grantor(app: App, options: Options, name: str, role: str, *, is_person: bool) -> Principal:
    """The operator, with the administrator whose secret is needed to give this role to this name, if one is."""
    call = app.new_call(app.operator)
    if not app.read_unaudited(call, lambda tx: tokens.is_guarded(tx, name, role, is_person=is_person)):
        return app.operator
    presented = secret(app, options)
    command = Command("administrator_find", Permission.READ, {"name": name, "role": role})
    find = app.read(app.new_call(app.operator), command, lambda tx: tokens.require_administrator(tx, presented, role))
    return app.operator.signed_by(find)


def secret(app: App, options: Options) -> str:
    """The token of the person who types: from the file, the environment or a question."""
    given = options.given_secret()
    if given or not is_protected(app) or not sys.stdin.isatty():
        return given
    return str(click.prompt("Your token", hide_input=True, err=True)).strip()


def is_protected(app: App) -> bool:
    """Whether a token exists, so that a secret is needed to act as somebody."""
    with app.database.reading() as connection:
        return tokens.is_protected(connection, app.settings.tenant)


def warn_unprotected(app: App) -> None:
    if not is_protected(app):
        click.echo("No secret protects this: there is no token yet. `cpq token create` makes the first one.", err=True)


def require_all_tenants(options: Options) -> None:
    """Refuse a single tenant for a command that works on all of them."""
    settings = settings_of(options)
    if settings.tenant != MAIN_TENANT:
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"This command works on all tenants, not on {settings.tenant!r} alone. Nothing was done.",
            field="--tenant" if options.tenant else "CPQ_TENANT",
            hint="Leave out --tenant and CPQ_TENANT.",
        )


def browser_address(settings: Settings) -> str:
    """Where browsers reach the server: as configured, else where a server of this home runs, the newest first."""
    servers = running_servers.running(settings.home)
    configured = settings.console_address
    if settings.console_url or not servers or configured in {one.address for one in servers}:
        return configured
    return servers[0].address


def quote_id(app: App, given: str) -> str:
    """The id of the quote with this id or number, by which the audit names it."""
    return app.read_unaudited(app.new_call(app.operator), lambda tx: quotes.id_of(tx, given))


def migrate(settings: Settings) -> str | None:
    """Migrate the database to the newest schema; returns the version before, None when it is new."""
    app = App(settings)
    try:
        before = app.schema_version()
    finally:
        app.close()
    try:
        migrations.upgrade(settings)
    except (sa.exc.OperationalError, OSError) as error:
        raise unusable(settings, error) from error
    return before
