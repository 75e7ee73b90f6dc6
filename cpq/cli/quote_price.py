"""`cpq quote price`: prices a quote, and says which approvals it needs."""

from __future__ import annotations

from typing import cast

import click
from pydantic import TypeAdapter, ValidationError

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable, to_micro
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.domain.quotes.file_rows import Percent
from cpq.services import quotes
from cpq.services.quotes.views import PricedQuoteView


def _percent(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return to_micro(TypeAdapter(Percent).validate_python(given.removesuffix("%")))
    except ValidationError:
        raise click.BadParameter(f"{given!r} is not a number from 0 to 100 with at most 6 decimals.") from None


@click.command()
@click.argument("quote_id")
@click.option(
    "--discount",
    metavar="PERCENT",
    callback=_percent,
    help="Discount on the whole quote, on top of line discounts, from 0 to 100. Default: as requested before.",
)
@json_option
@pass_options
def price(options: Options, quote_id: str, discount: int | None) -> None:
    """Price a quote exactly and check it against the policies, as the tool quote_price does.

    A draft stores the result. Any other quote is only evaluated and stays unchanged.

    \b
    Example:
      cpq quote price D-2041 --discount 7.5
    """

    priced: list[PricedQuoteView] = []

    def work(tx: Tx) -> Answer:
        priced.append(quotes.price(tx, quote_id, requested_discount=discount))
        return dict(priced[-1])

    with local_app.opened(options) as app:
        arguments = {"quote_id": quote_id, "requested_discount_pct": discount}
        answer = local_app.write(app, "quote_price", work, arguments, subject=quote_id)
        if options.as_json:
            show_json(answer)
            return
        found = local_app.read(app, "quote_get", lambda tx: quotes.get(tx, quote_id, include_pricing=False))
    _show_priced(priced[-1], found["quote"]["currency"])  # The amounts of the answer are converted for JSON.


def _show_priced(priced: PricedQuoteView, currency: str) -> None:
    names = {"subtotal": "subtotal", "discount_total": "discount", "tax_total": "tax", "total": "total"}
    pricing = cast("Answer", priced["pricing"])
    show_pairs(
        [
            ("quote", priced["quote_id"]),
            ("status", priced["status"]),
            ("version", f"{priced['version']}, edit {priced['edit']}"),
            *((label, f"{readable(pricing[name], currency)} {currency}") for name, label in names.items()),
        ]
    )
    click.echo()
    violations = priced["policy_violations"]
    if violations:
        columns = ("", "asks for", "policy", "why")
        rows = [
            (one["severity"], one["required_approver_role"], one["policy_id"], one["description"]) for one in violations
        ]
        show_table(columns, rows)
        click.echo()
    click.echo(_next_step(priced))


def _next_step(priced: PricedQuoteView) -> str:
    id_ = priced["quote_id"]
    if not priced["stored"]:
        return f"Only evaluated: {id_} is {priced['status']} and stays unchanged."
    if any(one["severity"] == "block" for one in priced["policy_violations"]):
        return "A policy blocks the quote, and no approval can allow it: change the quote, then price it again."
    if priced["approval_required"]:
        return "Next: the tool approval_request asks for the approvals; `cpq approvals list` shows them."
    return f"No approval is needed. Next: `cpq export quote {id_} --output {id_}.pdf`."
