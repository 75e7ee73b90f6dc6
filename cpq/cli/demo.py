"""`cpq demo`: loads the sample data into an empty database and runs the demo."""

from __future__ import annotations

import click

from cpq.cli import local_app, mcp_process, sample_data
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, pass_options


@click.command()
@pass_options
def demo(options: Options) -> None:
    """Watch an MCP client use the real server over stdio, step by step.

    Uses the database of CPQ_HOME, and fills it with the sample data first if it is empty.

    \b
    Example:
      cpq --home /tmp/demo demo
    """
    _prepare(options)
    mcp_process.become(options, "mcp_facade.demo")


def _prepare(options: Options) -> None:
    settings = settings_of(options)
    if local_app.migrate(settings) is None:
        click.echo(f"Database {settings.database_name}: created.")
    with local_app.opened(options) as app:
        if sample_data.is_empty(app):
            sample_data.load(app)
            click.echo("Sample data: loaded.")
