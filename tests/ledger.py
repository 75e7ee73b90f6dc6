"""How the published examples of other systems come out here, as a page: each case is run, or its reason is given."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.domain.agreements import test_amendment_vectors as amendments
from tests.domain.pricing import test_proration_vectors as proration
from tests.domain.pricing import test_tax_vectors as tax
from tests.domain.pricing import test_usage_vectors as usage
from tests.domain.pricing import test_vectors as pricing

SAME, CONVENTION, ELSEWHERE, WRONG = "same", "another convention", "not our subject", "does not add up"
OUTCOMES = (SAME, CONVENTION, ELSEWHERE, WRONG)

DOES_NOT_ADD_UP = {
    "AMD-0064": "12.01 x 12 x 10.71 is 1,543.53, not 1,543.36; its 75 days leave out an end day",
    "AMD-0104": "the first item of the schedule is printed as 100,000.00; what is billed and the total show 10,000.00",
    "AMD-0109": "126 days after 21 July 2018 is 24 November 2018; printed is 25 December",
    "USG-0211": "16 days of 31 of a grant of 4,000 are 2,064; printed is 2,193, which is 17 days",
    "TAX-0177": "21 % of 1,620.10 is 340.22; the group says 340.10",
    "TAX-0354": "80.00 less 75.00 is 5.00; 5.01 is accepted, because units are rounded before they are multiplied",
}
"""Published numbers that contradict their own inputs."""

ANOTHER_CONVENTION = {"actual_360", "28 days", "AMD-0009", "AMD-0045", "AMD-0059", "AMD-0115"}
"""Reasons of the tests that are a convention; the others say that a quote does not have the subject."""


ALIASES = {
    "erpnext": "frappe/erpnext",
    "killbill": "killbill/killbill",
    "saleor": "saleor/saleor",
    "vendure": "vendure-ecommerce/vendure",
}
"""Sources that the cases name in two ways."""


class Case(NamedTuple):
    subject: str
    id: str
    source: str
    outcome: str
    why: str


def cases() -> Iterator[Case]:
    """Every published case with what became of it."""
    for one in proration.CASES:
        yield _case("parts of periods", one, proration.reason_of(one), proration.NOT_OURS, {})
    for one in tax.CASES:
        reason = None if one["id"] in tax.DECIDED else tax.left_out(one)
        yield _case("tax", one, reason, tax.NOT_OURS, tax.DECIDED)
    for one in usage.CASES:
        reason = None if one["id"] in usage.DECIDED else usage.left_out(one)
        yield _case("usage", one, reason, usage.NOT_OURS, usage.DECIDED)
    for one in amendments.CASES:
        reason = one["id"] if one["id"] in amendments.NOT_OURS else None
        yield _case("changes of agreements", one, reason, amendments.NOT_OURS, {})
    decided = {" ".join(key): why for key, why in pricing.EXCLUDED.items()}
    for one in pricing.CASES:
        named = {**one, "id": f"{one['group']} {one['case']}"}
        yield _case("prices", named, None, {}, decided)


def _case(
    subject: str, one: dict[str, str], reason: str | None, left_out: dict[str, str], decided: dict[str, str]
) -> Case:
    outcome, why = SAME, ""
    if one["id"] in DOES_NOT_ADD_UP:
        outcome, why = WRONG, DOES_NOT_ADD_UP[one["id"]]
    elif one["id"] in decided:
        outcome, why = CONVENTION, decided[one["id"]]
    elif reason:
        outcome, why = CONVENTION if reason in ANOTHER_CONVENTION else ELSEWHERE, left_out[reason]
    return Case(subject, one["id"], one["source"], outcome, why)


def page() -> str:
    """The tables of cpq/guide/ledger.md."""
    known = list(cases())
    parts = [
        "## By subject",
        _counted("subject", [(one.subject, one.outcome) for one in known]),
        "## By source",
        _counted("source", [(_origin(one.source), one.outcome) for one in known]),
        "## Published numbers that do not add up",
        _listed([one for one in known if one.outcome == WRONG], "what is printed"),
        "## Another convention: what we do instead",
        _listed([one for one in known if one.outcome == CONVENTION], "ours"),
        "## Not our subject",
        _reasons(known),
    ]
    return "\n\n".join(parts)


def _origin(source: str) -> str:
    """A repository or a site: what comes before the revision and the page."""
    name = re.split(r"[@ (#,:]", source)[0]
    return ALIASES.get(name.partition("/")[0] if name.count("/") > 1 else name, name)


def _counted(name: str, found: list[tuple[str, str]]) -> str:
    counts: dict[str, Counter[str]] = {}
    for key, outcome in found:
        counts.setdefault(key, Counter())[outcome] += 1
    rows = sorted(counts.items(), key=lambda row: (-row[1].total(), row[0]))
    lines = [f"| {name} | cases | {' | '.join(OUTCOMES)} |", "|---" * 6 + "|"]
    for key, by_outcome in [*rows, ("together", Counter(outcome for _, outcome in found))]:
        numbers = [by_outcome.total(), *(by_outcome[outcome] for outcome in OUTCOMES)]
        lines.append(f"| {key} | {' | '.join(str(number or '') for number in numbers)} |")
    return "\n".join(lines)


def _listed(found: list[Case], said: str) -> str:
    rows = [f"| {one.source} | {one.id} | {one.why} |" for one in found]
    return "\n".join([f"| source | case | {said} |", "|---|---|---|", *rows])


def _reasons(known: list[Case]) -> str:
    counts = Counter((one.subject, one.why) for one in known if one.outcome == ELSEWHERE)
    rows = [f"| {subject} | {number} | {why} |" for (subject, why), number in sorted(counts.items())]
    return "\n".join(["| subject | cases | why |", "|---|---|---|", *rows])
