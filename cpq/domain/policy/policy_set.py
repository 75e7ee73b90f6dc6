"""A loaded policy set: rules, ladders, pricing rules, roles, terms and tax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import takewhile
from typing import Literal, NamedTuple

from cpq.base.errors import Code, CpqError, nearest
from cpq.base.rounding import Rounding
from cpq.domain.policy.business_hours import Calendar, deadline
from cpq.domain.policy.facts import (
    LINE_FACTS,
    QUOTE_FACTS,
    SECRET,
    FactsEnvironment,
    LineInputs,
    QuoteInputs,
    Unit,
)
from cpq.domain.policy.free_text import ClauseLibrary
from cpq.domain.policy.language.compiler import Column, Run, compiled
from cpq.domain.policy.language.nodes import Declared, Fact, Fold, Junction, Node, facts_in
from cpq.domain.policy.language.trends import Trend
from cpq.domain.policy.policy_kinds import PartPeriods, Severity, TaxCode, TaxRounding

AdjustmentKind = Literal["markup", "percentage", "amount"]

ADJUSTMENT_ORDER: tuple[AdjustmentKind, ...] = ("markup", "percentage", "amount")


class Order(NamedTuple):
    """The order of violations: stage, then priority, then specificity (number of facts read), then id."""

    stage: int
    minus_priority: int
    minus_specificity: int
    id: str


@dataclass(frozen=True)
class Expression:
    """A checked expression: its canonical text, its tree, its closure, and its trend with each fact it reads."""

    text: str
    node: Node
    run: Run
    reads: Mapping[str, Trend]

    @cached_property
    def is_secret(self) -> bool:
        """Whether its value reveals a cost or a margin."""
        return not SECRET.isdisjoint(self.reads)


@dataclass(frozen=True)
class Outcome:
    severity: Severity
    role: str | None
    message: str | None


@dataclass(frozen=True)
class Rule:
    """A rule, violated when its condition is true or unknown. `culprits` are the conditions that find the lines."""

    id: str
    name: str
    order: Order
    when: Expression
    outcome: Outcome
    threshold: Decimal | None
    actual: Expression | None
    culprits: tuple[Column, ...]

    @cached_property
    def is_secret(self) -> bool:
        return self.when.is_secret or (self.actual is not None and self.actual.is_secret)


@dataclass(frozen=True)
class Step:
    """A step of a ladder: from above `bound`, in a falling ladder from under it, to the next step."""

    id: str
    name: str
    bound: Decimal
    outcome: Outcome


@dataclass(frozen=True)
class Ladder:
    """Steps over one number; only the highest step reached applies. Over a fact of lines the worst line counts."""

    id: str
    order: Order
    over: Expression
    where: Expression | None
    is_falling: bool
    is_of_lines: bool
    steps: tuple[Step, ...]

    @cached_property
    def is_secret(self) -> bool:
        return self.over.is_secret or (self.where is not None and self.where.is_secret)

    def reached(self, value: Decimal) -> Step | None:
        found = None
        for step in self.steps:
            if (value < step.bound) if self.is_falling else (value > step.bound):
                found = step
            else:
                break
        return found


class Adjustment(NamedTuple):
    """The effect of a pricing rule on a line. `value` is signed: percent, or an amount in the quote's currency."""

    rule_id: str
    name: str
    kind: AdjustmentKind
    value: Decimal
    base: str
    stacking: str


@dataclass(frozen=True)
class PricingRule:
    order: Order
    when: Expression
    adjustment: Adjustment

    @cached_property
    def about_quote(self) -> tuple[Run, ...]:
        """The conditions joined by `and` that come before the first one about a line."""
        node = self.when.node
        parts = node.parts if isinstance(node, Junction) and node.operator == "and" else (node,)
        return tuple(map(compiled, takewhile(_is_about_quote, parts)))

    def may_apply(self, environment: FactsEnvironment) -> bool:
        """False when the condition is false for every line; a fault is left to the check of each line."""
        try:
            return all(run(environment, None) is not False for run in self.about_quote)
        except ArithmeticError:
            return True


def _is_about_quote(node: Node) -> bool:
    return not any(name.startswith("line.") for name in facts_in(node))


def unit_of(node: Node) -> Unit:
    """The unit of an expression that is one fact, or the largest, smallest or sum of the lines; unknown for others."""
    if isinstance(node, Fold) and node.function in ("max", "min", "sum"):
        return unit_of(node.body)
    if not isinstance(node, Fact):
        return Unit.NONE
    declared = (LINE_FACTS if node.is_of_line else QUOTE_FACTS).get(node.name.removeprefix("line."))
    return declared.unit if declared else Unit.NONE


class Escalation(NamedTuple):
    """A role that may also decide after some hours."""

    to: str
    after_hours: int


