"""`cpq quote edit`: changes the lines and terms of a draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.quote_lines import TypedLine, given, product_line, term_options
from cpq.cli.quote_step import take, version_option
from cpq.domain.quotes.draft_changes import CLEARABLE
from cpq.domain.quotes.file_rows import SourceQuote, validate
from cpq.domain.quotes.quote import line_id
from cpq.services import quotes

LINE_NUMBER = click.IntRange(1, 10_000)


@click.command()
@click.argument("quote_id")
@click.option("--add", type=TypedLine("PRODUCT"), multiple=True, help="A new line; repeat it for more.")
@click.option(
    "--change",
    type=TypedLine("LINE"),
    multiple=True,
    help="Another quantity, discount and selling model.",
)
@click.option("--remove", type=LINE_NUMBER, multiple=True, metavar="LINE", help="The number of a line to remove.")
@click.option("--clear", type=click.Choice(CLEARABLE), multiple=True, help="A term to clear.")
@term_options
@version_option
@key_option
@as_option
@json_option
@pass_options
def edit(
    options: Options,
    /,
    quote_id: str,
    version: int | None,
    key: str | None,
    add: tuple[dict[str, Any], ...],
    change: tuple[dict[str, Any], ...],
    remove: tuple[int, ...],
    clear: tuple[str, ...],
    **terms: Any,
) -> None:
    """Change lines, terms or notes of a draft, as the tool quote_update does. Price it again afterwards.

    \b
    Example:
      cpq quote edit Q-06f3mv2k9e7d1xw2rjfb --change 1:200:5 --remove 3 --as rita
    """
    arguments = {"add": add, "change": change, "remove": remove, "clear": clear, **given(terms)}
    checked = _checked(add, change, given(terms))

    def work(tx: Tx, expected: int) -> Mapping[str, object]:
        id_ = quotes.get(tx, quote_id, include_pricing=False)["quote"]["id"]
        changes = quotes.Changes(
            terms={name: getattr(checked, name) for name in given(terms)},
            clear=clear,
            add_lines=[line._replace(number=0) for line in checked.lines[: len(add)]],
            change_lines=[
                (line_id(id_, int(typed["what"])), _values(typed, line))
                for typed, line in zip(change, checked.lines[len(add) :], strict=False)
            ],
            remove_lines=[line_id(id_, number) for number in remove],
        )
        return quotes.update(tx, quote_id, changes, expected_version=expected)

    take(options, "quote_update", quote_id, work, {**arguments, "expected_version": version}, key=key)


def _values(typed: Mapping[str, Any], line: quotes.DraftLine) -> dict[str, Any]:
    """The fields to set: the quantity, and what else was typed."""
    return {name: getattr(line, name) for name in ("quantity", "discount_pct", "selling_model") if name in typed}


def _checked(
    add: tuple[dict[str, Any], ...], change: tuple[dict[str, Any], ...], terms: dict[str, Any]
) -> quotes.Draft:
    """What was typed as values, by the rules of a row in a file: new lines first, then changed ones."""
    for line in change:
        if not line["what"].isdecimal():
            message = f"{line['what']!r} is not the number of a line; `cpq quote show` numbers them."
            raise CpqError(Code.VALIDATION_ERROR, message, field="--change")
    items = [product_line(line) for line in (*add, *change)]
    filler = {"product_id": "none", "quantity": 1}  # A quote of a file has at least one line.
    values = {"id": "new", "account_id": "none", **terms, "line_items": [*items, filler]}
    row, problems = validate(SourceQuote(1, values))
    if row is None:
        first = problems[0]
        raise CpqError(Code.VALIDATION_ERROR, f"{first.field}: {first.message}", field=first.field)
    return row.as_draft()
