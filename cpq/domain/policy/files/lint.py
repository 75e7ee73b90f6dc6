"""Checks across rules: gaps, overlaps, unreachable rules, contradictions, falling authority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Generic, NamedTuple, TypeVar

from cpq.base.errors import nearest
from cpq.domain.policy.files.shapes import ApprovalsShape, LadderShape
from cpq.domain.policy.language.nodes import Node, facts_in
from cpq.domain.policy.language.regions import (
    Box,
    Range,
    Region,
    both,
    is_inside,
    is_never,
    key,
    limits,
    region,
    within,
    worst,
)
from cpq.domain.policy.policy_kinds import Severity
from cpq.domain.policy.policy_set import Ladder, Outcome, PricingRule, Roles, Rule
from cpq.domain.yaml_source import Document, Path, Problem

Item = TypeVar("Item")

WEEKS_MAX = 52
"""A time limit ends within a year."""

WALL_CHECKS_MAX = 200_000
"""Limit of comparisons with blocked regions, a fraction of a second; beyond it, the check for blocked rules ends."""


@dataclass(frozen=True)
class Placed(Generic[Item]):
    """A rule and its place in the file."""

    item: Item
    document: Document
    path: Path

    def problem(self, message: str, *inside: str | int) -> Problem:
        return self.document.problem((*self.path, *inside), message)

    @property
    def place(self) -> str:
        found = self.problem("")
        return f"{found.file}, line {found.line}"


def problems(
    rules: Sequence[Placed[Rule]],
    ladders: Sequence[Placed[Ladder]],
    pricing: Sequence[Placed[PricingRule]],
    roles: Roles,
) -> Iterator[Problem]:
    """Every problem between the rules of a set."""
    yield from _repeated_ids(rules, ladders, pricing)
    regions = [(placed, region(placed.item.when.node)) for placed in rules]
    yield from _dead_rules(rules, pricing)
    yield from _behind_a_block([*_rule_reaches(regions), *chain.from_iterable(map(_ladder_reaches, ladders))])
    yield from _guard_contradictions(regions, roles)
    yield from _pricing_contradictions(pricing)
    for ladder in ladders:
        yield from _dead_steps(ladder)
        yield from _falling_authority(ladder, roles)


def role_problems(document: Document, roles: Roles, deciders: Collection[str] | None) -> Iterator[Problem]:
    """The settings of roles in approvals.yaml must name its own roles, and never give a decision to less authority.

    If `deciders` are known, a role that cannot decide is refused.
    """
    for section in ("commercial", "orthogonal") if deciders is not None else ():
        for number, role in enumerate(getattr(roles, section)):
            if role not in (deciders or ()):
                message = f"{role} is not a role that can decide"
                yield document.problem(("roles", section, number), message, nearest(role, sorted(deciders or ())))
    named = [(section, role) for section in _BY_ROLE for role in getattr(roles, section)]
    for section, role in named:
        if role not in roles.known:
            message = f"there is no role {role} in approvals.yaml"
            yield document.problem_at_name(("roles", section, role), message, nearest(role, roles.known))
    handed: list[tuple[Path, str, str]] = [(("backup", role), role, to) for role, to in roles.backup.items()]
    handed += [(("escalate_to", role, "to"), role, part.to) for role, part in roles.escalate_to.items()]
    for place, role, to in handed:
        path = ("roles", *place)
        if to not in roles.known:
            yield document.problem(path, f"there is no role {to} in approvals.yaml", nearest(to, roles.known))
        elif to == role:
            yield document.problem(path, f"{role} cannot stand in for itself")
        elif role in roles.known and not roles.stands_for(to, role):
            yield document.problem(path, f"{to} has less authority than {role}")


_BY_ROLE = ("quorum", "backup", "escalate_to", "time_limit", "keep")


def calendar_problems(document: Document, shape: ApprovalsShape, roles: Roles) -> Iterator[Problem]:
    """Time limits must name a calendar of approvals.yaml, end within a year, and leave time for an escalation."""
    limits = shape.roles.time_limit
    for role, limit in limits.items():
        path: Path = ("roles", "time_limit", role)
        name = limit.calendar
        if name is not None and name not in shape.calendars:
            message = f"there is no calendar {name} in approvals.yaml"
            yield document.problem((*path, "calendar"), message, nearest(name, shape.calendars))
            continue
        calendar = roles.calendar(role)
        if calendar is not None and limit.hours > WEEKS_MAX * calendar.week_hours:
            message = f"{name} has {calendar.week_hours:f} hours a week, so {role} would have more than a year"
            yield document.problem((*path, "hours"), message)
        escalation = roles.escalate_to.get(role)
        if escalation is not None and escalation.after_hours >= limit.hours:
            message = f"unreachable: the request expires after {limit.hours} hours"
            yield document.problem(("roles", "escalate_to", role, "after_hours"), message)
    for name in shape.calendars.keys() - {limit.calendar for limit in limits.values()}:
        yield document.problem_at_name(("calendars", name), f"no time limit uses the calendar {name}")


def ladder_problems(document: Document, path: Path, ladder: LadderShape) -> Iterator[Problem]:
    """Steps share their bounds, so only their order can be wrong, and bounds that are written twice but differ."""
    steps = ladder.steps
    is_falling = steps[0].under is not None
    begins, ends = ("under", "down_to") if is_falling else ("above", "up_to")
    for number, step in enumerate(steps):
        if (step.under is not None) != is_falling:
            yield document.problem((*path, "steps", number), "all steps of a ladder have above, or all have under")
            return
    for number, (step, following) in enumerate(pairwise(steps)):
        start, end, begin = getattr(step, begins), getattr(step, ends), getattr(following, begins)
        sign = -1 if is_falling else 1
        at = (*path, "steps", number + 1, begins)
        if sign * (begin - start) <= 0:
            yield document.problem(at, f"the steps overlap: {begins} {begin} comes after {begins} {start}")
        elif end is not None and sign * (begin - end) > 0:
            yield document.problem(at, f"a gap: no step applies between {end} and {begin}")
        elif end is not None and sign * (begin - end) < 0:
            yield document.problem(at, f"the steps overlap between {begin} and {end}")
    last = getattr(steps[-1], ends)
    if last is not None:
        message = f"a gap: no step applies {begins} {last}; the last step has no {ends}"
        yield document.problem((*path, "steps", len(steps) - 1, ends), message)


def _repeated_ids(
    rules: Sequence[Placed[Rule]], ladders: Sequence[Placed[Ladder]], pricing: Sequence[Placed[PricingRule]]
) -> Iterator[Problem]:
    named = [(placed.item.id, placed.document, (*placed.path, "id")) for placed in rules]
    named += [(placed.item.adjustment.rule_id, placed.document, (*placed.path, "id")) for placed in pricing]
    for placed in ladders:
        named.append((placed.item.id, placed.document, (*placed.path, "id")))
        for number, step in enumerate(placed.item.steps):
            named.append((step.id, placed.document, (*placed.path, "steps", number, "id")))
    seen: dict[str, Problem] = {}
    for id_, document, path in named:
        here = document.problem(path, f"the id {id_} is taken")
        if id_ in seen:
            yield here._replace(message=f"the id {id_} is taken by {seen[id_].file}, line {seen[id_].line}")
        seen.setdefault(id_, here)


def _dead_rules(rules: Sequence[Placed[Rule]], pricing: Sequence[Placed[PricingRule]]) -> Iterator[Problem]:
    conditions = [(placed.item.when, placed.document, placed.path) for placed in rules]
    conditions += [(placed.item.when, placed.document, placed.path) for placed in pricing]
    for when, document, path in conditions:
        if is_never(when.node):
            yield document.problem((*path, "when"), "unreachable: this condition can never be true")


class _Reach(NamedTuple):
    """The region where a rule or a step applies and, for one that blocks, the region that it makes unreachable."""

    id: str
    placed: Placed[Rule] | Placed[Ladder]
    inside: tuple[str | int, ...]
    found: Region
    wall: Region

    @property
    def place(self) -> str:
        """The place of the rule or the step."""
        found = self.placed.problem("", *(self.inside if len(self.inside) > 1 else ()))
        return f"{found.file}, line {found.line}"


def _rule_reaches(regions: Sequence[tuple[Placed[Rule], Region]]) -> Iterator[_Reach]:
    for placed, found in regions:
        is_block = placed.item.outcome.severity is Severity.BLOCK
        yield _Reach(placed.item.id, placed, ("when",), found, found if is_block else ())


def _ladder_reaches(placed: Placed[Ladder]) -> Iterator[_Reach]:
    """A step applies up to the next one; the steps after a block block too."""
    ladder, over = placed.item, placed.item.over.node
    where = ladder.where.node if ladder.where else None
    if ladder.is_of_lines:
        over, where = worst(over, where, is_falling=ladder.is_falling), None
    for number, step in enumerate(ladder.steps):
        end = ladder.steps[number + 1].bound if number + 1 < len(ladder.steps) else None
        if ladder.is_falling:
            here, beyond = Range(end, end is not None, step.bound), Range(high=step.bound)
        else:
            here, beyond = Range(step.bound, False, end, end is not None), Range(low=step.bound)
        found, wall = (within(over, [part]) for part in (here, beyond))
        if where is not None:
            found, wall = (both(part, region(where)) for part in (found, wall))
        is_block = step.outcome.severity is Severity.BLOCK
        yield _Reach(step.id, placed, ("steps", number), found, wall if is_block else ())


def _behind_a_block(reaches: Sequence[_Reach]) -> Iterator[Problem]:
    """A rule that requires approval only where another rule blocks has no effect."""
    walls = _walls(reaches)
    checks = 0
    for reach in reaches:
        blockers = []
        for box in reach.found if not reach.wall else ():
            near = [wall for node in (None, *box) for wall in walls.get(node, ())]
            checks += len(near)
            blockers.append(next((blocker for wall, blocker in near if is_inside(box, wall)), None))
        if checks > WALL_CHECKS_MAX:
            return  # Thousands of blocks times thousands of rules: loading must not take minutes.
        if blockers and blockers[0] is not None and None not in blockers:
            blocker = blockers[0]
            message = f"unreachable: every quote it matches is blocked by {blocker.id} ({blocker.place})"
            yield reach.placed.problem(message, *reach.inside)


def _walls(reaches: Sequence[_Reach]) -> Mapping[Node | None, list[tuple[Box, _Reach]]]:
    """The blocked regions by one of the facts that they restrict; a region without facts is under None."""
    walls: dict[Node | None, list[tuple[Box, _Reach]]] = defaultdict(list)
    for reach in reaches:
        for box in reach.wall:
            known = walls[next(iter(box), None)]
            if len(box) > 1 or not any(is_inside(box, wider) for wider, _ in known):
                known.append((box, reach))
    return walls


def _guard_contradictions(regions: Sequence[tuple[Placed[Rule], Region]], roles: Roles) -> Iterator[Problem]:
    same: dict[object, list[Placed[Rule]]] = defaultdict(list)
    for placed, found in regions:
        for earlier in same[key(found)] if found else ():
            first, second = earlier.item.outcome, placed.item.outcome
            if (first.severity, first.role) == (second.severity, second.role):
                yield placed.problem(f"says the same as {earlier.item.id} ({earlier.place})", "when")
            elif _contradicts(first, second, roles):
                message = f"contradicts {earlier.item.id} ({earlier.place}): the same condition, another outcome"
                yield placed.problem(message, "then")
        same[key(found)].append(placed)


def _contradicts(first: Outcome, second: Outcome, roles: Roles) -> bool:
    """Roles of two chains may be required for the same reason; two roles of one chain, or two severities, may not."""
    if first.severity is not second.severity:
        return True
    return _chain(first, roles) == _chain(second, roles)


def _pricing_contradictions(pricing: Sequence[Placed[PricingRule]]) -> Iterator[Problem]:
    same: dict[object, list[Placed[PricingRule]]] = defaultdict(list)
    for placed in pricing:
        rule = placed.item.adjustment
        demanded = key(region(placed.item.when.node))
        for earlier in same[demanded, rule.kind]:
            other = earlier.item.adjustment
            word = "says the same as" if other[3:] == rule[3:] else "contradicts"
            yield placed.problem(f"{word} {other.rule_id} ({earlier.place}): the same condition, twice", "when")
        same[demanded, rule.kind].append(placed)


def _dead_steps(placed: Placed[Ladder]) -> Iterator[Problem]:
    ladder = placed.item
    if not facts_in(ladder.over.node):
        yield placed.problem("a ladder needs a fact", "over")
    if ladder.where is not None and is_never(ladder.where.node):
        yield placed.problem("unreachable: this condition can never be true", "where")
    for number, step in enumerate(ladder.steps):
        beyond = Range(high=step.bound) if ladder.is_falling else Range(low=step.bound)
        if beyond.meet(limits(ladder.over.node)).is_empty:
            yield placed.problem(f"unreachable: {ladder.over.text} never has such a value", "steps", number)


def _falling_authority(placed: Placed[Ladder], roles: Roles) -> Iterator[Problem]:
    """Higher steps never demand less: severity and authority rise, and no role of a lower step is left out."""
    ranks = list(Severity)
    for number, (lower, higher) in enumerate(pairwise(step.outcome for step in placed.item.steps), 1):
        if ranks.index(higher.severity) < ranks.index(lower.severity):
            yield placed.problem(f"contradicts the step before it: {higher.severity} is milder", "steps", number)
        elif higher.severity is Severity.APPROVAL_REQUIRED is lower.severity:
            if _chain(lower, roles) != _chain(higher, roles):
                message = f"contradicts the step before it: {lower.role} would no longer be asked"
                yield placed.problem(f"{message}; use a second ladder", "steps", number)
            elif lower.role in roles.commercial and _rank(higher, roles) < _rank(lower, roles):
                message = f"contradicts the step before it: {higher.role} has less authority than {lower.role}"
                yield placed.problem(message, "steps", number)


def _chain(outcome: Outcome, roles: Roles) -> str | None:
    return "commercial" if outcome.role in roles.commercial else outcome.role


def _rank(outcome: Outcome, roles: Roles) -> int:
    return roles.commercial.index(outcome.role or "")
