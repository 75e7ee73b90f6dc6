"""Builds a policy set from the texts of its files, or reports every problem with file, line and column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from cpq.base.errors import Code, CpqError, nearest
from cpq.base.money import plain
from cpq.base.text import fingerprint
from cpq.domain.policy.business_hours import WEEKDAYS, Calendar, Span
from cpq.domain.policy.facts import LINE_FACTS, QUOTE_FACTS, Declaration
from cpq.domain.policy.files import lint
from cpq.domain.policy.files.definitions import with_definitions
from cpq.domain.policy.files.lint import Placed
from cpq.domain.policy.files.shapes import (
    FILES,
    OPTIONAL,
    ApprovalsShape,
    CalendarShape,
    ClausesShape,
    CodedRateShape,
    GuardsShape,
    LadderShape,
    OutcomeShape,
    PricingRuleShape,
    PricingShape,
    RuleShape,
    SeveralTaxesShape,
    StepShape,
    TaxShape,
    TermsShape,
)
from cpq.domain.policy.free_text import ClauseLibrary
from cpq.domain.policy.language.compiler import Column, column, compiled
from cpq.domain.policy.language.nodes import (
    MIRRORED,
    Comparison,
    Declared,
    Fact,
    Fold,
    Junction,
    Kind,
    Literal,
    Node,
    children,
    facts_in,
)
from cpq.domain.policy.language.parser import ExpressionError, Scope, canonical, names_in, read_condition, read_number
from cpq.domain.policy.language.trends import trends
from cpq.domain.policy.policy_kinds import TaxCode
from cpq.domain.policy.policy_set import (
    ADJUSTMENT_ORDER,
    Adjustment,
    Escalation,
    Expression,
    Ladder,
    Order,
    Outcome,
    PolicySet,
    PricingRule,
    Roles,
    Rule,
    Step,
    TaxPart,
    TaxRate,
    Terms,
    TimeLimit,
)
from cpq.domain.yaml_shapes import File, read_shape
from cpq.domain.yaml_source import Document, Path, Problem, UnreadableError, read_document

GUARDS = ("discounts.yaml", "approvals.yaml", "terms.yaml")
"""The files with rules over the priced quote; their order is the order of their stages."""


def build(texts: Mapping[str, str], deciders: Collection[str] | None = None) -> PolicySet:
    """The policy set of the files' texts; CONFIGURATION_INVALID names every problem.

    `deciders` are the roles that can decide, so that no approval is required from a role that nobody can hold.
    """
    strange = sorted(texts.keys() - FILES.keys())
    problems = [Problem(file, 1, 1, f"{file} is not a policy file", tuple(nearest(file, FILES))) for file in strange]
    files = {file: found for file in FILES if (found := _read_file(file, texts.get(file), problems)) is not None}
    policies = _Assembly(files, problems).policies(deciders) if files.keys() == FILES.keys() else None
    if problems or policies is None:
        raise invalid(problems)
    return policies


def invalid(problems: Iterable[Problem]) -> CpqError:
    ordered = sorted(set(problems))
    first = ordered[0]
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    return CpqError(
        Code.CONFIGURATION_INVALID,
        f"{first.file}, line {first.line}, column {first.column}: {first.message}{more}",
        problems=[problem.details() for problem in ordered],
        hint="`cpq policy check` lists every problem; `cpq doctor` shows the folder.",
    )


def _read_file(file: str, text: str | None, problems: list[Problem]) -> File | None:
    if text is None and file in OPTIONAL:
        text = "{}"
    if text is None:
        problems.append(Problem(file, 1, 1, f"the file {file} is missing"))
        return None
    try:
        document = read_document(file, text)
    except UnreadableError as error:
        problems.append(error.problem)
        return None
    return read_shape(document, FILES[file], problems)


class _Assembly:
    """One pass over all files. A faulty item goes to `problems`, and the pass continues without it."""

    def __init__(self, files: Mapping[str, File], problems: list[Problem]) -> None:
        self._files = files
        self._problems = problems
        terms, approvals = files["terms.yaml"].shape, files["approvals.yaml"].shape
        assert isinstance(terms, TermsShape)
        assert isinstance(approvals, ApprovalsShape)
        self._terms, self._approvals = terms, approvals
        self._roles = _roles(approvals)
        attributes = _attributes(terms)
        self._after = Scope(_declared(QUOTE_FACTS), _declared(LINE_FACTS), attributes)
        early = [{name: fact for name, fact in facts.items() if fact.is_before_pricing} for facts in _ALL_FACTS]
        self._before = Scope(_declared(early[0]), _declared(early[1]), attributes, has_line=True, has_lines=False)

    def policies(self, deciders: Collection[str] | None) -> PolicySet:
        guards = [self._files[file] for file in GUARDS]
        self._after = with_definitions(self._after, map(_definitions, guards), self._problems)
        pricing_file = self._files["pricing.yaml"]
        self._before = with_definitions(self._before, [_definitions(pricing_file)], self._problems)
        rules = [rule for stage, file in enumerate(guards) for rule in self._rules(file, stage)]
        ladders = [ladder for stage, file in enumerate(guards) for ladder in self._ladders(file, stage)]
        pricing = self._pricing(pricing_file)
        tax = self._tax(self._files["tax.yaml"])
        self._problems += lint.problems(rules, ladders, pricing, self._roles)
        document = self._files["approvals.yaml"].document
        self._problems += lint.role_problems(document, self._roles, deciders)
        self._problems += lint.calendar_problems(document, self._approvals, self._roles)
        return PolicySet(
            rules=tuple(sorted((placed.item for placed in rules), key=lambda rule: rule.order)),
            ladders=tuple(sorted((placed.item for placed in ladders), key=lambda ladder: ladder.order)),
            pricing=tuple(sorted((placed.item for placed in pricing), key=_pricing_order)),
            roles=self._roles,
            terms=_terms(self._terms),
            tax=tax,
            content_hash="" if self._problems else _content_hash(self._files),
            library=_library(self._files["clauses.yaml"].shape),
        )

    def _rules(self, file: File, stage: int) -> list[Placed[Rule]]:
        assert isinstance(file.shape, GuardsShape)
        found = []
        for index, shape in enumerate(file.shape.rules):
            path = file.path("rules", index)
            rule = self._rule(file, path, shape, stage)
            if rule is not None:
                found.append(Placed(rule, file.document, path))
        return found

    def _rule(self, file: File, path: Path, shape: RuleShape, stage: int) -> Rule | None:
        when = self._expression(file, (*path, "when"), shape.when, self._after, read_condition)
        given = self._expression(file, (*path, "actual"), shape.actual, self._after, read_number)
        outcome = self._outcome(file, (*path, "then"), shape.then)
        if when is None or outcome is None:
            return None
        limit, measured = _measure(when.node)
        threshold = limit if shape.threshold is None else shape.threshold
        if given is None and measured is not None:
            given = _expression(shape.when, measured)
        return Rule(
            id=shape.id,
            name=shape.name or _in_words(shape.id),
            order=Order(stage, -shape.priority, -len(when.reads), shape.id),
            when=when,
            outcome=outcome,
            threshold=None if threshold is None else plain(threshold),
            actual=given,
            culprits=tuple(_culprits(when.node)),
        )

    def _ladders(self, file: File, stage: int) -> list[Placed[Ladder]]:
        assert isinstance(file.shape, GuardsShape)
        found = []
        for index, shape in enumerate(file.shape.ladders):
            path = file.path("ladders", index)
            ladder = self._ladder(file, path, shape, stage)
            if ladder is not None:
                found.append(Placed(ladder, file.document, path))
        return found

    def _ladder(self, file: File, path: Path, shape: LadderShape, stage: int) -> Ladder | None:
        scope = replace(self._after, has_line=True)
        over = self._expression(file, (*path, "over"), shape.over, scope, read_number)
        is_of_lines = over is not None and _reads_line(over.node)
        if not is_of_lines:
            scope = self._after
        where = self._expression(file, (*path, "where"), shape.where, scope, read_condition)
        outcomes = [
            self._outcome(file, (*path, "steps", number, "then"), step.then) for number, step in enumerate(shape.steps)
        ]
        faults = list(lint.ladder_problems(file.document, path, shape))
        self._problems += faults
        if over is None or faults or None in outcomes or (shape.where is not None and where is None):
            return None
        steps = tuple(map(_step, shape.steps, [outcome for outcome in outcomes if outcome is not None]))
        reads = over.reads.keys() | (where.reads.keys() if where else set())
        order = Order(stage, -shape.priority, -len(reads), shape.id)
        return Ladder(shape.id, order, over, where, shape.steps[0].under is not None, is_of_lines, steps)

    def _pricing(self, file: File) -> list[Placed[PricingRule]]:
        assert isinstance(file.shape, PricingShape)
        found = []
        for index, shape in enumerate(file.shape.rules):
            path = file.path("rules", index)
            when = self._expression(file, (*path, "when"), shape.when, self._before, read_condition)
            if when is not None:
                order = Order(0, -shape.priority, -len(when.reads), shape.id)
                found.append(Placed(PricingRule(order, when, _adjustment(shape)), file.document, path))
        return found

    def _tax(self, file: File) -> dict[str, dict[str, TaxRate]]:
        """Every zone needs a rate for every category, so that a gap is found here and not on a customer's quote."""
        assert isinstance(file.shape, TaxShape)
        categories = file.shape.categories
        tax: dict[str, dict[str, TaxRate]] = {}
        for zone, given in file.shape.zones.items():
            if isinstance(given, SeveralTaxesShape):
                tax[zone] = self._several_taxes(file, zone, given, categories)
                continue
            rates = dict(given) if isinstance(given, Mapping) else dict.fromkeys(categories, given)
            self._check_categories(file, ("zones", zone), rates, categories)
            for category in categories:
                if category not in rates:
                    message = f"{zone} has no rate for {category}"
                    self._problems.append(file.document.problem_at_name(("zones", zone), message))
            tax[zone] = {category: _tax_rate(rate) for category, rate in rates.items()}
            codes = {rate.code for rate in tax[zone].values()}
            if TaxCode.OUTSIDE_SCOPE in codes and len(codes) > 1:
                message = f"{zone} has O and other codes; what is outside the scope of tax is quoted alone"
                self._problems.append(file.document.problem_at_name(("zones", zone), message))
        return tax

    def _several_taxes(
        self, file: File, zone: str, given: SeveralTaxesShape, categories: Sequence[str]
    ) -> dict[str, TaxRate]:
        """The taxes of each category; one that no tax names has no rate, which is a problem as in other zones."""
        parts: dict[str, list[TaxPart]] = {category: [] for category in categories}
        for place, tax in enumerate(given.taxes):
            rates = tax.rate if isinstance(tax.rate, dict) else dict.fromkeys(categories, tax.rate)
            self._check_categories(file, ("zones", zone, "taxes", place, "rate"), rates, categories)
            for category, rate in rates.items():
                if category in parts:
                    known = {part.name for part in parts[category]}
                    below = tuple(other for other in tax.on_top_of if other in known)
                    parts[category].append(TaxPart(tax.name, rate, below))
        for category in categories:
            if not parts[category]:
                message = f"{zone} has no rate for {category}"
                self._problems.append(file.document.problem_at_name(("zones", zone), message))
        return {category: _of_parts(tuple(found)) for category, found in parts.items()}

    def _check_categories(self, file: File, path: Path, rates: Iterable[str], categories: Sequence[str]) -> None:
        for category in sorted(set(rates) - set(categories)):
            message = f"{category} is not among the categories"
            near = nearest(category, categories)
            self._problems.append(file.document.problem_at_name((*path, category), message, near))

    def _outcome(self, file: File, path: Path, shape: OutcomeShape) -> Outcome | None:
        known = self._roles.known
        if shape.role is not None and shape.role not in known:
            message = f"there is no role {shape.role} in approvals.yaml"
            self._problems.append(file.document.problem((*path, "role"), message, nearest(shape.role, known)))
            return None
        return Outcome(shape.severity, shape.role, shape.message)

    def _expression(
        self, file: File, path: Path, text: str | None, scope: Scope, reader: Callable[[str, Scope], Node]
    ) -> Expression | None:
        if text is None:
            return None
        try:
            if scope.broken and any(word in scope.broken for word, _ in names_in(text)):
                return None
            return _expression(text, reader(text, scope))
        except ExpressionError as error:
            self._problems.append(file.document.problem(path, error.message, error.near, error.offset))
            return None


