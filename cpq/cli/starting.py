"""`cpq init`, `cpq demo` and `cpq serve`: from nothing to a running product."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from cpq.app import Answer, App
from cpq.cli import engine
from cpq.cli.options import Options, pass_options
from cpq.cli.transfer import load_file, show_report
from cpq.services.catalog import exporter
from cpq.storage.schema import SCHEMA_VERSION

SAMPLE = Path(__file__).parent.parent / "sample"
SAMPLE_FILES = (
    ("catalog", "catalog.yaml", "products"),
    ("price_books", "price_books.yaml", "price_books"),
    ("accounts", "accounts.yaml", "accounts"),
    ("prices", "prices.csv", "prices"),
    ("history", "past_quotes.csv", "quotes"),
)
"""What is imported, from which file, in this order: prices name products, books and accounts."""


@click.command()
@click.option(
    "--sample",
    is_flag=True,
    help="Into an empty catalogue, also load a demo one with prices, accounts and past quotes.",
)
@pass_options
def init(options: Options, sample: bool) -> None:
    """Create the database, or bring it to the newest schema. Safe to repeat.

    \b
    Example:
      cpq init --sample
    """
    settings = engine.settings_of(options)
    before = engine.migrate(settings)
    what = {None: "created", SCHEMA_VERSION: "already up to date"}.get(
        before, f"brought from {before} to the newest schema"
    )
    click.echo(f"Database {settings.database_name}: {what} ({SCHEMA_VERSION}).")
    if sample:
        with engine.opened(options) as app:
            if _is_empty(app):
                show_report(*_load_sample(app))
            else:
                click.echo("There are products in it already, so the sample data is left out.")
    else:
        click.echo("Next: `cpq init --sample` loads demo data, `cpq import catalog FILE` your own.")


@click.command()
@pass_options
def demo(options: Options) -> None:
    """Watch an MCP client use the real server over stdio, step by step.

    Uses the database of CPQ_HOME, and fills it with the sample data first if it is empty.

    \b
    Example:
      cpq --home /tmp/demo demo
    """
    _prepare_demo(options)
    _become(options, "mcp_facade.demo")


@click.command()
@click.option(
    "--transport", type=click.Choice(["stdio", "streamable-http"]), help="Default: MCP_TRANSPORT, else stdio."
)
@click.option("--host", help="Address to listen on; instead of MCP_HOST.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; instead of MCP_PORT.")
@click.option("--toolsets", metavar="LIST", help="Toolsets to offer, with commas, or all; instead of CPQ_TOOLSETS.")
@click.option("--as", "as_name", metavar="NAME", help="Act as this caller (stdio); `cpq token create` makes callers.")
@pass_options
def serve(options: Options, /, **chosen: str | int | None) -> None:
    """Serve MCP until the client leaves (stdio) or the process is stopped (HTTP).

    \b
    Example:
      cpq serve --transport streamable-http --port 8765
    """
    flags = {"as" if name == "as_name" else name: value for name, value in chosen.items() if value is not None}
    _become(options, "mcp_facade", *(part for name, value in flags.items() for part in (f"--{name}", str(value))))


def _load_sample(app: App) -> list[Answer]:
    return [load_file(app, kind, SAMPLE / name, section) for kind, name, section in SAMPLE_FILES]


def _is_empty(app: App) -> bool:
    return not engine.read(app, "catalog_count", exporter.counts)["products"]


def _prepare_demo(options: Options) -> None:
    settings = engine.settings_of(options)
    if engine.migrate(settings) is None:
        click.echo(f"Database {settings.database_name}: created.")
    with engine.opened(options) as app:
        if _is_empty(app):
            _load_sample(app)
            click.echo("Sample data: loaded.")


def _become(options: Options, module: str, *arguments: str) -> None:
    """Let a module of the MCP edge take this process's place: signals and pipes reach it, and its exit code is ours."""
    sys.stdout.flush()
    # -P: a file in the current folder never takes the place of one of our modules.
    command = [sys.executable, "-P", "-m", module, *arguments]
    os.execve(command[0], command, _environment(options))  # noqa: S606 - our own module, and no shell


def _environment(options: Options) -> dict[str, str]:
    """What was said on this command line, for a process that reads its settings from the environment."""
    said = {
        "CPQ_HOME": str(options.home.expanduser()) if options.home else None,
        "CPQ_DATABASE_URL": options.database_url,
        "MCP_LOG_LEVEL": "DEBUG" if options.debug else None,
    }
    return {**os.environ, **{name: value for name, value in said.items() if value}}
