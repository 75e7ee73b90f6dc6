"""The grid of costs: never more lenient than the cost itself, and no finer than it says, whatever is quoted."""

import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.domain.policy.cost_grid import coarse, coarse_costs
from cpq.domain.policy.evaluation import evaluate
from cpq.domain.policy.facts import LineFacts, QuoteFacts
from cpq.domain.pricing import Request, price
from cpq.domain.pricing.margin import margin
from cpq.domain.pricing.request import EDITION, Component, Line, PriceRow, Product
from tests.support.policies import policies, rules
from tests.support.random_quotes import MILLION, requests

costs = st.integers(0, 10**15)
grids = st.sampled_from([Decimal("0.5"), Decimal(1), Decimal(5), Decimal(20), Decimal(100)])
GUARDED = policies(discounts=rules("margin < 10"))
GRID = Decimal(5)
CALLS = 2000


@given(costs, grids)
def test_a_cost_is_rounded_up_by_less_than_the_grid_and_stays_there(cost: int, grid: Decimal):
    found = coarse(cost, grid)
    assert cost <= found
    assert found <= cost + 1 or found <= cost * (1 + grid / 100)
    assert coarse(found, grid) == found


@given(costs, costs, grids)
def test_a_higher_cost_never_looks_lower(one: int, other: int, grid: Decimal):
    assert (coarse(one, grid) <= coarse(other, grid)) or one > other


@given(costs)
def test_without_a_grid_a_cost_is_exact(cost: int):
    assert coarse(cost, Decimal(0)) == cost


def is_asked(net: int, cost: int | None) -> bool:
    percent = margin(net, cost)
    facts = QuoteFacts(margin=None if percent is None else Decimal(percent) / 10**6, lines=(LineFacts(),))
    return bool(evaluate(GUARDED, facts).violations)


@given(st.integers(1, 10**12), st.integers(0, 10**12), grids)
def test_a_verdict_on_the_grid_is_never_more_lenient(net: int, cost: int, grid: Decimal):
    assert is_asked(net, coarse(cost, grid)) >= is_asked(net, cost)


@settings(max_examples=300)
@given(requests, grids)
def test_no_line_of_any_quote_looks_cheaper_on_the_grid(request: Request, grid: Decimal):
    exact = {line.id: line.cost for line in price(request).lines if line.cost is not None}
    found = coarse_costs(request, grid).of_lines
    assert found.keys() == exact.keys()
    assert all(found[id_] >= exact[id_] for id_ in exact)
    assert coarse_costs(request, Decimal(0)).of_lines == exact


def catalogue(cost: int) -> dict[str, Product]:
    """A machine of an unknown cost, sold at once and by the month, one of a known cost, and two bundles of both."""
    whole = PriceRow("p1", 100 * MILLION, "list", cost=cost)
    monthly = PriceRow("p2", 300 * MILLION, "list", cost=3 * cost, billing_period="monthly")
    return {
        "secret": Product((whole, monthly)),
        "known": Product((PriceRow("p3", 100 * MILLION, "list", cost=30 * MILLION),)),
        "pair": Product((PriceRow("p4", 0, "list"),), (Component("secret", 1), Component("known", 1))),
        "mix": Product((PriceRow("p5", 0, "list"),), (Component("secret", 3), Component("known", 7))),
    }


def adversary(
    is_asked_for: Callable[[Request], bool], products: dict[str, Product], calls: int = CALLS
) -> tuple[list[bool], Fraction]:
    """Bisects the discount of quotes with other quantities, other products and bundles, again and again.

    The answers, and how close the best two net prices came to each other.
    """
    chance, best = random.Random(18), Fraction(1)
    answers: list[bool] = []
    while len(answers) < calls:
        lines = [
            Line("1", "secret", chance.choice([1, 1, 7, 1000]), selling_model=chance.choice(["one_time", "monthly"]))
        ]
        for number, name in enumerate(("known", "pair", "mix"), 2):
            if chance.random() < 0.5:
                lines.append(Line(str(number), name, chance.randint(1, 900), part_models={"secret": "one_time"}))
        asked = Request(
            "USD", "2026-11-18", tuple(lines), products, ("list",), {"standard": 0}, term_months=12, edition=EDITION
        )
        low, high = 0, 99 * MILLION
        for _ in range(26):
            middle = (low + high) // 2
            answers.append(is_asked_for(asked._replace(requested_discount=middle)))
            low, high = (low, middle) if answers[-1] else (middle, high)
        best = min(best, Fraction(high - low, 100 * MILLION - high))
    return answers, best


def test_2000_calls_narrow_a_cost_to_no_better_than_the_grid():
    """In two catalogues whose costs are at the two ends of one interval, each of the calls has the same answer."""

    def on_grid(request: Request) -> bool:
        return is_asked(price(request).net, sum(coarse_costs(request, GRID).of_lines.values()))

    low, high = 58_749_223, coarse(58_749_223, GRID)
    assert Fraction(high, low) > Fraction(1049, 1000)
    answers, best = adversary(on_grid, catalogue(low))
    assert adversary(on_grid, catalogue(high)) == (answers, best)
    assert {*answers} == {False, True}
    assert best < Fraction(1, 10**6), "without the grid, so close a pair of prices gives the cost away"
    beyond, _ = adversary(on_grid, catalogue(high + 1), 100)
    assert beyond != answers[: len(beyond)]


def test_without_a_grid_the_same_calls_tell_costs_apart_that_differ_by_a_cent():
    def exactly(request: Request) -> bool:
        priced = price(request)
        return is_asked(priced.net, priced.cost)

    one, other = (adversary(exactly, catalogue(cost), 100) for cost in (60_630_000, 60_640_000))
    assert one[0] != other[0]
