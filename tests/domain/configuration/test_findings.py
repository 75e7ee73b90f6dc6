"""What the review of a model finds equals brute force, with reasons that suffice."""

from typing import Any

import pytest

from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.solver.findings import Fault, findings
from tests.domain.configuration.brute_force import INACTIVE, UNSET, Case, Oracle, case
from tests.domain.configuration.test_laws import broken, fits, same

MODELS = 200
CHUNKS = 4


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_faults_of_a_model_equal_brute_force(chunk: int):
    for seed in range(chunk, MODELS, CHUNKS):
        one = case(seed)
        found = {(f.fault, f.about, f.message) for f in findings(compile_model(one.options, one.rules))}
        kinds = {(fault, about) for fault, about, _ in found if fault is not Fault.DEFAULTS_CLASH}
        assert kinds == expected(one, Oracle(one)), f"seed {seed}"


def expected(one: Case, oracle: Oracle) -> set[tuple[Fault, str]]:
    if not oracle.valid:
        return {(Fault.NEVER_SOLD, "")}
    faults: set[tuple[Fault, str]] = set()
    for option in oracle.options:
        name = option["name"]
        declared = option.get("values", [False, True] if option["type"] == "boolean" else [2, 4, 6])
        dead = [value for value in declared if not any(same(valid[name], value) for valid in oracle.valid)]
        if len(dead) == len(declared):
            faults.add((Fault.DEAD_OPTION, name))
            continue
        for value in dead:
            is_default = "default" in option and same(option["default"], value)
            faults.add((Fault.DEFAULT_UNREACHABLE if is_default else Fault.DEAD_VALUE, name))
    for rule in one.rules["rules"]:
        others = {other["id"] for other in one.rules["rules"]} - {rule["id"]}
        rest = [states for states in oracle.everything if oracle.holds(states, others, oracle.demands)]
        if "when" in rule and not any(applies(rule, states) for states in oracle.valid):
            is_own = any(applies(rule, states) for states in rest)
            faults.add((Fault.RULE_CONTRADICTED if is_own else Fault.RULE_NEVER_APPLIES, rule["id"]))
        elif not any(is_broken(rule, states) for states in rest):
            faults.add((Fault.RULE_REDUNDANT, rule["id"]))
    return faults


def applies(rule: Any, states: Any) -> bool:
    return all(
        states[name] not in (INACTIVE, UNSET) and fits(states[name], wish) for name, wish in rule["when"].items()
    )


def is_broken(rule: Any, states: Any) -> bool:
    values = {name: state for name, state in states.items() if state not in (INACTIVE, UNSET)}
    return broken(rule, values, {name for name, state in states.items() if state == INACTIVE}, set())