class TimeLimit(NamedTuple):
    """How long a role has to answer: hours by the clock, or open hours of a calendar."""

    hours: int
    calendar: Calendar | None


Quorum = Literal["one", "all", "majority"] | int


@dataclass(frozen=True)
class Roles:
    """The commercial chain, lowest authority first, the orthogonal roles, and how each role decides."""

    commercial: tuple[str, ...]
    orthogonal: tuple[str, ...]
    asks_each: bool
    quorum: Mapping[str, Quorum] = field(default_factory=dict)
    backup: Mapping[str, str] = field(default_factory=dict)
    escalate_to: Mapping[str, Escalation] = field(default_factory=dict)
    keep: Mapping[str, bool] = field(default_factory=dict)
    time_limit: Mapping[str, TimeLimit] = field(default_factory=dict)
    keeps_approvals: bool = True
    """Whether an approval may be kept for a later version at all."""

    @property
    def known(self) -> tuple[str, ...]:
        """Every role, in the order in which they decide."""
        return (*self.commercial, *self.orthogonal)

    def rank(self, role: str) -> int:
        """The place of a role in that order; roles that the policies no longer have come last."""
        return self.known.index(role) if role in self.known else len(self.known)

    def calendar(self, role: str) -> Calendar | None:
        """The calendar by which the hours of a role are counted; None for the clock."""
        return self.time_limit[role].calendar if role in self.time_limit else None

    def deadline(self, role: str, start: datetime, hours: int) -> datetime:
        """The end of some hours of a role, by its calendar."""
        return deadline(start, hours, self.calendar(role))

    def expires_at(self, role: str, start: datetime, hours: int) -> datetime:
        """The end of the time limit of a role; `hours` is the limit of roles without one of their own."""
        return self.deadline(role, start, self.time_limit[role].hours if role in self.time_limit else hours)

    def stands_for(self, role: str, other: str) -> bool:
        """Whether `role` has at least the authority of `other`: a higher role of its chain or, for an orthogonal role,
        another orthogonal role or the top of the chain."""
        if other in self.commercial:
            return role in self.commercial and self.commercial.index(role) >= self.commercial.index(other)
        return role in self.orthogonal or role == self.commercial[-1]

    def chains(self, wanted: frozenset[str]) -> tuple[tuple[str, ...], ...]:
        """One chain per tuple: its roles are asked in turn, the chains in parallel; in a stable order."""
        commercial = tuple(role for role in self.commercial if role in wanted)
        first = commercial if self.asks_each else commercial[-1:]
        return tuple(chain for chain in (first, *((role,) for role in self.orthogonal if role in wanted)) if chain)


@dataclass(frozen=True)
class Terms:
    validity_days: int
    """How long a quote can be accepted for which no other last day was asked for."""
    rounding: Rounding
    tax_rounding: TaxRounding
    part_periods: PartPeriods
    standard_payment_terms: tuple[str, ...]
    approval_expiry_hours: int
    cost_grid_percent: Decimal
    """How far apart the costs are on which verdicts rest; a caller who may not see costs learns no more than that."""
    deal_days: int
    """How long after its last valid day an accepted quote counts for its deal."""
    draft_days: int
    """How long after its last valid day a draft expires that nobody touches; 0 is never."""
    agreement_part_periods: PartPeriods
    """How parts of a period are counted when an agreement changes that was sold in whole months."""
    billing_day: int
    """The day of the month on which billing periods begin; 0 is the first day of each line."""
    renewal_uplift_percent: Decimal
    """By how much a renewal raises prices for which no other uplift was asked."""
    renewal_due_days: int
    """How long before its end a renewal is due."""
    notice_days: int
    """How long before the next period a line without an end must be cancelled."""
    agents_may_accept: bool
    """Whether a program may record that a customer accepted, with no person who says so."""
    currency: str
    rates: Mapping[str, Decimal]
    rates_as_of: str | None
    """The day of the rates; without it no price is converted."""
    rates_valid_until: str | None
    """The last day on which the rates may be used; None when they have no end."""
    attributes: Mapping[str, Declared]


class TaxPart(NamedTuple):
    """One of several taxes, with the names of those that its base includes."""

    name: str
    rate: Decimal
    on_top_of: tuple[str, ...] = ()

    def __str__(self) -> str:
        on = f" on {' and '.join(self.on_top_of)}" if self.on_top_of else ""
        return f"{self.name} {self.rate:f}{on}"


class TaxRate(NamedTuple):
    """A rate in percent with its tax category code, and for some codes the reason why no tax is charged."""

    rate: Decimal
    """Of all taxes together, where there are several."""
    code: TaxCode
    reason: str | None = None
    parts: tuple[TaxPart, ...] = ()
    """The taxes, where there are several."""

    def __str__(self) -> str:
        if self.parts:
            return " + ".join(map(str, self.parts))
        return f"{self.rate:f}" if self.code in (TaxCode.STANDARD, TaxCode.ZERO) else f"{self.rate:f} {self.code}"


