"""Test cases of the policies (`*_test.yaml`): given facts, and the expected outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from pydantic import Field

from cpq.base.errors import CpqError, nearest
from cpq.domain.policy.evaluation import Violation, evaluate
from cpq.domain.policy.facts import LineFacts, LineInputs, Part, QuoteFacts, QuoteInputs
from cpq.domain.policy.files.builder import invalid
from cpq.domain.policy.files.shapes import (
    Id,
    Name,
    Number,
    Shape,
    Word,
    Zone,
)
from cpq.domain.policy.language.nodes import Value
from cpq.domain.policy.policy_kinds import Severity, TaxCode
from cpq.domain.policy.policy_set import PolicySet, TaxRate
from cpq.domain.yaml_shapes import File, read_shape
from cpq.domain.yaml_source import Path, Problem, UnreadableError, read_document


class ExpectedViolation(Shape):
    """The id of the rule or step, and the other values to compare."""

    id: Id
    severity: Severity | None = None
    threshold: Number | None = None
    actual: Number | None = None
    role: Id | None = None
    lines: tuple[str, ...] | None = None


class ExpectedAdjustment(Shape):
    id: Id
    kind: str | None = None
    value: Number | None = None
    base: str | None = None
    stacking: str | None = None


class DecisionCase(Shape):
    """A priced quote, and every violation it must give, in order."""

    name: Name
    facts: dict[str, Any] = Field(default_factory=dict, description="the facts that differ from a plain quote")
    violations: tuple[Id | ExpectedViolation, ...]
    roles: tuple[Id, ...] | None = Field(None, description="the required approvers, in order")
    blocked: bool = False


class AdjustmentCase(Shape):
    """A line before pricing, and every pricing rule that must apply, in order."""

    name: Name
    quote: dict[str, Any] = Field(default_factory=dict)
    line: dict[str, Any] = Field(default_factory=dict)
    adjustments: tuple[Id | ExpectedAdjustment, ...]


class RateCase(Shape):
    """A zone and a category with their rate; without a rate, the case expects that none exists."""

    zone: Zone
    category: Word
    rate: Number | None
    code: TaxCode | None = Field(None, description="the tax category code, where the case is about it")


class CasesShape(Shape):
    """A `*_test.yaml` file."""

    decisions: tuple[DecisionCase, ...] = ()
    adjustments: tuple[AdjustmentCase, ...] = ()
    rates: tuple[RateCase, ...] = ()
    terms: dict[str, Any] = Field(default_factory=dict, description="settings of terms.yaml and their values")


class CaseResult(NamedTuple):
    """One case: `message` is empty when it passed."""

    file: str
    line: int
    name: str
    message: str

    @property
    def is_passed(self) -> bool:
        return not self.message


PLAIN_LINE: dict[str, Any] = {"line_id": "1", "margin": Decimal(40)}
PLAIN_QUOTE: dict[str, Any] = {"margin": Decimal(40), "validity_days": Decimal(30)}
"""The facts that a case leaves out: a good margin, one line, and the defaults of the facts."""


def run_cases(policies: PolicySet, texts: Mapping[str, str]) -> list[CaseResult]:
    """Run every case of every file in order; CONFIGURATION_INVALID when a file is not a list of cases."""
    problems: list[Problem] = []
    files = [found for file, text in texts.items() if (found := _read(file, text, problems)) is not None]
    runs = [(file, part) for file in files for part in _prepared(file, policies, problems)]
    if problems:
        raise invalid(problems)
    return [
        CaseResult(file.document.file, file.document.problem(path, "").line, name, ask())
        for file, (path, name, ask) in runs
    ]


_Prepared = tuple[Path, str, Callable[[], str]]


def _read(file: str, text: str, problems: list[Problem]) -> File | None:
    try:
        return read_shape(read_document(file, text), CasesShape, problems)
    except UnreadableError as error:
        problems.append(error.problem)
        return None


def _prepared(file: File, policies: PolicySet, problems: list[Problem]) -> Iterator[_Prepared]:
    shape = file.shape
    assert isinstance(shape, CasesShape)
    for index, decision in enumerate(shape.decisions):
        path = file.path("decisions", index)
        facts = _quote(file, (*path, "facts"), decision.facts, problems)
        yield path, decision.name, partial(_compare_decision, policies, decision, facts)
    for index, change in enumerate(shape.adjustments):
        path = file.path("adjustments", index)
        quote = QuoteInputs(**_checked(file, (*path, "quote"), change.quote, QuoteInputs, problems))
        line = LineInputs(**_checked(file, (*path, "line"), change.line, LineInputs, problems))
        yield path, change.name, partial(_compare_adjustments, policies, change, quote, line)
    for index, rate in enumerate(shape.rates):
        yield file.path("rates", index), f"{rate.category} in {rate.zone}", partial(_compare_rate, policies, rate)
    for name, wanted in shape.terms.items():
        known = vars(policies.terms)
        if name not in known:
            problem = file.document.problem_at_name(("terms", name), f"there is no term {name}", nearest(name, known))
            problems.append(problem)
        yield ("terms", name), name, partial(_compare_term, policies, name, wanted)


def _quote(file: File, path: Path, given: Mapping[str, Any], problems: list[Problem]) -> QuoteFacts:
    checked = [
        LineFacts(
            **{
                **PLAIN_LINE,
                "line_id": str(number),
                **_checked(file, (*path, "lines", number - 1), line, LineFacts, problems),
                "parts": _parts(file, (*path, "lines", number - 1), line, problems),
            }
        )
        for number, line in enumerate(_mappings(file, path, given, "lines", problems, [{}]), 1)
    ]
    rest = {name: value for name, value in given.items() if name != "lines"}
    return QuoteFacts(**{**PLAIN_QUOTE, **_checked(file, path, rest, QuoteFacts, problems), "lines": tuple(checked)})


def _parts(file: File, path: Path, line: Mapping[str, Any], problems: list[Problem]) -> tuple[Part, ...]:
    """The parts of a bundle, each with its own name unless the case gives one."""
    return tuple(
        Part(**{"product_id": str(number), **_checked(file, (*path, "parts", number - 1), part, Part, problems)})
        for number, part in enumerate(_mappings(file, path, line, "parts", problems, []), 1)
    )


def _mappings(
    file: File, path: Path, given: Mapping[str, Any], name: str, problems: list[Problem], default: list[Any]
) -> list[Any]:
    found = given.get(name, default)
    if isinstance(found, list) and all(isinstance(part, Mapping) for part in found):
        return found
    problems.append(file.document.problem((*path, name), f"{name} is a list of mappings"))
    return []


def _checked(
    file: File, path: Path, given: Mapping[str, Any], kind: type[Any], problems: list[Problem]
) -> dict[str, Any]:
    """The given facts that have a known name and the type of their default; the others become problems."""
    known = {part.name: part for part in fields(kind) if part.name not in ("lines", "parts")}
    checked = {}
    for name, value in given.items():
        if name == "parts" and issubclass(kind, LineFacts):
            continue  # Read separately.
        if name not in known:
            message = f"{name} is not a fact that a case can give"
            problems.append(file.document.problem_at_name((*path, name), message, nearest(name, known)))
        elif not _fits(value, known[name].default):
            problems.append(file.document.problem((*path, name), f"{name} has another type"))
        else:
            checked[name] = value
    return checked


def _fits(value: object, default: object) -> bool:
    if default is MISSING:
        return isinstance(value, Mapping)
    if default is None:
        return value is None or isinstance(value, Decimal)
    return isinstance(value, type(default))


def _compare_decision(policies: PolicySet, case: DecisionCase, facts: QuoteFacts) -> str:
    decision = evaluate(policies, facts)
    found = [violation.policy_id for violation in decision.violations]
    wanted = [expected if isinstance(expected, str) else expected.id for expected in case.violations]
    if found != wanted:
        return f"expected {_listed(wanted)}, got {_listed(found)}"
    for expected, violation in zip(case.violations, decision.violations, strict=True):
        if isinstance(expected, ExpectedViolation) and (message := _difference(expected, _described(violation))):
            return message
    if case.roles is not None and case.roles != decision.required_roles:
        return f"expected the roles {_listed(case.roles)}, got {_listed(decision.required_roles)}"
    if case.blocked is not decision.is_blocked:
        return f"expected {'a block' if case.blocked else 'no block'}"
    return ""


def _described(violation: Violation) -> dict[str, object]:
    return {
        "id": violation.policy_id,
        "severity": violation.severity,
        "threshold": violation.threshold,
        "actual": violation.actual,
        "role": violation.required_approver_role,
        "lines": violation.line_ids,
    }


def _compare_adjustments(policies: PolicySet, case: AdjustmentCase, quote: QuoteInputs, line: LineInputs) -> str:
    try:
        found = policies.adjustments(quote, line)
    except CpqError as error:
        return error.message
    wanted = [expected if isinstance(expected, str) else expected.id for expected in case.adjustments]
    if [adjustment.rule_id for adjustment in found] != wanted:
        return f"expected {_listed(wanted)}, got {_listed([adjustment.rule_id for adjustment in found])}"
    for expected, adjustment in zip(case.adjustments, found, strict=True):
        described = {**adjustment._asdict(), "id": adjustment.rule_id}
        if isinstance(expected, ExpectedAdjustment) and (message := _difference(expected, described)):
            return message
    return ""


def _compare_rate(policies: PolicySet, case: RateCase) -> str:
    try:
        found: TaxRate | None = policies.tax_rate(case.zone, case.category)
    except CpqError:
        found = None
    rate = found and found.rate
    if rate != case.rate:
        return f"expected {case.rate}, got {rate}"
    is_same = case.code is None or (found is not None and found.code == case.code)
    return "" if is_same else f"expected {case.code}, got {found and found.code}"


def _compare_term(policies: PolicySet, name: str, wanted: Value | list[Value]) -> str:
    found = getattr(policies.terms, name, None)
    found = list(found) if isinstance(found, tuple) else found
    return "" if found == wanted else f"expected {wanted}, got {found}"


def _difference(expected: ExpectedViolation | ExpectedAdjustment, found: Mapping[str, object]) -> str:
    for name, wanted in expected.model_dump(exclude_unset=True).items():
        if wanted != found[name]:
            return f"{expected.id}: expected {name} {wanted}, got {found[name]}"
    return ""


def _listed(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(words) or "none"
