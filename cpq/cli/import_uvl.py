"""`cpq import uvl`: loads a feature model as a configurable product, and reports what has no counterpart."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.base.row_problems import SourceRow
from cpq.cli import local_app
from cpq.cli.common_options import Options, example_option, json_option, pass_options
from cpq.cli.import_ import answer_of, show_report, shown_spans
from cpq.cli.output import counted, show_json, show_table
from cpq.domain.catalog.salesforce.identifiers import identifier
from cpq.domain.feature_models.feature_options import translate
from cpq.domain.feature_models.uvl import BYTES_MAX, read_uvl
from cpq.services import catalog


@click.command("uvl")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@example_option("model.uvl")
@click.option("--product", "product_id", metavar="ID", help="The id of the product. Default: the name of the root.")
@click.option("--name", metavar="TEXT", help="The name of the product. Default: the name of the root.")
@click.option("--category", metavar="ID", default="uncategorized", show_default=True, help="The product's category.")
@click.option("--dry-run", is_flag=True, help="Only translate and report; nothing is stored.")
@json_option
@pass_options
def import_uvl(
    options: Options, file: Path, product_id: str | None, name: str | None, category: str, dry_run: bool
) -> None:
    """Load a feature model in UVL (Universal Variability Language) as one configurable product.

    Each feature becomes an option; groups (mandatory, optional, or, alternative, [n..m]) and constraints between
    features become rules. A choice is valid by the product exactly if it is by the model. At the end stands what has no
    counterpart, with its line: values of typed features, feature cardinalities, attributes, arithmetic, imports.
    A product of the same id is replaced.

    \b
    Example:
      cpq import uvl car.uvl --product prod_car --category vehicles
    """
    row, losses, digest = _translated(file, product_id, name, category)
    if dry_run:
        answer: Answer = {"stored": False}
    else:
        with local_app.opened(options) as app:

            def work(tx: Tx) -> Answer:
                return answer_of(catalog.import_rows(tx, iter([SourceRow("products", 1, row)])))

            arguments = {"file": file.name, "sha256": digest, "product": row["id"]}
            answer = {"stored": True, **local_app.write(app, "import_uvl", work, arguments)}
    answer |= {"product_id": row["id"], "options": len(row["options"]), "rules": len(row["rules"]), "losses": losses}
    if options.as_json:
        show_json(answer)
        return
    if not dry_run:
        show_report(answer)
    _show(answer)


def _translated(
    file: Path, product_id: str | None, name: str | None, category: str
) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    if file.stat().st_size > BYTES_MAX:
        raise bad_field("FILE", f"{file.name} is larger than {BYTES_MAX // 1024**2} MB", maximum=BYTES_MAX)
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad_field("FILE", f"{file.name} is not UTF-8 text") from None
    model = read_uvl(file.name, text)
    product = translate(model)
    id_ = product_id or identifier(model.root.name)
    row = {
        "id": id_,
        "sku": id_[:64],
        "name": name or model.root.name,
        "category": category,
        "product_type": "configurable",
        "options": product.options,
        "rules": product.rules,
    }
    return row, [loss._asdict() for loss in product.losses], hashlib.sha256(content).hexdigest()


def _show(answer: Answer) -> None:
    together: dict[tuple[str, str], list[int]] = {}
    for loss in answer["losses"]:
        together.setdefault((loss["reason"], loss["part"]), []).append(loss["line"])
    if together:
        click.echo("\nWithout a counterpart:")
        rows = [(shown_spans(lines), part, reason) for (reason, part), lines in together.items()]
        show_table(("line", "part", "reason"), rows, numbers=("line",))
    parts = f"{counted(answer['options'], 'option')} and {counted(answer['rules'], 'rule')}"
    click.echo(f"{answer['product_id']}: {parts}; {counted(len(answer['losses']), 'part')} without a counterpart.")
    if not answer["stored"]:
        click.echo("A dry run: nothing was stored.")
