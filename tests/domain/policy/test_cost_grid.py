"""The grid of costs: never more lenient than the cost itself, and no finer than it says."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.cost_grid import coarse
from cpq.domain.policy.evaluation import evaluate
from cpq.domain.policy.facts import LineFacts, QuoteFacts
from cpq.domain.pricing.margin import margin
from tests.support.policies import policies, rules

costs = st.integers(0, 10**15)
grids = st.sampled_from([Decimal("0.5"), Decimal(1), Decimal(5), Decimal(20), Decimal(100)])
GUARDED = policies(discounts=rules("margin < 10"))


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


@given(st.integers(1, 10**12), st.integers(0, 10**12), grids)
def test_a_verdict_on_the_grid_is_never_more_lenient(net: int, cost: int, grid: Decimal):
    def violations(known: int) -> int:
        percent = margin(net, known)
        facts = QuoteFacts(margin=None if percent is None else Decimal(percent) / 10**6, lines=(LineFacts(),))
        return len(evaluate(GUARDED, facts).violations)

    assert violations(coarse(cost, grid)) >= violations(cost)
