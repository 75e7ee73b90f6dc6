"""The page of figures: pipeline, outcomes, discounts and decision times."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.console import charts
from cpq.console.csv_export import csv_response
from cpq.console.formats import MINUS, money, number, percent, span_of_minutes, words
from cpq.console.visit import Visit
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services import agreements, approvals
from cpq.services.reports.figures import PERIODS, figures

AGREEMENTS_MAX = 500
"""Agreements that the page folds; of more the command line says the revenue."""


def show(visit: Visit) -> Response:
    if visit.is_export:
        return _export(visit)
    text = visit.query("days")
    days = int(text) if text in map(str, PERIODS) else 90

    def work(tx: Tx) -> Answer:
        return {
            **figures(tx, days=days),
            "waiting": approvals.pending(tx, role=None, limit=1)["total"],
            "renewals": agreements.by_month(tx),
            "revenue": agreements.revenue(tx, agreements_max=AGREEMENTS_MAX),
        }

    answer = visit.read("figures", work, days=days)
    currency = answer["currency"]
    pipeline = [
        (words(one["status"]), Decimal(one["value"]), f"{one['count']:,} · {_whole(one['value'], currency)}")
        for one in answer["pipeline"]
    ]
    turnaround = [
        (words(one["role"]), Decimal(one["median_minutes"]), span_of_minutes(one["median_minutes"]))
        for one in answer["turnaround"]
    ]
    discounts = [(_reach(one), Decimal(one["count"]), f"{one['count']:,}") for one in answer["discounts"]]
    outcomes = [(f"{one['since']:%d %b}", one) for one in answer["outcomes"]]
    renewals = [(f"{one['month']:%b %Y}", Decimal(one["count"]), _worth(one)) for one in answer["renewals"]]
    return visit.page(
        "figures.html",
        **answer,
        periods=PERIODS,
        pipeline_bars=[charts.bars(pipeline, frame) for frame in charts.FRAMES],
        turnaround_bars=[charts.bars(turnaround, frame) for frame in charts.FRAMES],
        discount_bars=[charts.bars(discounts, frame) for frame in charts.FRAMES],
        outcome_columns=[charts.columns(outcomes, frame) for frame in charts.FRAMES],
        revenue_bars=_revenue(answer["revenue"]["days"]),
        renewal_bars=[charts.bars(renewals, frame) for frame in charts.FRAMES],
        tiles=_tiles(answer),
    )


def _export(visit: Visit) -> Response:
    """Recurring revenue by day and currency, as a file."""
    answer = visit.read("figures", lambda tx: {"revenue": agreements.revenue(tx)})["revenue"]
    rows = [(one["day"], currency, arr) for one in answer["days"] for currency, arr in one["arr"].items()]
    return csv_response("recurring-revenue", ("day", "currency", "arr"), rows, total=len(rows))


def _revenue(days: Sequence[Any]) -> list[tuple[str, list[charts.Bars]]]:
    """A chart for each currency, because currencies are never added."""
    found = []
    for currency in sorted({name for one in days for name in one["arr"]}):
        values = [(f"{one['day']:%d %b %Y}", Decimal(one["arr"].get(currency, 0))) for one in days]
        rows = [(label, value, _whole(value, currency)) for label, value in values]
        found.append((currency, [charts.bars(rows, frame) for frame in charts.FRAMES]))
    return found


def _worth(one: Any) -> str:
    """How many agreements end, and their recurring revenue of a year in each currency."""
    values = [_whole(value, currency) for currency, value in sorted(one["arr"].items())]
    return " · ".join([f"{one['count']:,}", *values])


def _whole(value: Decimal | int, currency: str) -> str:
    return f"{Decimal(value):,.0f} {currency}".replace("-", MINUS)


def _reach(one: Any) -> str:
    if one["above"] is None:
        return f"up to {number(one['up_to'])} %" if one["up_to"] is not None else "any"
    upper = f" to {number(one['up_to'])} %" if one["up_to"] is not None else " %"
    return f"above {number(one['above'])}{upper}"


def _tiles(answer: Answer) -> list[tuple[str, str, str]]:
    """The four key figures: title, value, and basis."""
    currency = answer["currency"]
    is_open = (QuoteStatus.PENDING_APPROVAL, QuoteStatus.APPROVED, QuoteStatus.SENT)
    value = sum((Decimal(one["value"]) for one in answer["pipeline"] if one["status"] in is_open), Decimal(0))
    count = sum(one["count"] for one in answer["pipeline"] if one["status"] in is_open)
    won = sum(one["accepted"] for one in answer["outcomes"])
    ended = won + sum(one["declined"] + one["expired"] for one in answer["outcomes"])
    decided = sum(one["count"] for one in answer["turnaround"])
    slow = answer["slow_minutes"]
    return [
        ("Open pipeline", money(value.quantize(Decimal(1), ROUND_HALF_UP), "JPY"), f"{currency} in {count:,} quotes"),
        (
            "Win rate",
            percent(Decimal(won * 100) / ended) if ended else "–",
            f"{won:,} of {ended:,} that were sent and ended",
        ),
        ("Waiting now", f"{answer['waiting']:,}", "requests for approval"),
        (
            "Nine of ten decided within",
            span_of_minutes(slow) if slow is not None else "–",
            f"{decided:,} decisions",
        ),
    ]
