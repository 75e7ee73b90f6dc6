"""Comparison of two policy sets: the changed rules, and the quotes whose decision changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from cpq.domain.policy.evaluation import PolicyDecision, evaluate_alternatives
from cpq.domain.policy.facts import QuoteFacts
from cpq.domain.policy.policy_set import Ladder, Order, Outcome, PolicySet, PricingRule, Rule


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(NamedTuple):
    """One field of a rule, a term or a rate. An added or removed rule is one change of its whole text."""

    kind: ChangeKind
    what: str
    field: str
    before: str
    after: str


class Turn(StrEnum):
    """How a decision changes; if several fit, the first in this order."""

    BLOCKED = "now blocked"
    UNBLOCKED = "no longer blocked"
    ASKS = "now needs approval"
    FREE = "needs no approval any more"
    MORE = "more approvers"
    FEWER = "fewer approvers"
    OTHERS = "other approvers"
    REASONS = "the same approvers for other reasons"


class DecisionChange(NamedTuple):
    """The change of the decision on one quote."""

    before: PolicyDecision
    after: PolicyDecision

    @property
    def turn(self) -> Turn:
        if self.before.is_blocked is not self.after.is_blocked:
            return Turn.BLOCKED if self.after.is_blocked else Turn.UNBLOCKED
        if self.before.chains == self.after.chains:
            return Turn.REASONS
        if self.before.approval_required is not self.after.approval_required:
            return Turn.ASKS if self.after.approval_required else Turn.FREE
        if bool(self.added_roles) is bool(self.removed_roles):
            return Turn.OTHERS
        return Turn.MORE if self.added_roles else Turn.FEWER

    @property
    def added_roles(self) -> tuple[str, ...]:
        return tuple(role for role in self.after.required_roles if role not in self.before.required_roles)

    @property
    def removed_roles(self) -> tuple[str, ...]:
        return tuple(role for role in self.before.required_roles if role not in self.after.required_roles)


def differences(before: PolicySet, after: PolicySet) -> list[Change]:
    """The changes from `before` to `after`; empty when their hashes are equal."""
    if before.content_hash == after.content_hash:
        return []
    old, new = _described(before), _described(after)
    changes = [Change(ChangeKind.REMOVED, what, "", _whole(old[what]), "") for what in old.keys() - new.keys()]
    changes += [Change(ChangeKind.ADDED, what, "", "", _whole(new[what])) for what in new.keys() - old.keys()]
    for what in old.keys() & new.keys():
        changes += _field_changes(what, old[what], new[what])
    return sorted(changes, key=lambda change: (change.what, change.field))


def decision_change(
    before: PolicySet, after: PolicySet, *alternatives: QuoteFacts, has_own_validity: bool = False
) -> DecisionChange | None:
    """The two decisions on a quote if approvers, blocks or violated policies differ; else None.

    Each set uses its own validity where none was asked for, because it is then no fact of the quote before a set
    decides.
    """
    old, new = (
        evaluate_alternatives(policies, alternatives if has_own_validity else _as_valid(alternatives, policies))
        for policies in (before, after)
    )
    return DecisionChange(old, new) if _essence(old) != _essence(new) else None


def _as_valid(alternatives: Sequence[QuoteFacts], policies: PolicySet) -> Sequence[QuoteFacts]:
    days = policies.terms.validity_days
    if all(facts.validity_days == days for facts in alternatives):
        return alternatives
    return [replace(facts, validity_days=Decimal(days)) for facts in alternatives]


def _essence(decision: PolicyDecision) -> tuple[object, ...]:
    spoken = [(violation.policy_id, violation.severity) for violation in decision.violations]
    return decision.chains, decision.is_blocked, sorted(spoken)


def _field_changes(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterable[Change]:
    for field in sorted(old.keys() | new.keys()):
        before, after = old.get(field, ""), new.get(field, "")
        if before != after:
            yield Change(ChangeKind.CHANGED, what, field, before, after)


def _whole(described: Mapping[str, str]) -> str:
    return "; ".join(f"{field}: {text}" for field, text in described.items() if text)


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
    for zone, rates in policies.tax.items():
        parts[f"tax {zone}"] = {name: f"{rate} {rate.reason or ''}".strip() for name, rate in rates.items()}
    parts["roles"] = {part.name: _text(getattr(policies.roles, part.name)) for part in fields(policies.roles)}
    parts["terms"] = {part.name: _text(getattr(policies.terms, part.name)) for part in fields(policies.terms)}
    del parts["terms"]["rates"], parts["terms"]["attributes"]
    parts |= {f"clause {id_}": {"text": text} for id_, text in policies.library.clauses.items()}
    parts["terms_words"] = {"words": _text(policies.library.terms_words)}
    parts["rates"] = {currency: str(rate) for currency, rate in policies.terms.rates.items()}
    return parts


def _rule_fields(rule: Rule) -> dict[str, str]:
    described = {"name": rule.name, "when": rule.when.text, "threshold": _text(rule.threshold)}
    # The measured number comes from the condition, unless the rule gives it.
    described["actual"] = rule.actual.text if rule.actual and rule.actual.text != rule.when.text else ""
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
