"""`cpq init`: creates or migrates the database, and loads the sample data."""

from __future__ import annotations

import click

from cpq.cli import local_app, sample_data
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, pass_options
from cpq.cli.import_ import show_report
from cpq.storage import distribution
from cpq.storage.schema import SCHEMA_VERSION


@click.command()
@click.option(
    "--sample",
    is_flag=True,
    help="If the catalogue is empty, also load a demo catalogue with prices, accounts and past quotes.",
)
@click.option(
    "--distribute",
    is_flag=True,
    help="Spread the tables by tenant over the workers of Citus; again after each upgrade.",
)
@pass_options
def init(options: Options, sample: bool, distribute: bool) -> None:
    """Create the database, or migrate it to the newest schema. Safe to repeat.

    \b
    Example:
      cpq init --sample
    """
    settings = settings_of(options)
    before = local_app.migrate(settings)
    what = {None: "created", SCHEMA_VERSION: "already up to date"}.get(
        before, f"migrated from {before} to the newest schema"
    )
    click.echo(f"Database {settings.database_name}: {what} ({SCHEMA_VERSION}).")
    if distribute:
        placed = distribution.distribute(settings)
        click.echo(f"{placed} tables placed on the workers." if placed else "All tables are on the workers already.")
    if sample:
        with local_app.opened(options) as app:
            if sample_data.is_empty(app):
                show_report(*sample_data.load(app))
            else:
                click.echo("It already has products, so the sample data is not loaded.")
    else:
        click.echo("Next: `cpq init --sample` loads demo data, `cpq import catalog FILE` your own.")
