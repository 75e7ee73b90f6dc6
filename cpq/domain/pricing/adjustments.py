"""PURE. Stage 6, adjustment: what the pricing rules of the policy files do to a line's price."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cpq.base.rounding import Exact
from cpq.domain.pricing.parts import LinePrice
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Adjustment, mean_quantity
from cpq.domain.pricing.result import Stage

ADJUSTMENT = Stage.ADJUSTMENT


def adjust(price: LinePrice) -> None:
    """Stage 6: markups, then percentages, then amounts, each kind in the order of ids. It gives the regular price.

    Of the rules of one kind that stack as `best_of`, only the one that is best for the buyer when the kind begins
    applies; each of the others adds a step that says so.
    """
    for kind in ("markup", "percentage", "amount"):
        rules = sorted((rule for rule in price.line.adjustments if rule.kind == kind), key=lambda rule: rule.rule_id)
        best = _best([rule for rule in rules if rule.stacking == "best_of"], price)
        for rule in rules:
            if rule.stacking == "best_of" and rule is not best:
                price.note(ADJUSTMENT, price.amount, f"{rule.rule_id} (not the best)", 0)
                continue
            moved = _effect(rule, price)
            price.amount = price.amount + moved if kind == "markup" else max(0, price.amount - moved)
            price.note(ADJUSTMENT, price.amount, rule.rule_id, rule.value)
    price.divisor = 1


def _best(rivals: Sequence[Adjustment], price: LinePrice) -> Adjustment | None:
    """The smallest markup or the largest discount; of equals the one with the first id."""
    if not rivals:
        return None
    effects = [_effect(rule, price) for rule in rivals]
    return rivals[effects.index(min(effects) if rivals[0].kind == "markup" else max(effects))]


def _effect(rule: Adjustment, price: LinePrice) -> Exact:
    """The amount by which a rule would change the price: a share of its base, or an amount per line or per unit.

    An amount off a unit applies to its whole term, so a ramp counts its mean units over its months.
    """
    if rule.kind == "amount":
        units = Fraction(*mean_quantity(price.line.quantity, price.line.ramp)) if rule.base == "unit" else 1
        return units * rule.value
    return (price.listed if rule.base == "list" else price.amount) * Fraction(rule.value, ONE_HUNDRED_PERCENT)
