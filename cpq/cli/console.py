"""`cpq console`: sign-in links for people, and sample people with pending quotes."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from cpq.app import Answer, App, Command, sessions, tokens
from cpq.app.access import Permission
from cpq.app.sessions import LINK_MINUTES, LINK_MINUTES_MAX
from cpq.app.transaction import Tx
from cpq.base import running_servers
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.cli import local_app, sample_quotes
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json


@click.group()
def console() -> None:
    """Make sign-in links for the console, where people review and decide approval requests.

    \b
    Example:
      cpq console link --user dana
    """


@console.command()
@click.option("--user", required=True, help="The person to sign in; they need a role, see `cpq token grant`.")
@click.option(
    "--minutes",
    type=click.IntRange(1, LINK_MINUTES_MAX),
    default=LINK_MINUTES,
    show_default=True,
    help="How long the link is valid.",
)
@json_option
@pass_options
def link(options: Options, user: str, minutes: int) -> None:
    """Print a one-time link that signs a person in to the console.

    \b
    Example:
      cpq console link --user dana
    """
    settings = settings_of(options)
    _require_address(settings)
    servers = running_servers.running(settings.home)
    with local_app.opened(options) as app:
        address = _link(app, options, user, minutes)
        local_app.warn_unprotected(app)
    if options.as_json:
        show_json({"user": user, "minutes": minutes, "link": address, "server_runs": bool(servers)})
        return
    click.echo(f"Signs {user} in once, within {minutes} minutes:", err=True)
    click.echo(address)
    if len(servers) > 1:
        others = ", ".join(one.address for one in servers if not address.startswith(f"{one.address}/"))
        click.echo(f"The link works on every server of this home; others: {others}", err=True)
    elif not servers and not settings.console_url:
        click.echo("No server runs on this home now: `cpq serve --transport streamable-http` starts one.", err=True)


@console.command()
@pass_options
def sample(options: Options) -> None:
    """Add sample people, three months of sample quotes and pending requests; print a sign-in link. Safe to repeat.

    For trying out the console. It needs the sample catalogue, and refuses a store that has real quotes.

    \b
    Example:
      cpq init --sample && cpq console sample
    """
    settings = settings_of(options)
    _require_address(settings)
    with local_app.opened(options) as app:
        for name, role in sample_quotes.PEOPLE.items():
            local_app.grantor(app, options, name, role, is_person=True)
        made = sample_quotes.fill(settings, options.effects.now())
        address = _link(app, options, sample_quotes.MANAGER, LINK_MINUTES_MAX)
    click.echo(made)
    click.echo(f"Console: sign in as {sample_quotes.MANAGER}, a sales manager, with this one-time link:")
    click.echo(f"\n  {address}\n")
    others = ", ".join(
        f"{name} ({role})" for name, role in sample_quotes.PEOPLE.items() if name != sample_quotes.MANAGER
    )
    click.echo(f"Others: {_given_settings()}{_program()} console link --user NAME, for {others}.")


def _given_settings() -> str:
    """The settings of this call as shell assignments, for the next call."""
    names = ("CPQ_HOME", "MCP_HOST", "MCP_PORT")
    return "".join(f"{name}={shlex.quote(os.environ[name])} " for name in names if os.environ.get(name))


def _program() -> str:
    """The command as it has to be typed: after `make` it is only in the folder of this Python."""
    beside = Path(sys.executable).with_name("cpq")
    if shutil.which("cpq") or not beside.exists():
        return "cpq"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def _require_address(settings: Settings) -> None:
    """Refuse to make a link that nobody could open: the server needs an address that browsers reach."""
    if not settings.console_url and not settings.is_private:
        raise CpqError(
            Code.VALIDATION_ERROR,
            "Other machines can reach the server (MCP_HOST, MCP_ALLOWED_HOSTS), but CPQ_CONSOLE_URL is not set.",
            field="CPQ_CONSOLE_URL",
            hint="Set it to the address of the server in a browser: CPQ_CONSOLE_URL=https://cpq.example.com",
        )


def _link(app: App, options: Options, user: str, minutes: int) -> str:
    code, presented = "", local_app.secret(app, options)

    def work(tx: Tx) -> Answer:
        nonlocal code  # Kept out of the answer, because answers are stored.
        code = sessions.new_link(tx, user, minutes=minutes)
        return {"user": user}

    find = Command("principal_find", Permission.READ, {"name": user})
    holder = app.read(app.new_call(app.operator), find, lambda tx: tokens.require_secret(tx, presented, user))
    arguments = {"user": user, "minutes": minutes}
    local_app.write(app, "console_link", work, arguments, subject=user, principal=app.operator.signed_by(holder))
    return f"{local_app.browser_address(app.settings)}/console/enter/{code}"
