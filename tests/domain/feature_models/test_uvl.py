"""Feature models in UVL: what is read, what is refused with its line, and that a product allows what the model does."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.domain.configuration.model_compiler import compile_model
from cpq.domain.feature_models.feature_model import FeatureModel, Formula, Operator
from cpq.domain.feature_models.feature_options import translate
from cpq.domain.feature_models.uvl import read_uvl

CAR = """namespace Cars
features
    Car {abstract}
        mandatory
            Engine
                alternative
                    Petrol
                    "Electric motor" {power 120, weight 'light'}
            Wheels cardinality [3..4]
        optional
            Radio
            Integer Seats
        [1..2]
            Hook // for a trailer
            Rack
            Box
constraints
    Hook => Petrol
    !(Radio & Rack) | Box
    "Electric motor" <=> !Petrol
    sum(weight) < 100
    Seats > 2
"""


def read(text: str) -> FeatureModel:
    return read_uvl("car.uvl", text)


def test_a_model_becomes_options_and_rules_and_the_rest_is_listed_with_its_line():
    found = translate(read(CAR))
    assert list(found.options) == [
        *("Car", "Engine", "Petrol", "Electric motor", "Wheels", "Radio", "Seats", "Hook", "Rack", "Box"),
    ]
    assert found.options["Engine"] == {"type": "enum", "values": [True], "default": True}
    assert found.options["Petrol"] == {"type": "boolean", "default": True}
    assert found.options["Radio"] == {"type": "boolean", "default": False}
    assert [(loss.line, loss.part) for loss in found.losses] == [
        (8, "Electric motor: power 120"),
        (8, "Electric motor: weight 'light'"),
        (9, "Wheels cardinality [3..4]"),
        (12, "Integer Seats"),
        (21, "sum(weight) < 100"),
        (22, "Seats > 2"),
    ]
    assert [{name: part for name, part in rule.items() if name != "id"} for rule in found.rules] == [
        {"say": "Car has 1 to 2 of Hook, Rack, Box.", "choose": {"from": ["Hook", "Rack", "Box"], "min": 1, "max": 2}},
        {
            "say": "Engine has 1 of Petrol, Electric motor.",
            "choose": {"from": ["Petrol", "Electric motor"], "min": 1, "max": 1},
        },
        {"say": "Hook => Petrol.", "when": {"Hook": True}, "choose": {"from": ["Petrol"], "min": 1}},
        {
            "say": "!(Radio & Rack) | Box.",
            "when": {"Rack": True, "Radio": True},
            "choose": {"from": ["Box"], "min": 1},
        },
        {"say": '"Electric motor" <=> !Petrol.', "forbid": {"Electric motor": True, "Petrol": True}},
        {"say": '"Electric motor" <=> !Petrol.', "choose": {"from": ["Electric motor", "Petrol"], "min": 1}},
    ]


names = st.integers(1, 7).flatmap(lambda size: st.just([f"f{place}" for place in range(size)]))


@st.composite
def formulas(draw: st.DrawFn, known: list[str], depth: int = 3) -> str:
    if not depth or not draw(st.integers(0, 3)):
        return draw(st.sampled_from(known))
    if draw(st.integers(0, 3)) == 0:
        return (
            f"!{draw(formulas(known, depth - 1))}" if draw(st.booleans()) else f"!({draw(formulas(known, depth - 1))})"
        )
    operator = draw(st.sampled_from(["&", "|", "=>", "<=>"]))
    return f"({draw(formulas(known, depth - 1))} {operator} {draw(formulas(known, depth - 1))})"


@st.composite
def models(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A text, and its tree as (name, groups of (low, high, members)) for a reader that shares no code."""
    waiting, lines = draw(names), ["features"]
    known = list(waiting)

    def tree(indent: int) -> Any:
        name = waiting.pop(0)
        lines.append(" " * indent + name)
        groups = []
        while waiting and bool(draw(st.booleans())):
            kind = draw(st.sampled_from(["mandatory", "optional", "or", "alternative", "bounds"]))
            place = len(lines)
            lines.append("")
            members = [tree(indent + 8)]
            while waiting and bool(draw(st.booleans())):
                members.append(tree(indent + 8))
            size = len(members)
            low, high = {"mandatory": (size, size), "optional": (0, size), "or": (1, size), "alternative": (1, 1)}.get(
                kind, (0, 0)
            )
            if kind == "bounds":
                low = draw(st.integers(0, size))
                high = draw(st.integers(low, size + 1))
                kind = f"[{low}..{high}]" if draw(st.booleans()) or low != high else f"[{low}]"
            lines[place] = " " * (indent + 4) + kind
            groups.append((low, high, members))
        return name, groups

    root = tree(4)
    known = [name for name in known if name not in waiting]
    constraints = draw(st.lists(formulas(known), max_size=3))
    return "\n".join([*lines, "constraints", *(f"    {one}" for one in constraints)]), [root, known]


