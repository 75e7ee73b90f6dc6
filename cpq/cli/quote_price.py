"""`cpq quote price`: prices a quote, and says which approvals it needs."""

from __future__ import annotations

from typing import cast

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, key_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.cli.quote_lines import MoneyType, PercentType
from cpq.cli.usage_lines import show_rate_cards
from cpq.services import quotes
from cpq.services.quotes.views import PricedQuoteView


@click.command()
@click.argument("quote_id")
@click.option(
    "--discount",
    type=PercentType(),
    help="Discount on the whole quote, on top of line discounts, from 0 to 100. Default: as requested before.",
)
@click.option("--amount", type=MoneyType(), help="The same as an amount without tax, instead of --discount.")
@click.option("--target", type=MoneyType(), help="The total with tax to reach, by the smallest discount.")
@click.option("--dry-run", is_flag=True, help="Only show the price: store nothing.")
@key_option
@click.option("--as", "person", metavar="NAME", help="The person who prices it. Default: the operator.")
@json_option
@pass_options
def price(
    options: Options,
    /,
    quote_id: str,
    discount: int | None,
    amount: int | None,
    target: int | None,
    dry_run: bool,
    key: str | None,
    person: str | None,
) -> None:
    """Price a quote exactly and check it against the policies, as the tool quote_price does.

    A draft stores the result, unless it is a dry run. Any other quote is only evaluated and stays unchanged.

    \b
    Example:
      cpq quote price D-2041 --discount 7.5
    """
    if [discount, amount, target].count(None) < 2:
        raise click.UsageError("Give one of --discount, --amount and --target.")
    options.person, options.subject = person, quote_id
    requested = {"requested_discount": discount, "requested_amount": amount, "target_total": target}
    priced: list[PricedQuoteView] = []

    def work(tx: Tx) -> Answer:
        priced.append(quotes.price(tx, quote_id, **requested, dry_run=dry_run))
        return dict(priced[-1])

    with local_app.opened(options) as app:
        id_ = local_app.quote_id(app, quote_id)
        arguments = {"quote_id": id_, "requested_discount_pct": discount, "dry_run": dry_run}
        arguments |= {"requested_discount_amount": amount, "target_total": target}
        needs = Permission.QUOTE if person else Permission.ADMINISTER
        command = Command("quote_price", needs, arguments, idempotency_key=key, subject=id_)
        principal = local_app.person(app, options, person) if person else app.operator
        answer = app.write(app.new_call(principal), command, work).answer
        if not priced and not options.as_json:
            click.echo("This was done before with the same key; nothing changed now.")
            return
        if options.as_json:
            show_json(answer)
            return
        found = local_app.read(app, "quote_get", lambda tx: quotes.get(tx, quote_id, include_pricing=False))
    _show_priced(priced[-1], person, found["quote"]["currency"])  # The amounts of the answer are converted for JSON.


def _show_priced(priced: PricedQuoteView, person: str | None, currency: str) -> None:
    names = {"subtotal": "subtotal", "discount_total": "discount", "tax_total": "tax", "total": "total"}
    pricing = cast("Answer", priced["pricing"])
    show_pairs(
        [
            ("quote", priced["quote_id"]),
            ("number", priced["number"]),
            ("status", priced["status"]),
            ("version", f"{priced['version']}, edit {priced['edit']}"),
            ("requested discount", _requested(priced, currency)),
            *((label, f"{readable(pricing[name], currency)} {currency}") for name, label in names.items()),
        ]
    )
    show_rate_cards(priced["line_pricing"])
    click.echo()
    violations = priced["policy_violations"]
    if violations:
        columns = ("", "asks for", "policy", "why")
        rows = [
            (one["severity"], one["required_approver_role"], one["policy_id"], one["description"]) for one in violations
        ]
        show_table(columns, rows)
        click.echo()
    click.echo(_next_step(priced, person))


def _requested(priced: PricedQuoteView, currency: str) -> str:
    off = priced.get("requested_discount_amount")
    return f"{priced['requested_discount_pct']} %" if off is None else f"{readable(off, currency)} {currency}"


def _next_step(priced: PricedQuoteView, person: str | None) -> str:
    id_, as_ = priced["quote_id"], f"--as {person or 'NAME'}"
    if not priced["stored"]:
        return f"{priced['message']}\n{_way_to_store(priced, as_)}"
    if any(one["severity"] == "block" for one in priced["policy_violations"]):
        return "A policy blocks the quote, and no approval can allow it: change the quote, then price it again."
    if priced["approval_required"]:
        return f"Next: cpq quote request {id_} --why TEXT {as_}"
    return (
        f"No approval is needed. Next: `cpq export quote {id_} --output {id_}.pdf`,\n"
        f"then, when it has gone out: cpq quote send {id_} {as_}"
    )


def _way_to_store(priced: PricedQuoteView, as_: str) -> str:
    id_, off = priced["quote_id"], priced.get("requested_discount_amount")
    discount = f"--discount {priced['requested_discount_pct']}" if off is None else f"--amount {off}"
    return {
        "quote_price": f"Next: cpq quote price {id_} {discount} {as_}",
        "quote_revise": f"Next: cpq quote revise {id_} {as_}",
        "quote_clone": f"Next: cpq quote clone {id_} {as_}",
    }[priced["next_call"]["tool"]]
