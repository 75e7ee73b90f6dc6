"""Laws of the configurator: on models small enough to enumerate every answer equals brute force."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from cpq.base.text import canonical_json
from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.solver import (
    Configurator,
    Conflict,
    Goal,
    Possibility,
    ValueAnswer,
    encoded_model,
    states,
)
from tests.domain.configuration.brute_force import INACTIVE, UNSET, Case, Oracle, case, choices, is_offered, values_of
from tests.domain.configuration.test_laws import same

MODELS = 1600
PROVEN_MODELS = 20_000
CHUNKS = 10
CUT_MODELS = 300


def made(one: Case) -> tuple[Case, Oracle, Configurator]:
    points = {
        name: [Decimal(value) for value in amounts if value.isdecimal()] for name, amounts in one.surcharges.items()
    }
    return one, Oracle(one), Configurator(compile_model(one.options, one.rules), points=points)


def readable(oracle: Oracle, given: dict[str, Any]) -> dict[str, Any]:
    return {
        o["name"]: given[o["name"]] for o in oracle.options if o["name"] in given and is_offered(o, given[o["name"]])
    }


def values(one: Any) -> dict[str, Any]:
    return {name: state for name, state in one.items() if state not in (INACTIVE, UNSET)}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_answer_equals_brute_force(chunk: int):
    every_answer_equals_brute_force(range(chunk, MODELS, CHUNKS))


@pytest.mark.proof
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_answer_about_many_models_equals_brute_force(chunk: int):
    every_answer_equals_brute_force(range(MODELS + chunk, PROVEN_MODELS, CHUNKS))


def test_every_answer_about_ranges_that_are_cut_equals_brute_force(monkeypatch: pytest.MonkeyPatch):
    for module in (encoded_model, states):
        monkeypatch.setattr(module, "SHORT_MAX", 4)
    every_answer_equals_brute_force(range(CUT_MODELS), has_long=True)


def every_answer_equals_brute_force(seeds: Iterable[int], *, has_long: bool = False) -> None:
    for seed in seeds:
        one, oracle, configurator = made(case(seed, has_long=has_long))
        for turn in range(2):
            given = choices(seed * 10 + turn, one)
            try:
                equals_brute_force(one, oracle, configurator, given, turn)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, turn {turn}, {given}: {error}") from error


def equals_brute_force(one: Case, oracle: Oracle, configurator: Configurator, given: dict[str, Any], turn: int) -> None:
    known = readable(oracle, given)
    verdict = configurator.check(given)
    possible = list(oracle.with_choices(known))
    if not verdict.is_valid:
        assert verdict.can_be_completed == (bool(possible) and len(known) == len(given))
    for conflict in verdict.conflicts:
        is_minimal(oracle, conflict)
    has_conflict = bool(verdict.conflicts)
    if not possible:
        assert has_conflict
    domains_are_exact(oracle, configurator, given, known)
    nearest_is_best(one, oracle, configurator, given, known)
    if len(known) == len(given):
        for goal in Goal:
            best = oracle.best(given, goal.value, possible)
            found = configurator.complete(given, goal=goal, surcharges=one.surcharges)
            assert (best is None) == (not found.found)
            if best is None:
                assert found.conflict is not None
                is_minimal(oracle, found.conflict)
            else:
                assert same(values(best), found.found[0].choices), (goal, values(best), found.found[0].choices)


def is_minimal(oracle: Oracle, conflict: Conflict) -> None:
    """Unsatisfiable as named; satisfiable without any one of the choices, rules and demands that it names."""
    chosen = [(choice.option, choice.value, choice.is_default) for choice in conflict.choices]
    rules = [blame.rule_id for blame in conflict.blames if blame.rule_id]
    demands = [
        (str(blame.option), "required" if blame.say.endswith("is required.") else "active")
        for blame in conflict.blames
        if blame.option
    ]

    def is_open(chosen: Any, rules: Any, demands: Any) -> bool:
        states: dict[str, list[Any]] = {}
        for name, value, is_default in chosen:
            states[name] = [UNSET if value is None else value, *[INACTIVE] * is_default]
        return bool(oracle.open_to(states, rules, demands))

    assert not is_open(chosen, rules, demands), conflict.words()
    for parts in range(3):
        lists: list[list[Any]] = [chosen, rules, demands]
        for item in lists[parts]:
            less = list(lists)
            less[parts] = [other for other in lists[parts] if other != item]
            assert is_open(*less), f"{conflict.words()} without {item}"


def domains_are_exact(oracle: Oracle, configurator: Configurator, given: Any, known: Any) -> None:
    for domain in configurator.domains(given).domains:
        expected = oracle.domain(known, domain.option)
        answers = [(answer, value) for answer in domain.values for value in each(oracle, domain.option, answer)]
        found = [value for answer, value in answers if answer.possibility is Possibility.NOW]
        assert domain.may_be_left_out == any(state in (INACTIVE, UNSET) for state in expected)
        assert {canonical_json(v) for v in found} == {canonical_json(s) for s in expected if s not in (INACTIVE, UNSET)}
        for answer, value in answers:
            if answer.possibility is Possibility.NOW:
                continue
            ever = oracle.has_valid({domain.option: value})
            assert (answer.possibility is Possibility.AFTER_CHANGE) == ever
            assert answer.why is not None
            named = {choice.option: choice.value for choice in answer.why.choices}
            is_minimal(oracle, answer.why)
            assert same(named.pop(domain.option, answer.value), answer.value)
            assert {*named.items()} <= {(name, v) for name, v in known.items() if name != domain.option}
            if ever:
                left = {name: v for name, v in known.items() if name not in (domain.option, *answer.instead)}
                wish = {domain.option: value}
                assert oracle.has_valid({**left, **wish})
                for name in answer.instead:
                    assert not oracle.has_valid({**left, **wish, name: known[name]})


def each(oracle: Oracle, name: str, answer: ValueAnswer) -> list[Any]:
    """The values of an answer; a range has every number of the option from its first to its last."""
    if answer.up_to is None:
        return [answer.value]
    (option,) = [option for option in oracle.options if option["name"] == name]
    return [number for number in values_of(option) if answer.value <= number <= answer.up_to]


def nearest_is_best(one: Case, oracle: Oracle, configurator: Configurator, given: Any, known: Any) -> None:
    locked = [name for place, name in enumerate(known) if place % 3 == 2]
    found = configurator.nearest(given, locked=locked, surcharges=one.surcharges)
    left = list(oracle.with_choices({name: known[name] for name in locked}))
    expected: list[Any] = []
    while len(expected) < 3 and left:
        best = oracle.best(given, "nearest", left)
        assert best is not None
        expected.append(values(best))
        changed = [name for name in known if not same(best[name], known[name])]
        if not changed:
            break
        left = [other for other in left if any(same(other[name], known[name]) for name in changed)]
    assert [canonical_json(s.choices) for s in found.found] == [canonical_json(e) for e in expected]
    assert bool(found.conflict) == (not expected)
    for suggestion in found.found:
        checked = configurator.model.check(suggestion.given)
        assert not checked.problem_count
        assert same(checked.choices, suggestion.choices)
        assert checked.advice == suggestion.advice
        for change in suggestion.changes:
            assert not same(known.get(change.option, UNSET), change.after)
