"""PURE. What the pricing rules of the policy files do to a line: markups first, then percentages, then amounts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Adjustment
from cpq.domain.pricing.result import Step
from cpq.domain.pricing.stages import nearest


def adjust(
    adjustments: Sequence[Adjustment], units: Fraction, price: Fraction, listed: Fraction
) -> tuple[Fraction, list[Step]]:
    """The price after the rules, in the order of their ids, and a step for each, also for one that did not act.

    Of the rules of one kind that stack as `best_of`, only that acts which is best for the buyer when the kind begins.
    An amount off a unit is off its whole term, so the units of a ramp are their mean over its months.
    """
    steps: list[Step] = []
    for kind in ("markup", "percentage", "amount"):
        rules = sorted((rule for rule in adjustments if rule.kind == kind), key=lambda rule: rule.rule_id)
        best = _best([rule for rule in rules if rule.stacking == "best_of"], units, price, listed)
        for rule in rules:
            if rule.stacking == "best_of" and rule is not best:
                steps.append(Step("adjustment", _shown(price), f"{rule.rule_id} (not the best)", 0))
                continue
            moved = _effect(rule, units, price, listed)
            price = price + moved if kind == "markup" else max(Fraction(0), price - moved)
            steps.append(Step("adjustment", _shown(price), rule.rule_id, rule.value))
    return price, steps


def _best(rivals: Sequence[Adjustment], units: Fraction, price: Fraction, listed: Fraction) -> Adjustment | None:
    """The smallest markup, or the largest discount; of equals the one with the first id."""
    if not rivals:
        return None
    effects = [_effect(rule, units, price, listed) for rule in rivals]
    return rivals[effects.index(min(effects) if rivals[0].kind == "markup" else max(effects))]


def _effect(rule: Adjustment, units: Fraction, price: Fraction, listed: Fraction) -> Fraction:
    """By how much a rule would move the price: a share of its base, or an amount for the line or for each unit."""
    if rule.kind == "amount":
        return units * rule.value if rule.base == "unit" else Fraction(rule.value)
    return (listed if rule.base == "list" else price) * Fraction(rule.value, ONE_HUNDRED_PERCENT)


def _shown(price: Fraction) -> int:
    return nearest(price.numerator, price.denominator)
