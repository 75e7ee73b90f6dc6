"""`cpq quote`: lists, shows and prices quotes; further subcommands are in the files beside it."""

from __future__ import annotations

from typing import cast

import click
from pydantic import TypeAdapter, ValidationError

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable, to_micro
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.cli.quote_explain import diff, explain, show_trace
from cpq.cli.quote_replay import replay
from cpq.cli.quote_verify import verify
from cpq.domain.pricing.period_prices import in_words
from cpq.domain.quotes.file_rows import Percent
from cpq.services import catalog, quotes
from cpq.services.quotes.record import PricedSet, QuoteRecord, TracedLine
from cpq.services.quotes.views import PricedQuoteView, QuoteHeader, TaxGroupView

LIMIT_MAX = 1_000
LINE_COLUMNS = ("line", "product", "id", "quantity", "price of one", "subtotal", "discount", "%", "total")
LINE_NUMBERS = ("line", "quantity", "price of one", "subtotal", "discount", "%", "total")


@click.group()
def quote() -> None:
    """Show and price quotes, explain and prove their prices, and verify their PDFs.

    \b
    Example:
      cpq quote list --status draft
    """


for command in (explain, diff, replay, verify):
    quote.add_command(command)


@quote.command("list")
@click.option("--account", metavar="ID", help="Only quotes for this account.")
@click.option("--status", help="Only quotes with this status: draft, approved, sent …")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="Quotes per page.")
@click.option("--page", type=click.IntRange(1, 10**9), default=1, show_default=True, help="Number of the page, from 1.")
@json_option
@pass_options
def list_(options: Options, account: str | None, status: str | None, limit: int, page: int) -> None:
    """List quotes, newest first.

    \b
    Example:
      cpq quote list --account acct_acme_001 --status sent
    """

    def work(tx: Tx) -> Answer:
        if account is not None:
            catalog.get_account(tx, account)  # Unknown is an error here; a tool answers an empty list.
        return dict(quotes.list_quotes(tx, account_id=account, status=status, limit=limit, page=page))

    with local_app.opened(options) as app:
        answer = local_app.read(app, "quote_list", work, account_id=account, status=status, limit=limit, page=page)
    if options.as_json:
        show_json(answer)
        return
    columns = ("quote", "version", "account", "name", "status", "total", "", "valid until", "created")
    rows = [
        (
            item["id"],
            item["version"],
            item["account_id"],
            item["account_name"],
            item["status"],
            readable(item["total"], item["currency"]),
            item["currency"],
            item["valid_until"],
            to_wire(item["created_at"]),
        )
        for item in answer["items"]
    ]
    if rows:
        show_table(columns, rows, numbers=("version", "total"))
    where = answer["pagination"]
    more = f"; --page {page + 1} has more" if where["has_more"] else ""
    click.echo(f"{len(rows):,} of {where['total']:,} quotes{more}.")


@quote.command()
@click.argument("quote_id")
@click.option("--version", type=click.IntRange(1, 2**53), help="An earlier version. Default: the current one.")
@click.option("--trace", is_flag=True, help="Also show the pricing steps of each line.")
@json_option
@pass_options
def show(options: Options, quote_id: str, version: int | None, trace: bool) -> None:
    """Show a quote: terms, dates, lines, totals and hashes.

    \b
    Example:
      cpq quote show Q-06f3mv2k9e7d1xw2rjfb --trace
    """

    def work(tx: Tx) -> Answer:
        return dict(quotes.record_of(tx, quote_id, version=version))

    with local_app.opened(options) as app:
        found = cast("QuoteRecord", local_app.read(app, "quote_show", work, quote_id=quote_id, version=version))
    if options.as_json:
        show_json(found if trace else _without_steps(found))
        return
    _show_header(found)
    for one in found["option_sets"]:
        _show_set(one, found["quote"], trace=trace, is_alone=len(found["option_sets"]) == 1)
    click.echo()
    show_pairs([(f"{name} hash", value) for name, value in sorted(found["hashes"].items())])


