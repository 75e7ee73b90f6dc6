"""`cpq import`: loads files into the database, all or nothing."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import click

from cpq.app import Answer, App
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.row_places import places
from cpq.base.row_problems import SourceRow, spans
from cpq.cli import local_app
from cpq.cli.common_options import Options, example_option, json_option, pass_options
from cpq.cli.lazy_group import LazyGroup
from cpq.cli.output import Meter, show_json, show_table
from cpq.retrieval import past_quotes
from cpq.services import catalog, quotes

WARNINGS_SHOWN_MAX = 20
SPANS_SHOWN_MAX = 8
_file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_sheet_option = click.option("--sheet", metavar="NAME", help="The sheet of a workbook. Default: the first one.")


IMPORT_COMMANDS = {
    "guides": ("cpq.cli.import_guides:import_guides", "Load guides for guided selling."),
    "uvl": ("cpq.cli.import_uvl:import_uvl", "Load a feature model in UVL as a configurable product."),
    "salesforce": ("cpq.cli.import_salesforce:import_salesforce", "Load the catalogue of a Salesforce export."),
}


@click.group("import", cls=LazyGroup, lazy=IMPORT_COMMANDS)
def import_() -> None:
    """Load products, prices, accounts or quotes from a CSV, Excel (.xlsx), JSON, JSON Lines or YAML file, or a folder.

    All or nothing: with one invalid row nothing is changed, and every invalid row is listed. Loading a file again
    changes only what changed in the file. A CSV may have commas, semicolons or tabs between its columns. Numbers may
    have separators where they mean one thing only: 1,234.50, 1.234,50, 1 234 and 1,5; 1,234 alone is refused.
    Every import writes a small valid file with --example.

    \b
    Example:
      cpq import catalog --example products.csv
      cpq import catalog products.csv
    """


@import_.command("catalog")
@_file_argument
@example_option("catalog.csv", "catalog.yaml")
@_sheet_option
@json_option
@pass_options
def import_catalog(options: Options, file: Path, sheet: str | None) -> None:
    """Load products and their categories. A CSV or a bare list holds products.

    A product has id, sku, name, category; it may have description, product_type (simple, configurable, bundle,
    service), active, unit, quantity_decimals (up to 3, for hours or metres), default_selling_model, and in a CSV the
    columns spec.NAME and attribute.NAME; specs, attributes, options, rules, recommend, relationships and bundle hold
    JSON. name.de and description.pt-BR are names and descriptions in other languages, for documents of that locale,
    else of its language; in options label.de and values.de ({"red": "rot"}), in categories name.de. A row is the whole
    product: what it leaves out, translations too, is removed. A category is created when a product first names it; one
    with specs or translations is declared under categories of a JSON or YAML file. Prices have a file of their own.

    \b
    Example:
      cpq import catalog products.csv
    """
    _import(options, "catalog", file, sheet, section="products")


@import_.command("prices")
@_file_argument
@example_option("prices.csv")
@_sheet_option
@json_option
@pass_options
def import_prices(options: Options, file: Path, sheet: str | None) -> None:
    """Load prices, and price books from a section of that name. A CSV or a bare list holds prices.

    A price has product_id, currency, unit_price, and either price_book (`list` is the standard one) or account_id,
    when it is agreed with one customer. It may have id, billing_period (one_time, weekly, monthly, quarterly,
    half_yearly, yearly, or a number such as 2_weeks, 18_months), selling_model (one_time, term, evergreen: without
    an end, usage: a rate card with unit, minimum_spend and maximum_spend, whose free_quantity is included in each
    period), a name that keeps two prices of one period apart, cost, valid_from, valid_to, priority, tax_category,
    tax_included, tier_mode (none, volume, graduated, package), package_size, free_quantity, quantity_scope (line,
    quote), billed (advance, arrears), and cancellation_credit (none, prorated, full_periods: what a cancelled line
    gives back); tiers and surcharges hold JSON. Without cost the margin is unknown, and the policies may require
    approval for that.

    \b
    Example:
      cpq import prices prices.csv
    """
    _import(options, "prices", file, sheet, section="prices")


@import_.command("accounts")
@_file_argument
@example_option("accounts.csv")
@_sheet_option
@json_option
@pass_options
def import_accounts(options: Options, file: Path, sheet: str | None) -> None:
    """Load the accounts that quotes are made for. A CSV or a bare list holds accounts.

    An account has id, name, segment, region, country (DE, US), tax_zone (`cpq policy show` lists them); it may have
    currency, price_book, tax_status (taxable, exempt, reverse_charge) with tax_note, locale, time_zone, contact,
    address, tax_id, purchase_order (a standing one, which every document prints), active.

    \b
    Example:
      cpq import accounts accounts.yaml
    """
    _import(options, "accounts", file, sheet, section="accounts")


@import_.command("quotes")
@_file_argument
@example_option("quotes.csv", history="history.csv")
@_sheet_option
@click.option(
    "--history",
    is_flag=True,
    is_eager=True,  # The option --example looks at it, wherever it stands.
    help="Load past quotes for search, as they were written; nothing is priced.",
)
@json_option
@pass_options
def import_quotes(options: Options, file: Path, sheet: str | None, history: bool) -> None:
    """Load quotes as priced drafts, or past quotes as history.

    A CSV has a row for each line; the rows of a quote follow each other: id (your own; it becomes the quote's),
    account_id, currency, term_months, start_date, end_date, deal_id, payment_terms, quote_notes; product_id,
    quantity, discount_pct, notes, option_set, attribute.NAME, ramp, selling_model, billing_period, custom (JSON,
    instead of product_id), commitment (JSON), expected_quantity. Columns of the quote are needed in its first row
    only. In the other formats a quote may hold its lines in line_items. A draft that differs is updated.

    With --history the columns are id (the quote's number), customer, project, quoted_on, currency, outcome (won, lost,
    open, unknown), salesperson, quote_notes; category, description, quantity, unit_price, model, product_id. They are
    stored word for word for search_line_items and search_past_quotes, and never used as current prices.

    \b
    Example:
      cpq import quotes quotes.csv
      cpq import quotes --history archive.csv
    """
    _import(options, "history" if history else "quotes", file, sheet, section="quotes")


def load_file(app: App, kind: str, file: Path, section: str, sheet: str | None = None) -> Answer:
    """Import one file as the command `import_<kind>`, with a progress meter; the counts by kind of row."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    with Meter(f"Importing {file.name}", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            return answer_of(_taker(kind)(tx, catalog.read_rows(file, section, meter, sheet=sheet)))

        try:
            return local_app.write(app, f"import_{kind}", work, {"file": file.name, "sha256": digest, "sheet": sheet})
        except CpqError as error:
            if problems := _problems(error):
                columns = catalog.columns_of(file)
                for problem in problems:
                    problem["field"] = columns.get(problem["field"], problem["field"])
                if file.suffix.lower() in (".yaml", ".yml"):
                    _place(problems, file)
            raise


def _place(problems: list[dict[str, Any]], file: Path) -> None:
    """Replace the line of each row by the line and column of what the problem names."""
    found = places(file, ((problem["line"], problem["field"]) for problem in problems))
    for problem in problems:
        if place := found.get((problem["line"], problem["field"])):
            problem["line"], problem["column"] = place
    problems.sort(key=lambda problem: problem["line"])


def answer_of(report: catalog.ImportReport) -> Answer:
    return {
        "created": dict(report.created),
        "updated": dict(report.updated),
        "unchanged": dict(report.unchanged),
        "also_created": report.also_created,
        "warnings": report.warnings,
    }


def _taker(kind: str) -> Callable[[Tx, Iterator[SourceRow]], catalog.ImportReport]:
    """What takes the rows of this kind; the others are not even imported."""
    if kind == "history":
        return past_quotes.import_history
    return quotes.import_quotes if kind == "quotes" else catalog.import_rows


def show_report(*reports: Answer) -> None:
    """Print what imports did, a line for each kind of row."""
    changes = ("created", "updated", "unchanged")
    rows = [
        (kind.replace("_", " "), *(report[change].get(kind, 0) for change in changes))
        for report in reports
        for kind in report["unchanged"]
    ]
    show_table(("", *changes), rows, numbers=changes)
    if also := [name for report in reports for name in report["also_created"]]:
        click.echo(f"also created: {', '.join(also)}")
    warnings = [warning for report in reports for warning in report["warnings"]]
    for warning in warnings[:WARNINGS_SHOWN_MAX]:
        click.echo(f"warning: {warning}", err=True)
    if len(warnings) > WARNINGS_SHOWN_MAX:
        click.echo(f"and {len(warnings) - WARNINGS_SHOWN_MAX:,} more warnings; --json lists them", err=True)


def _import(options: Options, kind: str, file: Path, sheet: str | None, *, section: str) -> None:
    with local_app.opened(options) as app:
        try:
            report = load_file(app, kind, file, section, sheet)
        except CpqError as error:
            if not options.as_json:
                _show_problems(file, error)
            raise
    if options.as_json:
        show_json(report)
        return
    show_report(report)
    if kind == "quotes" and (report["created"] or report["updated"]):
        click.echo("Next: `cpq quote price ID` prices a draft exactly and checks it against the policies.")


def _problems(error: CpqError) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", error.details.get("problems", []))


def _show_problems(file: Path, error: CpqError) -> None:
    """Print each problem once, with all the lines that have it."""
    together: dict[tuple[object, str, str], list[int]] = {}
    for problem in _problems(error):
        together.setdefault((problem.get("column"), problem["field"], _reason(problem)), []).append(problem["line"])
    rows = [
        (shown_spans(lines), column, field, reason + (f" ({len(lines):,} rows)" if len(lines) > 1 else ""))
        for (column, field, reason), lines in together.items()
    ]
    if rows:
        click.echo(f"{file.name}:", err=True)
        names, numbers = ("line", "column", "field", "reason"), ("line", "column")
        if any(column for _, column, *_ in rows):
            show_table(names, rows, numbers=numbers, stream=sys.stderr)
        else:
            show_table((names[0], *names[2:]), [(row[0], *row[2:]) for row in rows], numbers=numbers, stream=sys.stderr)


def shown_spans(lines: Sequence[int]) -> str:
    """Lines for a table: `2-4, 9`, and a sign when there are more."""
    shown = spans(lines)
    return ", ".join([*shown[:SPANS_SHOWN_MAX], "…"] if len(shown) > SPANS_SHOWN_MAX else shown)


def _reason(problem: dict[str, Any]) -> str:
    near = problem.get("nearest")
    return f"{problem['message']}; did you mean {near[0]}?" if near else str(problem["message"])
