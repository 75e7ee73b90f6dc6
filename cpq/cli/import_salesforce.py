"""`cpq import salesforce`: loads the catalogue of a Salesforce export, and reports what became of each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.cli import local_app
from cpq.cli.common_options import Options, example_option, json_option, pass_options
from cpq.cli.import_ import SPANS_SHOWN_MAX, answer_of, show_report, shown_spans
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services.catalog import salesforce_folder, salesforce_importer

OUTCOMES = {"taken": "taken", "translated": "translated", "no_counterpart": "no counterpart"}


@click.command("salesforce")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@example_option("salesforce")
@click.option("--dry-run", is_flag=True, help="Only translate, check and report; nothing is stored.")
@click.option("--inactive-schedules", is_flag=True, help="Also take the adjustments of schedules that are not active.")
@json_option
@pass_options
def import_salesforce(options: Options, folder: Path, dry_run: bool, inactive_schedules: bool) -> None:
    """Load products, selling models, price books, tiers, rate cards, components and costs of a Salesforce export.

    DIR holds a CSV for each object (Product2.csv, PricebookEntry.csv, …), in any folders, with the columns that SFDMU
    writes. All or nothing, and loading an export again changes only what changed in it. At the end stands what became
    of every row of every file: taken, translated, or without a counterpart, with the reason. A JSON file may hold facts
    about constraint models (types, relations, domains, pairs of products). Every part of them is accounted for, too.
    Their statements are in Salesforce's own language, and have no counterpart. The standard price book
    becomes `list`. Taxes and accounts are in no such export: prices get the tax category `standard`.

    \b
    Example:
      cpq import salesforce export --dry-run
      cpq import salesforce export
    """
    try:
        answer = _imported(options, folder, dry_run, inactive_schedules)
    except CpqError as error:
        if not options.as_json:
            _show_problems(error)
        raise
    if options.as_json:
        show_json(answer)
        return
    if not dry_run:
        show_report(answer)
    _show_losses(answer["losses"], answer["other_files"])
    if dry_run:
        click.echo("A dry run: nothing was stored.")


def _imported(options: Options, folder: Path, is_dry: bool, with_inactive: bool) -> Answer:
    with local_app.opened(options) as app:
        with Meter(f"Reading {folder.name}", app.effects) as meter:
            read = salesforce_folder.read_folder(folder, meter)
        translation = salesforce_importer.translated(read.files, with_inactive_schedules=with_inactive)
        report = {"losses": salesforce_importer.loss_report(translation), "other_files": read.others}
        if is_dry:
            salesforce_importer.check_translation(translation)
            return {"stored": False, **report}
        with Meter(f"Importing {folder.name}", app.effects) as meter:

            def work(tx: Tx) -> Answer:
                return answer_of(salesforce_importer.import_translation(tx, translation, meter))

            arguments = {"folder": folder.name, "sha256": read.sha256, "inactive_schedules": with_inactive}
            return {"stored": True, **local_app.write(app, "import_salesforce", work, arguments), **report}


def _show_losses(losses: dict[str, Any], others: list[str]) -> None:
    rows = [(one["file"], one["rows"], *(one[name] for name in OUTCOMES)) for one in losses["files"] if one["rows"]]
    total = ("all files", losses["rows"], *(losses[name] for name in OUTCOMES))
    click.echo()
    numbers = ("rows", *OUTCOMES.values())
    show_table(("file", *numbers), [*rows, total], numbers=numbers)
    click.echo()
    reasons = [
        (OUTCOMES[one["outcome"]], one["file"], one["rows"], _few(one["lines"]), one["reason"])
        for one in losses["reasons"]
    ]
    show_table(("outcome", "file", "rows", "lines", "how or why"), reasons, numbers=("rows",))
    left_out = [
        (one["file"], column, count) for one in losses["files"] for column, count in one["columns_left_out"].items()
    ]
    if left_out:
        click.echo("\nColumns of rows that are here, whose values are not:")
        show_table(("file", "column", "rows"), left_out, numbers=("rows",))
    if others:
        click.echo(f"No tables, not read: {', '.join(others)}")
    click.echo(f"\n{counted(losses['rows'], 'row')} accounted for: {_by_outcome(losses)}.")
    _show_models(losses["constraint_models"])


def _show_models(models: dict[str, Any]) -> None:
    if not models["parts"]:
        return
    click.echo("\nParts of constraint models:")
    rows = [
        (OUTCOMES[one["outcome"]], one["model"], one["part"], one["parts"], one["reason"]) for one in models["reasons"]
    ]
    show_table(("outcome", "model", "part", "parts", "how or why"), rows, numbers=("parts",))
    click.echo(f"\n{counted(models['parts'], 'part')} of constraint models accounted for: {_by_outcome(models)}.")


def _by_outcome(counts: dict[str, Any]) -> str:
    return ", ".join(f"{counts[name]:,} {word}" for name, word in OUTCOMES.items())


def _few(lines: list[str]) -> str:
    return ", ".join([*lines[:SPANS_SHOWN_MAX], "…"] if len(lines) > SPANS_SHOWN_MAX else lines)


def _show_problems(error: CpqError) -> None:
    """Print each problem once, with all the lines of the file that have it."""
    together: dict[tuple[str, str, str], list[int]] = {}
    problems = error.details.get("problems")
    for problem in problems if isinstance(problems, list) else []:
        near = problem.get("nearest")
        reason = f"{problem['message']}; did you mean {near[0]}?" if near else str(problem["message"])
        together.setdefault((problem["file"], problem["field"], reason), []).append(problem["line"])
    rows = [(file, shown_spans(lines), field, reason) for (file, field, reason), lines in together.items()]
    if rows:
        show_table(("file", "line", "field", "reason"), rows, numbers=("line",), stream=sys.stderr)
