"""The rate cards of a document: the rates of each line that is charged by its use, and what is in the total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpq.services.documents.line_table import Note
from cpq.services.documents.printed_quote import Content, PrintedQuote, is_in_no_total


def rate_card_notes(printed: PrintedQuote, numbers: Mapping[int, int], sets: Iterable[Content]) -> Iterable[Note]:
    """A note for each usage line of these option sets; `numbers` are the printed ones of the selected set."""
    t = printed.tongue
    found = dict.fromkeys(line["number"] for one in sets for line in one["lines"])
    for number in sorted(found, key=lambda number: (numbers.get(number, len(found)), number)):
        asked = printed.asked[number]
        if "usage" not in asked:  # Nor has an older document any.
            continue
        name = t.text(asked["product_name"])
        place = t.number(numbers[number]) if number in numbers else ""
        title = t.label("line_note", number=place, name=name) if place else name
        yield Note(title, tuple(_paragraphs(printed, asked["usage"])))


def _paragraphs(printed: PrintedQuote, usage: Content) -> Iterable[str]:
    t, card = printed.tongue, usage["rate_card"]
    unit, period = t.text(card["unit"]), t.label(f"per_{card['billing_period']}")
    rates = "; ".join(_rates(printed, card))
    yield t.label("usage_rates", unit=unit, period=period, rates=rates)
    yield " ".join(_in_total(printed, usage, unit, period))
    if "estimate_per_period" in card:
        yield t.label(
            "usage_estimate",
            quantity=t.number(usage["expected_quantity"]),
            unit=unit,
            period=period,
            price=t.amount(card["estimate_per_period"], printed.currency),
        )


def _rates(printed: PrintedQuote, card: Content) -> Iterable[str]:
    t, currency = printed.tongue, printed.currency
    if card["included_quantity"]:
        yield t.label("usage_included", quantity=t.number(card["included_quantity"]))
    for tier in card["tiers"]:
        price = t.unit_price(tier["unit_price"], currency)
        if tier["flat_fee"]:
            price += f" + {t.amount(tier['flat_fee'], currency)}"
        if tier["up_to"] is None:
            yield t.label("usage_beyond", price=price)
        else:
            yield t.label("usage_up_to", bound=t.number(tier["up_to"]), price=price)
    if card["tiers"]:
        yield t.label(f"usage_{card['tier_mode']}")
    elif "package_size" in card:
        price = t.unit_price(card["unit_price"], currency)
        yield t.label("usage_package", price=price, size=t.number(card["package_size"]))
    else:
        yield t.unit_price(card["unit_price"], currency)
    for name in ("minimum_spend", "maximum_spend"):
        if name in card:
            yield t.label(f"usage_{name}", price=t.amount(card[name], currency))
    if card["discount_pct"]:
        yield t.label("usage_discount", percent=t.percent(card["discount_pct"]))


def _in_total(printed: PrintedQuote, usage: Content, unit: str, period: str) -> Iterable[str]:
    t, card, commitment = printed.tongue, usage["rate_card"], usage.get("commitment")
    if is_in_no_total(usage):
        yield t.label("usage_not_in_total")
        return
    price = t.amount(card["committed_per_period"], printed.currency)
    if commitment is None:
        yield t.label("usage_minimum_in_total", price=price, period=period)
    elif "quantity" in commitment:
        quantity = t.number(commitment["quantity"])
        yield t.label("usage_committed_quantity", quantity=quantity, unit=unit, price=price, period=period)
    else:
        own = t.label(f"per_{usage['per']}")
        committed = t.amount(commitment["amount"], printed.currency)
        yield t.label("usage_committed_amount", price=committed, period=own)
    yield t.label("usage_beyond_total")
