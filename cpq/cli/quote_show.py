"""`cpq quote show`: a quote with its terms, dates, lines, totals and hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import click

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.cli.quote_explain import show_trace
from cpq.cli.usage_lines import show_rate_cards
from cpq.domain.pricing.period_prices import in_words
from cpq.domain.pricing.selling_models import is_evergreen
from cpq.services import quotes
from cpq.services.quotes.record import PricedSet, QuoteRecord, TracedLine
from cpq.services.quotes.seller_views import SourceView
from cpq.services.quotes.views import QuoteHeader, TaxGroupView

LINE_COLUMNS = ("line", "product", "id", "quantity", "price of one", "subtotal", "discount", "%", "total")
LINE_NUMBERS = ("line", "quantity", "price of one", "subtotal", "discount", "%", "total")


@click.command()
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
    _show_internal(found)
    for one in found["option_sets"]:
        _show_set(one, found["quote"], trace=trace, is_alone=len(found["option_sets"]) == 1)
    click.echo()
    show_pairs([(f"{name} hash", value) for name, value in sorted(found["hashes"].items())])


def _without_steps(found: QuoteRecord) -> Answer:
    sets = [
        {**one, "lines": [{name: value for name, value in line.items() if name != "steps"} for line in one["lines"]]}
        for one in found["option_sets"]
    ]
    return {**found, "option_sets": sets}


def _show_header(found: QuoteRecord) -> None:
    header = found["quote"]
    is_old = header["version"] != found["latest_version"]
    asked, off = found["requested_discount_pct"], found.get("requested_discount_amount")
    requested = f"{asked} %" if asked else f"{readable(off, header['currency'])} {header['currency']}" if off else None
    priced_at = found["pricing"]["priced_at"]
    term = f"{header['term_months']} months" if header["term_months"] else None
    days = [str(day) for day in (header["start_date"], header["end_date"]) if day]
    pairs = [
        ("quote", header["id"]),
        ("number", header["number"]),
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
        ("owner", header["owner"]),
        ("priced", to_wire(priced_at) if priced_at else "not yet"),
        ("requested discount", requested),
        ("valid until", header["valid_until"]),
        ("notes", header["notes"]),
        ("tax note", header["tax_note"]),
    ]
    show_pairs(pairs)


def _show_internal(found: QuoteRecord) -> None:
    """What only the seller reads of the quote and its lines: notes, marks for review, and sources."""
    parts: list[tuple[str, Mapping[str, Any]]] = [("quote", found["quote"])]
    parts += [(f"line {line['line_id'].rpartition('-')[2]}", line) for line in found["line_items"]]
    rows = []
    for place, part in parts:
        rows += [(place, "note", part["internal_notes"])] if "internal_notes" in part else []
        rows += [(place, "why this price", part["price_reason"])] if "price_reason" in part else []
        rows += [(place, f"review, {mark['state']}", mark["text"]) for mark in part.get("review", ())]
        rows += [(place, "source", _source(source)) for source in part.get("sources", ())]
    if rows:
        click.echo()
        click.echo("For the seller only:")
        show_table(("place", "what", "text"), rows)


def _source(source: SourceView) -> str:
    line = f"line {source['line']}" if source["line"] is not None else None
    score = f"score {source['score']}" if source["score"] is not None else None
    return ", ".join(filter(None, [source["quote_id"], line, source["customer"], score]))


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
    show_rate_cards(one["lines"])
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
    has_end = not is_evergreen(line["selling_model"])
    return in_words(readable(price, currency), line["billing_period"], periods, has_term=has_term, has_end=has_end)


def _tax_label(group: TaxGroupView) -> str:
    code = group["category_code"]
    if "tax_name" in group:
        return f"{group['tax_name']} {code} ({group['category']})"
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
