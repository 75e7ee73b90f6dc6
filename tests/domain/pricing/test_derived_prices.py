"""G-10: a price in another currency is the base price at a dated rate, rounded by the rule of its price book."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.money import MINOR_DIGITS, from_micro, to_micro
from cpq.base.rounding import PriceRounding
from cpq.base.text import plain_json, read_json
from cpq.domain.policy.cost_grid import coarse, coarse_costs
from cpq.domain.pricing import price
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.derived_prices import Conversion, completed, derive, rounded
from cpq.domain.pricing.request import Line, PriceRow, Product, Request, Tier
from cpq.domain.pricing.result import Stage
from tests.domain.pricing.test_vectors import micro

RULES = list(PriceRounding)
rules = st.sampled_from(RULES)
currencies = st.sampled_from(["NOK", "JPY", "KWD", "CLF", "USD"])
amounts = st.fractions(min_value=0, max_value=10**15)
rates = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6).filter(bool)


@pytest.mark.parametrize(
    ("amount", "currency", "rule", "expected"),
    [
        ("92.592592", "EUR", "exact", "92.592592"),
        ("92.592592", "EUR", "minor_unit", "92.59"),
        ("92.595", "EUR", "minor_unit", "92.6"),
        ("92.592592", "EUR", "whole", "93"),
        ("92.592592", "EUR", "five", "95"),
        ("92.5", "EUR", "five", "95"),
        ("92.49", "EUR", "five", "90"),
        ("94.999999", "EUR", "ten", "90"),
        ("92.592592", "EUR", "just_below", "92.99"),
        ("92.49", "EUR", "just_below", "92.99"),
        ("92.489999", "EUR", "just_below", "91.99"),
        ("14962.4", "JPY", "minor_unit", "14962"),
        ("14962.4", "JPY", "just_below", "14999"),
        ("14949", "JPY", "just_below", "14999"),
        ("14948", "JPY", "just_below", "14899"),
        ("1.23456", "KWD", "minor_unit", "1.235"),
        ("1.23456", "KWD", "just_below", "0.999"),
        # What the rule would make free keeps its six decimals.
        ("0.0021", "EUR", "minor_unit", "0.0021"),
        ("2.49", "EUR", "five", "2.49"),
        ("0.3", "EUR", "just_below", "0.3"),
        ("0.0000001", "EUR", "minor_unit", "0.000001"),
        ("0", "EUR", "just_below", "0"),
        ("-1.905", "EUR", "minor_unit", "-1.91"),
    ],
)
def test_g10_a_converted_price_is_rounded_as_its_book_says(amount: str, currency: str, rule: str, expected: str):
    found = rounded(Fraction(amount) * 10**6, PriceRounding(rule), currency)
    assert from_micro(found) == Decimal(expected)


@given(amounts, amounts, rules, currencies)
def test_g10_rounding_keeps_the_order_and_never_makes_a_price_free(
    one: Fraction, other: Fraction, rule: PriceRounding, currency: str
):
    low, high = sorted((one, other))
    assert rounded(low, rule, currency) <= rounded(high, rule, currency)
    assert (rounded(high, rule, currency) > 0) == (high > 0)
    assert rounded(-high, rule, currency) == -rounded(high, rule, currency)


@given(amounts, rules, currencies)
def test_g10_rounding_is_to_the_nearest_and_a_second_time_changes_nothing(
    amount: Fraction, rule: PriceRounding, currency: str
):
    minor = 10 ** (6 - MINOR_DIGITS[currency])
    steps = {"exact": 1, "minor_unit": minor, "whole": 10**6, "five": 5 * 10**6, "ten": 10**7}
    step = steps.get(rule, 10**6 if minor < 10**6 else 10**8)
    found = rounded(amount, rule, currency)
    assert abs(found - amount) <= Fraction(step, 2) or found == 1, "a millionth at least"
    assert rounded(Fraction(found), rule, currency) == found


BASE = PriceRow(
    "book=nordic|p|EUR",
    micro(100),
    price_book_id="nordic",
    tier_mode="graduated",
    tiers=(Tier(10, micro(100), micro(5)), Tier(None, micro(90))),
    cost=micro(60),
    surcharges={"size": {"xl": micro("2.5")}},
)
TO_NOK = Conversion("EUR", "NOK", Fraction(108, 100) / Fraction(94, 1000), "2026-11-02", PriceRounding.FIVE)


def request(*rows: PriceRow, quantity: int = 3, **fields: object) -> Request:
    lines = (Line("1", "p", quantity, choices={"size": "xl"}),)
    return Request("NOK", "2026-11-16", lines, {"p": Product(rows)}, ("nordic", "list"), {"standard": 0}, **fields)  # type: ignore[arg-type] # Of those fields.


def test_g10_unit_prices_fees_surcharges_and_costs_are_converted():
    row = derive(BASE, TO_NOK)
    assert row.id == BASE.id
    assert from_micro(row.unit_price) == 1150  # 1148.94
    assert [(tier.up_to, from_micro(tier.unit_price)) for tier in row.tiers] == [
        (10, Decimal(1150)),
        (None, Decimal(1035)),
    ]
    assert from_micro(row.tiers[0].flat_fee) == Decimal("57.45")
    assert row.surcharges == {"size": {"xl": micro("28.72")}}
    assert row.cost == to_micro(Decimal("689.361702"))


def test_g10_the_trace_names_base_price_rate_and_day_and_the_request_replays():
    asked = request(derive(BASE._replace(tier_mode="none", tiers=()), TO_NOK))
    priced = price(asked)
    first, second, *_ = priced.lines[0].steps
    assert (first.stage, first.source, first.value) == (Stage.LIST, BASE.id, micro(1150))
    assert (second.stage, second.amount, second.value) == (Stage.CURRENCY, first.amount, micro("11.489362"))
    assert second.source == "100 EUR at the rate of 2026-11-02, rounded to five"
    stored = plain_json(pricing_request.dump(asked))
    again = pricing_request.load(read_json(stored))
    assert again == asked
    assert plain_json(pricing_request.dump(again)) == stored
    assert price(again) == priced


def test_g10_only_a_price_that_the_book_lacks_is_derived():
    own = PriceRow("own", micro(1200), price_book_id="nordic")
    later = own._replace(id="later", valid_from="2026-12-01")
    yearly = BASE._replace(id="yearly", billing_period="yearly")
    by = {"nordic": TO_NOK}

    def ids(*rows: PriceRow) -> list[str]:
        return [row.id for row in completed(Product(rows), (BASE, yearly), by, "2026-11-16").rows]

    assert ids() == [BASE.id, "yearly"]
    assert ids(own) == ["own", "yearly"], "of the same selling model"
    assert ids(later) == [BASE.id, "later", "yearly"], "valid on the day"
    assert ids(own._replace(price_book_id="list")) == [BASE.id, "own", "yearly"], "in the book itself"
    ended = (BASE._replace(valid_to="2026-11-15"),)
    assert completed(Product(()), ended, by, "2026-11-16") == Product(())


@given(st.integers(1, 10**9), st.integers(0, 10**12), st.integers(1, 500), rates)
def test_g10_laws_hold_for_any_rate(unit: int, cost: int, quantity: int, rate: Fraction):
    base = BASE._replace(unit_price=unit, cost=cost, tier_mode="none", tiers=(), surcharges={})
    to = TO_NOK._replace(rate=rate, rounding=PriceRounding.EXACT)
    row = derive(base, to)
    assert abs(row.unit_price - unit * rate) < 1
    assert row.cost is not None
    assert abs(row.cost - cost * rate) <= Fraction(1, 2) or row.cost == 1
    assert row.derived is not None
    assert Fraction(row.derived.rate, row.derived.rate_of) == rate
    back = derive(row._replace(derived=None), to._replace(rate=1 / rate))
    assert abs(back.unit_price - unit) <= 1 + 1 / rate
    steps = price(request(row._replace(unit_price=unit), quantity=quantity)).lines[0].steps
    assert [step.amount for step in steps[:2]] == [unit * quantity] * 2


@given(st.integers(1, 10**10), rates, rates, st.sampled_from(["list", "nordic"]))
def test_g10_the_same_cost_in_many_currencies_is_judged_by_one_point_of_the_grid(
    cost: int, one: Fraction, other: Fraction, book: str
):
    """Else a caller who may not see costs could price a product in many currencies, and narrow its cost down."""
    percent = Decimal(5)
    base = BASE._replace(cost=cost, price_book_id=book, tier_mode="none", tiers=(), surcharges={})
    factor = Fraction(coarse(cost, percent), cost)
    for rate in (one, other):
        row = derive(base, TO_NOK._replace(rate=rate, rounding=PriceRounding.EXACT))
        assert row.cost is not None
        judged = coarse_costs(request(row, quantity=1), percent).of_lines["1"]
        exact = -(-row.cost * factor.numerator // factor.denominator)
        assert abs(judged - exact) <= 10**4, "but for the minor unit of the line"