UNTAXED = {"exempt": TaxCode.EXEMPT, "reverse_charge": TaxCode.REVERSE_CHARGE}
"""The code for an account that pays no tax, by its tax status."""


@dataclass(frozen=True)
class PolicySet:
    """The content of the policy files. A set is immutable; a changed file makes a new set with another hash."""

    rules: tuple[Rule, ...]
    ladders: tuple[Ladder, ...]
    pricing: tuple[PricingRule, ...]
    roles: Roles
    terms: Terms
    tax: Mapping[str, Mapping[str, TaxRate]]
    content_hash: str
    library: ClauseLibrary = field(default_factory=ClauseLibrary)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The facts that decide about approvals; what none of them reads need not be looked up."""
        read = [rule.when for rule in self.rules] + [rule.actual for rule in self.rules if rule.actual]
        read += [ladder.over for ladder in self.ladders] + [ladder.where for ladder in self.ladders if ladder.where]
        return frozenset(name for expression in read for name in expression.reads)

    @cached_property
    def conditions(self) -> tuple[Run, ...]:
        """The conditions of the rules, in their order."""
        return tuple(rule.when.run for rule in self.rules)

    def environment(self, facts: QuoteInputs) -> FactsEnvironment:
        terms = self.terms
        return FactsEnvironment(facts, terms.rates, terms.standard_payment_terms, terms.attributes, terms.currency)

    def adjustments(self, quote: QuoteInputs, line: LineInputs) -> tuple[Adjustment, ...]:
        """The adjustments of a line by the pricing rules: markups, percentages, amounts, each in the order they apply.

        A rule applies only when its condition is true: an unknown changes no price.
        """
        environment = self.environment(quote)
        return self.adjustments_within(environment, line, self.pricing_within(environment))

    def pricing_within(self, environment: FactsEnvironment) -> tuple[PricingRule, ...]:
        """The pricing rules that may apply to a line of this quote; most concern other customers."""
        return tuple(rule for rule in self.pricing if rule.may_apply(environment))

    def adjustments_within(
        self, environment: FactsEnvironment, line: LineInputs, rules: Sequence[PricingRule]
    ) -> tuple[Adjustment, ...]:
        """The same for one of many lines: facts derived from the quote are computed once for all of them."""
        found = []
        for rule in rules:
            try:
                applies = rule.when.run(environment, line)
            except ArithmeticError:
                raise CpqError(
                    Code.POLICY_BLOCKED,
                    f"The pricing rule {rule.adjustment.rule_id} cannot be evaluated for this line.",
                    policy_id=rule.adjustment.rule_id,
                    line_id=line.line_id or None,
                ) from None
            if applies:
                found.append(rule.adjustment)
        return tuple(found)

    def tax_rates(self, zone: str) -> Mapping[str, TaxRate]:
        """The rates of a zone by tax category; empty for an unknown zone."""
        return self.tax.get(zone) or self.tax.get(f"{zone.partition('-')[0]}-*") or {}

    def tax_rate(self, zone: str, category: str) -> TaxRate:
        """The rate of a category; a zone or category without one is an error, never 0."""
        rates = self.tax.get(zone) or self.tax.get(f"{zone.partition('-')[0]}-*")
        if rates is None:
            known = sorted(self.tax)
            raise CpqError(
                Code.CONFIGURATION_INVALID,
                f"There is no tax rate for the zone {zone!r}; tax.yaml has none.",
                zone=zone,
                known=known,
                nearest=nearest(zone, known),
            )
        if category not in rates:
            raise CpqError(
                Code.CONFIGURATION_INVALID,
                f"There is no tax rate for the category {category!r} in the zone {zone}; tax.yaml has none.",
                zone=zone,
                category=category,
                known=sorted(rates),
                nearest=nearest(category, rates),
            )
        return rates[category]


def tax_code(found: TaxRate | None, tax_status: str, tax_note: str | None) -> tuple[TaxCode, str | None] | None:
    """The code of a category for an account, and why no tax is charged; None when nothing is known.

    The account's status replaces the codes of taxed places; what a policy says of the sale itself (K, G, O) stays.
    """
    if found is not None and (tax_status not in UNTAXED or found.code in _OF_THE_SALE):
        return found.code, found.reason
    return (UNTAXED[tax_status], tax_note) if tax_status in UNTAXED else None


_OF_THE_SALE = (TaxCode.INTRA_COMMUNITY, TaxCode.EXPORT, TaxCode.OUTSIDE_SCOPE)