def allows(tree: Any, chosen: set[str], is_root: bool = True) -> bool:
    """Whether a choice of features is a product of the tree, by the definition of its groups."""
    name, groups = tree
    if name not in chosen:
        return not is_root and not any(inside & chosen for inside in [below(tree)])
    return all(
        low <= sum(member[0] in chosen for member in members) <= high
        and all(allows(member, chosen, is_root=False) for member in members)
        for low, high, members in groups
    )


def below(tree: Any) -> set[str]:
    name, groups = tree
    return {name}.union(*(below(member) for _, _, members in groups for member in members))


def holds(formula: Formula, chosen: set[str]) -> bool:
    if formula.operator is None:
        return formula.name in chosen
    values = [holds(part, chosen) for part in formula.parts]
    match formula.operator:
        case Operator.NOT:
            return not values[0]
        case Operator.AND:
            return all(values)
        case Operator.OR:
            return any(values)
        case Operator.IMPLIES:
            return not values[0] or values[1]
    return values[0] == values[1]


@given(models())
def test_the_product_allows_exactly_what_the_model_does(drawn):
    text, (root, known) = drawn
    model = read(text)
    found = translate(model)
    assume(not found.losses)
    compiled = compile_model(
        [{"name": name, **option} for name, option in found.options.items()], {"rules": found.rules}
    )
    for values in product([True, False], repeat=len(known)):
        chosen = {name for name, value in zip(known, values, strict=True) if value}
        expected = allows(root, chosen) and all(holds(one.formula, chosen) for one in model.constraints)
        checked = compiled.check(dict(zip(known, values, strict=True)))
        assert (checked.problem_count == 0) == expected, (text, chosen, checked.problems)


@given(models())
def test_without_constraints_the_defaults_are_a_product(drawn):
    text, _ = drawn
    found = translate(read(text.partition("constraints")[0]))
    compiled = compile_model(
        [{"name": name, **option} for name, option in found.options.items()], {"rules": found.rules}
    )
    assert compiled.check({}).problem_count == 0


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        ("a & b | c", "(a & b) | c"),
        ("a | b => c", "(a | b) => c"),
        ("a => b <=> c", "(a => b) <=> c"),
        ("!a & b", "(!a) & b"),
        ("a => b => c", "(a => b) => c"),
    ],
)
def test_operators_bind_as_the_language_says(formula: str, same: str):
    head = "features\n  r\n    optional\n      a\n      b\n      c\nconstraints\n  "
    assert read(head + formula).constraints[0].formula == read(head + same).constraints[0].formula


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "there is no section `features` with a feature"),
        ("hello", 1, "expected one of namespace, include, imports, features, constraints"),
        ("features\n  A\nfeatures\n  B", 3, "the section features is given twice"),
        ("features\n  A\n  B", 3, "B is a second root"),
        ("features\n  A\n    sometimes\n      B", 3, "expected one of mandatory, optional, or, alternative or [n..m]"),
        ("features\n  A\n    or\n  ", 3, "the group or has no feature"),
        ("features\n  A\n    [2..3]\n      B", 3, "the group demands 2 of its 1 features"),
        ("features\n  A\n    [3..2]\n      B", 3, "[3..2] has its minimum above its maximum"),
        ("features\n  A\n    or\n      B\n      A", 5, "A is given twice, first on line 2"),
        ("features\n  A {x", 2, "a bracket is not closed"),
        ("features\n  A }", 2, "a bracket is closed that was not opened"),
        ("features\n  A B", 2, "expected attributes in braces after A, not 'B'"),
        ("features\n  =", 2, "expected a feature, not '='"),
        ("features\n  A\nconstraints\n  A & B", 4, "there is no feature B"),
        ("features\n  A\nconstraints\n  A &", 4, "expected a feature, not the end"),
        ("features\n  A\nconstraints\n  A A", 4, "expected an operator, not A"),
        ("features\n  A\nconstraints\n  A ? A", 4, "cannot be read at ' ? A'"),
        (f"features\n  A\nconstraints\n  {'!' * 60}A", 4, "a constraint is nested at most 50 deep"),
        (f"features\n  A\nconstraints\n  {'(' * 60}A{')' * 60}", 4, "a constraint is nested at most 50 deep"),
        (f"features\n  A\nconstraints\n  {'A & ' * 2000}A", 4, "a constraint has at most 5,000 characters"),
        (
            "features\n" + "\n".join(["  A", "    or", *(f"      f{n}" for n in range(20_000))]),
            20_003,
            "at most 20,000",
        ),
    ],
)
def test_a_file_that_is_no_model_is_refused_with_its_line(text: str, line: int, message: str):
    with pytest.raises(CpqError) as refused:
        read(text)
    assert message in refused.value.message
    assert refused.value.details.get("line") == line


