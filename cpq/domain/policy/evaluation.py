"""Evaluation of a policy set for a priced quote: violations, required approvers, and the facts behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import compress
from operator import itemgetter
from typing import NamedTuple

from typing_extensions import TypeIs

from cpq.base.money import plain
from cpq.domain.policy.facts import SECRET, FactsEnvironment, LineFacts, QuoteFacts, Unit, piece_ids
from cpq.domain.policy.language.nodes import Value
from cpq.domain.policy.language.trends import Trend
from cpq.domain.policy.policy_kinds import Severity
from cpq.domain.policy.policy_set import Expression, Ladder, Order, Outcome, PolicySet, Rule, Step, unit_of
from cpq.domain.policy.violation_text import Measure, filled


class Safe(StrEnum):
    """The direction in which a fact may change without a new approval."""

    LOWER = "lower"
    HIGHER = "higher"
    SAME = "same"


Each = tuple[tuple[str, Value | None], ...]
"""A value for each line, by its id."""


class LinesPast(NamedTuple):
    """The lines that reach a step of a ladder; one line fewer is not worse, a new line is."""

    values: Each


FactValue = Value | frozenset[str] | Each | LinesPast | None
"""A fact's value; for a fact of lines, each line's id with its value; None is unknown."""


class FactRead(NamedTuple):
    """A fact behind a violation. A secret one is compared, but its values are never shown."""

    name: str
    value: FactValue
    safe: Safe
    is_secret: bool = False


class Violation(NamedTuple):
    """A violated rule or step of a ladder. `line_ids` are the lines that cause it; empty when the whole quote does."""

    policy_id: str
    policy_name: str
    severity: Severity
    description: str
    threshold: Decimal | None
    actual: Decimal | None
    required_approver_role: str | None
    facts_read: tuple[FactRead, ...]
    line_ids: tuple[str, ...]
    is_secret: bool = False
    """Whether its numbers reveal a cost or a margin."""
    unit: str = ""
    """The unit of its numbers: a currency code, `percent`, `months`, `days` or `pieces`; empty when unknown."""


@dataclass(frozen=True)
class PolicyDecision:
    """The policies' decision on a quote; approvals follow it.

    The chains are asked in parallel, the roles of one chain in turn.
    """

    violations: tuple[Violation, ...]
    chains: tuple[tuple[str, ...], ...]
    policy_hash: str

    @property
    def required_roles(self) -> tuple[str, ...]:
        return tuple(role for chain in self.chains for role in chain)

    @property
    def approval_required(self) -> bool:
        return bool(self.chains)

    def asked_role(self, violation: Violation) -> str | None:
        """The role that is asked because of a violation: the one it requires, or the highest of the commercial chain
        where only that one is asked."""
        role = violation.required_approver_role
        return role if role is None or role in self.required_roles else self.chains[0][-1]

    def reasons(self, role: str) -> tuple[Violation, ...]:
        """The violations for which a role is asked."""
        return tuple(violation for violation in self.violations if self.asked_role(violation) == role)

    @property
    def blocking(self) -> tuple[Violation, ...]:
        """The violations that block the quote: nobody can approve them."""
        return tuple(violation for violation in self.violations if violation.severity is Severity.BLOCK)

    @property
    def is_blocked(self) -> bool:
        return bool(self.blocking)


def evaluate(policies: PolicySet, facts: QuoteFacts) -> PolicyDecision:
    """Every violation in a stable order, and the required approvers. It never raises: a fault blocks the quote."""
    environment = policies.environment(facts)
    found: list[tuple[Order, Violation]] = []
    violated, faulty = _violated(policies, environment)
    for rule in violated:
        try:
            found.append((rule.order, _rule_violation(rule, environment)))
        except ArithmeticError:
            faulty.append(rule)
    found += [(rule.order, _fault(rule.id, rule.name, is_secret=rule.is_secret)) for rule in faulty]
    for ladder in policies.ladders:
        try:
            violation = _climb(ladder, environment)
        except ArithmeticError:
            violation = _fault(ladder.id, ladder.id.replace("_", " "), is_secret=ladder.is_secret)
        if violation is not None:
            found.append((ladder.order, violation))
    found.sort(key=itemgetter(0))
    return _decision(policies, tuple(violation for _, violation in found))


def evaluate_alternatives(
    policies: PolicySet,
    alternatives: Sequence[QuoteFacts],
    exact: Callable[[int], QuoteFacts] | None = None,
    caution: str = "",
) -> PolicyDecision:
    """One decision over all alternatives: the worst violation of each policy, because any could be accepted.

    Where the alternatives have hidden facts that are judged more carefully than they are, `exact` has the facts as they
    are, by the place of the alternative: violations show these numbers alone, with `caution` where they would pass.
    """
    worst: dict[str, tuple[Violation, int]] = {}
    for place, facts in enumerate(alternatives):
        for violation in evaluate(policies, facts).violations:
            known = worst.get(violation.policy_id)
            if known is None or _excess(violation) > _excess(known[0]):
                worst[violation.policy_id] = violation, place
    found = (
        _as_it_is(policies, violation, exact(place), caution) if exact and violation.is_secret else violation
        for violation, place in worst.values()
    )
    return _decision(policies, tuple(found))


def is_no_worse(before: FactRead, after: FactRead) -> bool:
    """Whether an approval based on `before` covers `after`: the fact is unchanged, or moved in the safe direction."""
    if before.name != after.name:
        return False
    if isinstance(before.value, LinesPast) and isinstance(after.value, LinesPast):
        return not worse_lines(before, after)
    if is_each(before.value) and is_each(after.value):
        old, new = dict(before.value), dict(after.value)
        return old.keys() == new.keys() and all(_moved_safely(old[id_], new[id_], before.safe) for id_ in old)
    return _moved_safely(before.value, after.value, before.safe)


def worse_lines(before: FactRead, after: FactRead) -> list[str]:
    """The lines on a ladder that are new or got worse."""
    assert isinstance(before.value, LinesPast)
    assert isinstance(after.value, LinesPast)
    old = dict(before.value.values)
    return [
        id_ for id_, value in after.value.values if id_ not in old or not _moved_safely(old[id_], value, before.safe)
    ]


def is_each(value: FactValue) -> TypeIs[Each]:
    """Whether there is a value for each line."""
    return isinstance(value, tuple) and not isinstance(value, LinesPast)


def _decision(policies: PolicySet, violations: tuple[Violation, ...]) -> PolicyDecision:
    wanted = frozenset(role for violation in violations if (role := violation.required_approver_role) is not None)
    return PolicyDecision(violations, policies.roles.chains(wanted) if wanted else (), policies.content_hash)


def _excess(violation: Violation) -> tuple[bool, Decimal]:
    """How bad a violation is: a block is worse than a required approval, then the distance from the threshold counts;
    an unknown value counts as infinitely far."""
    is_block = violation.severity is Severity.BLOCK
    if violation.actual is None:
        return is_block, Decimal("Infinity")
    return is_block, abs(violation.actual - (violation.threshold or 0))


def _moved_safely(before: object, after: object, safe: Safe) -> bool:
    if before is None or after is None:
        return False  # Two unknown values may differ.
    if before == after and type(before) is type(after):
        return True
    if safe is Safe.SAME:
        return False
    if isinstance(before, bool | Decimal) and isinstance(after, bool | Decimal):
        return after <= before if safe is Safe.LOWER else after >= before
    return False


def _as_it_is(policies: PolicySet, found: Violation, facts: QuoteFacts, caution: str) -> Violation:
    """The violation with the numbers of these facts. Later versions are compared with what it was judged by."""
    environment = policies.environment(facts)
    try:
        for rule in policies.rules:
            if rule.id == found.policy_id:
                exact = _rule_violation(rule, environment)
                return _shown(found, exact, "" if rule.when.run(environment, None) is not False else caution)
        for ladder in policies.ladders:
            for step in ladder.steps:
                if step.id == found.policy_id:
                    value = _measured(ladder, environment)
                    exact = _step_violation(ladder, step, value, environment, [])
                    is_past = value is None or _is_past(ladder, value, step.bound)
                    return _shown(found, exact, "" if is_past else caution)
    except ArithmeticError:
        return found._replace(actual=None, description=f"{found.policy_name}. {caution}")
    return found  # A fault, which has no numbers.


def _shown(found: Violation, exact: Violation, caution: str) -> Violation:
    description = f"{exact.description.rstrip('.')}. {caution}" if caution else exact.description
    return found._replace(actual=exact.actual, description=description)


def _violated(policies: PolicySet, environment: FactsEnvironment) -> tuple[list[Rule], list[Rule]]:
    """The rules whose condition is true or unknown, and those that cannot be evaluated."""
    try:
        # The common case in one pass; after a fault, which is rare, each rule is tried alone.
        answers = [run(environment, None) for run in policies.conditions]
    except ArithmeticError:
        return _one_by_one(policies, environment)
    return [rule for rule, answer in zip(policies.rules, answers, strict=True) if answer is not False], []


def _one_by_one(policies: PolicySet, environment: FactsEnvironment) -> tuple[list[Rule], list[Rule]]:
    violated, faulty = [], []
    for rule in policies.rules:
        try:
            if rule.when.run(environment, None) is not False:
                violated.append(rule)
        except ArithmeticError:
            faulty.append(rule)
    return violated, faulty


def _rule_violation(rule: Rule, environment: FactsEnvironment) -> Violation:
    actual = rule.actual.run(environment, None) if rule.actual else None
    blamed = [_blamed(blames(environment), environment) for blames in rule.culprits]
    # Lines are mostly in the order of their ids already; a set would lose that and make the sort slower.
    is_once = len(blamed) == 1 and environment.pieces is environment.lines
    lines: Iterable[str] = blamed[0] if is_once else set().union(*blamed)
    reads = tuple(_fact_read(name, trend, environment) for name, trend in rule.when.reads.items())
    sentence = rule.outcome.message or (
        f"{rule.name}: {{actual}} against a limit of {{threshold}}" if rule.threshold is not None else rule.name
    )
    measure = _measure(rule.actual, environment)
    return _violation(rule, rule.outcome, sentence, rule.threshold, actual, measure, reads, lines, rule.is_secret)


def _blamed(mask: Sequence[bool | None], environment: FactsEnvironment) -> Iterable[str]:
    """The ids of the lines whose mask is true or unknown."""
    if None in mask:
        mask = [is_to_blame is not False for is_to_blame in mask]
    return compress(environment.line_ids, mask)


def _climb(ladder: Ladder, environment: FactsEnvironment) -> Violation | None:
    if ladder.is_of_lines:
        return _climb_lines(ladder, environment)
    if ladder.where is not None and ladder.where.run(environment, None) is False:
        return None
    value = _measured(ladder, environment)
    step = ladder.steps[-1] if value is None else ladder.reached(value)
    return None if step is None else _step_violation(ladder, step, value, environment, [])


def _climb_lines(ladder: Ladder, environment: FactsEnvironment) -> Violation | None:
    """The worst line decides. A line whose `where` is unknown counts; an unknown number is the worst."""
    values = _line_values(ladder, environment)
    if not values:
        return None
    worst = _worst(ladder, values)
    step = ladder.steps[-1] if worst is None else ladder.reached(worst)
    if step is None:
        return None
    lines = {line.line_id for value, _, line in values if value is None or _is_past(ladder, value, step.bound)}
    first = ladder.steps[0].bound
    past = sorted((id_, value) for value, id_, _ in values if value is None or _is_past(ladder, value, first))
    return _step_violation(ladder, step, worst, environment, lines, LinesPast(tuple(past)))


def _line_values(ladder: Ladder, environment: FactsEnvironment) -> list[tuple[Decimal | None, str, LineFacts]]:
    where, over = ladder.where, ladder.over
    return [
        (over.run(environment, line), id_, line)
        for id_, line in zip(piece_ids(environment), environment.pieces, strict=True)
        if where is None or where.run(environment, line) is not False
    ]


def _worst(ladder: Ladder, values: Sequence[tuple[Decimal | None, str, LineFacts]]) -> Decimal | None:
    known = [value for value, _, _ in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return min(known) if ladder.is_falling else max(known)


def _measured(ladder: Ladder, environment: FactsEnvironment) -> Decimal | None:
    """The number that decides the step; None is unknown."""
    if ladder.is_of_lines:
        return _worst(ladder, _line_values(ladder, environment))
    value: Decimal | None = ladder.over.run(environment, None)
    return value


def _is_past(ladder: Ladder, value: Decimal, bound: Decimal) -> bool:
    return value < bound if ladder.is_falling else value > bound


def _step_violation(
    ladder: Ladder,
    step: Step,
    value: Decimal | None,
    environment: FactsEnvironment,
    lines: Iterable[str],
    past: LinesPast | None = None,
) -> Violation:
    safe, over = Safe.HIGHER if ladder.is_falling else Safe.LOWER, ladder.over
    reads = [FactRead(over.text, value, safe, over.is_secret)]
    if past is not None:
        # The worst line alone would let every other line rise to it.
        reads.append(FactRead(f"{over.text} by line", past, safe, over.is_secret))
    if ladder.where is not None:
        reads += [_fact_read(name, Trend.EITHER, environment) for name in ladder.where.reads]
    word = "under" if ladder.is_falling else "above"
    sentence = step.outcome.message or f"{step.name}: {{actual}} is {word} {{threshold}}"
    measure = _measure(over, environment)
    return _violation(step, step.outcome, sentence, step.bound, value, measure, tuple(reads), lines, ladder.is_secret)


def _violation(
    policy: Rule | Step,
    outcome: Outcome,
    sentence: str,
    threshold: Decimal | None,
    actual: Decimal | None,
    measure: Measure,
    reads: tuple[FactRead, ...],
    lines: Iterable[str],
    is_secret: bool,
) -> Violation:
    return Violation(
        policy_id=policy.id,
        policy_name=policy.name,
        severity=outcome.severity,
        description=filled(sentence, actual=actual, threshold=threshold, measure=measure),
        threshold=threshold,
        actual=None if actual is None else plain(actual),
        required_approver_role=outcome.role,
        facts_read=reads,
        line_ids=tuple(sorted(lines)),
        is_secret=is_secret,
        unit=measure.name,
    )


def _measure(number: Expression | None, environment: FactsEnvironment) -> Measure:
    """What the numbers of a violation are; `number` is the expression that is measured."""
    unit = unit_of(number.node) if number else Unit.NONE
    rate = environment["currency_rate"] if unit is Unit.VALUE else None
    return Measure(
        unit,
        policy_currency=environment.currency,
        currency=str(environment["currency"]),
        rate=rate if isinstance(rate, Decimal) else None,
        is_margin=unit is Unit.PERCENT and number is not None and number.is_secret,
    )


def _fault(id_: str, name: str, *, is_secret: bool) -> Violation:
    description = f"{name} cannot be worked out for this quote, so the quote is blocked"
    return Violation(id_, name, Severity.BLOCK, description, None, None, None, (), (), is_secret)


def _fact_read(name: str, trend: Trend, environment: FactsEnvironment) -> FactRead:
    safe, is_secret = _SAFE[trend], name in SECRET
    if not name.startswith("line."):
        value: FactValue = environment[name]  # type: ignore[assignment] # As the fact is declared.
        return FactRead(name, value, safe, is_secret)
    each: FactValue = environment["each", name]  # type: ignore[assignment] # Ids and values.
    return FactRead(name, each, safe, is_secret)


_SAFE = {Trend.RISES: Safe.LOWER, Trend.FALLS: Safe.HIGHER, Trend.EITHER: Safe.SAME}
