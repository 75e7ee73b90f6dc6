"""`cpq quote create`: a new draft from lines that are typed, or from a file that serves as a template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.row_files import read_mapping
from cpq.base.text import shown_on_one_line
from cpq.cli import local_app, next_command
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.output import show_json, show_table
from cpq.cli.quote_lines import TypedCommitment, TypedItem, TypedLine, commit, given, product_line, term_options
from cpq.cli.quote_step import show_next, wired
from cpq.cli.usage_lines import show_rate_cards
from cpq.domain.quotes.file_rows import SourceQuote, validate
from cpq.services import quotes


@click.command()
@click.option("--account", "account_id", metavar="ID", help="The customer, for example acct_acme_001.")
@click.option("--line", "lines", type=TypedLine("PRODUCT"), multiple=True, help="A line; repeat it for more lines.")
@click.option(
    "--custom",
    "items",
    type=TypedItem(),
    multiple=True,
    help="A line of no catalogue, such as Freight:1:480; a file can also give its cost and tax category.",
)
@click.option(
    "--commit",
    "committed",
    type=TypedCommitment(),
    multiple=True,
    help="What a line that is charged by use commits to for each period.",
)
@click.option(
    "--from",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML or JSON file with the arguments of quote_create; options replace its terms and add lines.",
)
@term_options
@key_option
@as_option
@json_option
@pass_options
def create(
    options: Options,
    /,
    lines: tuple[dict[str, Any], ...],
    items: tuple[dict[str, Any], ...],
    committed: tuple[tuple[str, dict[str, str]], ...],
    file: Path | None,
    key: str | None,
    **terms: Any,
) -> None:
    """Create a draft quote, as the tool quote_create does. Nothing is stored if anything is wrong.

    \b
    Example:
      cpq quote create --account acct_acme_001 --line prod_pro_v2:150 --term-months 12 --as rita
      cpq quote create --account acct_acme_001 --line prod_use_api:1 --commit prod_use_api:260000 --as rita
      cpq quote create --from renewal.yaml --account acct_acme_001 --as rita
    """
    values = {**(read_mapping(file) if file else {}), **given(terms)}
    values.pop("id", None)  # A template may be a copy of a quote; the new one gets an id of its own.
    values["line_items"] = [*(values.get("line_items") or []), *map(product_line, lines), *items]
    commit(values["line_items"], committed)
    draft = _draft(values)

    def work(tx: Tx) -> Answer:
        quotes.require_few_lines(draft.lines, tx.settings.quote_lines_max, "/line_items")
        return dict(quotes.create(tx, draft, idempotency_key=key))

    command = Command("quote_create", Permission.QUOTE, values, idempotency_key=key)
    with local_app.opened(options) as app:
        outcome = local_app.write_as_person(app, options, command, work)
    show_created(options, outcome.answer, is_replayed=outcome.replayed)


def show_created(options: Options, answer: Answer, *, is_replayed: bool) -> None:
    """Print a new quote: its id, its lines, and the next command."""
    if options.as_json:
        show_json({**answer, "replayed": is_replayed})
        return
    if is_replayed:
        click.echo("This quote was created before with the same key; nothing changed now.")
    currency, quote_id = str(answer["currency"]), str(answer["quote_id"])
    named = f"{answer['number']} ({quote_id})" if answer.get("number") else quote_id  # A replayed answer may be older.
    click.echo(f"Quote {named}, version {answer['version']}, {answer['status']}, for {answer['account_id']}:")
    rows = [
        (
            number,
            line["product_name"],
            line["quantity"],
            wired(line["unit_price"], currency),
            line["discount_pct"],
            wired(line["subtotal"], currency),
        )
        for number, line in enumerate(answer["line_items"], 1)
    ]
    columns = ("line", "product", "quantity", "unit price", "%", f"subtotal {currency}")
    show_table(columns, rows, numbers=(columns[0], *columns[2:]))
    show_rate_cards(answer["line_items"])
    for warning in answer.get("warnings") or ():
        click.echo(shown_on_one_line(f"Note: {warning}"))
    show_next(next_command.after(str(answer["status"]), quote_id, options.person))


def _draft(values: dict[str, Any]) -> quotes.Draft:
    """The draft, or every problem of what was typed and read."""
    row, problems = validate(SourceQuote(1, {"id": "new", **values}))
    if row is None:
        found = [{"field": f"/{one.field.replace('.', '/')}", "message": f"{one.message}"} for one in problems]
        first = found[0]
        message = f"{first['field']}: {first['message']}"
        raise CpqError(Code.VALIDATION_ERROR, message, field=first["field"], problems=found)
    return row.as_draft()
