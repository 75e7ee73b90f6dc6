"""`cpq catalog`: looks after the catalogue."""

from __future__ import annotations

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json
from cpq.services.catalog import model_review


@click.group("catalog")
def catalog_() -> None:
    """Check the options and rules of products.

    \b
    Example:
      cpq catalog check
    """


@catalog_.command()
@click.argument("product_ids", metavar="[PRODUCT_ID]...", nargs=-1)
@json_option
@pass_options
def check(options: Options, product_ids: tuple[str, ...]) -> int:
    """Find values that nobody can choose, products that cannot be sold, and rules that clash or say nothing.

    Each finding names the fewest sentences of the model that cause it. Exit code 1 when there is one.

    \b
    Example:
      cpq catalog check prod_qvs_series
    """
    with local_app.opened(options) as app, Meter("Checking products", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            return dict(model_review.review_models(tx, product_ids, meter))

        found = local_app.read(app, "catalog_check", work, product_ids=list(product_ids))
    if options.as_json:
        show_json(found)
    else:
        for finding in found["findings"]:
            click.echo(f"{finding['product_id']}: {finding['fault']}: {finding['message']}")
            for sentence in finding["because"]:
                click.echo(f"    because: {sentence}")
        findings = counted(len(found["findings"]), "finding")
        click.echo(f"{findings if found['findings'] else 'No findings'} in {counted(found['products'], 'product')}.")
    return 1 if found["findings"] else 0
