"""Laws of the configurator for bundles: groups, nested ones included, with rules across them, against brute force."""

from math import prod
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cpq.base.text import canonical_json, read_json
from cpq.domain.catalog.products import Bundle
from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.options import spelled
from cpq.domain.configuration.solver import Configurator
from tests.domain.configuration.brute_force import Case, Oracle, choices, conditions, construct, values_of
from tests.domain.configuration.test_components import every_way, groups
from tests.domain.configuration.test_solver import equals_brute_force, values

STATES_MAX = 400
MODELS = 400
PROVEN_MODELS = 2000

seeds = st.integers(0, 2**32)
bundles = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


@settings(bundles, max_examples=MODELS)
@given(groups(), seeds)
def test_every_answer_about_a_bundle_equals_brute_force(declared: list[dict[str, Any]], seed: int):
    about_a_bundle(declared, seed)


@pytest.mark.proof
@settings(bundles, max_examples=PROVEN_MODELS)
@given(groups(), seeds)
def test_every_answer_about_many_bundles_equals_brute_force(declared: list[dict[str, Any]], seed: int):
    about_a_bundle(declared, seed)


def about_a_bundle(declared: list[dict[str, Any]], seed: int) -> None:
    one = bundle_case(declared, seed)
    assume(one is not None)
    assert one is not None
    oracle = Oracle(one)
    of_groups = {rule["id"] for rule in one.rules["rules"] if rule["id"].startswith("group.")}
    allowed = [taken for taken in oracle.everything if oracle.holds(taken, of_groups, oracle.demands)]
    assert {canonical_json(values(taken)) for taken in allowed} == {
        canonical_json(way) for way, _ in every_way(declared)
    }
    configurator = Configurator(compile_model(one.options, one.rules))
    for turn in range(2):
        given_choices = choices(seed + turn, one)
        try:
            equals_brute_force(one, oracle, configurator, given_choices, turn)
        except AssertionError as error:
            raise AssertionError(f"turn {turn}, {given_choices}: {error}") from error


def bundle_case(declared: list[dict[str, Any]], seed: int) -> Case | None:
    """The options and rules of the groups, with rules across them and surcharges; None for too many states to try."""
    expanded = Bundle.model_validate({"groups": declared}).expanded
    options = read_json(canonical_json([{"name": name, **option} for name, option in expanded.options.items()]))
    domain = {option["name"]: values_of(option) for option in options}
    states = prod(
        len(domain[option["name"]]) + ("active_when" in option) + ("default" not in option) for option in options
    )
    if states > STATES_MAX:
        return None
    random = Random(seed)
    open_ = {name: listed for name, listed in domain.items() if len(listed) > 1}
    across = [
        {"id": f"R{place}", "say": f"Sentence {place}."}
        | ({"when": conditions(random, open_, 1)} if random.random() < 0.4 else {})
        | construct(random, open_)
        for place in range(random.randint(0, 3) if open_ else 0)
    ]
    surcharges = {
        name: {spelled(value): random.choice([0, 5, 7, -3]) for value in listed}
        for name, listed in domain.items()
        if random.random() < 0.5
    }
    rules = [*read_json(canonical_json(expanded.rules)), *across]
    return Case(options, {"rules": rules, "recommend": []}, surcharges)
