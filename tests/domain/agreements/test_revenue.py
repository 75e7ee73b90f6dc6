"""Recurring revenue is the sum over the fold, and a base that nobody changes stays at exactly 100 %."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.agreements.revenue import Retained, retained, revenue_on
from tests.support.random_agreements import a_world, day_within


@given(st.randoms(use_true_random=False))
def test_the_revenue_of_a_day_is_the_sum_over_the_fold(luck: Random):
    both = [a_world(luck)[1], a_world(luck)[1]]
    day = day_within(luck, both[0])
    expected: dict[str, int] = {}
    for agreement in both:
        lines = [phase.yearly for line in agreement.lines for phase in line.phases if phase.is_on(day)]
        value = agreement.minor_unit.round(sum(lines))
        expected[agreement.currency] = expected.get(agreement.currency, 0) + value
    assert revenue_on(both, day) == {name: value for name, value in expected.items() if value}
    assert revenue_on(both[::-1], day) == revenue_on(both, day)


@given(st.randoms(use_true_random=False))
def test_a_base_that_nobody_changes_is_retained_whole_and_one_that_ends_not_at_all(luck: Random):
    agreement = a_world(luck, ramped=False)[1]
    since, until = sorted((day_within(luck, agreement), day_within(luck, agreement)))
    arr = agreement.yearly(since)
    whole = {agreement.currency: Retained(arr, arr)} if arr else {}
    assert retained([agreement], since, until) == whole
    assert agreement.end is not None
    ended = {agreement.currency: Retained(arr, 0)} if arr else {}
    assert retained([agreement], since, agreement.end) == ended
    assert retained([agreement], agreement.starts_on - timedelta(days=1), until) == {}, "it came later"
    grown = replace(agreement, id="A-2")
    assert retained([agreement, grown], since, until) == {name: Retained(2 * arr, 2 * arr) for name in whole}
    newcomer = replace(agreement, id="A-3", account_id="new", lines=())
    assert retained([agreement, newcomer], since, until) == whole
