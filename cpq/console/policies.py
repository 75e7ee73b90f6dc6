"""The page of policies: those in use as tables, and the results of their tests."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from starlette.responses import Response

from cpq.app import Answer, policy_files
from cpq.app.policy_files import Stamp
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.console.formats import measured, number
from cpq.console.visit import Visit
from cpq.domain.policy.files.cases import CaseResult
from cpq.domain.policy.overview import tables
from cpq.domain.policy.policy_set import Ladder, PolicySet, unit_of


def show(visit: Visit) -> Response:
    """Shows the policies in use, and the results of their tests."""
    keeper = visit.policies
    in_use: list[PolicySet] = []

    def work(tx: Tx) -> Answer:
        in_use.append(tx.policies)
        return {}

    visit.read("policies", work)
    policies = in_use[-1]
    results = _results(keeper.directory)
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
        state=keeper.state(),
    )


def _results(directory: Path) -> list[CaseResult]:
    try:
        return _cases(directory, policy_files.stamp(directory))
    except CpqError:
        return []  # The files cannot be read; the page shows that problem itself.


@lru_cache(maxsize=2)
def _cases(directory: Path, _stamp: Stamp) -> list[CaseResult]:
    """The results of the cases beside the policies; run again when a file changed."""
    return policy_files.run_tests(directory)


def _ladder(ladder: Ladder, currency: str) -> Answer:
    def written(bound: Decimal) -> str:
        return measured(bound, unit_of(ladder.over.node), currency)

    begins, ends = ("under", "down to") if ladder.is_falling else ("above", "up to")
    bounds = [*(step.bound for step in ladder.steps[1:]), None]
    steps = [
        {
            "bound": number(step.bound),
            "reach": f"{begins} {written(step.bound)}" + (f" {ends} {written(end)}" if end is not None else ""),
            "outcome": step.outcome,
        }
        for step, end in zip(ladder.steps, bounds, strict=True)
    ]
    free = f"{ends} {written(ladder.steps[0].bound)}"
    where = ladder.where.text if ladder.where else None
    return {"id": ladder.id, "over": ladder.over.text, "where": where, "steps": steps, "free": free}
