"""How numbers, times and names are written, and where the marks of a waterfall stand."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.console import drawing
from cpq.console.wording import number, percent, span, who, words
from cpq.reviews import WaterfallStage


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
    assert [percent(Decimal("12.25")), percent(None), percent(0)] == ["12.3%", "–", "0.0%"]
    assert [number(Decimal("12000.50")), number(5), number(Decimal("1E+3"))] == ["12,000.5", "5", "1,000"]
    assert [words("pending_approval"), words("vp_sales"), words(None)] == ["Pending approval", "VP Sales", ""]
    assert [who("human:dana"), who("agent:mcp"), who(None)] == ["dana", "mcp (agent)", ""]


@given(st.lists(st.integers(-(10**12), 10**12), max_size=8), st.integers(0, 10**12))
def test_every_bar_of_a_waterfall_stands_inside_its_picture(changes: list[int], start: int):
    level = start
    stages: list[WaterfallStage] = [{"stage": "list", "is_level": True, "amount": start}]
    for change in changes:
        change = max(change, -level)  # An amount never falls below nothing.
        level += change
        stages.append({"stage": "tier", "is_level": False, "amount": change})
    stages.append({"stage": "total", "is_level": True, "amount": level})
    drawn = drawing.waterfall(stages)
    assert len(drawn.marks) == len(stages)
    for mark in drawn.marks:
        assert mark.x >= drawing.LABEL
        assert mark.width >= 2
        assert mark.x + mark.width <= drawing.WIDTH - drawing.VALUES + 2
        assert mark.y + drawing.BAR <= drawn.height
    assert drawn.marks[-1].joins == drawn.marks[-2].joins
