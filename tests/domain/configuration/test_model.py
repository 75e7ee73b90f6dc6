"""Whether the chosen options of a line hold: every type, every construct, every problem, and the sample catalogue."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.base.errors import Code, CpqError
from cpq.base.row_files import read_rows
from cpq.base.text import canonical_json, read_json
from cpq.domain.catalog.preparation import prepare_products
from cpq.domain.configuration import Checked, Model, Problem
from cpq.domain.configuration.model_compiler import compile_model

Option = dict[str, Any]

SAMPLE = Path(__file__).parents[3] / "cpq" / "sample" / "catalog.yaml"

PSI: Option = {"name": "psi", "type": "integer", "values": [100, 125, 150], "default": 125}
VOLTAGE: Option = {"name": "voltage", "type": "enum", "values": ["208", "230", "460"], "default": "460"}
OUTDOOR: Option = {"name": "outdoor", "type": "boolean", "default": False}
DRYER: Option = {"name": "dryer", "type": "enum", "values": ["none", "desiccant"], "default": "none"}
DRYER_CFM: Option = {
    "name": "dryer_cfm",
    "type": "integer",
    "values": [125, 250],
    "active_when": {"dryer": {"not": "none"}},
}
LENGTH: Option = {"name": "length", "type": "number", "min": 10, "max": 20, "step": Decimal("2.5")}
NOTE: Option = {"name": "note", "type": "text"}
NOZZLES: Option = {"name": "nozzles", "type": "integer", "min": 2, "max": 12}
ODD: Option = {"name": "odd", "type": "integer", "min": 1, "step": 3}
MIXED: Option = {"name": "mixed", "type": "enum", "values": ["1", 1, True, "x"]}
COUNTED: Option = {"name": "counted", "type": "enum", "values": [1, Decimal("2.5")]}
SIZE: Option = {"name": "size", "type": "enum", "values": ["small", "large"], "required": True}

A: Option = {"name": "a", "type": "integer", "min": 0, "max": 9, "default": 1}
B: Option = {"name": "b", "type": "integer", "min": 0, "max": 9}
X: Option = {"name": "x", "type": "boolean", "default": False}
Y: Option = {"name": "y", "type": "enum", "values": ["none", "one"], "default": "none"}
Z: Option = {"name": "z", "type": "integer", "min": 0, "max": 9, "default": 0}
IN: Option = {"name": "i", "type": "integer", "values": [1, 2, 3], "default": 1, "active_when": {"x": True}}
RELATED = [A, B, X, Y, Z, IN]


def check(options: Any, rules: Any, choices: Any) -> Checked:
    return compile_model(options, rules).check(choices)


def rule(**construct: Any) -> dict[str, Any]:
    return {"rules": [{"id": "R", "say": "Because.", **construct}]}


def only(checked: Checked) -> Problem:
    assert checked.problem_count == 1
    return checked.problems[0]


def shown(value: Any) -> str:
    return value["name"] if isinstance(value, dict) and "name" in value else ascii(value)[:24]


def typed(value: Any) -> Any:
    return (type(value), value)


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        (PSI, 100, Decimal(100)),
        (PSI, Decimal("100.00"), Decimal(100)),
        (PSI, "100", Decimal(100)),
        (PSI, "1e2", Decimal(100)),
        (PSI, 100.0, Decimal(100)),
        (VOLTAGE, "208", "208"),
        (OUTDOOR, True, True),
        (OUTDOOR, "true", True),
        (OUTDOOR, "False", False),
        (LENGTH, "12.5", Decimal("12.5")),
        (LENGTH, 12.5, Decimal("12.5")),
        (LENGTH, 10, Decimal(10)),
        (LENGTH, 20, Decimal(20)),
        (NOTE, "208", "208"),
        (NOTE, "", ""),
        (NOTE, "e\u0301", "é"),
        (NOZZLES, 12, Decimal(12)),
        (ODD, 4, Decimal(4)),
        (MIXED, "1", "1"),
        (MIXED, 1, Decimal(1)),
        (MIXED, True, True),
        (COUNTED, "2.5", Decimal("2.5")),
    ],
)
def test_a_given_value_is_read_as_its_option_says(option: dict[str, Any], given: Any, expected: Any):
    checked = check([option], {}, {option["name"]: given})
    assert checked.problems == ()
    assert typed(checked.choices[option["name"]]) == typed(expected)


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        (PSI, True, "psi is a number, not true."),
        (PSI, "high", "psi is a number, not 'high'."),
        (PSI, "", "psi is a number, not ''."),
        (PSI, " 100", "psi is a number, not ' 100'."),
        (PSI, "0100", "psi is a number, not '0100'."),
        (PSI, "1,00", "psi is a number, not '1,00'."),
        (PSI, "1_00", "psi is a number, not '1_00'."),
        (PSI, "١٠٠", "psi is a number, not '١٠٠'."),
        (PSI, "NaN", "psi is a number, not 'NaN'."),
        (PSI, "Infinity", "psi is a number, not 'Infinity'."),
        (PSI, float("nan"), "psi is a number, not 'nan'."),
        (PSI, Decimal("NaN"), "psi is a finite number."),
        (PSI, Decimal("sNaN"), "psi is a finite number."),
        (PSI, Decimal("-Infinity"), "psi is a finite number."),
        (PSI, [100], "psi is a number, not a list."),
        (PSI, {"value": 100}, "psi is a number, not an object."),
        (PSI, 130, "psi is one of 100, 125, 150, not 130."),
        (PSI, "99.5", "psi is one of 100, 125, 150, not 99.5."),
        (NOZZLES, "2.5", "nozzles is a whole number, not 2.5."),
        (PSI, 10**4000, "psi is beyond 1000000000000."),
        (PSI, Decimal("1E+400"), "psi is beyond 1000000000000."),
        (PSI, "1e400", "psi is beyond 1000000000000."),
        (PSI, "9" * 5000, f"psi is a number, not '{'9' * 40}'…."),
        (LENGTH, Decimal("12.5000001"), "length has more than 6 decimals."),
        (LENGTH, Decimal("1." + "0" * 70 + "1"), "length has more than 6 decimals."),
        (LENGTH, Decimal("1E-999999"), "length has more than 6 decimals."),
        (LENGTH, "1234567890.123456", "length has more than 15 significant digits."),
        (LENGTH, Decimal("7.5"), "length is at least 10, not 7.5."),
        (LENGTH, 21, "length is at most 20, not 21."),
        (LENGTH, 13, "length goes in steps of 2.5 from 10, not 13."),
        (NOZZLES, 1, "nozzles is at least 2, not 1."),
        (VOLTAGE, 208, "voltage is text, not 208."),
        (VOLTAGE, "280", "voltage is one of '208', '230', '460', not '280'."),
        (VOLTAGE, "460 ", "voltage is one of '208', '230', '460', not '460 '."),
        (OUTDOOR, 1, "outdoor is true or false, not 1."),
        (OUTDOOR, "yes", "outdoor is true or false, not 'yes'."),
        (OUTDOOR, Decimal(0), "outdoor is true or false, not 0."),
        (NOTE, 5, "note is text, not 5."),
        (NOTE, "x" * 1001, "note has more than 1000 characters."),
        (NOTE, "a\0b", "note contains a character that is not text (U+0000)."),
        (MIXED, False, "mixed is one of '1', 1, true, 'x', not false."),
        (MIXED, Decimal(2), "mixed is one of '1', 1, true, 'x', not 2."),
        (MIXED, ["x"], "mixed is a single value, not a list."),
        (COUNTED, True, "counted is a number, not true."),
        (COUNTED, 2, "counted is 1 or 2.5, not 2."),
    ],
    ids=shown,
)
def test_a_value_the_option_cannot_take_is_refused_and_kept(option: dict[str, Any], given: Any, message: str):
    checked = check([option], {}, {option["name"]: given})
    problem = only(checked)
    assert (problem.option, problem.rule_id, problem.message) == (option["name"], None, message)
    assert checked.choices[option["name"]] is given


@pytest.mark.parametrize(
    ("option", "given", "allowed", "bounds", "near"),
    [
        (PSI, 130, (100, 125, 150), (None, None), (125, 150)),
        (PSI, 10, (100, 125, 150), (None, None), (100,)),
        (PSI, 200, (100, 125, 150), (None, None), (150,)),
        (VOLTAGE, "46O", ("208", "230", "460"), (None, None), ("460",)),
        (VOLTAGE, "x" * 999, ("208", "230", "460"), (None, None), None),
        (OUTDOOR, "yes", (True, False), (None, None), None),
        (LENGTH, 13, None, (10, 20), (Decimal("12.5"), 15)),
        (LENGTH, 30, None, (10, 20), None),
        (NOZZLES, "2.5", None, (2, 12), (2, 3)),
        (NOZZLES, "-2.5", None, (2, 12), None),
        ({"name": "n", "type": "integer"}, "-2.5", None, (None, None), (-3, -2)),
        (ODD, 3, None, (1, None), (1, 4)),
        (ODD, "2.5", None, (1, None), (1, 4)),
        (ODD, -1, None, (1, None), None),
        (NOTE, 1, None, (None, None), None),
    ],
)
def test_a_refusal_says_what_would_be_right(option: dict[str, Any], given: Any, allowed: Any, bounds: Any, near: Any):
    problem = only(check([option], {}, {option["name"]: given}))
    assert problem.allowed == allowed
    assert (problem.minimum, problem.maximum) == bounds
    assert problem.nearest == near


def test_details_hold_what_is_known_of_a_problem():
    assert only(check([PSI], {}, {"psi": 130})).details() == {
        "option": "psi",
        "message": "psi is one of 100, 125, 150, not 130.",
        "allowed": [100, 125, 150],
        "nearest": [125, 150],
    }
    broken = rule(forbid={"psi": 150})
    assert only(check([PSI], broken, {"psi": 150})).details() == {
        "option": "psi",
        "rule_id": "R",
        "message": "Because.",
    }


def test_defaults_complete_what_was_left_out_in_declared_order():
    options = [VOLTAGE, NOTE, PSI, OUTDOOR, B]
    checked = check(options, {}, {"outdoor": True, "psi": None})
    assert checked == Checked({"voltage": "460", "psi": Decimal(125), "outdoor": True}, (), 0, ())
    assert list(checked.choices) == ["voltage", "psi", "outdoor"]
    assert type(checked.choices["psi"]) is Decimal


def test_a_required_option_without_default_is_asked_for():
    problem = only(check([SIZE], {}, {}))
    assert problem == Problem("size", None, "size is required.", ("small", "large"))
    assert only(check([SIZE], {}, {"size": None})) == problem
    assert check([SIZE], {}, {"size": "small"}).problems == ()
    assert check([{**SIZE, "default": "large"}], {}, {}).choices == {"size": "large"}


def test_an_unknown_option_is_refused_with_the_nearest():
    checked = check([VOLTAGE, PSI], {}, {"voltge": "208", "zzz": None})
    assert checked.problems == (
        Problem(
            "voltge",
            None,
            "There is no option 'voltge'. Did you mean voltage?",
            ("voltage", "psi"),
            nearest=("voltage",),
        ),
        Problem("zzz", None, "There is no option 'zzz'.", ("voltage", "psi")),
    )
    assert checked.choices == {"voltage": "460", "psi": 125, "voltge": "208", "zzz": None}


@pytest.mark.parametrize(
    ("condition", "choices", "is_active"),
    [
        ({"dryer": "desiccant"}, {}, False),
        ({"dryer": "desiccant"}, {"dryer": "desiccant"}, True),
        ({"dryer": {"not": "none"}}, {"dryer": "desiccant"}, True),
        ({"dryer": ["none", "desiccant"]}, {}, True),
        ({"psi": {"min": 125}, "dryer": "none"}, {}, True),
        ({"psi": {"min": 125}, "dryer": "none"}, {"psi": 100}, False),
        ({"psi": {"min": 110, "max": 130, "not": [125]}}, {}, None),
        ({"b": {"not": 5}}, {}, False),
        ({"later": True}, {}, True),
    ],
)
def test_an_option_is_active_only_when_its_condition_is_met(condition: Any, choices: Any, is_active: bool | None):
    depending = {"name": "depending", "type": "integer", "default": 7, "active_when": condition}
    options = [depending, PSI, DRYER, B, {**OUTDOOR, "name": "later", "default": True}]
    if is_active is None:
        with pytest.raises(CpqError, match="no value meets the condition"):
            check(options, {}, choices)
        return
    assert ("depending" in check(options, {}, choices).choices) is is_active
    given = check(options, {}, {**choices, "depending": 3})
    assert given.choices["depending"] == 3
    assert [problem.option for problem in given.problems] == ([] if is_active else ["depending"])


def test_a_choice_for_an_inactive_option_says_what_would_make_it_apply():
    options = [DRYER, DRYER_CFM, {**NOTE, "active_when": {"dryer_cfm": {"min": 200}, "dryer": ["desiccant"]}}]
    assert [problem.message for problem in check(options, {}, {"dryer_cfm": 250, "note": "x"}).problems] == [
        "dryer_cfm applies only when dryer is not 'none'.",
        "note applies only when dryer_cfm is at least 200 and dryer is 'desiccant'.",
    ]


def test_a_required_option_is_asked_for_only_while_it_is_active():
    options = [DRYER, {**DRYER_CFM, "required": True}]
    assert check(options, {}, {}) == Checked({"dryer": "none"}, (), 0, ())
    assert only(check(options, {}, {"dryer": "desiccant"})).message == "dryer_cfm is required."


def test_what_depends_on_a_refused_value_is_not_called_wrong_too():
    options = [DRYER, DRYER_CFM, {**SIZE, "active_when": {"dryer_cfm": 125}}]
    rules = rule(forbid={"dryer_cfm": 250})
    checked = check(options, rules, {"dryer": "desicant", "dryer_cfm": "250"})
    assert [(problem.option, problem.nearest) for problem in checked.problems] == [("dryer", ("desiccant",))]
    assert checked.choices == {"dryer": "desicant", "dryer_cfm": 250}
    both = check(options, rules, {"dryer": "desicant", "dryer_cfm": "x"})
    assert [problem.option for problem in both.problems] == ["dryer", "dryer_cfm"]


def test_a_group_that_may_be_inactive_as_a_whole_is_not_called_unchosen():
    options = [DRYER, DRYER_CFM, OUTDOOR, {**SIZE, "active_when": {"outdoor": True}}]
    rules = rule(choose={"from": ["dryer_cfm", "size"], "min": 2})
    assert only(check(options, rules, {"dryer": 5})).option == "dryer"
    assert only(check(options, rules, {"dryer": "desiccant", "dryer_cfm": 125})).rule_id == "R"


HOLDS: Any = ()


@pytest.mark.parametrize(
    ("construct", "choices", "breach"),
    [
        ({"when": {"x": True}, "then": {"a": {"max": 3}}}, {"x": True, "a": 3}, HOLDS),
        ({"when": {"x": True}, "then": {"a": {"max": 3}}}, {"x": False, "a": 4}, HOLDS),
        ({"when": {"x": True}, "then": {"a": {"max": 3}}}, {"x": True, "a": 4}, ("a", None, None, 3)),
        ({"when": {"x": True}, "then": {"a": {"min": 3, "not": 5}}}, {"x": True, "a": 5}, ("a", None, 3, None)),
        ({"then": {"a": [1, 2], "y": "none"}}, {"a": 2, "y": "one"}, ("y", ("none",), None, None)),
        ({"then": {"a": [1, 2], "y": "none"}}, {"a": 3, "y": "one"}, ("a", (1, 2), None, None)),
        ({"then": {"x": True}}, {}, ("x", (True,), None, None)),
        ({"then": {"x": "false"}}, {}, HOLDS),
        ({"then": {"a": "1"}}, {}, HOLDS),
        ({"then": {"b": {"not": 1}}}, {}, ("b", None, None, None)),
        ({"then": {"b": {"not": 1}}}, {"b": 2}, HOLDS),
        ({"when": {"b": {"not": 1}}, "then": {"x": True}}, {}, HOLDS),
        ({"then": {"i": 3}}, {}, HOLDS),
        ({"then": {"i": 3}}, {"x": True}, ("i", (3,), None, None)),
        ({"when": {"i": {"max": 9}}, "then": {"x": True}}, {}, HOLDS),
        ({"then": {"i": 3, "a": 2}}, {}, ("a", (2,), None, None)),
        ({"forbid": {"x": True, "a": {"min": 5}}}, {"x": True, "a": 5}, (None, None, None, None)),
        ({"forbid": {"x": True, "a": {"min": 5}}}, {"x": True, "a": 4}, HOLDS),
        ({"forbid": {"x": False, "b": {"not": 3}}}, {}, HOLDS),
        ({"forbid": {"i": {"not": 3}}}, {}, HOLDS),
        ({"forbid": {"y": "one"}}, {"y": "one"}, ("y", None, None, None)),
        ({"when": {"x": True}, "forbid": {"y": "one"}}, {"y": "one"}, HOLDS),
        ({"table": {"columns": ["a", "y"], "rows": [[1, "none"], [2, "one"]]}}, {}, HOLDS),
        ({"table": {"columns": ["a", "y"], "rows": [[1, "none"], ["2", "one"]]}}, {"a": 2, "y": "one"}, HOLDS),
        ({"table": {"columns": ["a", "y"], "rows": [[1, "none"], [2, "one"]]}}, {"a": 2}, ("y", ("one",), None, None)),
        ({"table": {"columns": ["a", "y"], "rows": [[1, "none"], [2, "one"]]}}, {"a": 3}, ("a", (1,), None, None)),
        ({"table": {"columns": ["a", "z"], "rows": [[5, 5], [6, 6]]}}, {}, (None, None, None, None)),
        ({"table": {"columns": ["a", "b"], "rows": [[1, 2], [1, 3]]}}, {}, ("b", (2, 3), None, None)),
        ({"table": {"columns": ["a", "b"], "rows": [[1, 2], ["1", 2]]}}, {}, ("b", (2,), None, None)),
        ({"table": {"columns": ["a", "i"], "rows": [[5, 3]]}}, {}, HOLDS),
        ({"table": {"columns": ["a", "i"], "rows": [[5, 3]]}}, {"x": True, "a": 5}, ("i", (3,), None, None)),
        ({"when": {"x": True}, "table": {"columns": ["a"], "rows": [[5]]}}, {}, HOLDS),
        ({"compare": {"left": {"a": 1}, "op": ">=", "right": {"z": 1}}}, {"z": 1}, HOLDS),
        ({"compare": {"left": {"a": 1}, "op": ">=", "right": {"z": 1}}}, {"z": 4}, ("a", None, 4, None)),
        ({"compare": {"left": {"a": 1}, "op": "<=", "right": {"const": 3}}}, {"a": 4}, ("a", None, None, 3)),
        ({"compare": {"left": {"a": -1}, "op": ">=", "right": {"const": -3}}}, {"a": 4}, ("a", None, None, 3)),
        ({"compare": {"left": {"a": -1}, "op": "<=", "right": {"const": -3}}}, {"a": 2}, ("a", None, 3, None)),
        ({"compare": {"left": {"a": 1, "z": 2}, "op": "==", "right": {"const": 5}}}, {"z": 2}, HOLDS),
        ({"compare": {"left": {"a": 1, "z": 2}, "op": "==", "right": {"const": 5}}}, {"z": 1}, ("a", None, 3, 3)),
        ({"compare": {"left": {"a": 1}, "op": ">=", "right": {"const": 50}}}, {}, (None, None, None, None)),
        ({"compare": {"left": {"a": "0.5"}, "op": ">=", "right": {"const": "0.6"}}}, {}, (None, None, None, None)),
        ({"compare": {"left": {"a": 1}, "op": ">=", "right": {"a": 2}}}, {}, (None, None, None, None)),
        ({"compare": {"left": {"i": 1}, "op": ">=", "right": {"a": 1}}}, {"a": 9}, HOLDS),
        ({"compare": {"left": {"i": 1}, "op": ">=", "right": {"a": 1}}}, {"a": 2, "x": True}, ("i", (2, 3), 2, None)),
        ({"compare": {"left": {"i": 1}, "op": ">=", "right": {"a": 1}}}, {"a": 9, "x": True}, (None, None, None, None)),
        ({"compare": {"left": {"a": 1}, "op": "<=", "right": {"b": 1}}}, {}, ("b", None, None, None)),
        ({"when": {"x": True}, "compare": {"left": {"a": 1}, "op": "==", "right": {"const": 9}}}, {}, HOLDS),
        ({"choose": {"from": ["x", "y", "z"], "min": 1}}, {"x": True}, HOLDS),
        ({"choose": {"from": ["x", "y", "z"], "min": 1}}, {"y": "one"}, HOLDS),
        ({"choose": {"from": ["x", "y", "z"], "min": 1}}, {"z": 2}, HOLDS),
        ({"choose": {"from": ["x", "y", "z"], "min": 1}}, {}, (None, None, 1, 3)),
        ({"choose": {"from": ["x", "y", "z"], "max": 1}}, {"x": True, "z": 1}, (None, None, 0, 1)),
        ({"choose": {"from": ["x", "y"], "min": 1, "max": 1}}, {"x": True, "y": "one"}, (None, None, 1, 1)),
        ({"choose": {"from": ["b"], "min": 1}}, {}, (None, None, 1, 1)),
        ({"choose": {"from": ["i"], "min": 1}}, {}, HOLDS),
        ({"choose": {"from": ["i", "z"], "min": 1}}, {}, (None, None, 1, 2)),
        ({"when": {"x": True}, "choose": {"from": ["y"], "min": 1}}, {}, HOLDS),
    ],
)
def test_a_rule_that_is_broken_says_its_sentence(construct: Any, choices: Any, breach: Any):
    checked = check(RELATED, rule(**construct), choices)
    if breach == HOLDS:
        assert checked.problems == ()
    else:
        option, allowed, minimum, maximum = breach
        assert only(checked) == Problem(option, "R", "Because.", allowed, minimum, maximum)


def test_comparing_is_exact_to_the_last_digit():
    long = {"name": "long", "type": "number"}
    equal = rule(compare={"left": {"long": Decimal("0.000001")}, "op": "==", "right": {"const": "0.123456"}})
    assert check([long], equal, {"long": 123456}).problems == ()
    assert check([long], equal, {"long": "123456.000001"}).problem_count == 1
    pair = [{"name": "p", "type": "number"}, {"name": "q", "type": "number"}]
    close = rule(compare={"left": {"p": "100000000.000001"}, "op": "<=", "right": {"q": 100_000_000}})
    assert check(pair, close, {"p": "100000000.000001", "q": "100000000.000002"}).problem_count == 1
    assert check(pair, close, {"p": "-100000000.000001", "q": "-100000000.000002"}).problems == ()
    many = [{"name": f"n{index}", "type": "number"} for index in range(3)]
    tenths = rule(compare={"left": {"n0": 1, "n1": 1}, "op": "==", "right": {"n2": 1}})
    assert check(many, tenths, {"n0": 0.1, "n1": 0.2, "n2": 0.3}).problems == ()


def test_true_is_not_one_in_a_rule_either():
    rules = rule(forbid={"mixed": 1})
    assert check([MIXED], rules, {"mixed": True}).problems == ()
    assert check([MIXED], rules, {"mixed": "1"}).problems == ()
    assert check([MIXED], rules, {"mixed": 1}).problem_count == 1
    table = rule(table={"columns": ["mixed"], "rows": [[True]]})
    assert check([MIXED], table, {"mixed": True}).problems == ()
    assert check([MIXED], table, {"mixed": 1}).problem_count == 1


def test_all_problems_come_at_once_in_declared_order():
    rules = {
        "rules": [
            {"id": "second", "say": "Second.", "forbid": {"outdoor": True}},
            {"id": "first", "say": "First.", "then": {"voltage": "208"}},
        ]
    }
    options = [PSI, OUTDOOR, VOLTAGE, SIZE]
    checked = check(options, rules, {"wrong": 1, "outdoor": True, "also": 2, "psi": 1})
    assert [problem.rule_id or problem.option for problem in checked.problems] == [
        "psi",
        "size",
        "also",
        "wrong",
        "second",
        "first",
    ]


def test_advice_is_the_sentence_of_a_recommendation_that_is_not_followed():
    recommend = {"recommend": [{"id": "ADV", "say": "Think of it.", "when": {"psi": 150}, "then": {"outdoor": True}}]}
    assert check([PSI, OUTDOOR], recommend, {}).advice == ()
    checked = check([PSI, OUTDOOR], recommend, {"psi": 150})
    assert (checked.advice, checked.problems) == (("Think of it.",), ())
    assert check([PSI, OUTDOOR], recommend, {"psi": 150, "outdoor": True}).advice == ()


def test_attributes_of_a_product_without_options_are_free_notes():
    notes = {"color": "red", "count": 3, "rate": Decimal("1.50"), "rush": True, "code": "007", "nothing": None}
    checked = check([], {}, notes)
    assert checked == Checked(notes, (), 0, ())
    assert [typed(value) for value in checked.choices.values()] == [typed(value) for value in notes.values()]
    assert check([], {}, {"accent": "e\u0301", "rate": 0.1}).choices == {"accent": "é", "rate": Decimal("0.1")}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a", [1], "'a' is a single value, not a list."),
        ("a", {"b": 1}, "'a' is a single value, not an object."),
        ("a", "x\0", "'a' contains a character that is not text (U+0000)."),
        ("a", "x" * 1001, "'a' has more than 1000 characters."),
        ("a", 10**400, "'a' is beyond 1000000000000."),
        ("a", Decimal("NaN"), "'a' is a finite number."),
        ("", 1, "'' is blank."),
        (" a", 1, "' a' is not a name of up to 64 characters without blanks around it."),
        ("a" * 65, 1, f"'{'a' * 40}'… is not a name of up to 64 characters without blanks around it."),
    ],
    ids=shown,
)
def test_a_note_that_cannot_be_stored_is_refused(name: str, value: Any, message: str):
    assert only(check([], {}, {name: value})).message == message


def test_a_line_has_a_bounded_number_of_notes():
    assert check([], {}, {f"n{index}": index for index in range(100)}).problems == ()
    assert only(check([], {}, {f"n{index}": index for index in range(101)})).maximum == 100


@pytest.mark.parametrize("options", [[], [PSI]], ids=["notes", "options"])
def test_ten_thousand_wrong_names_give_twenty_problems_and_a_true_count(options: list[Any]):
    hostile: dict[str, Any] = {f"{index:05}" + "y" * 10_000 * (index < 30): [{}] for index in range(10_000)}
    checked = check(options, {}, hostile)
    assert len(checked.problems) == 20
    assert checked.problem_count == 10_000 + (not options)
    assert all(len(problem.message) < 120 and len(problem.option or "") <= 64 for problem in checked.problems)


@pytest.mark.parametrize(
    ("options", "rules", "field", "message"),
    [
        ([PSI, PSI], {}, "options.psi", "is declared more than once"),
        ([{"name": "a", "type": "colour"}], {}, "options.a.type", "Input should be"),
        ([{"name": "a", "type": "enum"}], {}, "options.a", "an enum option lists its values"),
        ([{**VOLTAGE, "min": 1}], {}, "options.voltage", "min, max and step belong to numbers"),
        ([{**LENGTH, "step": 0}], {}, "options.length", "a step is more than 0"),
        ([{**LENGTH, "default": 11}], {}, "options.length", "length goes in steps of 2.5 from 10, not 11"),
        ([{**PSI, "values": [1, "1"], "default": 1}], {}, "options.psi", "a value is listed twice"),
        ([{**PSI, "values": [Decimal("1.5")], "default": None}], {}, "options.psi", "psi is a whole number, not 1.5"),
        ([{**PSI, "active_when": {}}], {}, "options.psi.active_when", "a condition names at least one option"),
        ([{**PSI, "active_when": {"b": 1}}], {}, "options.psi.active_when", "'b' is not an option"),
        ([{**PSI, "active_when": {"psi": 100}}], {}, "options", "active_when is circular: psi, psi"),
        ([PSI], rule(then={"pis": 100}), "rules.R", "'pis' is not an option; did you mean psi?"),
        ([PSI], rule(then={"psi": 130}), "rules.R", "psi is one of 100, 125, 150, not 130"),
        ([VOLTAGE], rule(when={"voltage": 208}, then={"voltage": "208"}), "rules.R", "voltage is text, not 208"),
        ([PSI], rule(then={"psi": {"gt": 100}}), "rules.R", "'gt' is not one of min, max, not"),
        ([PSI], rule(then={"psi": {"min": "x"}}), "rules.R", "the min of psi is a number, not 'x'"),
        ([PSI], rule(then={"psi": {}}), "rules.R", "the condition on psi is empty"),
        ([PSI], rule(then={"psi": []}), "rules.R", "the condition on psi lists no value"),
        ([PSI], rule(then={"psi": None}), "rules.R", "psi is a number, not null"),
        ([PSI], rule(then={"psi": {"min": 151}}), "rules.R", "no value meets the condition that psi is at least 151"),
        ([NOZZLES], rule(then={"nozzles": {"max": 1}}), "rules.R", "no value meets"),
        ([NOZZLES], rule(then={"nozzles": {"min": 9, "max": 8}}), "rules.R", "no value meets"),
        ([DRYER], rule(then={"dryer": {"min": 1}}), "rules.R", "min and max need a number, and dryer is not one"),
        ([PSI], rule(then={"psi": 100}, forbid={"psi": 125}), "rules.R", "a rule has exactly one of"),
        ([PSI], rule(forbid={}), "rules.R", "a condition names at least one option"),
        ([PSI], rule(table={"columns": [], "rows": [[]]}), "rules.R", "a table has columns, each named once"),
        ([PSI], rule(table={"columns": ["psi", "psi"], "rows": []}), "rules.R", "a table has columns, each named once"),
        ([PSI], rule(table={"columns": ["psi"], "rows": []}), "rules.R", "a table has rows"),
        (
            [PSI],
            rule(table={"columns": ["psi"], "rows": [[100, 1]]}),
            "rules.R",
            "row 1 of the table does not have one value",
        ),
        ([PSI], rule(table={"columns": ["psi"], "rows": [[[100]]]}), "rules.R", "psi has a list where a table has one"),
        ([PSI], rule(table={"columns": ["psi"], "rows": [[100]], "row": 1}), "rules.R", "'row' is not one of columns"),
        ([PSI], rule(compare={"left": {"psi": 1}, "op": ">", "right": {"const": 1}}), "rules.R", "op is one of '>='"),
        (
            [PSI],
            rule(compare={"left": {"psi": 1}, "op": ">=", "right": {}}),
            "rules.R",
            "a comparison has a right side",
        ),
        (
            [PSI],
            rule(compare={"left": {"psi": "x"}, "op": ">=", "right": {"psi": 1}}),
            "rules.R",
            "the factor of psi is",
        ),
        (
            [PSI],
            rule(compare={"left": {"const": 1}, "op": "==", "right": {"const": 1}}),
            "rules.R",
            "at least one option",
        ),
        (
            [DRYER],
            rule(compare={"left": {"dryer": 1}, "op": "==", "right": {"const": 1}}),
            "rules.R",
            "only numbers are",
        ),
        ([PSI], rule(choose={"from": [], "min": 1}), "rules.R", "a choice is made from options, each named once"),
        ([PSI], rule(choose={"from": ["psi"]}), "rules.R", "a choice has a min, a max, or both"),
        ([PSI], rule(choose={"from": ["psi"], "count": 1}), "rules.R", "'count' is not one of from, min, max"),
        ([PSI], rule(choose={"from": ["psi"], "min": 2}), "rules.R", "min and max are whole numbers from 0 to 1"),
        ([PSI], rule(choose={"from": ["psi"], "max": "0.5"}), "rules.R", "min and max are whole numbers from 0 to 1"),
    ],
)
def test_a_model_that_means_nothing_is_refused(options: Any, rules: Any, field: str, message: str):
    with pytest.raises(CpqError) as caught:
        compile_model(options, rules)
    fault = caught.value.details["problems"][0]  # type: ignore[index]
    assert caught.value.code is Code.VALIDATION_ERROR
    assert fault["field"] == field
    assert message in fault["message"]


def test_every_fault_of_a_model_is_named_at_once_and_none_twice():
    rules = {
        "rules": [
            {"id": "ok", "say": "Fine.", "then": {"psi": 100}},
            {"id": "spoilt", "say": "About an option that is wrong itself.", "then": {"size": "small"}},
            {"id": "wrong", "say": "Wrong.", "then": {"psi": 1}},
        ],
        "recommend": [{"id": "wrong", "say": "Wrong.", "forbid": {"nobody": 1}}],
    }
    with pytest.raises(CpqError) as caught:
        compile_model([PSI, {**SIZE, "max": 1}], rules)
    assert [fault["field"] for fault in caught.value.details["problems"]] == [  # type: ignore[attr-defined]
        "options.size",
        "rules.wrong",
        "rules.wrong",
        "recommend.wrong",
    ]


def sample_models() -> dict[str, tuple[list[Any], dict[str, Any]]]:
    rows = [row for row in read_rows(SAMPLE, "products") if row.section == "products"]
    stored = prepare_products(rows, {}, "main").ready
    read = {part.id: (read_json(part.options), read_json(part.rules)) for part in stored}
    return {id_: model for id_, model in read.items() if model[0]}


SAMPLES = sample_models()


@pytest.mark.parametrize("product_id", SAMPLES)
def test_every_configurable_sample_product_holds_with_its_defaults(product_id: str):
    options, rules = SAMPLES[product_id]
    checked = check(options, rules, {})
    assert checked.problems == ()
    assert {option["name"] for option in options if "default" in option} >= checked.choices.keys()


def test_the_sample_says_what_a_hundred_horsepower_needs():
    model = compile_model(*SAMPLES["prod_qvs_series"])
    wished = {"hp": 100, "voltage": "208", "dryer": "desiccant", "dryer_cfm": 400}
    checked = model.check(wished)
    assert [(problem.rule_id, problem.option, problem.allowed) for problem in checked.problems] == [
        ("V208-60HP", "hp", (25, 40, 50, 60)),
        ("FLOW", "cfm", (492,)),
        ("DESICCANT-FILTERS", "filters", (2,)),
    ]
    repaired = model.check({**wished, "voltage": "460", "cfm": 492, "filters": 2})
    assert only(repaired) == Problem(
        "dryer_cfm",
        "DRYER-SIZE",
        "The dryer is at least as large as the delivered flow.",
        (Decimal(500), Decimal(800)),
        Decimal(492),
    )
    assert model.check({**repaired.choices, "dryer_cfm": 500}).problems == ()


def test_a_model_is_compiled_once_and_used_from_its_stored_form():
    options, rules = [PSI, VOLTAGE], rule(when={"voltage": "208"}, then={"psi": {"max": 125}})
    stored = read_json(canonical_json(options)), read_json(canonical_json(rules))
    compiled = compile_model(*stored)
    assert isinstance(compiled, Model)
    assert compiled.check({"voltage": "208", "psi": 150}) == check(options, rules, {"voltage": "208", "psi": 150})
    assert json.loads(canonical_json(compiled.check({}).choices)) == {"psi": 125, "voltage": "460"}
