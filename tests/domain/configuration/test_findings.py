"""What the review of a model finds equals brute force, with minimal reasons."""

from decimal import Decimal
from typing import Any

import pytest

from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.options import shown
from cpq.domain.configuration.solver.findings import Fault, Finding, findings
from tests.domain.configuration.brute_force import INACTIVE, UNSET, Case, Oracle, case
from tests.domain.configuration.test_laws import broken, fits, is_taken, same

MODELS = 200
CHUNKS = 4


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_faults_of_a_model_equal_brute_force(chunk: int):
    for seed in range(chunk, MODELS, CHUNKS):
        one = case(seed)
        oracle = Oracle(one)
        found = [f for f in findings(compile_model(one.options, one.rules)) if f.fault is not Fault.DEFAULTS_CLASH]
        assert {(f.fault, f.about) for f in found} == expected(one, oracle), f"seed {seed}"
        for finding in found:
            is_minimal(finding, one, oracle, f"seed {seed}: {finding}")


def is_minimal(finding: Finding, one: Case, oracle: Oracle, what: str) -> None:
    """Its sentences suffice for the fault, and none of them can be left out."""
    sentences = {rule["say"]: rule["id"] for rule in one.rules["rules"]}
    named = [(sentences[say],) if say in sentences else demand(say) for say in finding.because]
    denied = [states for states in oracle.everything if denies(finding, one, states)]

    def is_open(reasons: list[Any]) -> bool:
        rules, demands = {one[0] for one in reasons if len(one) == 1}, {one for one in reasons if len(one) == 2}
        return any(oracle.holds(states, rules, demands) for states in denied)

    assert not is_open(named), what
    for reason in named:
        assert is_open([other for other in named if other != reason]), what


def demand(say: str) -> tuple[str, str]:
    return say.split()[0], "required" if say.endswith("is required.") else "active"


def denies(finding: Finding, one: Case, states: Any) -> bool:
    """Whether these states would be a counterexample to the finding."""
    if finding.fault is Fault.NEVER_SOLD:
        return True
    if finding.fault is Fault.RULE_REDUNDANT:
        return is_broken(next(rule for rule in one.rules["rules"] if rule["id"] == finding.about), states)
    if finding.fault in (Fault.RULE_CONTRADICTED, Fault.RULE_NEVER_APPLIES):
        return applies(next(rule for rule in one.rules["rules"] if rule["id"] == finding.about), states)
    state = states[finding.about]
    if finding.fault is Fault.DEAD_OPTION:
        return state not in (INACTIVE, UNSET)
    number = Decimal(state) if isinstance(state, int) and not isinstance(state, bool) else state
    return f"{finding.about}={shown(number)} " in finding.message


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
        if rule.keys() & {"when", "requires"} and not any(applies(rule, states) for states in oracle.valid):
            is_own = any(applies(rule, states) for states in rest)
            faults.add((Fault.RULE_CONTRADICTED if is_own else Fault.RULE_NEVER_APPLIES, rule["id"]))
        elif not any(is_broken(rule, states) for states in rest):
            faults.add((Fault.RULE_REDUNDANT, rule["id"]))
    return faults


def applies(rule: Any, states: Any) -> bool:
    values = values_of(states)
    met = all(name in values and fits(values[name], wish) for name, wish in rule.get("when", {}).items())
    return met and ("requires" not in rule or is_taken(values, rule["requires"][0]))


def values_of(states: Any) -> dict[str, Any]:
    return {name: state for name, state in states.items() if state not in (INACTIVE, UNSET)}


def is_broken(rule: Any, states: Any) -> bool:
    return broken(rule, values_of(states), {name for name, state in states.items() if state == INACTIVE}, set())