def _tax_rate(given: Decimal | CodedRateShape) -> TaxRate:
    shape = given if isinstance(given, CodedRateShape) else CodedRateShape(rate=given)
    return TaxRate(shape.rate, shape.code or TaxCode.of(shape.rate), shape.reason)


def _of_parts(parts: tuple[TaxPart, ...]) -> TaxRate:
    """Several taxes with their rate together; a single one is a plain rate with its name."""
    shares: dict[str, Decimal] = {}
    for part in parts:
        shares[part.name] = part.rate * (100 + sum(shares[other] for other in part.on_top_of)) / 100
    rate = plain(sum(shares.values(), Decimal(0)))
    return TaxRate(rate, TaxCode.of(rate), None, parts)


def _roles(approvals: ApprovalsShape) -> Roles:
    shape = approvals.roles
    calendars = {name: _calendar(name, part) for name, part in approvals.calendars.items()}
    limits = {
        role: TimeLimit(part.hours, calendars.get(part.calendar or "")) for role, part in shape.time_limit.items()
    }
    return Roles(
        commercial=shape.commercial,
        orthogonal=shape.orthogonal,
        asks_each=shape.ask == "each",
        quorum=shape.quorum,
        backup=shape.backup,
        escalate_to={role: Escalation(part.to, part.after_hours) for role, part in shape.escalate_to.items()},
        keep=shape.keep,
        time_limit=limits,
        keeps_approvals=shape.keep_approvals,
    )


