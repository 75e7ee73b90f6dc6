"""`cpq quote explain` and `cpq quote diff`: explains a price, and compares two versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.money import Amount, readable
from cpq.base.text import shown_on_one_line
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import counted, show_json, show_table
from cpq.services import quotes
from cpq.services.quotes.record import PricedSet, WaterfallStep
from cpq.services.quotes.review import FieldChange, LineChange, WaterfallStage

VERSION = click.IntRange(1, 2**53)
MONEY = {"subtotal", "discount_total", "tax_total", "total", "unit_price", "line_total"}


@click.command()
@click.argument("quote_id")
@click.option("--version", type=VERSION, help="An earlier version. Default: the current one.")
@json_option
@pass_options
def explain(options: Options, quote_id: str, version: int | None) -> None:
    """Explain a price: from list price to total, the steps of each line, and the approvals it needs.

    \b
    Example:
      cpq quote explain Q-06f3mv2k9e7d1xw2rjfb
    """

    def work(tx: Tx) -> Answer:
        review = quotes.review_version(tx, quote_id, version=version)
        header = review["quote"]
        return {
            "quote_id": header["id"],
            "version": header["version"],
            "account_name": header["account_name"],
            "currency": header["currency"],
            "waterfall": review["waterfall"],
            "tax_groups": review["tax_groups"],
            "policy_violations": review["policy_violations"],
            "option_sets": quotes.record_of(tx, quote_id, version=version)["option_sets"],
        }

    with local_app.opened(options) as app:
        found = local_app.read(app, "quote_explain", work, quote_id=quote_id, version=version)
    if options.as_json:
        show_json(found)
        return
    currency = found["currency"]
    click.echo(f"{found['quote_id']}, version {found['version']}, for {shown_on_one_line(found['account_name'])}:\n")
    rows = [_row(stage, currency) for stage in found["waterfall"]]
    show_table(("stage", "by", currency), rows, numbers=("by", currency))
    for one in found["option_sets"]:
        name = f" of option set {one['option_set']}{', selected' if one['is_selected'] else ''}"
        click.echo(f"\nThe lines{name if one['option_set'] else ''}, step by step:\n")
        show_trace(one, currency)
    reasons = found["policy_violations"]
    click.echo("\nWhat the policies say now:" if reasons else "\nNo policy asks for an approval.")
    for reason in reasons:
        click.echo(f"- {shown_on_one_line(reason['description'])}")


@click.command()
@click.argument("quote_id")
@click.option("--from", "before", type=VERSION, help="The earlier version. Default: the one before --to.")
@click.option("--to", "after", type=VERSION, help="The later version. Default: the current one.")
@json_option
@pass_options
def diff(options: Options, quote_id: str, before: int | None, after: int | None) -> None:
    """Compare two versions of a quote: totals, terms and lines.

    \b
    Example:
      cpq quote diff Q-06f3mv2k9e7d1xw2rjfb --from 1 --to 3
    """

    def work(tx: Tx) -> Answer:
        later = quotes.get(tx, quote_id, version=after, include_pricing=False)["quote"]["version"]
        earlier = before or later - 1
        if not earlier:
            message = f"Version {later} of quote {quote_id} is the first version; there is no earlier one."
            raise CpqError(Code.VALIDATION_ERROR, message, field="--from", hint="Name one with --from, or revise it.")
        return dict(quotes.compare(tx, quote_id, before=earlier, after=later))

    with local_app.opened(options) as app:
        found = local_app.read(app, "quote_diff", work, quote_id=quote_id, before=before, after=after)
    if options.as_json:
        show_json(found)
        return
    currency = found["currency"]
    rows = [_change("", change, currency) for change in [*found["totals"], *found["terms"]]]
    rows += [row for line in found["lines"] for row in _line_rows(line, currency)]
    versions = f"version {found['before']} to {found['after']}"
    if not rows:
        click.echo(f"Nothing that a customer would see is different from {versions}.")
        return
    show_table(("", f"version {found['before']}", f"version {found['after']}"), rows)
    unseen = found["lines_total"] - len(found["lines"])
    more = f"; {counted(unseen, 'more line')} not shown" if unseen else ""
    click.echo(f"{counted(len(rows), 'difference')} from {versions}{more}.")


def show_trace(one: PricedSet, currency: str) -> None:
    """Print the pricing steps of each line."""
    columns = ("line", "stage", "for", "by", "according to", "amount")
    rows = [
        (
            line["number"] if position == 0 else None,
            step["stage"],
            step["part"],
            _by(step, currency),
            step["source"],
            readable(step["amount"], currency),
        )
        for line in one["lines"]
        for position, step in enumerate(line["steps"])
    ]
    show_table(columns, rows, numbers=("line", "by", "amount"))


def _by(step: WaterfallStep, currency: str) -> str | None:
    value: Amount | None = step["value"]
    if value is None:
        return None
    if step["unit"] == "amount":
        return readable(value, currency)
    return f"{value:,} {'%' if step['unit'] == 'percent' else step['unit']}"


def _row(stage: WaterfallStage, currency: str) -> tuple[str, str, str]:
    written = readable(stage["amount"], currency)
    return (stage["stage"], "", written) if stage["is_level"] else (stage["stage"], written, "")


def _line_rows(line: LineChange, currency: str) -> Iterator[tuple[str, Any, Any]]:
    named = f"line {line['number']}, {line['product_name']}"
    if line["kind"] == "changed":
        yield from (_change(f"{named}: ", change, currency) for change in line["changes"])
    else:
        total = _value("line_total", line["changes"][0]["after"], currency)
        yield (named, total, "removed") if line["kind"] == "removed" else (named, "not there", total)


def _change(of: str, change: FieldChange, currency: str) -> tuple[str, Any, Any]:
    field = change["field"]
    values = (_value(field, change[side], currency) for side in ("before", "after"))
    return (f"{of}{field.removesuffix('_pct').replace('_', ' ')}", *values)


def _value(field: str, value: Any, currency: str) -> Any:
    if value is None:
        return "-"
    return readable(value, currency) if field in MONEY else f"{value} %" if field.endswith("_pct") else value
