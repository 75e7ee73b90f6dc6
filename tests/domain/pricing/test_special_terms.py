"""What a seller arranges for a line: prices, amounts off, dates, and segments with a price or a discount."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.base.rounding import MinorUnit
from cpq.domain.pricing import discount_for_total, price, target_total
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.parts import LinePrice
from cpq.domain.pricing.request import (
    EDITION,
    ONE_HUNDRED_PERCENT,
    Adjustment,
    Component,
    Line,
    LineTerm,
    PriceRow,
    Product,
    Request,
    Segment,
    Tier,
)
from cpq.domain.pricing.result import PricedQuote, Stage, TaxGroup
from cpq.domain.pricing.tax import tax_lines

CENT = 10_000
DOLLAR = 10**6
PERCENT = 10**6
MACHINE = PriceRow("machine", 1000 * DOLLAR, "list", cost=600 * DOLLAR)
SEAT = PriceRow("seat", 10 * DOLLAR, "list", billing_period="monthly")
TIERED = SEAT._replace(tier_mode="volume", tiers=(Tier(10, 10 * DOLLAR), Tier(None, 5 * DOLLAR)))
PRODUCTS = {
    "machine": Product((MACHINE,)),
    "seat": Product((SEAT,)),
    "tiered": Product((TIERED._replace(quantity_scope="quote"),)),
    "station": Product((MACHINE._replace(unit_price=0),), (Component("machine", 2),)),
    "mixed": Product((MACHINE._replace(unit_price=0),), (Component("machine", 1), Component("seat", 1))),
}
RULE = Adjustment("rule", "percentage", 20 * PERCENT, "list")

quantities = st.integers(1, 50)
prices = st.integers(0, 2000 * DOLLAR)
percents = st.integers(0, 100 * PERCENT)
terms = st.none() | st.builds(lambda months: LineTerm(months, "2026-05-01"), st.integers(1, 36))
lines = st.builds(
    lambda product, quantity, discount, override, term: Line(
        "0", product, quantity, discount, override=override, term=term
    ),
    st.sampled_from(("machine", "seat")),
    quantities,
    st.sampled_from((0, 5 * PERCENT, 33_333_333)),
    st.none() | prices,
    terms,
)
quotes = st.lists(lines, min_size=1, max_size=6).map(
    lambda found: request(*[line._replace(id=str(number)) for number, line in enumerate(found, 1)])
)


def request(*lines: Line, **fields: Any) -> Request:
    known = {"starts_on": "2026-02-01", "term_months": 12, "edition": EDITION, **fields}
    return Request("USD", "2026-01-01", lines, PRODUCTS, ("list",), {"standard": 19 * PERCENT}, **known)


def amounts(priced: PricedQuote) -> list[tuple[int, int]]:
    """The regular and the net amount of each line, in dollars."""
    return [(line.regular // DOLLAR, line.net // DOLLAR) for line in priced.lines]


def steps(priced: PricedQuote, stage: Stage) -> list[tuple[int, str, int | None]]:
    return [(step.amount // DOLLAR, step.source, step.value) for step in priced.lines[0].steps if step.stage is stage]


@pytest.mark.parametrize(
    ("line", "expected", "discount"),
    [
        (Line("1", "machine", 2, override=800 * DOLLAR), (2000, 1600), 20),
        (Line("1", "machine", 2, 10 * PERCENT, override=800 * DOLLAR), (2000, 1440), 28),
        (Line("1", "machine", 2, override=0), (2000, 0), 100),
        (Line("1", "machine", 2, override=1000 * DOLLAR), (2000, 2000), 0),
        (Line("1", "machine", 2, override=1500 * DOLLAR), (3000, 3000), 0),
        (Line("1", "machine", 2, 10 * PERCENT, override=1500 * DOLLAR), (3000, 2700), 10),
        (Line("1", "seat", 5, override=8 * DOLLAR), (600, 480), 20),
        (Line("1", "tiered", 20, override=8 * DOLLAR), (1920, 1920), 0),
        (Line("1", "station", 3, override=1500 * DOLLAR), (6000, 4500), 25),
        (Line("1", "machine", 1, override=700 * DOLLAR, adjustments=(RULE,)), (800, 700), Fraction(25, 2)),
    ],
)
def test_g03_a_price_given_on_a_line_is_a_discount_below_the_regular_price_and_a_markup_above_it(
    line: Line, expected: tuple[int, int], discount: int | Fraction
):
    priced = price(request(line))
    assert amounts(priced) == [expected]
    assert priced.lines[0].discount == priced.discount == discount * PERCENT
    assert steps(priced, Stage.OVERRIDE)[0][1:] == ("unit_price", line.override)


def test_g03_a_markup_on_one_line_does_not_hide_a_discount_on_another():
    marked_up = Line("1", "machine", 1, override=1500 * DOLLAR)
    priced = price(request(marked_up, Line("2", "machine", 1, override=500 * DOLLAR)))
    assert amounts(priced) == [(1500, 1500), (1000, 500)]
    assert priced.discount == 20 * PERCENT
    assert [line.discount for line in priced.lines] == [0, 50 * PERCENT]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (Line("1", "mixed", 1, override=5 * DOLLAR), "/unit_price"),
        (Line("1", "seat", 1, override=5 * DOLLAR, ramp=(Segment(12),)), "/unit_price"),
        (Line("1", "station", 1, ramp=(Segment(12, override=DOLLAR),)), "/ramp"),
        (Line("1", "machine", 1, amount_off=1000 * DOLLAR + CENT), "/discount_amount"),
    ],
)
def test_g03_g04_a_price_or_amount_that_means_nothing_is_refused_with_its_field(line: Line, field: str):
    with pytest.raises(CpqError) as refused:
        price(request(line))
    assert (refused.value.details["field"], refused.value.details["line"]) == (field, "1")


@given(quotes)
def test_g03_g05_every_line_equals_an_independent_calculation(asked: Request):
    unit = MinorUnit("USD")
    for line, priced in zip(asked.lines, price(asked).lines, strict=True):
        months = line.term.months if line.term else asked.term_months
        periods = months or 1 if line.product_id == "seat" else 1
        regular = PRODUCTS[line.product_id].rows[0].unit_price
        given_price = regular if line.override is None else line.override
        assert priced.regular == unit.round(max(regular, given_price) * int(line.quantity) * periods)
        kept = ONE_HUNDRED_PERCENT - line.discount
        assert priced.net == unit.round(given_price * int(line.quantity) * periods, kept, ONE_HUNDRED_PERCENT)


@given(quotes, st.randoms(use_true_random=False), st.integers(0, 100))
def test_g03_g04_the_order_of_lines_changes_no_price_and_the_lines_add_up(asked: Request, random: Any, share: int):
    whole = price(asked)
    off = whole.net * share // 100 // CENT * CENT
    discounted = price(asked._replace(requested_amount=off))
    assert whole.net - discounted.net == off == discounted.discount_total - whole.discount_total
    assert sum(line.net for line in discounted.lines) == discounted.net
    assert all(0 <= line.net <= line.regular for line in discounted.lines)
    moved = list(asked.lines)
    random.shuffle(moved)
    again = price(asked._replace(lines=tuple(moved), requested_amount=off))
    assert sorted(again.lines) == sorted(discounted.lines)
    assert (again.total, again.discount) == (discounted.total, discounted.discount)


@given(quotes, st.integers(0, 10**6), st.sampled_from(("group", "line", "document")), st.booleans())
def test_g04_a_target_total_takes_the_smallest_discount_that_reaches_it(
    asked: Request, share: int, tax_rounding: str, is_included: bool
):
    rows = {id_: Product((PRODUCTS[id_].rows[0]._replace(tax_included=is_included),)) for id_ in ("machine", "seat")}
    asked = asked._replace(tax_rounding=tax_rounding, products=rows)
    target = price(asked).total * share // 10**6
    off = discount_for_total(asked, target)
    assert off % CENT == 0
    assert price(asked._replace(requested_amount=off)).total <= target
    for fewer in range(off - 3 * CENT, off, CENT):
        assert fewer < 0 or price(asked._replace(requested_amount=fewer)).total > target


def test_g04_a_target_total_prices_the_lines_once(monkeypatch: pytest.MonkeyPatch):
    trials: list[int] = []

    def counted(prices: list[LinePrice], asked: Request, minor_unit: MinorUnit) -> tuple[TaxGroup, ...]:
        trials.append(1)
        return tax_lines(prices, asked, minor_unit)

    monkeypatch.setattr(target_total, "tax_lines", counted)
    many = [Line(str(number), "machine" if number % 2 else "seat", number) for number in range(1, 400)]
    asked = request(*many)
    for share in (1, 333_333, 900_001, 999_999):
        trials.clear()
        discount_for_total(asked, price(asked).total * share // 10**6)
        assert len(trials) <= 20, "nearly in proportion: a few trials, and those below the found one"


@pytest.mark.parametrize(
    "fields", [{"amount_off": 100 * DOLLAR}, {"override": 900 * DOLLAR}, {"discount": 10 * PERCENT}]
)
def test_g03_g04_tax_of_the_document_is_of_what_is_left(fields: dict[str, Any]):
    """Before, tax was charged on a price that was lowered in money as if it had not been lowered."""
    asked = request(Line("1", "machine", 1, **fields), tax_rounding="document")
    assert (price(asked).net, price(asked).tax_total) == (900 * DOLLAR, 171 * DOLLAR)
    whole = request(Line("1", "machine", 1), tax_rounding="document", requested_amount=100 * DOLLAR)
    assert (price(whole).net, price(whole).tax_total) == (900 * DOLLAR, 171 * DOLLAR)
    stored = price(whole._replace(edition=3))
    assert stored.tax_total == 190 * DOLLAR, "what is stored keeps its bytes"


def test_g04_a_target_above_the_total_without_a_discount_is_refused_with_the_total():
    asked = request(Line("1", "machine", 1))
    assert discount_for_total(asked, 1190 * DOLLAR) == 0
    with pytest.raises(CpqError) as refused:
        discount_for_total(asked, 1190 * DOLLAR + CENT)
    assert refused.value.details["field"] == "/target_total"
    assert refused.value.details["maximum"] == 1190


@pytest.mark.parametrize(
    ("fields", "expected", "discount"),
    [
        ({"amount_off": 250 * DOLLAR}, (1000, 750), 25),
        ({"amount_off": 1000 * DOLLAR}, (1000, 0), 100),
        ({"amount_off": 100 * DOLLAR, "override": 900 * DOLLAR}, (1000, 800), 20),
    ],
)
def test_g04_an_amount_off_a_line_is_a_discount_in_percent_of_the_regular_price(
    fields: dict[str, Any], expected: tuple[int, int], discount: int
):
    priced = price(request(Line("1", "machine", 1, **fields)))
    assert amounts(priced) == [expected]
    assert priced.discount == priced.lines[0].discount == discount * PERCENT


def test_g04_an_amount_off_the_quote_larger_than_the_quote_is_refused():
    with pytest.raises(CpqError) as refused:
        price(request(Line("1", "machine", 1), requested_amount=1000 * DOLLAR + CENT))
    assert (refused.value.details["field"], refused.value.details["maximum"]) == ("/requested_discount_amount", 1000)


@pytest.mark.parametrize(
    ("term", "months"),
    [
        (None, 12),
        (LineTerm(6, "2026-02-01"), 6),
        (LineTerm(24, "2026-08-01"), 24),
        (LineTerm(None, "2026-04-01", "2027-01-31"), 10),
        (LineTerm(None, "2026-02-01", None), 1),
    ],
)
def test_g05_a_line_with_dates_of_its_own_is_charged_for_its_own_months(term: LineTerm | None, months: int):
    priced = price(request(Line("1", "seat", 3, term=term), Line("2", "seat", 1)))
    assert amounts(priced) == [(30 * months, 30 * months), (120, 120)]


def test_g05_units_of_other_dates_do_not_count_for_a_tier():
    later = LineTerm(6, "2026-08-01")
    both = price(request(Line("1", "tiered", 6), Line("2", "tiered", 6)))
    apart = price(request(Line("1", "tiered", 6), Line("2", "tiered", 6, term=later)))
    assert amounts(both) == [(360, 360), (360, 360)]
    assert amounts(apart) == [(720, 720), (360, 360)]


@pytest.mark.parametrize(
    ("ramp", "expected"),
    [
        ((Segment(1, discount=ONE_HUNDRED_PERCENT), Segment(11)), (120, 110)),
        ((Segment(6, override=8 * DOLLAR), Segment(6)), (120, 108)),
        ((Segment(6, override=12 * DOLLAR), Segment(6, discount=50 * PERCENT)), (132, 102)),
        ((Segment(6, discount=ONE_HUNDRED_PERCENT), Segment(6, override=20 * DOLLAR)), (180, 120)),
        ((Segment(6, override=30 * DOLLAR), Segment(6)), (240, 240)),
        ((Segment(6, 1, uplift=50 * PERCENT), Segment(6, 1, discount=10 * PERCENT)), (150, 144)),
    ],
)
def test_g06_a_segment_with_a_price_or_a_discount_of_its_own_takes_it_off_the_regular_price(
    ramp: tuple[Segment, ...], expected: tuple[int, int]
):
    priced = price(request(Line("1", "seat", 1, ramp=ramp)))
    assert amounts(priced) == [expected]
    assert priced.discount == -(-(expected[0] - expected[1]) * ONE_HUNDRED_PERCENT // expected[0])


def test_g06_rules_change_the_segments_that_have_no_price_of_their_own():
    ramp = (Segment(6, override=8 * DOLLAR), Segment(6))
    priced = price(request(Line("1", "seat", 1, ramp=ramp, adjustments=(RULE,))))
    assert amounts(priced) == [(96, 48 + 48)]


@given(quotes)
def test_a_stored_request_with_special_terms_gives_the_same_price_again(asked: Request):
    ramp = (Segment(5, override=0), Segment(7, discount=PERCENT))
    line = Line("9", "seat", 2, ramp=ramp, amount_off=CENT)
    asked = asked._replace(lines=(*asked.lines, line), requested_amount=CENT)
    assert pricing_request.load(pricing_request.dump(asked)) == asked