def _calendar(name: str, shape: CalendarShape) -> Calendar:
    week = {WEEKDAYS.index(day): tuple(map(_span, spans)) for day, spans in shape.hours.items()}
    return Calendar(name, shape.time_zone, week, frozenset(map(date.fromisoformat, shape.holidays)))


def _span(text: str) -> Span:
    start, end = (int(part[:2]) * 60 + int(part[3:]) for part in text.split("-"))
    return Span(start, end)


def _definitions(file: File) -> tuple[Document, Mapping[str, str]]:
    assert isinstance(file.shape, GuardsShape | PricingShape)
    return file.document, file.shape.define


def _attributes(shape: TermsShape) -> dict[str, Declared]:
    return {name: Declared(Kind(part.type), part.absent) for name, part in shape.attributes.items()}


def _declared(facts: Mapping[str, Declaration]) -> dict[str, Declared]:
    return {name: Declared(fact.kind, words=fact.words) for name, fact in facts.items()}


def _expression(text: str, node: Node) -> Expression:
    return Expression(canonical(text), node, compiled(node), dict(sorted(trends(node).items())))


def _measure(node: Node) -> tuple[Decimal | None, Node | None]:
    """The limit in a condition and the number compared with it, if the condition is a single comparison."""
    if isinstance(node, Fold) and node.function == "any":
        threshold, inner = _measure(node.body)
        if threshold is None or inner is None or not facts_in(inner):
            return None, None
        comparison = node.body
        assert isinstance(comparison, Comparison)
        operator = comparison.operator if inner is comparison.left else MIRRORED[comparison.operator]
        function = {">": "max", ">=": "max", "<": "min", "<=": "min"}.get(operator)
        return threshold, Fold(function, inner, node.where, Kind.NUMBER) if function else None  # type: ignore[arg-type] # Either.
    if isinstance(node, Comparison) and node.left.kind is Kind.NUMBER:
        for bound, measured in ((node.right, node.left), (node.left, node.right)):
            if isinstance(bound, Literal) and isinstance(bound.value, Decimal) and not isinstance(measured, Literal):
                return bound.value, measured
    return None, None


