"""Answers of the configurator are functions of the question: no engine, history, order or hash seed changes a byte."""

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.base.errors import CpqError
from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.configuration.solver import Configurator, Goal, ModelTooLargeError, Possibility, kernel
from tests.domain.configuration.brute_force import Case, case, choices

ROOT = Path(__file__).parents[3]
SEEDS = range(40)

WIDE: list[dict[str, Any]] = [
    {"name": "length", "type": "integer", "min": 100, "max": 1_000_000, "default": 1000},
    {"name": "width", "type": "integer", "values": [10, 20, 30], "default": 10},
    {"name": "engraving", "type": "text"},
]
WIDE_RULES = {
    "rules": [
        {
            "id": "LONG",
            "say": "Length is at most 100 widths.",
            "compare": {"left": {"length": 1}, "op": "<=", "right": {"width": 100}},
        },
        {"id": "TEXT", "say": "A wide one is engraved.", "when": {"width": 30}, "then": {"engraving": {"not": "none"}}},
    ]
}


def answers(seed: int, *, engine: str = "glucose4", warm: Configurator | None = None, is_reversed: bool = False) -> str:
    """Everything that the configurator says about a question, as text."""
    one = case(seed)
    given = choices(seed, one)
    if is_reversed:
        given = dict(reversed(given.items()))
    configurator = warm or configurator_of(one, engine)
    parts: list[Any] = [
        configurator.check(given),
        configurator.nearest(given, surcharges=one.surcharges),
        configurator.domains(given),
        *(configurator.complete(given, goal=goal, surcharges=one.surcharges) for goal in Goal),
    ]
    return "\n".join(map(repr, parts))


def configurator_of(one: Case, engine: str = "glucose4") -> Configurator:
    return Configurator(compile_model(one.options, one.rules), engine=engine)


@pytest.mark.parametrize("engine", ["glucose3", "minisat22", "maplechrono"])
def test_another_solver_gives_the_same_bytes(engine: str):
    for seed in SEEDS:
        assert answers(seed, engine=engine) == answers(seed)


def test_what_was_asked_before_and_the_order_of_the_choices_change_nothing():
    for seed in SEEDS:
        one = case(seed)
        warm = configurator_of(one)
        for other in range(3):
            warm.nearest(choices(other, one))
            warm.domains(choices(other + 7, one))
        assert answers(seed, warm=warm) == answers(seed)
        assert answers(seed, is_reversed=True) == answers(seed)


