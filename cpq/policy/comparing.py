"""PURE. Policy sets side by side: what a set says as a table, what changed, and whose decision would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from cpq.policy.deciding import Decision, evaluate
from cpq.policy.facts import QuoteFacts
from cpq.policy.model import Ladder, Order, Outcome, PolicySet, PricingRule, Rule


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(NamedTuple):
    """One field of a rule, a term or a rate. A rule that is added or removed is one change, of no field."""

    kind: ChangeKind
    what: str
    field: str
    before: str
    after: str


class DecisionChange(NamedTuple):
    """A quote that another set decides differently."""

    before: Decision
    after: Decision

    @property
    def added_roles(self) -> tuple[str, ...]:
        return tuple(role for role in self.after.required_roles if role not in self.before.required_roles)

    @property
    def removed_roles(self) -> tuple[str, ...]:
        return tuple(role for role in self.before.required_roles if role not in self.after.required_roles)


def overview(policies: PolicySet) -> list[list[str]]:
    """Everything that can speak, in the order it would; the first row is the heading."""
    speakers: list[tuple[Order, list[list[str]]]] = [(rule.order, [_rule_row(rule)]) for rule in policies.rules]
    speakers += [(ladder.order, list(_ladder_rows(ladder))) for ladder in policies.ladders]
    ordered = sorted(speakers, key=lambda speaker: speaker[0])
    return [["policy", "speaks when", "severity", "role"], *(row for _, rows in ordered for row in rows)]


def differences(before: PolicySet, after: PolicySet) -> list[Change]:
    """What `after` says that `before` did not; nothing when their hashes are equal."""
    if before.content_hash == after.content_hash:
        return []
    old, new = _described(before), _described(after)
    changes = [Change(ChangeKind.REMOVED, what, "", "", "") for what in old.keys() - new.keys()]
    changes += [Change(ChangeKind.ADDED, what, "", "", "") for what in new.keys() - old.keys()]
    for what in old.keys() & new.keys():
        changes += _field_changes(what, old[what], new[what])
    return sorted(changes, key=lambda change: (change.what, change.field))


def decision_change(before: PolicySet, after: PolicySet, facts: QuoteFacts) -> DecisionChange | None:
    """The two decisions, where they ask others, block otherwise, or speak by other policies; else None."""
    old, new = evaluate(before, facts), evaluate(after, facts)
    return DecisionChange(old, new) if _essence(old) != _essence(new) else None


def _essence(decision: Decision) -> tuple[object, ...]:
    spoken = [(violation.policy_id, violation.severity) for violation in decision.violations]
    return decision.chains, decision.is_blocked, sorted(spoken)


def _rule_row(rule: Rule) -> list[str]:
    return [rule.id, rule.when.text, rule.outcome.severity, rule.outcome.role or ""]


def _ladder_rows(ladder: Ladder) -> Iterator[list[str]]:
    where = f", where {ladder.where.text}" if ladder.where else ""
    begins, ends = ("under", "down to") if ladder.is_falling else ("above", "up to")
    bounds = [*(step.bound for step in ladder.steps[1:]), None]
    for step, end in zip(ladder.steps, bounds, strict=True):
        reach = f" {ends} {end}" if end is not None else ""
        spoken = f"{ladder.over.text} {begins} {step.bound}{reach}{where}"
        yield [step.id, spoken, step.outcome.severity, step.outcome.role or ""]


def _field_changes(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterable[Change]:
    for field in sorted(old.keys() | new.keys()):
        before, after = old.get(field, ""), new.get(field, "")
        if before != after:
            yield Change(ChangeKind.CHANGED, what, field, before, after)


def _described(policies: PolicySet) -> dict[str, dict[str, str]]:
    """Every part of a set under its name, each as fields of text."""
    parts = {f"rule {rule.id}": _rule_fields(rule) for rule in policies.rules}
    for ladder in policies.ladders:
        parts[f"ladder {ladder.id}"] = _ladder_fields(ladder)
        for step in ladder.steps:
            begins = "under" if ladder.is_falling else "above"
            described = {"name": step.name, begins: str(step.bound), "ladder": ladder.id}
            parts[f"step {step.id}"] = described | _outcome_fields(step.outcome)
    parts |= {f"pricing rule {rule.adjustment.rule_id}": _pricing_fields(rule) for rule in policies.pricing}
    parts |= {f"tax {zone}": {name: str(rate) for name, rate in rates.items()} for zone, rates in policies.tax.items()}
    parts["roles"] = {part.name: _text(getattr(policies.roles, part.name)) for part in fields(policies.roles)}
    parts["terms"] = {part.name: _text(getattr(policies.terms, part.name)) for part in fields(policies.terms)}
    del parts["terms"]["rates"]
    parts["rates"] = {currency: str(rate) for currency, rate in policies.terms.rates.items()}
    return parts


def _rule_fields(rule: Rule) -> dict[str, str]:
    described = {"name": rule.name, "when": rule.when.text, "threshold": _text(rule.threshold)}
    described["actual"] = rule.actual.text if rule.actual else ""
    return described | _order_fields(rule.order) | _outcome_fields(rule.outcome)


def _ladder_fields(ladder: Ladder) -> dict[str, str]:
    where = ladder.where.text if ladder.where else ""
    return {"over": ladder.over.text, "where": where, **_order_fields(ladder.order)}


def _pricing_fields(rule: PricingRule) -> dict[str, str]:
    adjustment = {name: _text(value) for name, value in rule.adjustment._asdict().items() if name != "rule_id"}
    return {"when": rule.when.text, "priority": str(-rule.order.minus_priority), **adjustment}


def _order_fields(order: Order) -> dict[str, str]:
    return {"stage": ("discounts", "approvals", "terms")[order.stage], "priority": str(-order.minus_priority)}


def _outcome_fields(outcome: Outcome) -> dict[str, str]:
    return {"severity": outcome.severity, "role": outcome.role or "", "message": outcome.message or ""}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(part)}" for name, part in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)
