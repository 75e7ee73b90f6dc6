"""`cpq demo`: loads the sample data into an empty database and runs the demo."""

from __future__ import annotations

import click

from cpq.cli import local_app, mcp_process, sample_data
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, json_option, pass_options


@click.command()
@click.option("--fast", is_flag=True, help="Do not pause between the steps.")
@json_option
@pass_options
def demo(options: Options, *, fast: bool) -> None:
    """Watch a deal from the first question to the second order: a real MCP client uses the real server over stdio.

    Uses the database of CPQ_HOME, and fills it with the sample data first if it is empty.

    \b
    Example:
      cpq --home /tmp/demo demo --fast
    """
    _prepare(options)
    flags = {"--fast": fast, "--json": options.as_json}
    mcp_process.become(options, "mcp_facade.demo", *(flag for flag, is_given in flags.items() if is_given))


def _prepare(options: Options) -> None:
    settings = settings_of(options)
    if local_app.migrate(settings) is None:
        click.echo(f"Database {settings.database_name}: created.", err=True)
    with local_app.opened(options) as app:
        if sample_data.is_empty(app):
            sample_data.load(app)
            click.echo("Sample data: loaded.", err=True)
