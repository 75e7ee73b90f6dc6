"""G-01: published cases of part periods. What our rules cover comes out as there; the rest says why not."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cpq.base.errors import CpqError
from cpq.base.money import from_micro
from cpq.base.rounding import MinorUnit
from cpq.domain.billing_periods import length, spelling
from cpq.domain.pricing.terms import add_months, factor, part, periods, weeks_factor, whole_months
from tests.domain.pricing.test_vectors import micro

CASES = json.loads((Path(__file__).parent / "proration_cases.json").read_text(encoding="utf-8"))

NOT_OURS = {
    "days": "a billing period is a number of weeks or months, not of days",
    "billing date": "when a period is billed is decided by the schedule of an order, not by its price",
    "actual_360": "days of the calendar over thirty: a whole month would not be 1 (semantics: the whole period)",
    "28 days": "a month of 28 days is no mode of the semantics",
    "usage": "consumption is measured after the sale",
    "arguments": "the arguments of a line refuse it before there is a price",
}
"""Why a case is left out."""

NEXT_DAY = timedelta(days=1)


class LeftOut(Exception):  # noqa: N818 - not an error
    """A case that is not ours, by the word of `NOT_OURS`."""


def day(text: str) -> date:
    return date.fromisoformat(text)


def months_of(period: str, interval: int = 1) -> int:
    found = length(spelling(period.partition(",")[0]) or "")
    if found is None:
        raise LeftOut("days")
    return found.months * interval


def anchored(start: date, anchor_day: int, months: int) -> date:
    """An anchor before the start, a number of periods from the month of the start.

    It lies in a month that has the day, so that later anchors clamp to the end of their months and no other does.
    """
    earlier = (add_months(start.replace(day=1), -months * back) for back in range(1, 60))
    days = [(month, (add_months(month, 1) - NEXT_DAY).day) for month in earlier]
    longest = max(last for _, last in days)
    return next(month.replace(day=min(anchor_day, last)) for month, last in days if last >= min(anchor_day, longest))


def of_cycles(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end, months = day(asked["start"]), asked["end"] and day(asked["end"]), months_of(asked["period"])
    if "error" in expected:
        with pytest.raises(CpqError):
            factor("actual_days", start, end, months)
        return
    anchor = anchored(start, asked["anchor_day"], months)
    as_of = max(day(asked["as_of"]), start)
    billed = periods(anchor, start, as_of + NEXT_DAY, months)[-1][1]
    until = min(billed, end) if end else billed
    parts = [part(tile, max(tile[0], start), min(tile[1], until)) for tile in periods(anchor, start, until, months)]
    wanted = expected.get("parts_if_periods_tile", expected.get("parts"))
    assert sum(parts) == Fraction(expected.get("cycles_exact_if_periods_tile", expected["cycles_exact"]))
    assert wanted is None or parts == [Fraction(one) for one in wanted]


def of_first_anchor(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    if "billed_through" in expected:
        raise LeftOut("billing date")
    start, months = day(asked["start"]), months_of(asked["period"])
    first = periods(anchored(start, asked["anchor_day"], months), start, start + NEXT_DAY, months)[0]
    assert (first[0] if first[0] == start else first[1]) == day(expected["first_anchor"])


def of_fraction(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    mode = asked["mode"]
    if mode == "actual_360":
        raise LeftOut("actual_360")
    if asked.get("fixed_days", 30) != 30:
        raise LeftOut("28 days")
    if mode == "daily amount cut to cents":
        shares = MinorUnit("EUR", "half_up").allocate(micro(asked["amount"]), asked["days"])
        assert [from_micro(one) for one in shares] == [Decimal(one) for one in expected["parts_if_rounded_once"]]
        return
    start = day(asked["start"])
    if "whole_weeks" in asked:
        end = start + timedelta(days=expected["stub_days"] + 7 * asked["whole_weeks"])
        amount = MinorUnit("EUR", "half_up").round(micro(asked["price"]) * weeks_factor(mode, start, end, 1))
        assert from_micro(amount) == Decimal(expected["amount"])
        return
    if "period_start" in asked:
        whole = day(asked["period_start"]), day(asked["period_end"])
        found = part(whole, start, day(asked.get("end", asked["period_end"])))
    else:
        end = day(asked["end"]) if "end" in asked else day(asked["end_inclusive"]) + NEXT_DAY
        found = factor("thirty_360" if mode == "fixed_days" else mode, start, end, months_of(asked["period"]))
    assert found == Fraction(expected.get("fraction_exact", Fraction(expected.get("days", 0), 30)))


def of_whole_periods(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end, wanted = day(asked["start"]), day(asked["end"]), expected["whole_periods"]
    if asked["period"] == "week":
        assert weeks_factor("actual_days", start, end, 1) // 1 == wanted
    else:
        assert whole_months(start, end) // months_of(asked["period"]) == wanted


def of_advance(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end, count = day(asked["start"]), day(expected["date"]), asked["periods"]
    if asked["period"] == "week":
        assert weeks_factor("actual_days", min(start, end), max(start, end), 1) == abs(count)
    else:
        assert add_months(start, months_of(asked["period"]) * count) == end


def of_step(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end = day(asked["next_invoice_date"]), day(expected["next_invoice_date"])
    if asked["period"] == "week":
        assert weeks_factor("whole_months", start, end, asked["interval"]) == 1
    else:
        assert add_months(start, months_of(asked["period"], asked["interval"])) == end
    assert end - NEXT_DAY == day(expected["last_day_invoiced"])


def of_sequence(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    start, end = day(asked["start"]), day(asked["end"]) + NEXT_DAY
    months = months_of(asked["period"], asked["interval"])
    anchor = anchored(start, 1, months) if "last day" in asked["period"] else start
    tiles = periods(anchor, start, end, months)
    found = [(max(first, start), min(after, end) - NEXT_DAY) for first, after in tiles]
    assert found == [(day(one["first"]), day(one["last"])) for one in expected["periods"]]


def left_out(reason: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def run(asked: dict[str, Any], expected: dict[str, Any]) -> None:
        raise LeftOut("arguments" if "value" in asked else reason)

    return run


RUN: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "anchor.first": of_first_anchor,
    "arrears.interval": left_out("billing date"),
    "whole_periods": of_whole_periods,
    "advance": of_advance,
    "recurrence.invoice_date": left_out("billing date"),
    "recurrence.period": left_out("billing date"),
    "recurrence.validation": left_out("billing date"),
    "recurrence.tryton": left_out("usage"),
    "recurrence.step": of_step,
    "recurrence.sequence": of_sequence,
}


def reason_of(case: dict[str, Any]) -> str | None:
    """Why a case is left out; None when it was checked."""
    group = case["group"].removeprefix("proration.")
    run = of_cycles if group.startswith("cycles.") else of_fraction if group.startswith("fraction.") else RUN[group]
    try:
        run(case["inputs"], case["expected"])
    except LeftOut as reason:
        return str(reason)
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_g01_a_published_part_period_comes_out_as_there_or_says_why_not(case: dict[str, Any]):
    reason = reason_of(case)
    assert reason is None or reason in NOT_OURS


def test_g01_no_more_part_periods_are_left_out_than_these():
    assert Counter(reason for case in CASES if (reason := reason_of(case))) == {
        "28 days": 2,
        "actual_360": 3,
        "arguments": 1,
        "billing date": 22,
        "days": 5,
        "usage": 2,
    }
