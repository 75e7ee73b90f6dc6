"""`cpq agreements verify`: proves stored agreements by folding their orders again."""

from __future__ import annotations

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services import agreements

SHOWN = ("agreement_id", "column", "stored", "folded")


@click.command()
@click.argument("agreement_id", required=False)
@json_option
@pass_options
def verify(options: Options, agreement_id: str | None) -> int:
    """Fold agreements again from their orders, and compare with what is stored. Exit code 1 when something differs.

    \b
    Example:
      cpq agreements verify
    """
    with local_app.opened(options) as app, Meter("Folding agreements", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            return dict(agreements.verify(tx, agreement_id, meter))

        found = local_app.read(app, "agreement_verify", work, agreement_id=agreement_id)
    if options.as_json:
        show_json(found)
        return 1 if found["differences"] else 0
    checked = f"{counted(found['agreements'], 'agreement')} of {counted(found['orders'], 'order')}"
    if not found["differences"]:
        click.echo(f"Proven: {checked}. Every stored state is what its orders make it.")
        return 0
    show_table(SHOWN, [[one[name] for name in SHOWN] for one in found["differences"]])
    click.echo(f"{counted(len(found['differences']), 'difference')} in {checked}.")
    return 1
