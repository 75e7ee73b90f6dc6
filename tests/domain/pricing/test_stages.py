"""Each stage of the waterfall alone: what it makes of a price, and the step that it leaves."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cpq.base.rounding import MinorUnit, Rounding, nearest
from cpq.domain.pricing import PriceSelection, Stage, price
from cpq.domain.pricing.adjustments import adjust
from cpq.domain.pricing.discounts import discount_line, discount_quote, line_discount_percents
from cpq.domain.pricing.margin import margin, take_cost
from cpq.domain.pricing.option_surcharges import add_options
from cpq.domain.pricing.parts import ONCE, LinePrice, Part
from cpq.domain.pricing.plans import Plans, agreed
from cpq.domain.pricing.price_selection import choose, take_contracted_price, take_list_price
from cpq.domain.pricing.quantities import Counts
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, PriceRow, Product, Request, Segment
from cpq.domain.pricing.tax import level_list_tax, tax_lines
from cpq.domain.pricing.terms import apply_term
from cpq.domain.pricing.tiers import apply_tiers, charge, times_charged
from tests.support import reference_pricer
from tests.support.random_quotes import DISCOUNTS, MILLION, RATES, Bytes, requests, row_of, sources

proven = settings(max_examples=500)
quantities = st.integers(1, 200)
exact = st.integers(0, 10**15) | st.fractions(0, 10**15, max_denominator=10**4)
minor_units = st.builds(MinorUnit, st.sampled_from(("USD", "JPY", "KWD", "CLF")), st.sampled_from(Rounding))
percents = st.sampled_from(DISCOUNTS) | st.integers(0, ONE_HUNDRED_PERCENT)


def request_for(*lines: Line, rows: tuple[PriceRow, ...], **fields: object) -> Request:
    request = Request("USD", "2026-01-31", lines, {"p": Product(rows)}, ("default",), RATES)
    return request._replace(**fields)  # type: ignore[arg-type]  # Fields by name are for the test to choose.


def part_of(*rows: PriceRow, quantity: int = 1, **fields: object) -> LinePrice:
    line = Line("l", "p", quantity)._replace(**fields)  # type: ignore[arg-type]  # As above.
    request = request_for(line, rows=rows)
    return LinePrice(line, Plans(request, PriceSelection(request)).of("p"), quantity, line.choices)


def row(unit_price: int = 10 * MILLION, **fields: object) -> PriceRow:
    return PriceRow("row", unit_price, "default")._replace(**fields)  # type: ignore[arg-type]  # As above.


def contracted(unit_price: int, **fields: object) -> PriceRow:
    return row(unit_price, **{"id": "deal", "price_book_id": None, "account_id": "acme", **fields})


@proven
@given(requests)
def test_the_winning_rows_are_those_of_a_plain_sort(request: Request):
    for product_id in request.products:
        assert choose(request, product_id) == reference_pricer.winners(request, product_id)


@proven
@given(requests)
def test_a_selection_that_is_handed_on_gives_the_same_price(request: Request):
    selection = PriceSelection(request)
    assert price(request, selection) == price(request, selection) == price(request)


def test_the_row_of_a_product_is_chosen_once():
    request = request_for(Line("l", "p", 1), rows=(row(),))
    selection = PriceSelection(request)
    assert selection.of("p") is selection.of("p")
    assert selection.of("p").charged is request.products["p"].rows[0]


def test_an_agreed_price_is_charged_and_the_list_price_still_known():
    chosen = choose(request_for(Line("l", "p", 1), rows=(row(), contracted(1))), "p")
    assert (chosen.listed, chosen.contracted, chosen.charged) == (row(), contracted(1), contracted(1))


@proven
@given(sources, quantities)
def test_list_is_the_unit_price_for_each_unit_or_package(source: bytes, quantity: int):
    listed = row_of(Bytes(source))
    part = part_of(listed, quantity=quantity)
    take_list_price(part)
    assert part.amount == part.listed == listed.unit_price * times_charged(listed, quantity)
    assert part.steps == ((Stage.LIST, part.amount, "row", listed.unit_price, ""),)


@proven
@given(sources, quantities, st.integers(0, 10**9))
def test_contracted_replaces_list_and_leaves_the_list_amount(source: bytes, quantity: int, unit_price: int):
    part = part_of(row_of(Bytes(source)), contracted(unit_price), quantity=quantity)
    take_list_price(part)
    listed = part.listed
    take_contracted_price(part)
    assert (part.amount, part.listed) == (unit_price * quantity, listed)
    assert part.steps[-1] == (Stage.CONTRACTED, part.amount, "deal", unit_price, "")


def test_the_price_of_a_segment_replaces_both_and_names_the_segment():
    plan = agreed(part_of(row(), contracted(7)).plan, 3)
    part = Part(Line("l", "p", 5), plan, 5, {}, Segment(12, unit_price=3), 0, "segment 1")
    take_contracted_price(part)
    assert part.steps == ((Stage.CONTRACTED, 15, "segment 1", 3, "segment 1"),)


@proven
@given(sources, st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_tiers_over_the_quote_charge_the_lines_together_what_they_cost_as_one(source: bytes, shares: list[int]):
    tiered = row_of(Bytes(source))._replace(quantity_scope="quote")
    lines = tuple(Line(str(number), "p", quantity) for number, quantity in enumerate(shares))
    request = request_for(*lines, rows=(tiered,))
    counts, plan = Counts(request), Plans(request, PriceSelection(request)).of("p")
    parts = [Part(line, plan, quantity, {}) for line, quantity in zip(lines, shares, strict=True)]
    for part in parts:
        apply_tiers(part, counts)
    assert sum(part.amount for part in parts) == charge(tiered, sum(shares))
    assert {step.value for part in parts for step in part.steps} == {sum(shares)}
    assert [part.amount for part in parts] == [Fraction(charge(tiered, sum(shares)) * n, sum(shares)) for n in shares]


@proven
@given(exact, quantities, st.dictionaries(st.sampled_from("abcd"), st.integers(-MILLION, MILLION)))
def test_options_add_what_the_chosen_values_cost_for_each_unit(amount: Fraction, quantity: int, costs: dict[str, int]):
    surcharges = {name: {"yes": cost} for name, cost in costs.items()}
    choices = dict.fromkeys(("a", "b", "unpriced"), "yes")
    part = part_of(row(surcharges=surcharges), quantity=quantity, choices=choices)
    part.amount = part.listed = amount
    add_options(part)
    chosen = {name: cost for name, cost in costs.items() if name in choices}
    if not any(chosen.values()):
        assert (part.amount, part.steps) == (amount, ())
        return
    assert part.amount == part.listed == max(0, amount + sum(chosen.values()) * quantity)
    names = ", ".join(f"{name}=yes" for name in sorted(chosen))
    assert part.steps[-1] == (
        Stage.OPTIONS,
        nearest(part.amount.numerator, part.amount.denominator),
        names,
        sum(chosen.values()),
        "",
    )


@proven
@given(exact, st.sampled_from((("monthly", 1), ("quarterly", 3), ("yearly", 12))), st.integers(1, 60), percents)
def test_the_term_multiplies_by_its_periods_and_only_the_price_by_the_uplift(
    amount: Fraction, period: tuple[str, int], months: int, uplift: int
):
    name, length = period
    part = part_of(row(billing_period=name))
    part.amount = part.listed = amount
    part.segment = Segment(months, uplift=uplift)
    apply_term(part)
    assert part.listed == amount * Fraction(months, length)
    assert part.amount == part.listed * (1 + Fraction(uplift, ONE_HUNDRED_PERCENT))
    assert bool(part.steps) == (months != length or uplift != 0)
    for step in part.steps:
        assert (step.stage, step.source) == (Stage.TERM, name)
        assert step.value == nearest(months * MILLION, length)


def test_a_price_without_a_term_is_for_one_period_and_leaves_no_step():
    part = part_of(row(billing_period="yearly"))
    part.amount = part.listed = 7
    apply_term(part)
    assert (part.amount, part.listed, part.steps, part.term) == (7, 7, (), ONCE)


@proven
@given(requests, exact, exact)
def test_adjustments_move_a_price_as_a_plain_loop_does(request: Request, amount: Fraction, listed: Fraction):
    for line in request.lines:
        part = part_of(row(), quantity=reference_pricer.whole(line), ramp=line.ramp, adjustments=line.adjustments)
        part.amount, part.listed = amount, listed
        adjust(part)
        assert part.amount == reference_pricer.adjusted(line, Fraction(amount), Fraction(listed))
        assert part.listed == listed
        assert len(part.steps) == len(line.adjustments)
        assert {step.stage for step in part.steps} <= {Stage.ADJUSTMENT}


@proven
@given(exact, exact, percents, minor_units)
def test_the_line_discount_rounds_each_amount_once(amount: Fraction, listed: Fraction, discount: int, unit: MinorUnit):
    part = part_of(row(), discount=discount)
    part.note(Stage.LIST, amount, "row", None)
    part.amount, part.listed = amount, listed
    discount_line(part, unit)
    left = 1 - Fraction(discount, ONE_HUNDRED_PERCENT)
    assert (part.list_amount, part.regular) == (unit.round(listed), unit.round(amount))
    assert part.net == unit.round(amount * left)
    assert part.steps[-1].amount == part.net
    is_noted = part.steps[-1].stage == Stage.LINE_DISCOUNT
    assert is_noted == (discount != 0 or part.net != part.steps[0].amount)
    assert (part.amount, part.listed) == (amount, listed)


@proven
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8), percents, minor_units)
def test_the_quote_discount_is_rounded_once_and_all_of_it_is_on_the_lines(
    counts: list[int], requested: int, unit: MinorUnit
):
    parts = [part_of(row()) for _ in counts]
    for part, count in zip(parts, counts, strict=True):
        part.net = count * unit.size
    discount_quote(parts, request_for(rows=(), requested_discount=requested), unit)
    off = [count * unit.size - part.net for part, count in zip(parts, counts, strict=True)]
    assert sum(off) == unit.round(sum(counts) * unit.size, requested, ONE_HUNDRED_PERCENT)
    for part, count, share in zip(parts, counts, off, strict=True):
        assert 0 <= share <= count * unit.size
        noted = (Stage.QUOTE_DISCOUNT, part.net, "requested_discount_pct", requested, "")
        assert part.steps == ((noted,) if share else ())


@proven
@given(exact, exact, percents, percents)
def test_discounts_are_measured_against_the_regular_price_and_against_list(
    amount: Fraction, listed: Fraction, discount: int, requested: int
):
    assume(listed)
    part = part_of(row(), discount=discount)
    part.amount, part.listed = amount, listed
    kept = (1 - Fraction(discount, ONE_HUNDRED_PERCENT)) * (1 - Fraction(requested, ONE_HUNDRED_PERCENT))
    off, off_list = line_discount_percents(part, request_for(rows=(), requested_discount=requested))
    assert 0 <= off - (1 - kept) * ONE_HUNDRED_PERCENT < 1
    assert 0 <= off_list - (1 - amount * kept / listed) * ONE_HUNDRED_PERCENT < 1


@proven
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=6), minor_units, st.booleans())
def test_tax_is_added_to_net_prices_and_taken_out_of_prices_that_include_it(
    counts: list[int], unit: MinorUnit, is_included: bool
):
    parts = [part_of(row(tax_included=is_included)) for _ in counts]
    for part, count in zip(parts, counts, strict=True):
        part.net = part.regular = part.list_amount = count * unit.size
    (group,) = tax_lines(parts, request_for(*(part.line for part in parts), rows=(row(),)), unit)
    assert group.base == sum(part.net for part in parts)
    rate = Fraction(RATES["standard"], ONE_HUNDRED_PERCENT)
    if is_included:
        assert group.base + group.tax == sum(counts) * unit.size
        assert [part.net for part in parts] == [unit.round(count * unit.size / (1 + rate)) for count in counts]
        assert all(part.net == part.regular == part.list_amount == part.steps[-1].amount for part in parts)
        assert {part.steps[-1][2:4] for part in parts} == {("standard, included", RATES["standard"])}
    else:
        assert group.tax == unit.round(sum(counts) * unit.size * rate)
        assert not [part for part in parts if part.steps]


@proven
@given(exact, st.booleans())
def test_the_list_amount_is_made_to_treat_tax_as_the_charged_price_does(listed: Fraction, is_included: bool):
    part = part_of(row(tax_included=not is_included), contracted(1, tax_included=is_included))
    part.listed = listed
    level_list_tax(part, request_for(part.line, rows=(row(),)))
    with_tax = 1 + Fraction(RATES["standard"], ONE_HUNDRED_PERCENT)
    assert part.listed == (listed * with_tax if is_included else listed / with_tax)


@proven
@given(st.integers(0, 10**9), quantities, st.integers(-(10**7), 10**7), st.integers(1, 60))
def test_an_option_costs_the_same_share_of_its_price_as_the_product(cost: int, quantity: int, extra: int, months: int):
    part = part_of(row(cost=cost, billing_period="monthly"), quantity=quantity)
    part.surcharge = extra
    part.segment = Segment(months)
    apply_term(part)
    take_cost(part, Counts(request_for(part.line, rows=(row(),))))
    unit_price = part.plan.row.unit_price
    share = max(Fraction(0), 1 + Fraction(extra, unit_price))
    assert part.cost == cost * quantity * share * months


def test_a_price_that_says_no_cost_has_none_and_so_has_an_option_of_a_free_product():
    unknown, free = part_of(row()), part_of(row(0, cost=5))
    free.surcharge = 1
    for part in (unknown, free):
        take_cost(part, Counts(request_for(part.line, rows=(row(),))))
    assert (unknown.cost, free.cost) == (None, None)


@pytest.mark.parametrize(
    ("net", "cost", "expected"), [(100, 60, 40_000_000), (3, 2, 33_333_333), (50, 100, -100_000_000), (7, None, None)]
)
def test_margin_is_what_is_left_of_the_net_price(net: int, cost: int | None, expected: int | None):
    assert margin(net, cost) == expected
    assert margin(0, cost) is None
