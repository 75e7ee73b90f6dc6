"""`cpq repair`: restores what can be made from the rest of the data."""

from __future__ import annotations

import click

from cpq.app import Command
from cpq.app.access import Permission
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_json, show_table
from cpq.services import documents
from cpq.services.catalog import index_repair


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Write the word index again even if it looks whole.")
@json_option
@pass_options
def repair(options: Options, is_all: bool) -> int:
    """Restore lost or damaged indexes and documents from the stored data. Exit code 1 when something stays lost.

    The word index of the catalogue is written from the products. A document whose file is lost or changed is rendered
    again; it comes back only with the same bytes. Missing vectors are computed by `cpq search index`. Prices, quotes
    and approvals are not derived from anything: those come from a backup.

    \b
    Example:
      cpq repair
    """
    command = Command("repair", Permission.ADMINISTER)
    local_app.require_all_tenants(options)
    with local_app.opened(options) as app, app.admitted(app.new_call(app.operator), command):
        indexed = 0
        if is_all or not index_repair.is_whole(app):
            with Meter("Writing the word index", app.effects) as meter:
                indexed = index_repair.rebuild(app, meter)
        with Meter("Rendering documents", app.effects) as meter:
            restored, lost = documents.restore_files(app, meter)
    if options.as_json:
        show_json({"products_indexed": indexed, "documents_restored": restored, "documents_lost": lost})
    else:
        index = f"written again for {indexed:,} products" if indexed else "is whole"
        files = f"{restored:,} rendered again" + (f", {lost:,} cannot be: their design has changed" if lost else "")
        show_table(("checked", "result"), [("word index", index), ("documents", files)])
    return 1 if lost else 0
