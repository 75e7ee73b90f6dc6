"""What makes one valid configuration better than another: each cost as weights of literals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise

from cpq.base.money import to_micro
from cpq.domain.configuration.options import ChoiceError, Scalar, number, spelled
from cpq.domain.configuration.solver.question import Question
from cpq.domain.configuration.solver.states import AnyText, Grid, States

Costs = dict[int, int]
Surcharges = Mapping[str, Mapping[str, int]]
"""By option and the spelling of its value, as a price has them."""


def of_changes(question: Question, locked: Collection[str]) -> Costs:
    """What is given up of the choices, by how much each is to be kept; to remove something costs twice a resizing."""
    costs: Costs = {}
    for name, states in question.encoding.states.items():
        if name not in question.unread and (name not in question.wanted or name in locked):
            continue
        keep, removed = states.option.row.keep, ~states.taken
        if name in question.wanted:
            place = question.wanted[name]
            lost = removed if not removed >> place & 1 else 0
            _add(question, states, {p: keep * (1 + (lost >> p & 1)) for p in range(states.count) if p != place}, costs)
        else:
            _add(question, states, {p: keep for p in range(states.count) if removed >> p & 1}, costs)
    return costs


def of_distances(question: Question, locked: Collection[str]) -> Costs:
    """How many steps a value is from the given one: of its listed numbers, or of its range."""
    costs: Costs = {}
    for name, states in question.encoding.states.items():
        if name in question.wanted and name not in locked and states.option.kind == "number":
            _add(question, states, _steps(states, question.typed[name]), costs)
        elif name in question.near:
            _add(question, states, _steps(states, question.near[name]), costs)
        elif name in question.unread:
            _add(question, states, _likeness(states, question.unread[name]), costs)
    return costs


def of_deviations(question: Question) -> Costs:
    """Which options that were left out do not stay as they then are, by how much each is to be kept.

    A default that is taken away counts twice.
    """
    costs: Costs = {-literal: question.keep(choice) for literal, choice in question.defaulted.items()}
    for choice in question.defaulted.values():
        states = question.encoding.states[choice.option]
        if states.neutral is not None and states.taken >> states.neutral & 1:
            inactive = states.inactive
            lost = {
                p: question.keep(choice) for p in range(states.count) if not states.taken >> p & 1 and p != inactive
            }
            _add(question, states, lost, costs)
    return costs


def of_surcharges(question: Question, surcharges: Surcharges) -> Costs:
    costs: Costs = {}
    for name, amounts in surcharges.items():
        states = question.encoding.states.get(name)
        if states is not None:
            by_place = {
                place: amounts.get(spelled(value), 0)
                for place, value in enumerate(states.values, states.offset)
                if isinstance(value, bool | Decimal | str)
            }
            _add(question, states, by_place, costs)
    return costs


def of_advice(question: Question) -> Costs:
    """How many recommendations are not followed."""
    return {-literal: 1 for literal in question.encoding.advice}


def _add(question: Question, states: States, by_place: Mapping[int, int], costs: Costs) -> None:
    """The cost of an option by its state, in steps: each literal means `at least this cost`."""
    full = {place: by_place.get(place, 0) for place in range(states.count)}
    amounts = sorted(set(full.values()))
    beyond: int | None = None
    for below, amount in reversed(list(pairwise(amounts))):
        places = [place for place, cost in full.items() if cost == amount]
        literals = [question.encoding.literal(states.name, place) for place in places]
        if beyond is not None:
            literals.append(beyond)
        beyond = question.any_of(literals)
        costs[beyond] = costs.get(beyond, 0) + amount - below


def _steps(states: States, given: Scalar) -> dict[int, int]:
    assert isinstance(given, Decimal)
    numbers = {place: value for place, value in enumerate(states.values, states.offset) if isinstance(value, Decimal)}
    if states.option.values:
        home = states.place(given)
        return {place: abs(place - home) for place in numbers}
    step = Grid(states.option).step
    steps = {place: abs(to_micro(value) - to_micro(given)) // step for place, value in numbers.items()}
    return {**steps, states.place(given): 0}


def _likeness(states: States, given: object) -> dict[int, int]:
    """For a choice that the option cannot take: the rank of each value by how like it is."""
    gaps: dict[int, int] = {}
    if states.option.kind == "number":
        with suppress(ValueError):
            wanted = to_micro(number(given))
            gaps = {
                place: abs(to_micro(value) - wanted)
                for place, value in enumerate(states.values, states.offset)
                if isinstance(value, Decimal)
            }
    else:
        like = {(type(value), value): rank for rank, value in enumerate(_alike(states, given))}
        for place, value in enumerate(states.values, states.offset):
            if not isinstance(value, AnyText):
                gaps[place] = like.get((type(value), value), len(like))
    ranks = {gap: rank for rank, gap in enumerate(sorted(set(gaps.values())))}
    return {place: ranks[gap] for place, gap in gaps.items()}


def _alike(states: States, given: object) -> tuple[Scalar, ...]:
    try:
        states.option.read(given)
    except ChoiceError as refused:
        return refused.problem.nearest or ()
    raise AssertionError("the option takes the value")
