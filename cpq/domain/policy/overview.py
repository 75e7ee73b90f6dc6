"""A policy set as tables for people: roles, rules and their conditions, pricing rules, terms and tax."""

from __future__ import annotations

from collections.abc import Iterator

from cpq.domain.policy.facts import Unit
from cpq.domain.policy.policy_set import Ladder, Order, PolicySet, PricingRule, Roles, Rule, TimeLimit, unit_of

Table = list[list[str]]
"""Rows of cells; the first row is the heading."""


def tables(policies: PolicySet) -> dict[str, Table]:
    """The whole policy set as tables, by subject."""
    return {
        "roles": _roles(policies.roles, policies.terms.approval_expiry_hours),
        "policies": overview(policies),
        "pricing": _pricing(policies.pricing),
        "terms": _terms(policies),
        "rates": _rates(policies),
        "tax": _tax(policies),
    }


def units(policies: PolicySet) -> dict[str, Unit]:
    """The unit of the limit of each rule and step of a ladder, by id."""
    of_steps = {step.id: unit_of(ladder.over.node) for ladder in policies.ladders for step in ladder.steps}
    return of_steps | {rule.id: unit_of(rule.actual.node) for rule in policies.rules if rule.actual}


def overview(policies: PolicySet) -> Table:
    """Every rule and every step of a ladder, in the order of their violations."""
    tables: list[tuple[Order, Table]] = [(rule.order, [_rule_row(rule)]) for rule in policies.rules]
    tables += [(ladder.order, list(_ladder_rows(ladder))) for ladder in policies.ladders]
    ordered = sorted(tables, key=lambda table: table[0])
    return [["policy", "applies when", "severity", "role"], *(row for _, rows in ordered for row in rows)]


def _rule_row(rule: Rule) -> list[str]:
    return [rule.id, rule.when.text, rule.outcome.severity, rule.outcome.role or ""]


def _ladder_rows(ladder: Ladder) -> Iterator[list[str]]:
    where = f", where {ladder.where.text}" if ladder.where else ""
    begins, ends = ("under", "down to") if ladder.is_falling else ("above", "up to")
    bounds = [*(step.bound for step in ladder.steps[1:]), None]
    for step, end in zip(ladder.steps, bounds, strict=True):
        reach = f" {ends} {end}" if end is not None else ""
        condition = f"{ladder.over.text} {begins} {step.bound}{reach}{where}"
        yield [step.id, condition, step.outcome.severity, step.outcome.role or ""]


def _roles(roles: Roles, hours: int) -> Table:
    asked = "in turn, each that is needed" if roles.asks_each else "only the highest that is needed"
    count = len(roles.commercial)
    rows = [[role, f"commercial, {number} of {count}", asked] for number, role in enumerate(roles.commercial, 1)]
    rows += [[role, "orthogonal", "beside the others, whenever it is needed"] for role in roles.orthogonal]
    limits = {role: _limit(part) for role, part in roles.time_limit.items()}
    rows = [[*row, limits.get(row[0], f"{hours} hours")] for row in rows]
    return [["role", "authority", "asked", "time to answer"], *rows]


def _limit(limit: TimeLimit) -> str:
    return f"{limit.hours} hours" if limit.calendar is None else f"{limit.hours} open hours of {limit.calendar}"


def _pricing(rules: tuple[PricingRule, ...]) -> Table:
    rows = [["rule", "applies when", "kind", "value", "base", "stacking"]]
    for rule in rules:
        change = rule.adjustment
        rows.append([change.rule_id, rule.when.text, change.kind, f"{change.value:f}", change.base, change.stacking])
    return rows


def _terms(policies: PolicySet) -> Table:
    terms = policies.terms
    return [
        ["term", "value"],
        ["validity_days", str(terms.validity_days)],
        ["rounding", terms.rounding.value],
        ["tax_rounding", terms.tax_rounding.value],
        ["part_periods", terms.part_periods.value],
        ["standard_payment_terms", ", ".join(terms.standard_payment_terms)],
        ["approval_expiry_hours", str(terms.approval_expiry_hours)],
        ["deal_days", str(terms.deal_days)],
        ["draft_days", str(terms.draft_days) if terms.draft_days else "never"],
        ["cost_grid_percent", f"{terms.cost_grid_percent:f}"],
        ["agreement_part_periods", terms.agreement_part_periods.value],
        ["billing_day", str(terms.billing_day) if terms.billing_day else "first day of each line"],
        ["renewal_uplift_percent", f"{terms.renewal_uplift_percent:f}"],
        ["renewal_due_days", str(terms.renewal_due_days)],
        ["notice_days", str(terms.notice_days)],
        ["agents_may_accept", "yes" if terms.agents_may_accept else "no"],
        ["currency", terms.currency],
        *([["rates_as_of", terms.rates_as_of]] if terms.rates_as_of else []),
        *([["rates_valid_until", terms.rates_valid_until]] if terms.rates_valid_until else []),
    ]


def _rates(policies: PolicySet) -> Table:
    rates = sorted(policies.terms.rates.items())
    return [["currency", f"worth in {policies.terms.currency}"], *([name, f"{rate:f}"] for name, rate in rates)]


def _tax(policies: PolicySet) -> Table:
    """Rates in percent, with codes other than S and Z; an empty cell is an error where a rate is needed, never 0."""
    categories = sorted({category for rates in policies.tax.values() for category in rates})
    rows = [["zone", *categories]]
    for zone, rates in sorted(policies.tax.items()):
        rows.append([zone, *(str(rates.get(category, "")) for category in categories)])
    return rows
