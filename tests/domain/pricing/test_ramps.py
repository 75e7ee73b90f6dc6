"""Ramps: what a line with one comes to, what its units do for other lines, and what one of them costs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.domain.pricing import price
from cpq.domain.pricing.quantities import Stretch, least_together
from cpq.domain.pricing.request import (
    Adjustment,
    Component,
    Line,
    PriceRow,
    Product,
    Request,
    Segment,
    Tier,
    largest_quantity,
    mean_quantity,
)
from cpq.domain.pricing.result import unit_price

MILLION = 10**6
TIERS = (Tier(1000, 10 * MILLION), Tier(None, 2 * MILLION))
SEAT = PriceRow("seat", 10 * MILLION, "list", billing_period="monthly", tier_mode="volume", tiers=TIERS)
OVER_QUOTE = SEAT._replace(quantity_scope="quote")
ONCE = PriceRow("machine", 1000 * MILLION, "list")
SUBSCRIPTION = PriceRow("service", 100 * MILLION, "list", billing_period="yearly")

steps = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=1, max_size=5)


def line(id_: str, quantity: int, *ramp: tuple[int, int | None], product: str = "seat", **fields: Any) -> Line:
    return Line(id_, product, quantity, ramp=tuple(Segment(*step) for step in ramp), **fields)


def quote(*lines: Line, row: PriceRow = OVER_QUOTE, products: Mapping[str, Product] = MappingProxyType({})) -> Request:
    known = {"seat": Product((row,)), **products}
    return Request("USD", "2026-01-01", lines, known, ("list",), {"standard": 0}, term_months=12)


def net(request: Request) -> list[int]:
    return [priced.net // MILLION for priced in price(request).lines]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line("a", 500)], [60_000]),
        ([line("a", 500), line("b", 501)], [12_000, 12_024]),
        ([line("a", 500), line("b", 1, (12, 1))], [60_000, 120]),
        ([line("a", 500), line("b", 501, (6, 500), (6, 501))], [60_000, 30_000 + 6_012]),
        ([line("a", 500, (6, 500), (6, 500)), line("b", 501, (6, 500), (6, 501))], [30_000 + 6_000, 30_000 + 6_012]),
        ([line("a", 500), line("b", 1_000_000, (11, 1), (1, 1_000_000))], [60_000, 110 + 2_000_000]),
        ([line("a", 500, (11, 500), (1, 500)), line("b", 600, (6, 600), (6, 400))], [55_000 + 5_000, 7_200 + 24_000]),
    ],
)
def test_tiers_over_the_quote_count_what_is_there_in_all_of_the_same_months(lines: list[Line], expected: list[int]):
    assert net(quote(*lines)) == expected


def test_a_quantity_that_no_segment_has_is_nobodys():
    invented = [line("a", 500), line("b", 1_000_000, (12, 1))]
    assert net(quote(*invented)) == net(quote(line("a", 500), line("b", 1)))
    (_, priced) = price(quote(*invented)).lines
    assert (priced.quantity, priced.unit_price) == (1, 120 * MILLION)


def bundle(*ids: str) -> Product:
    own = PriceRow("bundle", 0, "list", billing_period="yearly")
    return Product((own,), tuple(Component(id_, 1) for id_ in ids))


def test_what_is_paid_once_is_paid_for_the_largest_segment():
    parts = {"b": bundle("machine", "service"), "machine": Product((ONCE,)), "service": Product((SUBSCRIPTION,))}
    for asked in (line("l", 1, (12, 50), product="b"), line("l", 50, product="b")):
        assert net(quote(asked, products=parts)) == [50 * 1000 + 50 * 100]
    asked = line("l", 50, (6, 10), (6, None), product="b")
    assert net(quote(asked, products=parts)) == [50 * 1000 + 30 * 100]


def test_what_is_paid_once_counts_once_for_the_tiers_of_the_quote():
    machine = ONCE._replace(tier_mode="volume", tiers=(Tier(50, 1000 * MILLION), Tier(None, 500 * MILLION)))
    machine = machine._replace(quantity_scope="quote")
    parts = {"b": bundle("machine"), "machine": Product((machine,))}
    alone = line("l", 1, product="machine")
    assert net(quote(alone, line("m", 50, (11, 1), (1, 50), product="b"), products=parts)) == [500, 25_000]
    assert net(quote(alone, line("m", 49, (11, 1), (1, 49), product="b"), products=parts)) == [1000, 49_000]


@pytest.mark.parametrize(
    ("asked", "quantity", "mean", "each"),
    [
        (line("l", 100), 100, None, 120 * MILLION),
        (line("l", 100, (12, None)), 100, (1200, 12), 120 * MILLION),
        (line("l", 200, (6, 100), (6, 200)), 200, (1800, 12), 120 * MILLION),
        (line("l", 300, (4, 100), (4, None), (4, 200)), 300, (2400, 12), 120 * MILLION),
        (line("l", 2, (11, 1), (1, 2)), 2, (13, 12), 120 * MILLION),
        (line("l", 2000, (12, 2000), discount=50 * MILLION), 2000, (24_000, 12), 12 * MILLION),
    ],
)
def test_a_unit_costs_what_a_unit_for_the_whole_term_would(
    asked: Line, quantity: int, mean: tuple[int, int] | None, each: int
):
    (priced,) = price(quote(asked, row=SEAT)).lines
    assert (priced.quantity, priced.mean_quantity) == (quantity, mean)
    assert priced.unit_price == each


def test_an_amount_off_each_unit_is_off_the_units_of_the_whole_term():
    off = (Adjustment("off", "amount", 10 * MILLION, "unit"),)
    plain = line("l", 100, adjustments=off)
    ramped = line("l", 100, (6, None), (6, None), adjustments=off)
    rising = line("l", 100, (6, 50), (6, None), adjustments=off)
    assert [net(quote(asked, row=SEAT)) for asked in (plain, ramped, rising)] == [[11_000], [11_000], [8_250]]


def test_the_cost_of_a_line_is_bounded_also_beside_one_without_a_cost():
    dear = PriceRow("dear", 1, "list", cost=10**17)
    asked = quote(line("l", 1_000_000, product="dear"), line("m", 1), products={"dear": Product((dear,))})
    with pytest.raises(CpqError, match="amount is larger than the maximum"):
        price(asked)


@settings(max_examples=1000)
@given(st.lists(steps, max_size=5), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=8))
def test_one_sweep_counts_as_looking_into_every_month_does(
    ramps: list[list[tuple[int, int]]], asked: list[tuple[int, int]]
):
    by_month = [[quantity for months, quantity in ramp for _ in range(months)] for ramp in ramps]
    longest = max(map(len, by_month), default=1)
    spans = {(first, first + months) for first, months in asked if first < longest}
    stretches = []
    for ramp in ramps:
        ends = [sum(months for months, _ in ramp[:n]) for n in range(len(ramp) + 1)]
        stretches.append([Stretch(ends[n], ends[n + 1], quantity) for n, (_, quantity) in enumerate(ramp)])
    assert least_together(spans, stretches) == {
        (first, last): sum(min([*ramp[first:last], *[0] * (last > len(ramp))]) for ramp in by_month)
        for first, last in spans
    }


@given(st.integers(1, 100), steps, st.integers(0, 10**15))
def test_a_unit_price_lies_between_those_of_the_smallest_and_the_largest_quantity(
    quantity: int, ramp: list[tuple[int, int]], amount: int
):
    segments = [Segment(months, units) for months, units in ramp]
    most = int(largest_quantity(quantity, segments))
    least = min(units for _, units in ramp)
    assert unit_price(amount, most) <= unit_price(amount, *mean_quantity(quantity, segments))
    assert unit_price(amount, *mean_quantity(quantity, segments)) <= unit_price(amount, least)
    assert (largest_quantity(quantity, ()), mean_quantity(quantity, ())) == (quantity, (quantity, 1))