def test_no_hash_seed_changes_a_byte():
    code = (
        "import hashlib; from tests.domain.configuration.test_solver_canonical import answers\n"
        "print(hashlib.sha256(''.join(answers(seed) for seed in range(15)).encode()).hexdigest())"
    )
    hashes = set()
    for seed in ("0", "1", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
        hashes.add(ran.stdout)
    assert len(hashes) == 1


def test_a_valid_configuration_is_checked_without_loading_the_solver():
    code = (
        "import sys; from tests.domain.configuration.test_solver_canonical import wide\n"
        "assert wide().check({'length': 500}).is_valid; assert 'pysat' not in sys.modules\n"
        "assert not wide().check({'length': 5000}).is_valid; assert 'pysat' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def wide() -> Configurator:
    return Configurator(compile_model(WIDE, WIDE_RULES))


def test_wide_ranges_and_free_text_are_exact():
    (verdict, found) = wide().check({"length": 2500}), wide().nearest({"length": 2500})
    assert [conflict.words() for conflict in verdict.conflicts] == [
        "length=2500 and width=10 (the default): Length is at most 100 widths.",
        "length=2500 and engraving left out: Length is at most 100 widths. A wide one is engraved.",
    ]
    best = found.found[0]
    assert (best.choices["length"], best.choices["width"], best.needs) == (Decimal(2500), Decimal(30), ("engraving",))
    nearer = wide().nearest({"length": 2500, "engraving": "none"}).found
    assert [one.choices["length"] for one in nearer] == [Decimal(2500), Decimal(2000)]
    (domain,) = wide().domains({"width": 20}, options=["length"]).domains
    assert [(answer.value, answer.up_to, answer.possibility) for answer in domain.values] == [
        (Decimal(100), Decimal(2000), Possibility.NOW),
        (Decimal(2001), Decimal(3000), Possibility.AFTER_CHANGE),
        (Decimal(3001), Decimal(1_000_000), Possibility.NEVER),
    ]


def test_two_long_ranges_are_compared_with_few_clauses():
    ranges = [{"name": name, "type": "integer", "min": 1, "max": 900, "default": 1} for name in "ab"]
    compare = {"left": {"a": 1}, "op": ">=", "right": {"b": 2, "const": 5}}
    configurator = Configurator(compile_model(ranges, {"rules": [{"id": "R", "say": "S.", "compare": compare}]}))
    assert configurator.size < 20_000
    assert configurator.nearest({"b": 400}, locked=["b"]).found[0].choices["a"] == 805
    (domain,) = configurator.domains({"a": 100}, options=["b"]).domains
    assert [(a.value, a.up_to) for a in domain.values if a.possibility is Possibility.NOW] == [(1, 47)]


def test_numbers_that_are_excluded_for_different_reasons_are_different_ranges():
    rules = [
        {
            "id": f"R{low}",
            "say": f"Not from {low} on.",
            "when": {"width": 10},
            "forbid": {"length": {"min": low, "max": low + 99}},
        }
        for low in (5000, 5100)
    ]
    configurator = Configurator(compile_model(WIDE, {"rules": rules}))
    (domain,) = configurator.domains({"width": 10}, options=["length"]).domains
    excluded = [answer for answer in domain.values if answer.possibility is not Possibility.NOW]
    assert [(answer.value, answer.up_to, answer.why and answer.why.blames[0].say) for answer in excluded] == [
        (Decimal(5000), Decimal(5099), "Not from 5000 on."),
        (Decimal(5100), Decimal(5199), "Not from 5100 on."),
    ]


def pigeons(count: int) -> Any:
    """More birds than holes: no short proof exists for a SAT solver."""
    holes = [str(hole) for hole in range(count - 1)]
    options = [{"name": f"bird{n}", "type": "enum", "values": holes, "required": True} for n in range(count)]
    rules = [
        {"id": f"R{a}-{b}-{hole}", "say": "One bird in a hole.", "forbid": {f"bird{a}": hole, f"bird{b}": hole}}
        for a in range(count)
        for b in range(a)
        for hole in holes
    ]
    return compile_model(options, {"rules": rules})


def test_a_search_that_takes_too_long_says_so_and_guesses_nothing():
    configurator = Configurator(pigeons(11), conflicts_max=500)
    given = {"bird0": "1", "bird1": "1"}
    verdict = configurator.check(given)
    assert (verdict.is_valid, verdict.is_timed_out) == (False, True)
    assert [problem.message for problem in verdict.checked.problems][:1] != []
    found = configurator.nearest(given)
    assert (found.found, found.conflict, found.is_timed_out) == ((), None, True)
    domains = configurator.domains({}, options=["bird5"])
    assert domains.is_timed_out
    assert {answer.possibility for answer in domains.domains[0].values} == {Possibility.UNKNOWN}
    assert repr(configurator.nearest(given)) == repr(found)


def test_where_the_work_ends_early_only_reasons_are_missing():
    one = case(3)
    given = choices(31, one)
    whole = configurator_of(one).domains(given)
    known = [[(answer.value, answer.possibility) for answer in domain.values] for domain in whole.domains]
    missing = []
    for propagations in range(50, 5000, 50):
        configurator = Configurator(compile_model(one.options, one.rules), propagations_max=propagations)
        found = configurator.domains(given)
        if any(answer.possibility is Possibility.UNKNOWN for domain in found.domains for answer in domain.values):
            assert not any(answer.why for domain in found.domains for answer in domain.values)
            continue
        assert [[(answer.value, answer.possibility) for answer in domain.values] for domain in found.domains] == known
        lacking = [a for d in found.domains for a in d.values if a.possibility is not Possibility.NOW and not a.why]
        assert found.is_timed_out == bool(lacking)
        missing.append(len(lacking))
    assert missing == sorted(missing, reverse=True)
    assert missing[0] > missing[-1] == 0


def test_the_work_for_a_large_model_counts_by_its_size(monkeypatch: pytest.MonkeyPatch):
    one = case(3)
    given = choices(31, one)
    configurator = Configurator(compile_model(one.options, one.rules), propagations_max=5_000)
    assert not configurator.domains(given).is_timed_out
    monkeypatch.setattr(kernel, "LIGHT_MAX", 1)
    assert configurator.domains(given).is_timed_out


def test_hostile_models_are_refused_when_they_are_compiled():
    ranges = [{"name": name, "type": "integer", "min": 0, "max": 10**9} for name in "ab"]
    both = {"rules": [{"id": "R", "say": "S.", "compare": {"left": {"a": 1}, "op": ">=", "right": {"b": 1}}}]}
    with pytest.raises(ModelTooLargeError, match="R compares a and b"):
        Configurator(compile_model(ranges, both))
    numbers = [{"name": f"n{n}", "type": "integer", "min": 0, "max": 900} for n in range(12)]
    factors = {f"n{n}": 10**5 + 7**n for n in range(12)}
    compare = {"left": factors, "op": "==", "right": {"const": 10**8}}
    with pytest.raises(ModelTooLargeError, match="A comparison needs more than"):
        Configurator(compile_model(numbers, {"rules": [{"id": "R", "say": "S.", "compare": compare}]}))


def test_adding_a_choice_or_a_rule_never_adds_a_possible_value():
    for seed in SEEDS:
        one = case(seed)
        given = choices(seed, one)
        try:
            less = compile_model(one.options, {**one.rules, "rules": one.rules["rules"][:-1]})
        except CpqError:
            continue
        few = {name: value for place, (name, value) in enumerate(sorted(given.items(), key=str)) if place}
        mine, with_fewer_rules = possible(configurator_of(one), given), possible(Configurator(less), given)
        with_fewer_choices = possible(configurator_of(one), few)
        for option, values in mine.items():
            assert values <= with_fewer_rules[option]
            if option in few or option not in given:
                assert values <= with_fewer_choices[option]


def possible(configurator: Configurator, given: Any) -> dict[str, set[str]]:
    domains = configurator.domains(given, reasons_max=0).domains
    return {d.option: {repr(a.value) for a in d.values if a.possibility is Possibility.NOW} for d in domains}
