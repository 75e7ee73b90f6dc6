"""Quantities in thousandths: a thousandth at a thousand times the price is one at the price, in every feature."""

import json
from decimal import Decimal

from hypothesis import given, settings

from cpq.base.text import canonical_json, plain_json, read_json
from cpq.domain.pricing import price, result
from cpq.domain.pricing import request as requests_
from cpq.domain.pricing.request import Line, PriceRow, Product, Request
from tests.support.random_quotes import requests

law = settings(max_examples=max(1000, settings().max_examples))
FINE = 1_000


def fine_line(line: Line) -> Line:
    thousandths = (Decimal(int(line.quantity)) / FINE).normalize()
    adjustments = tuple(
        rule._replace(value=rule.value * FINE) if (rule.kind, rule.base) == ("amount", "unit") else rule
        for rule in line.adjustments
    )
    quantity = int(thousandths) if thousandths == thousandths.to_integral_value() else thousandths
    return line._replace(quantity=quantity, adjustments=adjustments)


def dear_row(row: PriceRow) -> PriceRow:
    """The price of a thousand units; that of a package stays, because it is no price of a unit."""
    per_unit = 1 if row.package_size is not None else FINE
    tiers = tuple(tier._replace(unit_price=tier.unit_price * FINE) for tier in row.tiers)
    surcharges = {name: {value: each * FINE for value, each in by.items()} for name, by in row.surcharges.items()}
    cost = None if row.cost is None else row.cost * per_unit
    return row._replace(unit_price=row.unit_price * per_unit, tiers=tiers, surcharges=surcharges, cost=cost)


def wide_row(row: PriceRow) -> PriceRow:
    """Bounds and packages of a thousand times as many units."""
    tiers = tuple(tier._replace(up_to=tier.up_to and tier.up_to * FINE) for tier in row.tiers)
    size = row.package_size and row.package_size * FINE
    return row._replace(tiers=tiers, package_size=size, free_quantity=row.free_quantity * FINE)


def with_rows(products: dict[str, Product], change: object) -> dict[str, Product]:
    assert callable(change)
    return {id_: one._replace(rows=tuple(change(row) for row in one.rows)) for id_, one in products.items()}


@law
@given(requests)
def test_g08_a_thousandth_at_a_thousand_times_the_price_is_one_at_the_price(request: Request):
    plain = request._replace(lines=tuple(line._replace(ramp=()) for line in request.lines))
    products = dict(plain.products)
    whole = plain._replace(products=with_rows(products, wide_row))
    fine = plain._replace(products=with_rows(products, dear_row), lines=tuple(map(fine_line, plain.lines)))
    one, other = price(whole), price(fine)
    assert [(a.regular, a.net, a.discount) for a in one.lines] == [(b.regular, b.net, b.discount) for b in other.lines]
    # An option costs its share of the price, which for a package is no price of a unit.
    for line, a, b in zip(plain.lines, one.lines, other.lines, strict=True):
        assert line.choices or a.cost == b.cost
    assert (one.subtotal, one.discount_total, one.tax_total, one.total) == (
        other.subtotal,
        other.discount_total,
        other.tax_total,
        other.total,
    )


@law
@given(requests)
def test_g08_a_fine_quote_is_stored_exactly_and_prices_again_to_the_same_bytes(request: Request):
    fine = request._replace(lines=tuple(fine_line(line._replace(ramp=())) for line in request.lines))
    written = plain_json(requests_.dump(fine))
    assert written == canonical_json(json.loads(written, parse_float=Decimal))
    again = requests_.load(read_json(written))
    assert again == fine
    priced = price(again)
    assert (
        plain_json(result.dump(priced)) == canonical_json(result.dump(priced)) == plain_json(result.dump(price(fine)))
    )
    assert result.load(read_json(plain_json(result.dump(priced)))) == priced
