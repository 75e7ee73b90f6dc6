"""The seven laws of agreements (A-10 to A-17), over random sales, calendars, currencies and days."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.agreements import billing_schedule
from cpq.domain.agreements.agreement import Agreement, fold
from cpq.domain.agreements.changes import (
    Action,
    Change,
    RenewalPrice,
    amended_lines,
    cancelled_lines,
    renewed_lines,
)
from cpq.domain.agreements.order_kind import OrderKind
from cpq.domain.pricing.request import PriceRow, Tier
from cpq.domain.quotes.draft import DraftLine
from tests.support.agreements import BOOK, World

MODES = ("actual_days", "thirty_360", "months_and_days", "whole_months_up")
PERIODS = ("monthly", "quarterly", "yearly")
CURRENCIES = ("USD", "JPY", "KWD")
PERCENT = 1_000_000


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Agreement]:
    """A sale of one to four lines, which is an agreement."""
    rows: dict[str, tuple[PriceRow, ...]] = {}
    for number in range(3):
        tiers = (Tier(10, draw(st.integers(1, 9_999)) * 10_000), Tier(None, draw(st.integers(1, 9_999)) * 5_000))
        is_tiered = draw(st.booleans())
        rows[f"p{number}"] = (
            PriceRow(
                f"row{number}",
                draw(st.integers(1, 99_999)) * 10_000,
                BOOK,
                billing_period=draw(st.sampled_from(PERIODS)),
                tier_mode=draw(st.sampled_from(["volume", "graduated"])) if is_tiered else "none",
                tiers=tiers if is_tiered else (),
            ),
        )
    world = World(
        rows, draw(st.sampled_from(CURRENCIES)), draw(st.sampled_from(MODES)), draw(st.sampled_from([0, 0, 1]))
    )
    start = draw(st.dates(date(2023, 1, 1), date(2028, 12, 31)))
    lines = [
        DraftLine(number, f"p{draw(st.integers(0, 2))}", draw(st.integers(1, 40)), draw(st.integers(0, 60)) * PERCENT)
        for number in range(1, draw(st.integers(1, 4)) + 1)
    ]
    months = draw(st.sampled_from([1, 6, 12, 13, 24, 36]))
    discount = draw(st.sampled_from([0, 0, 7 * PERCENT, 12_345_678]))
    whole = draw(st.booleans())
    agreement = world.sell(
        lines, start, months, requested_discount=discount, part_periods="whole_months" if whole else None
    )
    return world, agreement


def day_within(data: st.DataObject, agreement: Agreement) -> date:
    end = agreement.end
    assert end is not None
    return data.draw(st.dates(agreement.starts_on, end - timedelta(days=1)))


def states(agreement: Agreement) -> object:
    """What is owned on any day, without who ordered it."""
    return [
        (line.id, [phase for phase in line.phases if phase.stop is None or phase.stop > phase.start])
        for line in agreement.lines
    ]


def quantity(agreement: Agreement, line: int, number: int) -> list[Change]:
    return [Change(Action.SET_QUANTITY, agreement.lines[line].id, number)]


def amend(world: World, agreement: Agreement, day: date, changes: list[Change]) -> tuple[Agreement, int]:
    lines = amended_lines(agreement, day, changes)
    if not lines:
        return agreement, 0
    net = world.change(OrderKind.AMENDMENT, agreement, day, lines)
    return world.agreement(agreement.id), net


@given(worlds(), st.data())
def test_law_1_the_fold_is_the_same_in_whatever_order_orders_are_read(
    made: tuple[World, Agreement], data: st.DataObject
):
    world, agreement = made
    day = day_within(data, agreement)
    for number in data.draw(st.lists(st.integers(1, 30), max_size=4)):
        agreement, _ = amend(world, agreement, day, quantity(agreement, 0, number))
    orders = list(world.orders[agreement.id])
    Random(1).shuffle(orders)
    assert fold(agreement.id, orders) == agreement


@given(worlds(), st.data())
def test_law_2_to_x_and_back_on_one_day_leaves_what_was_and_costs_nothing(
    made: tuple[World, Agreement], data: st.DataObject
):
    world, first = made
    day = day_within(data, first)
    line = data.draw(st.integers(0, len(first.lines) - 1))
    phase = first.lines[line].on(max(day, first.lines[line].start))
    assert phase is not None
    other = data.draw(st.integers(1, 50).filter(lambda number: number != phase.sold.quantity))
    second, there = amend(world, first, day, quantity(first, line, other))
    third, back = amend(world, second, day, quantity(second, line, int(phase.sold.quantity)))
    assert there + back == 0
    assert states(third) == states(first)


@given(worlds(), st.data())
def test_law_3_one_amendment_in_two_parts_on_one_day_costs_the_same(made: tuple[World, Agreement], data: st.DataObject):
    world, first = made
    day = day_within(data, first)
    numbers = [data.draw(st.integers(1, 50)) for _ in first.lines]
    changes = [Change(Action.SET_QUANTITY, line.id, number) for line, number in zip(first.lines, numbers, strict=True)]
    together = World(**{**vars(world), "orders": {first.id: list(world.orders[first.id])}})
    whole, net = amend(together, first, day, changes)
    parts, agreement = 0, first
    for change in changes:
        agreement, one = amend(world, agreement, day, [Change(Action.SET_QUANTITY, change.line_id, 7)])
        agreement, other = amend(world, agreement, day, [change])
        parts += one + other
    assert (parts, states(agreement)) == (net, states(whole))


@given(worlds(), st.data())
def test_a02_law_4_what_is_billed_over_the_life_is_what_was_accepted(
    made: tuple[World, Agreement], data: st.DataObject
):
    world, agreement = made
    for _ in range(data.draw(st.integers(0, 3))):
        day = day_within(data, agreement)
        if day < max(order.effective for order in agreement.orders):
            continue
        line = data.draw(st.integers(0, len(agreement.lines) - 1))
        if agreement.lines[line].from_(day):
            agreement, _ = amend(world, agreement, day, quantity(agreement, line, data.draw(st.integers(1, 50))))
    billed = agreement.schedule(date(2100, 1, 1))
    assert sum(due.amount for due in billed) == sum(order.net for order in agreement.orders)
    assert all(due.amount % agreement.minor_unit.size == 0 for due in billed)
    for order in agreement.orders:
        for line_ in order.lines:
            dues = [due for due in billing_schedule.of_order([line_], order.minor_unit) if due.end > due.start]
            assert sum(due.amount for due in billing_schedule.of_order([line_], order.minor_unit)) == line_.net(
                order.minor_unit
            )
            _tiles([(due.start, due.end) for due in dues if due.amount >= 0 and not line_.replaced], line_)


def _tiles(days: list[tuple[date, date]], line: object) -> None:
    days = sorted(days)
    assert all(one[1] == next_[0] for one, next_ in pairwise(days)), (days, line)


@given(worlds(), st.integers(1, 50), st.sampled_from([6, 12, 24]), st.data())
def test_law_5_renewing_then_amending_on_the_first_day_is_renewing_the_amended(
    made: tuple[World, Agreement], number: int, months: int, data: st.DataObject
):
    world, first = made
    end = first.end
    assert end is not None
    line = data.draw(st.integers(0, len(first.lines) - 1))
    uplift = data.draw(st.sampled_from([0, 3 * PERCENT]))
    other = World(**{**vars(world), "orders": {first.id: list(world.orders[first.id])}})
    renewal = world.change(
        OrderKind.RENEWAL, first, end, renewed_lines([first], end, months, price=RenewalPrice.SAME, uplift=uplift)
    )
    renewed = world.agreement(first.id)
    renewed, amendment = amend(world, renewed, end, quantity(renewed, line, number))

    last = end - timedelta(days=1)
    amended, before = amend(other, first, last, quantity(first, line, number))
    net = other.change(
        OrderKind.RENEWAL, amended, end, renewed_lines([amended], end, months, price=RenewalPrice.SAME, uplift=uplift)
    )
    assert renewal + amendment == net
    assert renewed.on(end)[line][1].sold.quantity == number
    assert other.agreement(first.id).yearly(end) == renewed.yearly(end)
    assert isinstance(before, int)


@given(worlds(), st.data())
def test_law_5_co_terming_does_not_depend_on_the_order(made: tuple[World, Agreement], data: st.DataObject):
    world, first = made
    start = day_within(data, first)
    other = world.sell([DraftLine(1, "p0", 3), DraftLine(2, "p1", 5)], first.starts_on, 12)
    day = min(start, (other.end or start) - timedelta(days=1))
    nets = []
    for order in ([first, other], [other, first]):
        copy = World(**{**vars(world), "orders": {id_: list(orders) for id_, orders in world.orders.items()}})
        lines = renewed_lines(order, day, 12, price=RenewalPrice.SAME, uplift=0)
        nets.append(copy.change(OrderKind.RENEWAL, order[0], day, lines, order[1:]))
        owned = [copy.agreement(one.id) for one in order]
        assert not owned[1].on(day)
        assert owned[1].renewed_into == order[0].id
        assert {phase.end for _, phase in owned[0].on(day)} == {owned[0].end}
        nets.append(owned[0].yearly(day))
    assert nets[:2] == nets[2:]


@given(worlds(), st.data())
def test_law_6_a_cancellation_gives_back_all_on_the_first_day_and_less_each_day(
    made: tuple[World, Agreement], data: st.DataObject
):
    world, agreement = made
    end = agreement.end
    assert end is not None
    days = sorted({agreement.starts_on, *(day_within(data, agreement) for _ in range(4))})
    credits_ = []
    for day in days:
        copy = World(**{**vars(world), "orders": {agreement.id: list(world.orders[agreement.id])}})
        credits_.append(-copy.change(OrderKind.CANCELLATION, agreement, day, cancelled_lines(agreement, day, None)))
        left = copy.agreement(agreement.id)
        assert (left.on(day), left.status(day)) == ([], "cancelled")
    assert credits_[0] == sum(order.net for order in agreement.orders)
    assert credits_ == sorted(credits_, reverse=True)
    assert credits_[-1] >= 0


@given(worlds(), st.data())
def test_law_7_an_amendment_that_changes_nothing_has_no_lines(made: tuple[World, Agreement], data: st.DataObject):
    _, agreement = made
    day = day_within(data, agreement)
    for place, line in enumerate(agreement.lines):
        held = line.on(max(day, line.start))
        assert held is not None
        assert amended_lines(agreement, day, quantity(agreement, place, int(held.sold.quantity))) == []