def test_a_constraint_of_too_many_rules_or_of_an_import_is_a_loss():
    features = "\n".join(f"      f{place}" for place in range(16))
    pairs = " | ".join(f"(f{place} & f{place + 1})" for place in range(0, 16, 2))
    text = (
        f"imports\n  a.b as c\nfeatures\n  r\n    optional\n{features}\nconstraints\n  {pairs}\n  c.x => f1\n  f0 => f1"
    )
    found = translate(read(text))
    assert [(loss.line, loss.reason) for loss in found.losses] == [
        (2, "other files are not read"),
        (23, "it would need more than 64 rules"),
        (24, "there is no feature c.x"),
    ]
    assert len(found.rules) == 1


def test_comments_and_line_breaks_in_braces_keep_the_lines():
    text = "/* one\ntwo */\nfeatures // three\n  A {\n    x 'a // b',\n    y 2 }\n    or\n      B\nconstraints\n  C"
    with pytest.raises(CpqError) as refused:
        read(text)
    assert refused.value.details["line"] == 10
    assert [loss.part for loss in read(text.replace("  C", "  B")).losses] == ["A: x 'a // b'", "A: y 2"]


def test_long_and_equal_names_get_options_of_their_own():
    long = "x" * 100
    found = translate(read(f'features\n  r\n    or\n      "{long}a"\n      "{long}b"'))
    assert list(found.options) == ["r", "x" * 64, "x" * 56 + "_2"]
    assert found.options["x" * 56 + "_2"]["label"] == f"{long}b"


def test_ten_thousand_features_are_read():
    def made(size: int) -> tuple[int, int]:
        lines = ["features", "  r", "    optional"]
        for place in range(size // 4):
            lines += [f"      p{place}", "        or", *(f"          c{place}_{n}" for n in range(3))]
        rules = [f"  c{place}_0 => c{place + 1}_1 | p{place + 2}" for place in range(size // 4 - 2)]
        found = translate(read("\n".join([*lines, "constraints", *rules])))
        return len(found.options), len(found.rules)

    assert made(400) == (401, 100 * 3 + 100 + 98)
    assert made(10_000) == (10_001, 2_500 * 3 + 2_500 + 2_498)


def test_a_chain_of_equals_is_translated_part_by_part_and_an_unclosed_comment_is_refused_at_once():
    """The clauses of a part are worked out once, or 50 parts would take 2 to the 50 steps."""
    read = read_uvl("m.uvl", "features\n\ta\nconstraints\n\t" + " <=> ".join(["a"] * 50))
    assert translate(read).losses == []
    with pytest.raises(CpqError) as refused:
        read_uvl("m.uvl", "features\n\ta\n" + "/* " * 200_000)
    assert "3" in refused.value.message
    assert "a comment is not closed" in refused.value.message
