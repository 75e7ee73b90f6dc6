"""Quotes, accounts, policies, the record of a quote, figures and health: what can be looked up."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from starlette.responses import Response

from cpq import __version__
from cpq.app import Answer, audit, policy_files
from cpq.app.access import Permission
from cpq.app.health import readiness
from cpq.app.policy_files import Stamp
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.console import charts
from cpq.console.formats import measured, money, number, percent, span_of_minutes, words
from cpq.console.visit import Visit
from cpq.domain.policy.files.cases import CaseResult
from cpq.domain.policy.overview import tables, unit_of
from cpq.domain.policy.policy_set import Ladder, PolicySet
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services import approvals, catalog, quotes
from cpq.services.reports.figures import PERIODS, figures
from cpq.storage.schema import SCHEMA_VERSION

PAGE = 50
AUDIT_MAX = 200
CALLS_LOOKED_AT = 5_000
FAULTS = ("INTERNAL_ERROR", "UNAVAILABLE", "TIMEOUT")
FAULTS_SHOWN = 20


def list_quotes(visit: Visit) -> Response:
    status = visit.query("status")
    asked: dict[str, Any] = {
        "status": status if status in tuple(QuoteStatus) else None,
        "query": visit.query("q")[:100] or None,
        "account_id": None,
    }

    def work(tx: Tx) -> Answer:
        return dict(quotes.list_quotes(tx, **asked, limit=PAGE, page=visit.page_number()))

    answer = visit.read("quotes", work, **asked, page=visit.page_number())
    given = {"q": asked["query"], "status": asked["status"]}
    template = "quotes_rows.html" if visit.is_part else "quotes.html"
    return visit.page(template, **answer, asked=asked, given=given, statuses=tuple(QuoteStatus))


def list_accounts(visit: Visit) -> Response:
    query = visit.query("q")[:100] or None

    def work(tx: Tx) -> Answer:
        page = visit.page_number()
        return dict(catalog.search_accounts(tx, query=query, active_only=False, limit=PAGE, page=page))

    answer = visit.read("accounts", work, query=query, page=visit.page_number())
    template = "accounts_rows.html" if visit.is_part else "accounts.html"
    return visit.page(template, **answer, asked={"query": query}, given={"q": query})


def show_account(visit: Visit) -> Response:
    account_id = visit.named("account_id")

    def work(tx: Tx) -> Answer:
        page = visit.page_number()
        found = quotes.list_quotes(tx, account_id=account_id, status=None, limit=PAGE, page=page)
        return {"account": catalog.get_account(tx, account_id), **found}

    answer = visit.read("account", work, subject=account_id, account_id=account_id)
    return visit.page("account.html", **answer, given={})


def show_policies(visit: Visit) -> Response:
    """The policies that are in use, as people read them, and what came of their own tests."""
    keeper = visit.app.policies
    in_use: list[PolicySet] = []

    def work(tx: Tx) -> Answer:
        in_use.append(tx.policies)
        return {}

    visit.read("policies", work)
    policies = in_use[-1]
    results = _cases(keeper.directory, policy_files.stamp(keeper.directory))
    files = [
        {"file": file, "passed": sum(case.is_passed for case in cases), "failed": [c for c in cases if not c.is_passed]}
        for file, cases in ((file, list(group)) for file, group in groupby(results, key=lambda case: case.file))
    ]
    return visit.page(
        "policies.html",
        policies=policies,
        ladders=[_ladder(ladder, policies.terms.currency) for ladder in policies.ladders],
        tables=tables(policies),
        files=files,
        passed=sum(case.is_passed for case in results),
        failed=sum(not case.is_passed for case in results),
        problem=keeper.problem,
    )


def show_audit(visit: Visit, *, verify: bool = False) -> Response:
    """Every call about a quote and its approvals, each checked against its seal; the whole chain for administrators."""
    quote_id = visit.named("quote_id")

    def work(tx: Tx) -> Answer:
        history = approvals.history(tx, quote_id)["items"]
        subjects = [quote_id, *(one["approval_id"] for one in history)]
        found = audit.about(tx.connection, tx.tenant_id, subjects, newest=AUDIT_MAX)
        return {"entries": [{**asdict(one.entry), "is_whole": one.is_whole} for one in found]}

    def chain(tx: Tx) -> Answer:
        return asdict(audit.verify(tx.connection, tx.tenant_id))

    answer = visit.read("audit", work, subject=quote_id, quote_id=quote_id)
    report = visit.read("audit_verify", chain, needs=Permission.ADMINISTER) if verify else None
    may_verify = visit.principal.may(Permission.ADMINISTER)
    return visit.page(
        "audit.html", **answer, quote_id=quote_id, report=report, may_verify=may_verify, entries_max=AUDIT_MAX
    )


def verify_audit(visit: Visit) -> Response:
    return show_audit(visit, verify=True)


def show_figures(visit: Visit) -> Response:
    text = visit.query("days")
    days = int(text) if text in map(str, PERIODS) else 90

    def work(tx: Tx) -> Answer:
        return {**figures(tx, days=days), "waiting": approvals.pending(tx, role=None, limit=1)["total"]}

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
    return visit.page(
        "figures.html",
        **answer,
        periods=PERIODS,
        pipeline_bars=[charts.bars(pipeline, frame) for frame in charts.FRAMES],
        turnaround_bars=[charts.bars(turnaround, frame) for frame in charts.FRAMES],
        discount_bars=[charts.bars(discounts, frame) for frame in charts.FRAMES],
        outcome_columns=[charts.columns(outcomes, frame) for frame in charts.FRAMES],
        tiles=_tiles(answer),
    )


def show_health(visit: Visit) -> Response:
    def work(tx: Tx) -> Answer:
        entries = audit.recent(tx.connection, tx.tenant_id, among=CALLS_LOOKED_AT)
        counts = Counter(entry.outcome for entry in entries)
        faults = [asdict(entry) for entry in entries if entry.outcome in FAULTS][:FAULTS_SHOWN]
        queue = approvals.pending(tx, role=None, limit=1)
        return {
            "refused": dict(counts.most_common()),
            "faults": faults,
            "waiting": queue["total"],
            "oldest": queue["items"][0]["requested_at"] if queue["items"] else None,
            "policy_hash": tx.policies.content_hash,
        }

    answer = visit.read("health", work)
    settings = visit.app.settings
    return visit.page(
        "health.html",
        **answer,
        parts=readiness(visit.app, visit.request.app.state.loops),
        database="SQLite" if settings.is_sqlite else "PostgreSQL",
        version=__version__,
        schema_version=SCHEMA_VERSION,
        calls=CALLS_LOOKED_AT,
    )


@lru_cache(maxsize=2)
def _cases(directory: Path, _stamp: Stamp) -> list[CaseResult]:
    """What came of the cases beside the policies; run again when a file changed."""
    try:
        return policy_files.run_tests(directory)
    except CpqError:
        return []  # The files cannot be read; the page shows that problem itself.


def _ladder(ladder: Ladder, currency: str) -> Answer:
    def told(bound: Decimal) -> str:
        return measured(bound, unit_of(ladder.over.node), currency)

    begins, ends = ("under", "down to") if ladder.is_falling else ("above", "up to")
    bounds = [*(step.bound for step in ladder.steps[1:]), None]
    steps = [
        {
            "bound": number(step.bound),
            "reach": f"{begins} {told(step.bound)}" + (f" {ends} {told(end)}" if end is not None else ""),
            "outcome": step.outcome,
        }
        for step, end in zip(ladder.steps, bounds, strict=True)
    ]
    free = f"{ends} {told(ladder.steps[0].bound)}"
    where = ladder.where.text if ladder.where else None
    return {"id": ladder.id, "over": ladder.over.text, "where": where, "steps": steps, "free": free}


def _whole(value: Decimal | int, currency: str) -> str:
    return f"{Decimal(value):,.0f} {currency}"


def _reach(one: Any) -> str:
    if one["above"] is None:
        return f"up to {number(one['up_to'])} %" if one["up_to"] is not None else "any"
    upper = f" to {number(one['up_to'])} %" if one["up_to"] is not None else " %"
    return f"above {number(one['above'])}{upper}"


def _tiles(answer: Answer) -> list[tuple[str, str, str]]:
    """The four numbers that are asked for first: what it is, the number, and what it rests on."""
    currency = answer["currency"]
    is_open = ("pending_approval", "approved", "sent")
    value = sum((Decimal(one["value"]) for one in answer["pipeline"] if one["status"] in is_open), Decimal(0))
    count = sum(one["count"] for one in answer["pipeline"] if one["status"] in is_open)
    won = sum(one["accepted"] for one in answer["outcomes"])
    ended = won + sum(one["declined"] + one["expired"] for one in answer["outcomes"])
    decided = sum(one["count"] for one in answer["turnaround"])
    slow = answer["slow_minutes"]
    return [
        ("Open pipeline", money(value.quantize(Decimal(1)), "JPY"), f"{currency} in {count:,} quotes"),
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
