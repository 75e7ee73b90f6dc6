"""Option groups of bundles: what may be chosen is exactly what the declaration says, nested groups included."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cpq.base.text import canonical_json, read_json
from cpq.domain.catalog.products import Bundle
from cpq.domain.configuration.components import chosen
from cpq.domain.configuration.declarations import GroupRow
from cpq.domain.configuration.model import Model
from cpq.domain.configuration.model_compiler import compile_model

Choices = dict[str, Any]
Contents = Counter[tuple[str, bool]]


def model_of(groups: list[dict[str, Any]]) -> tuple[tuple[GroupRow, ...], Model]:
    bundle = Bundle.model_validate({"groups": groups})
    options = [{"name": name, **option} for name, option in bundle.expanded.options.items()]
    rules = read_json(canonical_json(bundle.expanded.rules))
    return bundle.groups, compile_model(read_json(canonical_json(options)), {"rules": rules})


@st.composite
def groups(draw: st.DrawFn, prefix: str = "", depth: int = 2) -> list[dict[str, Any]]:
    """One or two groups with up to three components, some with an editable quantity, some with groups of their own."""
    return [draw(_group(f"{prefix}g{place}", depth)) for place in range(draw(st.integers(1, 2 if depth == 2 else 1)))]


@st.composite
def _group(draw: st.DrawFn, name: str, depth: int) -> dict[str, Any]:
    most = draw(st.none() | st.integers(1, 3))
    names = [f"{name}c{place}" for place in range(draw(st.integers(1, 3)))]
    parts: list[dict[str, Any]] = []
    for part in names:
        one: dict[str, Any] = {"name": part, "product_id": f"p{draw(st.integers(1, 3))}"}
        one["included"] = draw(st.booleans())
        if draw(st.booleans()):
            low = draw(st.integers(1, 2))
            one |= {"min_quantity": low, "max_quantity": low + 1, "quantity": low}
        else:
            one["quantity"] = draw(st.integers(1, 2))
        if depth == 2 and draw(st.integers(0, 3)) == 0:
            one["groups"] = draw(groups(prefix=part, depth=1))
        parts.append(one)
    room = len(parts) if most is None else min(most, len(parts))
    for one in parts[: draw(st.integers(0, room))]:
        is_alone = len(parts) == 1 or most != 1
        one["required" if is_alone and draw(st.booleans()) else "default"] = True
    return {
        "name": name,
        "min": draw(st.integers(0, room)),
        **({} if most is None else {"max": most}),
        "components": parts,
    }


def every_way(declared: list[dict[str, Any]]) -> Iterator[tuple[Choices, Contents]]:
    """Every valid choice with the contents that it stands for, straight from the declaration."""
    for ways in product(*(list(_ways_of_group(group)) for group in declared)):
        yield {name: value for way, _ in ways for name, value in way.items()}, sum((c for _, c in ways), Contents())


def _ways_of_group(group: dict[str, Any]) -> Iterator[tuple[Choices, Contents]]:
    is_single = group.get("max") == 1
    for ways in product(*(list(_ways_of_component(part, is_single)) for part in group["components"])):
        taken = [part["name"] for part, (_, inside) in zip(group["components"], ways, strict=True) if inside]
        if not group["min"] <= len(taken) <= group.get("max", len(ways)):
            continue
        choices = {name: value for way, _ in ways for name, value in way.items()}
        if is_single:
            choices[group["name"]] = taken[0] if taken else "none"
        yield choices, sum((inside for _, inside in ways), Contents())


def _ways_of_component(part: dict[str, Any], is_single: bool) -> Iterator[tuple[Choices, Contents]]:
    can_edit = "max_quantity" in part
    if not part.get("required"):
        yield ({} if is_single else {part["name"]: 0 if can_edit else False}), Contents()
    numbers = range(part["min_quantity"], part["max_quantity"] + 1) if can_edit else [part["quantity"]]
    for number in numbers:
        own: Choices = {} if is_single else {part["name"]: number if can_edit else True}
        if is_single and can_edit:
            own = {f"{part['name']}_quantity": number}
        for nested, inside in every_way(part.get("groups", [])):
            within = Contents({key: count * number for key, count in inside.items()})
            yield {**own, **nested}, within + Contents({(part["product_id"], part["included"]): number})


def contents_of(rows: tuple[GroupRow, ...], choices: Choices) -> Contents:
    return Contents({(one.product_id, one.is_included): one.quantity for one in chosen(rows, choices)})


@settings(max_examples=150)
@given(groups())
def test_what_may_be_chosen_is_exactly_what_the_groups_say(declared: list[dict[str, Any]]):
    """The product of all values of all options, against an enumeration that knows groups and no options or rules."""
    rows, model = model_of(declared)
    wanted = {canonical_json(sorted(choices.items())): inside for choices, inside in every_way(declared)}
    values = [
        [None, *(option.possible() or range(int(option.row.min or 0), int(option.row.max or 0) + 1))]
        for option in model.options.values()
    ]
    combinations = 1
    for possible in values:
        combinations *= len(possible)
    if combinations > 3000:
        return
    found = {}
    for combination in product(*values):
        given_choices = {
            name: value for name, value in zip(model.options, combination, strict=True) if value is not None
        }
        checked = model.check(given_choices)
        if not checked.problems:
            found[canonical_json(sorted(checked.choices.items()))] = contents_of(rows, checked.choices)
    assert found == wanted


@given(groups())
def test_a_bundle_is_stored_and_read_again_without_a_change(declared: list[dict[str, Any]]):
    bundle = Bundle.model_validate({"groups": declared})
    stored = read_json(canonical_json(bundle.stored))
    assert Bundle.model_validate(stored) == bundle
    assert canonical_json(Bundle.model_validate(stored).stored) == canonical_json(bundle.stored)


STATION: list[dict[str, Any]] = [
    {
        "name": "compressor",
        "min": 1,
        "max": 1,
        "components": [
            {"name": "small", "product_id": "c50", "default": True, "included": True},
            {"name": "large", "product_id": "c100", "max_quantity": 4},
        ],
    },
    {
        "name": "air",
        "max": 2,
        "components": [
            {
                "name": "dryer",
                "product_id": "d1",
                "max_quantity": 3,
                "groups": [
                    {
                        "name": "fine",
                        "components": [
                            {"name": "filter", "product_id": "f1", "quantity": 2, "min_quantity": 2, "max_quantity": 6}
                        ],
                    }
                ],
            },
            {"name": "drain", "product_id": "z1"},
            {"name": "care", "product_id": "w1", "required": True},
        ],
    },
]


@pytest.mark.parametrize(
    ("choices", "inside"),
    [
        ({}, {("c50", True): 1, ("w1", False): 1}),
        ({"compressor": "large", "large_quantity": 3}, {("c100", False): 3, ("w1", False): 1}),
        ({"dryer": 2, "filter": 3}, {("c50", True): 1, ("d1", False): 2, ("f1", False): 6, ("w1", False): 1}),
        ({"drain": True}, {("c50", True): 1, ("w1", False): 1, ("z1", False): 1}),
    ],
)
def test_a_choice_stands_for_these_components(choices: Choices, inside: dict[tuple[str, bool], int]):
    rows, model = model_of(STATION)
    checked = model.check(choices)
    assert not checked.problems
    assert contents_of(rows, checked.choices) == inside


@pytest.mark.parametrize(
    ("choices", "option", "message"),
    [
        ({"dryer": 1, "drain": True}, None, "Choose 0 to 2 of air: dryer, drain, care"),
        ({"dryer": 1, "filter": 1}, "filter", "Take at least 2 of filter, or none"),
        ({"filter": 2}, "filter", "filter applies only when dryer is at least 1."),
        ({"large_quantity": 2}, "large_quantity", "large_quantity applies only when compressor is 'large'."),
        ({"compressor": "none"}, "compressor", "compressor is 'small' or 'large', not 'none'."),
        ({"care": False}, "care", "care is true, not false."),
        ({"large_quantity": 5, "compressor": "large"}, "large_quantity", "large_quantity is at most 4, not 5."),
    ],
)
def test_a_choice_that_a_group_does_not_allow_is_refused_in_words(choices: Choices, option: str | None, message: str):
    _, model = model_of(STATION)
    assert [(one.option, one.message) for one in model.check(choices).problems] == [(option, message)]


@pytest.mark.parametrize(
    ("group", "fault"),
    [
        ({"min": 3, "components": [{"name": "a", "product_id": "p"}]}, "min is at most max"),
        ({"max": 1, "components": []}, "at least 1 item"),
        (
            {
                "max": 1,
                "components": [{"name": "a", "product_id": "p", "required": True}, {"name": "b", "product_id": "q"}],
            },
            "more components are required",
        ),
        (
            {"max": 1, "components": [{"name": n, "product_id": "p", "default": True} for n in "ab"]},
            "more components are chosen by default",
        ),
        ({"max": 1, "components": [{"name": "none", "product_id": "p"}]}, "'none' is no name of a component"),
        ({"components": [{"name": "a", "product_id": "p", "min_quantity": 2}]}, "min_quantity goes with max_quantity"),
        ({"components": [{"name": "a", "product_id": "p", "quantity": 9, "max_quantity": 4}]}, "is the default"),
        (
            {"components": [{"name": "a", "product_id": "p"}, {"name": "a", "product_id": "q"}]},
            "'a' is the name of two",
        ),
        ({"components": [{"name": f"c{n}", "product_id": "p"} for n in range(201)]}, "at most 200 components"),
    ],
)
def test_groups_that_cannot_be_meant_are_refused(group: dict[str, Any], fault: str):
    with pytest.raises(ValidationError, match=fault):
        Bundle.model_validate({"groups": [{"name": "g", **group}]})


def test_groups_are_at_most_four_deep():
    inner: dict[str, Any] = {"name": "g0", "components": [{"name": "c0", "product_id": "p"}]}
    for depth in range(1, 5):
        inner = {"name": f"g{depth}", "components": [{"name": f"c{depth}", "product_id": "p", "groups": [inner]}]}
    with pytest.raises(ValidationError, match="at most 4 deep"):
        Bundle.model_validate({"groups": [inner]})


def test_requires_and_excludes_count_what_is_taken():
    options: list[dict[str, Any]] = [
        {"name": "drain", "type": "boolean"},
        {"name": "dryer", "type": "enum", "values": ["small", "none"]},
        {"name": "filters", "type": "integer", "min": 0, "max": 9},
    ]
    rules = [
        {"id": "R", "say": "A dryer needs filters", "requires": ["dryer", "filters"]},
        {"id": "X", "say": "A drain is part of the dryer", "excludes": ["drain", "dryer"]},
    ]
    model = compile_model(options, {"rules": rules})

    def broken(**choices: Any) -> list[str | None]:
        return [problem.rule_id for problem in model.check(choices).problems]

    assert broken(dryer="small") == ["R"]
    assert broken(dryer="small", filters=0) == ["R"]
    assert broken(dryer="small", filters=2) == []
    assert broken(dryer="none") == broken() == broken(drain=True, dryer="none") == []
    assert broken(drain=True, dryer="small", filters=Decimal(1)) == ["X"]
