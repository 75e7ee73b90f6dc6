"""How numbers, times and names are written, and where the marks of a waterfall stand."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.console import charts
from cpq.console.formats import coded, in_a_sentence, measured, named, number, percent, span, who, words
from cpq.domain.policy.facts import Unit
from cpq.services.quotes.review import WaterfallStage
from cpq.services.reports.figures import OutcomeFigure


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0, "under a minute"),
        (1, "1 min"),
        (59, "59 min"),
        (60, "1 h"),
        (65, "1 h 05 min"),
        (2879, "47 h 59 min"),
        (2880, "2 days"),
    ],
)
def test_a_span_is_short(minutes: int, said: str):
    assert span(timedelta(minutes=minutes)) == said


def test_numbers_and_names_read_well():
    assert [percent(Decimal("12.25")), percent(None), percent(0)] == ["12.3\u202f%", "–", "0.0\u202f%"]
    assert [in_a_sentence(Decimal(10)), in_a_sentence(Decimal("0.04"))] == ["10\u202f%", "0\u202f%"]
    assert [number(Decimal("12000.50")), number(5), number(Decimal("1E+3"))] == ["12,000.5", "5", "1,000"]
    assert [words("pending_approval"), words("vp_sales"), words(None)] == ["Pending approval", "VP Sales", ""]
    assert [words("emea"), words("mid_market")] == ["EMEA", "Mid market"]
    assert [who("human:dana"), who("agent:mcp"), who(None)] == ["dana", "mcp (agent)", ""]
    assert named("Withdrawn by human:dana.") == "Withdrawn by dana."
    assert named("human:dana@corp.example, for agent:crm-bot: no") == "dana@corp.example, for crm-bot (agent): no"
    assert [named("superhuman: yes"), named(None)] == ["superhuman: yes", ""]
    assert coded("human:d lacks `x`") == "d lacks <code>x</code>"


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (Decimal("5.0"), Unit.PERCENT, "5\u202f%"),
        (100_000, Unit.VALUE, "100,000.00\xa0USD"),
        (Decimal("433039.8"), Unit.AMOUNT, "433,039.80\xa0USD"),
        (24, Unit.MONTHS, "24\xa0months"),
        (3, Unit.PIECES, "3"),
        (None, Unit.PERCENT, "–"),
    ],
)
def test_a_limit_is_told_with_what_it_counts(value: Decimal | int | None, unit: Unit, said: str):
    assert measured(value, unit, "USD") == said


def test_what_is_to_be_typed_stands_out_and_nothing_gets_out():
    assert coded("Run `cpq init <now>` & wait.") == "Run <code>cpq init &lt;now&gt;</code> &amp; wait."


frames = st.sampled_from(charts.FRAMES)


@given(st.lists(st.integers(-(10**12), 10**12), max_size=8), st.integers(0, 10**12), frames)
def test_every_bar_of_a_waterfall_stands_inside_its_picture(changes: list[int], start: int, frame: charts.Frame):
    level = start
    stages: list[WaterfallStage] = [{"stage": "list", "is_level": True, "amount": start}]
    for change in changes:
        change = max(change, -level)  # An amount never falls below nothing.
        level += change
        stages.append({"stage": "tier", "is_level": False, "amount": change})
    stages.append({"stage": "total", "is_level": True, "amount": level})
    drawn = charts.waterfall(stages, frame)
    assert len(drawn.marks) == len(stages)
    for mark in drawn.marks:
        assert mark.x >= frame.left
        assert mark.width >= 2
        assert mark.x + mark.width <= frame.width - frame.right + 2
        assert mark.y + frame.thickness <= drawn.height
    assert drawn.marks[-1].joins == drawn.marks[-2].joins


ended = st.tuples(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400))


@given(st.lists(ended, min_size=6, max_size=12), frames)
def test_every_column_stands_inside_its_axis_and_no_two_labels_touch(counts: list[Any], frame: charts.Frame):
    outcomes: list[OutcomeFigure] = [
        {"since": date(2026, 1, 1), "accepted": won, "declined": lost, "expired": late} for won, lost, late in counts
    ]
    drawn = charts.columns([("01 Jan", one) for one in outcomes], frame)
    top = drawn.ticks[-1]
    assert top.number >= max(sum(one) for one in counts)
    assert len(drawn.ticks) <= 5
    assert all(drawn.base - column.won_height - column.lost_height >= top.y for column in drawn.columns)
    assert [column.share for column in drawn.columns if not column.ended] == [""] * counts.count((0, 0, 0))
    centers = [column.center for column in drawn.columns if column.label]
    assert all(right - left >= frame.label for left, right in pairwise(centers))


def test_the_share_of_a_column_is_rounded_and_not_cut():
    two_of_three: OutcomeFigure = {"since": date(2026, 1, 1), "accepted": 2, "declined": 1, "expired": 0}
    assert charts.columns([("01 Jan", two_of_three)], charts.BROAD).columns[0].share == "67 %"