def _percent(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return to_micro(TypeAdapter(Percent).validate_python(given.removesuffix("%")))
    except ValidationError:
        raise click.BadParameter(f"{given!r} is not a number from 0 to 100 with at most 6 decimals.") from None


@quote.command()
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


def _without_steps(found: QuoteRecord) -> Answer:
    sets = [
        {**one, "lines": [{name: value for name, value in line.items() if name != "steps"} for line in one["lines"]]}
        for one in found["option_sets"]
    ]
    return {**found, "option_sets": sets}


def _show_header(found: QuoteRecord) -> None:
    header = found["quote"]
    is_old = header["version"] != found["latest_version"]
    asked = found["requested_discount_pct"]
    priced_at = found["pricing"]["priced_at"]
    term = f"{header['term_months']} months" if header["term_months"] else None
    days = [str(day) for day in (header["start_date"], header["end_date"]) if day]
    pairs = [
        ("quote", header["id"]),
        ("status", header["status"] + (f": {found['reason']}" if found["reason"] else "")),
        (
            "version",
            f"{header['version']} of {found['latest_version']}" + ("" if is_old else f", edit {header['edit']}"),
        ),
        ("account", f"{header['account_name']} ({header['account_id']})"),
        ("deal", header["deal_id"]),
        ("term", ", ".join(filter(None, [term, " to ".join(days)])) or None),
        ("payment", header["payment_terms"]),
        ("created", f"{to_wire(header['created_at'])} by {header['created_by']}"),
        ("priced", to_wire(priced_at) if priced_at else "not yet"),
        ("requested discount", f"{asked} %" if asked else None),
        ("valid until", header["valid_until"]),
        ("notes", header["notes"]),
        ("tax note", header["tax_note"]),
    ]
    show_pairs(pairs)


def _show_set(one: PricedSet, header: QuoteHeader, *, trace: bool, is_alone: bool) -> None:
    currency, has_term = header["currency"], bool(header["term_months"] or header["end_date"])
    click.echo()
    if not is_alone or one["option_set"]:
        click.echo(f"Option set {one['option_set']}{', selected' if one['is_selected'] else ''}:")
    rows = [
        (
            line["number"],
            line["product_name"],
            line["product_id"],
            line["quantity"],
            _price_of_one(line, currency, has_term=has_term),
            readable(line["subtotal"], currency),
            readable(line["discount_amount"], currency),
            line["discount_pct"],
            readable(line["line_total"], currency),
        )
        for line in one["lines"]
    ]
    show_table(LINE_COLUMNS, rows, numbers=LINE_NUMBERS)
    click.echo()
    show_table(("", currency), _totals(one, currency), numbers=(currency,))
    if trace:
        click.echo()
        show_trace(one, currency)


def _price_of_one(line: TracedLine, currency: str, *, has_term: bool) -> str:
    """The price of a unit, for a recurring line the one for a period: never a term's price beside a period's name."""
    price, periods = line["unit_price_per_period"], line["periods"]
    if price is None or periods is None:
        return readable(line["unit_price"], currency)
    return in_words(readable(price, currency), line["billing_period"], periods, has_term=has_term)


def _tax_label(group: TaxGroupView) -> str:
    code = group["category_code"]
    return f"tax {code} ({group['category']})" if code else f"tax, {group['category']}"


def _totals(one: PricedSet, currency: str) -> list[tuple[str, str]]:
    """From the subtotal to the total; the other rows add up to the last one."""
    taxes = [
        (
            f"{_tax_label(group)}: {group['rate']} % of {readable(group['base'], currency)}",
            readable(group["tax"], currency),
        )
        for group in one["tax_groups"]
    ]
    return [
        ("subtotal", readable(one["subtotal"], currency)),
        ("discount", readable(-one["discount_total"], currency)),
        *taxes,
        ("total", readable(one["total"], currency)),
    ]
