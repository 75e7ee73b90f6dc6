"""G-07: usage prices in the pricer: rate cards, commitments over the term, minimum and maximum spend, discounts."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.base.rounding import MinorUnit
from cpq.base.text import canonical_json, read_json
from cpq.domain.pricing import price
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.rate_cards import RateCard, load, rate_cards, what_is_more
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
    Usage,
)
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.pricing.terms import add_months
from cpq.domain.pricing.usage import bill, charge_for_use, least_share, most_units

DOLLAR = PERCENT = 10**6
FLAT = PriceRow("calls", 20_000, "list", billing_period="monthly", is_usage=True, unit="API call", cost=5_000)
GRADUATED = FLAT._replace(
    id="graduated",
    tier_mode="graduated",
    tiers=(Tier(1_000, 50_000), Tier(10_000, 20_000, 5 * DOLLAR), Tier(None, 10_000)),
    free_quantity=100,
)


def quoted(line: Line, row: PriceRow = FLAT, **changes: Any) -> PricedQuote:
    asked = Request("USD", "2026-01-01", (line,), {line.product_id: Product((row,))}, ("list",), {"standard": 0})
    return price(asked._replace(**{"term_months": 12, "edition": EDITION, **changes}))


def priced(usage: Usage | None, row: PriceRow = FLAT, **of_line: Any) -> PricedLine:
    return quoted(Line("1", "calls", 1, usage=usage, **of_line), row).lines[0]


def test_g07_a_committed_quantity_is_priced_by_the_rate_card_for_each_period_of_the_term() -> None:
    line = priced(Usage(quantity=10_000))
    assert (line.regular, line.net, line.quantity) == (12 * 200 * DOLLAR, 12 * 200 * DOLLAR, 1)
    assert [(step.stage.value, step.amount) for step in line.steps] == [
        ("list", 200 * DOLLAR),
        ("usage", 200 * DOLLAR),
        ("term", 2400 * DOLLAR),
    ]
    assert line.steps[1].source == "0.02 per API call, monthly; committed 10000 API call"
    # 100 units are included, 1,000 cost 0.05, 9,000 cost 0.02 and a fee of 5, 400 cost 0.01.
    assert priced(Usage(quantity=10_500), GRADUATED).net == 12 * (50 + 180 + 5 + 4) * DOLLAR


def test_g07_a_committed_amount_is_itself_in_its_own_period() -> None:
    assert priced(Usage(amount=100 * DOLLAR)).net == 1200 * DOLLAR
    assert priced(Usage(amount=900 * DOLLAR, per="yearly")).net == 900 * DOLLAR
    assert priced(Usage(amount=700 * DOLLAR, per="term")).net == 700 * DOLLAR
    half = quoted(Line("1", "calls", 1, usage=Usage(amount=900 * DOLLAR, per="yearly")), term_months=6)
    assert half.net == 450 * DOLLAR


def test_g07_without_commitment_the_total_is_0_and_the_estimate_is_apart() -> None:
    asked = Line("1", "calls", 1, usage=Usage(expected=8_000))
    found = quoted(asked)
    assert (found.total, found.lines[0].net, found.lines[0].regular) == (0, 0, 0)
    assert found.lines[0].steps[1].source.endswith("nothing committed, nothing in the total")
    request = Request("USD", "2026-01-01", (asked,), {"calls": Product((FLAT,))}, ("list",), {"standard": 0})
    card = rate_cards(request._replace(term_months=12))["1"]
    assert (card.estimate, card.beyond, card.committed) == (160 * DOLLAR, 1920 * DOLLAR, 0)
    assert load(read_json(canonical_json(card.stored))) == card


def test_g07_minimum_spend_is_in_the_total_and_a_maximum_bounds_the_commitment() -> None:
    row = FLAT._replace(minimum_spend=50 * DOLLAR, maximum_spend=300 * DOLLAR)
    assert priced(None, row).net == 12 * 50 * DOLLAR
    assert priced(Usage(quantity=10), row).net == 12 * 50 * DOLLAR
    assert priced(Usage(quantity=10**6), row).net == 12 * 300 * DOLLAR
    assert priced(Usage(amount=20 * DOLLAR), row).net == 12 * 50 * DOLLAR
    with pytest.raises(CpqError, match="at most 300") as refused:
        priced(Usage(amount=301 * DOLLAR), row)
    assert (refused.value.details["field"], refused.value.details["line"]) == ("/commitment", "1")


def test_g07_the_trace_and_so_the_fingerprint_names_every_part_of_the_rate_card() -> None:
    rows = [
        FLAT,
        GRADUATED,
        GRADUATED._replace(free_quantity=200),
        FLAT._replace(minimum_spend=DOLLAR),
        FLAT._replace(maximum_spend=10**9),
        FLAT._replace(tier_mode="package", package_size=100),
        FLAT._replace(tier_mode="package", package_size=1000),
        GRADUATED._replace(tiers=(*GRADUATED.tiers[:2], Tier(None, 9_000))),
        FLAT._replace(unit="call"),
        FLAT._replace(billing_period="quarterly"),
    ]
    sources = [next(step for step in priced(None, row).steps if step.stage == "usage").source for row in rows]
    assert len(set(sources)) == len(rows)


@pytest.mark.parametrize(
    ("usage", "row"),
    [(None, FLAT), (Usage(quantity=10_000), FLAT), (Usage(amount=100 * DOLLAR), FLAT), (None, GRADUATED)],
)
def test_g07_policies_see_a_discount_on_the_rates_also_where_nothing_is_committed(
    usage: Usage | None, row: PriceRow
) -> None:
    assert priced(usage, row, discount=90 * PERCENT).discount == 90 * PERCENT
    assert priced(usage, row, override=0).discount == 100 * PERCENT
    lowered = priced(usage, row, override=5_000)
    assert lowered.discount >= 75 * PERCENT
    assert priced(usage, row, override=5_000, discount=50 * PERCENT).discount >= 87_500_000
    assert priced(usage, row, override=10 * DOLLAR).discount == 0


def test_g07_a_single_rate_is_compared_with_the_dearest_one_of_the_card() -> None:
    # At a million units it is dearer than the card; at 1,001 it costs 20.02 instead of 55.02, because of the fee.
    line = priced(Usage(quantity=1_000_000), GRADUATED, override=20_000)
    assert (line.regular, line.discount) == (line.net, 63_613_232)
    # A flat fee counts for the first unit of its tier.
    fee = FLAT._replace(tier_mode="graduated", tiers=(Tier(None, 0, 100 * DOLLAR),))
    assert priced(None, fee, override=DOLLAR).discount == 99 * PERCENT


def test_g07_a_rule_lowers_the_rates_and_is_no_discretionary_discount() -> None:
    rule = Adjustment("partner", "percentage", 10 * PERCENT, "list")
    line = priced(Usage(quantity=10_000), adjustments=(rule,))
    assert (line.net, line.discount, line.discount_off_list) == (2160 * DOLLAR, 0, 10 * PERCENT)
    line = priced(None, adjustments=(rule,), override=9_000)
    assert (line.discount, line.discount_off_list) == (50 * PERCENT, 55 * PERCENT)
    asked = Line("1", "calls", 1, adjustments=(rule,))
    request = Request("USD", "2026-01-01", (asked,), {"calls": Product((FLAT,))}, ("list",), {"standard": 0})
    assert rate_cards(request)["1"].unit_price == 18_000


def test_g07_an_accounts_own_rates_are_off_list_and_no_discretionary_discount() -> None:
    agreed = FLAT._replace(id="agreed", price_book_id=None, account_id="acct", unit_price=10_000)
    line = Line("1", "calls", 1, usage=Usage(quantity=1_000))
    found = quoted(line, products={"calls": Product((FLAT, agreed))}).lines[0]
    assert (found.net, found.discount, found.discount_off_list) == (120 * DOLLAR, 0, 50 * PERCENT)
    found = quoted(line._replace(usage=None), products={"calls": Product((FLAT, agreed))}).lines[0]
    assert (found.net, found.discount, found.discount_off_list) == (0, 0, 50 * PERCENT)
    seat = FLAT._replace(id="seat", is_usage=False, unit="")
    found = quoted(line, products={"calls": Product((seat, agreed))}).lines[0]
    assert (found.net, found.discount_off_list, found.steps[0].stage.value) == (120 * DOLLAR, 0, "contracted")


def test_g07_the_cost_is_that_of_all_units_that_the_commitment_buys() -> None:
    assert priced(Usage(quantity=10_000)).cost == 12 * 50 * DOLLAR
    assert priced(Usage(amount=200 * DOLLAR), discount=50 * PERCENT).cost == 12 * 50 * DOLLAR
    assert priced(None, FLAT._replace(minimum_spend=20 * DOLLAR)).cost == 12 * 5 * DOLLAR
    assert priced(None).cost == 0
    assert priced(None, FLAT._replace(free_quantity=1_000)).cost == 12 * 5 * DOLLAR
    assert priced(Usage(quantity=10), FLAT._replace(unit_price=0)).cost == 12 * 50_000
    assert priced(Usage(amount=DOLLAR), FLAT._replace(unit_price=0)).cost is None
    assert priced(Usage(amount=DOLLAR), FLAT._replace(maximum_spend=DOLLAR)).cost is None


def test_g07_a_rate_card_has_no_ramp_and_is_in_no_bundle() -> None:
    with pytest.raises(CpqError, match="has no ramp") as refused:
        priced(None, ramp=(Segment(12),))
    assert refused.value.details["field"] == "/ramp"
    bundle = {
        "box": Product((FLAT._replace(id="box", is_usage=False),), (Component("calls", 1),)),
        "calls": Product((FLAT,)),
    }
    with pytest.raises(CpqError, match="charged by its use"):
        quoted(Line("1", "box", 1), products=bundle)
    with pytest.raises(CpqError, match="priced by its components"):
        quoted(Line("1", "box", 1), products={**bundle, "box": bundle["box"]._replace(rows=(FLAT,))})


def test_g07_a_line_with_dates_of_its_own_commits_for_them() -> None:
    line = Line("1", "calls", 1, usage=Usage(quantity=1_000), term=LineTerm(3, "2026-04-01"))
    assert quoted(line).net == 60 * DOLLAR


units = st.integers(1, 500)
amounts = st.integers(0, 300).map(lambda cents: cents * 10_000)


@st.composite
def cards(draw: st.DrawFn) -> PriceRow:
    """Rate cards of every kind, small enough to be counted unit by unit."""
    row = FLAT._replace(
        unit_price=draw(amounts), free_quantity=draw(st.integers(0, 60)), billing_period=draw(periods), cost=10_000
    )
    kind = draw(st.sampled_from(["none", "graduated", "volume", "package"]))
    if kind == "package":
        return row._replace(tier_mode=kind, package_size=draw(st.integers(1, 50)))
    if kind == "none":
        return row
    bounds = sorted(draw(st.sets(st.integers(1, 300), max_size=4)))
    return row._replace(
        tier_mode=kind, tiers=tuple(Tier(up_to, draw(amounts), draw(amounts)) for up_to in [*bounds, None])
    )


periods = st.sampled_from(["monthly", "quarterly", "yearly"])


def counted(row: PriceRow, quantity: int) -> int:
    """The charge for one period, unit by unit."""
    billed = [unit for unit in range(1, quantity + 1) if unit > row.free_quantity]
    if not billed:
        return 0
    if row.package_size:
        return row.unit_price * len([place for place, _ in enumerate(billed) if place % row.package_size == 0])
    if not row.tiers:
        return row.unit_price * len(billed)
    tier_of = [next(t for t in row.tiers if t.up_to is None or place <= t.up_to) for place in range(1, len(billed) + 1)]
    if row.tier_mode == "volume":
        return tier_of[-1].unit_price * len(billed) + tier_of[-1].flat_fee
    entered = row.tiers[: row.tiers.index(tier_of[-1]) + 1]
    return sum(tier.unit_price for tier in tier_of) + sum(tier.flat_fee for tier in entered)


@given(cards(), units)
def test_g07_a_rate_card_equals_a_count_of_single_units(row: PriceRow, quantity: int) -> None:
    assert charge_for_use(row, quantity) == counted(row, quantity)


spends = st.none() | amounts


@given(cards(), units, spends, spends)
def test_g07_a_period_costs_at_least_the_minimum_and_at_most_the_maximum(
    row: PriceRow, quantity: int, least: int | None, most: int | None
) -> None:
    most = most and max(most, least or 0)
    due = bill(row._replace(minimum_spend=least, maximum_spend=most), quantity)
    assert due == sorted([least or 0, counted(row, quantity), 10**15 if most is None else most])[1]


usages = units.map(lambda q: Usage(quantity=q)) | amounts.map(lambda m: Usage(amount=m)) | st.just(Usage())
modes = st.sampled_from(["whole_months", "actual_days", "months_and_days", "thirty_360", "whole_months_up"])


@given(cards(), usages, st.integers(1, 40), spends, modes, st.sampled_from(["USD", "JPY", "KWD"]))
def test_g07_a_commitment_over_the_term_is_its_periods_times_one(
    row: PriceRow, usage: Usage, months: int, least: int | None, mode: str, currency: str
) -> None:
    row = row._replace(minimum_spend=least)
    line = Line("1", "calls", 1, usage=usage)
    found = quoted(line, row, term_months=months, part_periods=mode, currency=currency)
    once = max(least or 0, usage.amount or (counted(row, int(usage.quantity)) if usage.quantity else 0))
    exact = _periods(found, row, months) * once
    assert found.net == MinorUnit(currency).round(exact)
    assert found.lines[0].net == found.lines[0].regular == found.subtotal == found.total


def _periods(found: PricedQuote, row: PriceRow, months: int) -> Fraction:
    """From the term where it is exact: parts of a period by days are rounded in the trace."""
    of = {"monthly": 1, "quarterly": 3, "yearly": 12}[row.billing_period]
    shown = [step.value for step in found.lines[0].steps if step.stage == "term"]
    if months % of == 0 or not shown:
        return Fraction(months, of)
    periods = Fraction(months, of)
    return periods if abs(periods * 10**6 - (shown[0] or 0)) < 1 else _by_days(months, of)


def _by_days(months: int, of: int) -> Fraction:
    start = date(2026, 1, 1)
    whole = months // of
    begin, end = add_months(start, whole * of), add_months(start, (whole + 1) * of)
    return whole + Fraction((add_months(start, months) - begin).days, (end - begin).days)


@given(cards(), usages, st.integers(0, 100), st.none() | st.integers(0, 300), units)
def test_g07_an_estimate_changes_no_price(
    row: PriceRow, usage: Usage, discount: int, override: int | None, expected: int
) -> None:
    rate = None if override is None else override * 10_000
    line = Line("1", "calls", 1, discount * PERCENT, usage=usage, override=rate)
    asked = line._replace(usage=usage._replace(expected=expected))
    assert quoted(line, row) == quoted(asked, row)


@given(cards(), usages, st.integers(0, 100), st.integers(0, 300))
def test_g07_no_use_is_discounted_by_more_than_policies_see(
    row: PriceRow, usage: Usage, discount: int, override: int
) -> None:
    """At each quantity, what the customer pays by the card is at least the share of the regular rates that is left."""
    line = quoted(Line("1", "calls", 1, discount * PERCENT, usage=usage, override=override * 10_000), row).lines[0]
    kept = ONE_HUNDRED_PERCENT - line.discount
    for above in (1, 7, 50, 299, 301, 1000):
        quantity = row.free_quantity + above
        flat = row._replace(unit_price=override * 10_000, tiers=(), tier_mode="package" if row.package_size else "none")
        paid = Fraction(counted(flat, quantity) * (100 - discount), 100)
        assert paid * ONE_HUNDRED_PERCENT >= counted(row, quantity) * kept
    assert (line.net + 10_000) * ONE_HUNDRED_PERCENT >= line.regular * kept


@given(cards(), st.integers(0, 10_000).map(lambda cents: cents * 10_000))
def test_g07_the_units_that_money_buys_are_the_most_that_cost_no_more(row: PriceRow, money: int) -> None:
    most = most_units(row, money)
    if most is None:
        assert charge_for_use(row, 10**9) <= max(money, charge_for_use(row, 10**8))
    elif row.package_size:
        assert charge_for_use(row, most) <= money < charge_for_use(row, most + 1)
    else:
        assert most <= row.free_quantity or charge_for_use(row, most) <= money
        assert charge_for_use(row, most + Fraction(1, 1000)) > money


@given(cards(), usages, st.integers(0, 100))
def test_g07_a_stored_request_prices_to_the_same_bytes(row: PriceRow, usage: Usage, discount: int) -> None:
    line = Line("1", "calls", 1, discount * PERCENT, usage=usage._replace(expected=Decimal("1.5")))
    request = Request("USD", "2026-01-01", (line,), {"calls": Product((row,))}, ("list",), {"standard": 0}, edition=3)
    again = pricing_request.load(read_json(canonical_json(pricing_request.dump(request))))
    assert (again, price(again)) == (request, price(request))


@given(cards(), cards())
def test_g07_the_least_share_holds_at_every_quantity(card: PriceRow, other: PriceRow) -> None:
    share = least_share(card, other)
    assume(card.package_size == other.package_size)
    for above in range(1, 400, 13):
        assert counted(card._replace(free_quantity=0), above) >= share * counted(other._replace(free_quantity=0), above)


CARD = RateCard("call", "monthly", "none", 20_000, included=100, minimum=50, maximum=500, amount=100, per="monthly")


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"unit_price": 19_999}, "the rates are lower"),
        ({"discount": PERCENT}, "the rates are lower"),
        ({"included": 101}, "the included units went from 100 to 101"),
        ({"minimum": None}, "the minimum spend is lower"),
        ({"maximum": 499}, "the maximum spend is lower"),
        ({"amount": 99}, "the commitment changed"),
        ({"amount": None, "quantity": 5}, "the commitment changed"),
        ({"per": "yearly"}, "the rate card changed"),
        ({"unit": "text"}, "the rate card changed"),
        ({"expected": 5}, "the rate card changed"),
    ],
)
def test_g07_a_rate_card_that_gives_more_reopens_approvals(change: dict[str, Any], more: str) -> None:
    assert more in list(what_is_more(CARD, CARD._replace(**change)))


def test_g07_a_dearer_rate_card_keeps_approvals() -> None:
    dearer: dict[str, Any] = {"unit_price": 20_001, "included": 99, "minimum": 51, "maximum": None, "amount": 101}
    assert not list(what_is_more(CARD, CARD._replace(**dearer)))
    assert list(what_is_more(None, CARD)) == list(what_is_more(CARD, None)) == ["the rate card changed"]
    assert not list(what_is_more(None, None))


@given(
    st.sampled_from(["flat", "volume", "graduated", "package"]),
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 90), st.integers(0, 40)), min_size=1, max_size=3),
    st.integers(1, 60),
    st.integers(0, 99),
)
def test_g07_use_that_is_in_no_total_has_the_margin_of_its_lowest_rate(
    mode: str, parts: list[tuple[int, int, int]], cost: int, percent: int
) -> None:
    card = FLAT._replace(cost=cost, unit_price=parts[0][1], free_quantity=7)
    if mode == "package":
        card = card._replace(tier_mode=mode, package_size=parts[0][0])
    elif mode != "flat":
        ends = [sum(width for width, _, _ in parts[:place]) for place in range(1, len(parts))]
        bounds = [*ends, None]
        tiers = tuple(Tier(up_to, rate, fee) for up_to, (_, rate, fee) in zip(bounds, parts, strict=True))
        card = card._replace(tier_mode=mode, tiers=tiers)
    quote = quoted(Line("1", "calls", 1, discount=percent * PERCENT), card)
    kept = Fraction(100 - percent, 100)
    tried = [*range(1, 100), 10**15]
    packages = [-(-units // (card.package_size or 1)) for units in tried]
    rates = [
        Fraction(charge_for_use(card, units + 7)) * kept / (cost * packages[place]) for place, units in enumerate(tried)
    ]
    lowest = min(rates)
    expected = None if not lowest else int((1 - 1 / lowest) * 100 * PERCENT // 1)
    assert (quote.lines[0].margin, quote.margin, quote.net) == (expected, expected, 0)


def test_g07_a_margin_is_unknown_where_rates_have_no_cost_or_are_nothing() -> None:
    assert quoted(Line("1", "calls", 1), FLAT._replace(cost=None)).margin is None
    assert quoted(Line("1", "calls", 1, override=0)).margin is None
    assert quoted(Line("1", "calls", 1), FLAT._replace(cost=0)).margin == 100 * PERCENT
    assert quoted(Line("1", "calls", 1), edition=4).margin is None  # As it was stored.


def test_g07_the_margin_of_a_quote_is_never_above_that_of_rates_without_a_commitment() -> None:
    machine = PriceRow("machine", 100 * DOLLAR, "list", cost=40 * DOLLAR)
    products = {"calls": Product((FLAT,)), "machine": Product((machine,))}
    both = (Line("1", "calls", 1, discount=60 * PERCENT), Line("2", "machine", 1))
    asked = Request("USD", "2026-01-01", both, products, ("list",), {"standard": 0}, term_months=12, edition=EDITION)
    dear, cheap = price(asked), price(asked._replace(lines=(both[0]._replace(discount=0), both[1])))
    assert (dear.margin, cheap.margin, cheap.lines[0].margin) == (37_500_000, 60 * PERCENT, 75 * PERCENT)