def _culprits(node: Node) -> Iterable[Column]:
    """Conditions on single lines: the body of every `any` that can make the whole condition true."""
    if isinstance(node, Junction):
        for part in node.parts:
            yield from _culprits(part)
    elif isinstance(node, Fold) and node.function == "any":
        yield column(node.body if node.where is None else Junction("and", (node.where, node.body)))


def _reads_line(node: Node) -> bool:
    """Whether the condition reads a fact of a line outside of a fold."""
    if isinstance(node, Fold):
        return False
    return (isinstance(node, Fact) and node.is_of_line) or any(map(_reads_line, children(node)))


def _step(shape: StepShape, outcome: Outcome) -> Step:
    bound = shape.under if shape.above is None else shape.above
    assert bound is not None
    return Step(shape.id, shape.name or _in_words(shape.id), plain(bound), outcome)


def _adjustment(shape: PricingRuleShape) -> Adjustment:
    kind = next(name for name in ADJUSTMENT_ORDER if getattr(shape.then, name) is not None)
    base = shape.then.base or ("unit" if kind == "amount" else "running")
    name = shape.name or _in_words(shape.id)
    return Adjustment(shape.id, name, kind, getattr(shape.then, kind), base, shape.then.stacking)


def _pricing_order(rule: PricingRule) -> tuple[int, Order]:
    return ADJUSTMENT_ORDER.index(rule.adjustment.kind), rule.order


