"""`python -m tests.conformance`: measures our server with the official suite, the Inspector and a TypeScript client.

Ends with 0 only when every scored scenario of both eras passes, every unscored one too unless it measures what we do
not offer, and every other check is right.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import inspector, node, servers
from tests.conformance.inspector import Finding

REVISIONS = ("2026-07-28", "2025-11-25")
PASSED = "passed"
NOT_OFFERED = ("tasks-", "server-sse-polling")
"""Beginnings of unscored scenarios for what we leave out: the tasks extension, and resuming a stream that broke off."""


@dataclass(frozen=True)
class Verdict:
    """How one scenario ended: `passed`, `failed`, `warned`, `nothing checked` or `not run`, and why."""

    scenario: str
    outcome: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Era:
    revision: str
    scored: list[Verdict]
    unscored: list[Verdict]
    seconds: float

    @property
    def is_right(self) -> bool:
        kept = [verdict for verdict in self.unscored if not verdict.scenario.startswith(NOT_OFFERED)]
        return all(verdict.outcome == PASSED for verdict in (*self.scored, *kept))


def main() -> int:
    started = time.monotonic()
    node.install()
    with tempfile.TemporaryDirectory(prefix="cpq-conformance-") as folder:
        home = Path(folder)
        servers.prepare(home)
        with servers.serving(home, "tests.conformance.fixtures") as url:
            eras = [_measure(url, revision, home) for revision in REVISIONS]
        with servers.serving(home, "mcp_facade", "--transport", "streamable-http", "--port") as url:
            client = node.run_typescript_client(url)
            findings = inspector.inspect(url, home)
    versions = node.versions()
    _print_eras(eras, versions)
    _print_findings(findings, versions)
    print(f"\nTypeScript SDK {versions['sdk']} client  {'ok' if client.returncode == 0 else 'WRONG'}")
    print(client.stdout + client.stderr, end="")
    is_right = (
        all(era.is_right for era in eras)
        and all(finding.problem is None for finding in findings)
        and client.returncode == 0
    )
    print(f"\n{'Conforms' if is_right else 'DOES NOT CONFORM'}, in {time.monotonic() - started:.0f} seconds.")
    return 0 if is_right else 1


def _measure(url: str, revision: str, home: Path) -> Era:
    started = time.monotonic()
    results = home / revision
    results.mkdir()
    done = node.run_suite(url, revision, results)
    scored, unscored = node.requirements(revision)
    era = Era(
        revision,
        [_verdict(results, scenario) for scenario in scored],
        [_verdict(results, scenario) for scenario in unscored],
        time.monotonic() - started,
    )
    if done.returncode != 0 and era.is_right:
        raise RuntimeError(f"The suite ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return era


def _verdict(results: Path, scenario: str) -> Verdict:
    # The suite names a folder after the scenario and the time, which starts with a year.
    found = sorted(results.glob(f"server-{scenario}-2[0-9][0-9][0-9]-*/checks.json"))
    if not found:
        return Verdict(scenario, "not run")
    checks: list[dict[str, Any]] = json.loads(found[-1].read_text(encoding="utf-8"))
    statuses = {check["status"] for check in checks}
    reasons = tuple(
        f"{check['id']}: {check.get('errorMessage', '')}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    if "FAILURE" in statuses:
        return Verdict(scenario, "failed", reasons)
    if "SUCCESS" in statuses:
        return Verdict(scenario, PASSED, reasons)
    return Verdict(scenario, "warned" if reasons else "nothing checked", reasons)


def _print_eras(eras: list[Era], versions: dict[str, str]) -> None:
    print(f"Conformance suite {versions['conformance']}, Node {versions['node']}\n")
    print(f"{'era':12}{'scored':>10}{'unscored':>10}{'seconds':>10}")
    for era in eras:
        print(f"{era.revision:12}{_ratio(era.scored):>10}{_ratio(era.unscored):>10}{era.seconds:>10.1f}")
    for era in eras:
        for verdict in era.scored:
            if verdict.outcome != PASSED or verdict.reasons:
                print(f"\n{era.revision} {verdict.scenario}: {verdict.outcome}", *verdict.reasons, sep="\n  ")
        missed = [f"{verdict.scenario} {verdict.outcome}" for verdict in era.unscored if verdict.outcome != PASSED]
        if missed:
            print(f"\n{era.revision}, unscored:", *missed, sep="\n  ")


def _print_findings(findings: list[Finding], versions: dict[str, str]) -> None:
    columns = list(dict.fromkeys((finding.era, finding.transport) for finding in findings))
    rows = list(dict.fromkeys(finding.inspection for finding in findings))
    by_place = {(finding.inspection, finding.era, finding.transport): finding for finding in findings}
    title = f"Inspector {versions['inspector']}"
    print(f"\n{title:26}" + "".join(f"{era + ' ' + transport:>14}" for era, transport in columns))
    for row in rows:
        cells = [by_place[row, era, transport].problem is None for era, transport in columns]
        print(f"{row:26}" + "".join(f"{'ok' if cell else 'WRONG':>14}" for cell in cells))
    for finding in findings:
        if finding.problem is not None:
            print(f"\n{finding.inspection}, {finding.era}, {finding.transport}: {finding.problem}")


def _ratio(verdicts: list[Verdict]) -> str:
    return f"{sum(verdict.outcome == PASSED for verdict in verdicts)}/{len(verdicts)}"


if __name__ == "__main__":
    sys.exit(main())