def _terms(shape: TermsShape) -> Terms:
    return Terms(
        validity_days=shape.validity_days,
        rounding=shape.rounding,
        tax_rounding=shape.tax_rounding,
        part_periods=shape.part_periods,
        standard_payment_terms=shape.standard_payment_terms,
        approval_expiry_hours=shape.approval_expiry_hours,
        deal_days=shape.deal_days,
        draft_days=shape.draft_days,
        cost_grid_percent=shape.cost_grid_percent,
        agreement_part_periods=shape.agreement_part_periods,
        billing_day=shape.billing_day,
        renewal_uplift_percent=shape.renewal_uplift_percent,
        renewal_due_days=shape.renewal_due_days,
        notice_days=shape.notice_days,
        agents_may_accept=shape.agents_may_accept,
        currency=shape.currency,
        rates={**shape.rates, shape.currency: Decimal(1)},
        rates_as_of=shape.rates_as_of,
        rates_valid_until=shape.rates_valid_until,
        attributes=_attributes(shape),
    )


def _library(shape: BaseModel) -> ClauseLibrary:
    assert isinstance(shape, ClausesShape)
    return ClauseLibrary(shape.clauses, shape.terms_words)


def _content_hash(files: Mapping[str, File]) -> str:
    """Hash of the content: layout, comments and the order of names and rules do not count; defaults are filled in."""
    return fingerprint({file: _canonical(found.shape.model_dump()) for file, found in files.items()})


def _canonical(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {
            name: canonical(value) if name in _FORMULAS and isinstance(value, str) else _canonical(value)
            for name, value in content.items()
            if name != "define"
        } | (
            {"define": {name: canonical(text) for name, text in content["define"].items()}}
            if "define" in content
            else {}
        )
    if isinstance(content, list | tuple):
        items = [_canonical(item) for item in content]
        has_ids = all(isinstance(item, Mapping) and "id" in item for item in items)
        return sorted(items, key=lambda item: str(item["id"])) if has_ids else items
    return content


def _in_words(id_: str) -> str:
    return id_.replace("_", " ")


_ALL_FACTS = (QUOTE_FACTS, LINE_FACTS)
_FORMULAS = {"when", "over", "where", "actual"}
