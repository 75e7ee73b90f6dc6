"""The facts of Salesforce's constraint models: what of them is here, and that no part is forgotten."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.catalog.preparation import prepare_products
from cpq.domain.catalog.salesforce.translation import Translation, translate
from tests.support.salesforce_exports import Tables, component, full, model_facts, model_tables, small, with_model

SKUS = ("RACK", "CPU-A", "CPU-B", "DISK 1", "DISK-2", "DISK-3", "PLAN")
TYPES = {sku.replace(" ", "").replace("-", ""): f"The {sku}" for sku in SKUS}

PAIRED = "a relationship of the product, also outside of the model's bundle"
NO_PRODUCT = "one of its types is no product of the export"


def translated(
    tables: Tables | None = None, status: str = "Active", types: Mapping[str, str] = TYPES, **facts: Any
) -> Translation:
    tables = small() if tables is None else tables
    return translate(with_model(tables, model_tables(types, status), model_facts(["LineItem", *TYPES], **facts)))


def product(translation: Translation, sku: str) -> dict[str, Any]:
    assert translation.problems == []
    return next(row.values for row in translation.rows if row.section == "products" and row.values["sku"] == sku)


def parts(translation: Translation, part: str) -> list[tuple[str, str, int]]:
    return [(one.fate.value, one.reason, one.parts) for one in translation.model_parts if one.part == part]


def row_outcomes(translation: Translation, file: str) -> list[tuple[str, str]]:
    return [(one.fate.value, one.reason) for one in translation.reasons if one.file == file]


def relation(owner: str, name: str, low: int | None = None, high: int | None = None) -> dict[str, Any]:
    return {"owner": owner, "name": name.lower(), "type": name, "min": low, "max": high}


def pair(first: str, second: str) -> dict[str, str]:
    return {"if": first, "then": second}


def test_a_pair_of_types_is_a_relationship_of_their_products():
    found = translated(
        requires=[pair("PLAN", "RACK"), pair("PLAN", "RACK"), pair("PLAN", "Unknown"), pair("PLAN", "PLAN")],
        excludes=[pair("CPUA", "DISK1")],
        recommends=[pair("PLAN", "DISK1"), pair("PLAN", "RACK")],
    )
    assert product(found, "PLAN")["relationships"] == [
        {"kind": "requires", "product_id": "RACK", "quantity": 1},
        {"kind": "recommends", "product_id": "DISK-1", "quantity": 1},
    ]
    assert product(found, "CPU-A")["relationships"] == [{"kind": "excludes", "product_id": "DISK-1", "quantity": 1}]
    assert parts(found, "requires") == [
        ("translated", PAIRED, 2),
        ("no_counterpart", NO_PRODUCT, 1),
        ("no_counterpart", "both types are the same product", 1),
    ]
    assert parts(found, "type") == [
        ("no_counterpart", "it is not exactly one product of the export", 1),
        ("taken", "a product", 7),
    ]


def test_a_pair_of_options_of_one_bundle_is_also_a_rule_between_them():
    found = translated(
        requires=[pair("DISK2", "DISK3"), pair("CPUA", "CPUB")],
        excludes=[pair("CPUB", "DISK1"), pair("DISK1", "PLAN")],
    )
    _, needed, forbidden = product(found, "RACK")["rules"]
    assert needed == {
        "id": "requires-1",
        "when": {"The DISK-2": [1, 2, 3]},
        "then": {"The DISK-3": [True]},
        "say": "The DISK-2 requires The DISK-3",
    }
    assert forbidden == {
        "id": "excludes-2",
        "forbid": {"Processor": ["The CPU-B"], "The DISK 1": [True]},
        "say": "The CPU-B excludes The DISK 1",
    }


EDITABLE = {"IsQuantityEditable": "true"}
ALONE = {"QuantityScaleMethod": "Constant"}
COUNTS = [0, 1, 2, 3, 4]

BOUNDS: list[tuple[str, dict[str, str], tuple[int | None, int | None], dict[str, Any] | None, tuple[str, str]]] = [
    (
        "a number that a buyer chooses",
        EDITABLE,
        (0, 4),
        {"type": "enum", "values": COUNTS, "default": 0},
        ("translated", "the bounds of an option for a component"),
    ),
    (
        "bounds that narrow those of the export",
        {**EDITABLE, "MaxQuantity": "9"},
        (1, 2),
        {"type": "enum", "values": [1, 2], "default": 1},
        ("translated", "the bounds of an option for a component"),
    ),
    (
        "the bounds of the export",
        {**EDITABLE, "MaxQuantity": "4"},
        (0, 4),
        {"type": "enum", "values": COUNTS, "default": 0},
        ("taken", "the number of its component is within its bounds"),
    ),
    (
        "a fixed number",
        {},
        (0, 1),
        {"type": "boolean", "default": False},
        ("taken", "the number of its component is within its bounds"),
    ),
    (
        "at least one of a fixed number",
        {},
        (1, None),
        {"type": "enum", "values": [True], "default": True},
        ("translated", "the bounds of an option for a component"),
    ),
    (
        "too many to list",
        EDITABLE,
        (0, 9999),
        {"type": "boolean", "default": False},
        ("no_counterpart", "an option lists at most 50 numbers of pieces"),
    ),
    (
        "bounds that contradict the export",
        {"Quantity": "3"},
        (0, 2),
        {"type": "boolean", "default": False},
        ("no_counterpart", "the number of pieces in the export is outside of its bounds"),
    ),
    ("no bounds", {}, (None, None), {"type": "boolean", "default": False}, ("taken", "a component of the export")),
    (
        "at least one on a line of its own",
        ALONE,
        (1, 5),
        None,
        ("translated", "the product requires it on a line of its own, which has no maximum"),
    ),
    ("any number on a line of its own", ALONE, (0, 5), None, ("no_counterpart", "a line of its own has no bounds")),
]


@pytest.mark.parametrize(
    ("columns", "bounds", "option", "outcome"), [case[1:] for case in BOUNDS], ids=[case[0] for case in BOUNDS]
)
def test_the_bounds_of_a_relation_are_those_of_the_component(
    columns: dict[str, str],
    bounds: tuple[int | None, int | None],
    option: dict[str, Any] | None,
    outcome: tuple[str, str],
):
    tables = small(ProductRelatedComponent=[component("RACK", "DISK 1", "Drives", **columns)])
    found = translated(tables, relations=[relation("RACK", "DISK1", *bounds)])
    rack = product(found, "RACK")
    assert rack.get("options", {}).get("The DISK 1") == option
    assert parts(found, "relation") == [(*outcome, 1)]
    kinds = [one["kind"] for one in rack.get("relationships", [])]
    assert kinds == ([] if option else ["requires"] if bounds[0] else ["recommends"])


def test_what_a_product_has_by_a_relation_alone_is_required_and_a_choice_of_one_keeps_its_number():
    columns = {"IsQuantityEditable": "true", "MaxQuantity": "2"}
    links = [component("RACK", "CPU-A", "Processor", **columns), component("RACK", "CPU-B", "Processor")]
    relations = [
        relation("RACK", "PLAN", 2, 5),
        relation("RACK", "DISK1", 0, 5),
        relation("RACK", "CPUA", 0, 2),
        relation("RACK", "CPUB", 0, 1),
        relation("LineItem", "RACK"),
    ]
    found = translated(small(ProductRelatedComponent=links), relations=relations)
    assert product(found, "RACK")["relationships"] == [{"kind": "requires", "product_id": "PLAN", "quantity": 2}]
    assert parts(found, "relation") == [
        ("translated", "the product requires it on a line of its own, which has no maximum", 1),
        ("no_counterpart", "the export has no such component", 1),
        ("no_counterpart", "in a choice of one component its number is fixed", 1),
        ("taken", "the number of its component is within its bounds", 1),
        ("no_counterpart", NO_PRODUCT, 1),
    ]


SEATS = {"type": "number", "min": 1, "default": 3}
SIZES = {"type": "enum", "values": ["small", "large"], "default": "small"}
NONE_LEFT = ("no_counterpart", "the option has none of its values in the export")

DOMAINS: list[tuple[str, str, list[str], dict[str, Any], tuple[str, str]]] = [
    ("the same values", "size", ["large", "small"], SIZES, ("taken", "an option with its values")),
    (
        "more values",
        "Size",
        ["large", "small", "huge"],
        SIZES,
        ("translated", "an option; its other values are not in the export"),
    ),
    (
        "fewer values",
        "S_I_Z_E",
        ["large", "huge"],
        {"type": "enum", "values": ["large"]},
        ("translated", "an option, which keeps only its values"),
    ),
    ("other values", "Size", ["huge"], SIZES, NONE_LEFT),
    ("no values", "Size", [], SIZES, ("no_counterpart", "the facts do not have its values")),
    (
        "a range",
        "Seats",
        ["0..40"],
        {"type": "number", "min": 1, "max": 40, "default": 3},
        ("translated", "the bounds of an option"),
    ),
    (
        "a range without the default",
        "Seats",
        ["5..40"],
        {"type": "number", "min": 5, "max": 40},
        ("translated", "the bounds of an option"),
    ),
    ("a range below", "Seats", ["-5..0"], SEATS, NONE_LEFT),
    (
        "numbers",
        "Seats",
        ["10", "0", "3"],
        {"type": "enum", "values": [3, 10], "default": 3},
        ("translated", "the values of an option"),
    ),
    ("numbers below", "Seats", ["0"], SEATS, NONE_LEFT),
    (
        "words for a number",
        "Seats",
        ["few"],
        SEATS,
        ("no_counterpart", "the option is a number, which has no such values"),
    ),
    (
        "an unknown attribute",
        "Colour",
        ["red"],
        SIZES,
        ("no_counterpart", "the product has no option of this name"),
    ),
]


@pytest.mark.parametrize(
    ("name", "values", "option", "outcome"), [case[1:] for case in DOMAINS], ids=[case[0] for case in DOMAINS]
)
def test_the_domain_of_an_attribute_leaves_the_values_of_the_option(
    name: str, values: list[str], option: dict[str, Any], outcome: tuple[str, str]
):
    found = translated(full(), attributes=[{"owner": "PLAN", "name": name, "values": values}])
    options = product(found, "PLAN")["options"]
    assert options["Seats" if name == "Seats" else "Size"] == option
    assert parts(found, "attribute") == [(*outcome, 1)]


def test_a_boolean_option_and_a_type_of_no_product_have_no_domain():
    definitions = [*full()["AttributeDefinition"], {"Code": "SSO", "Name": "Sign-on", "DataType": "Checkbox"}]
    links = [{"Product2.StockKeepingUnit": "PLAN", "AttributeDefinition.Code": code} for code in ("SSO", "SEATS")]
    tables = {**full(), "AttributeDefinition": definitions, "ProductAttributeDefinition": links}
    attributes = [{"owner": owner, "name": "Sign_On", "values": ["true"]} for owner in ("PLAN", "LineItem")]
    assert parts(translated(tables, attributes=attributes), "attribute") == [
        ("no_counterpart", "the option is a boolean, which has no list of values", 1),
        ("no_counterpart", "its type is no product of the export", 1),
    ]


def test_statements_beyond_the_pairs_are_counted_by_their_kind():
    counts = {"require": 3, "rule": 1, "preference": 2, "message": 0}
    found = translated(counts=counts, requires=[pair("PLAN", "RACK")], recommends=[pair("PLAN", "DISK1")])
    why = "a statement in the model's own language"
    statements = {one.part: (one.fate.value, one.reason, one.parts) for one in found.model_parts if ":" in one.part}
    assert statements == {
        "statement: require": ("no_counterpart", why, 2),
        "statement: preference": ("no_counterpart", why, 2),
    }


def test_a_model_that_is_not_active_changes_nothing():
    facts: dict[str, Any] = {
        "requires": [pair("PLAN", "RACK")],
        "relations": [relation("RACK", "DISK1", 1, 1)],
        "attributes": [{"owner": "PLAN", "name": "Size", "values": ["large"]}],
    }
    found = translated(full(), "Draft", **facts)
    assert [row.values for row in found.rows] == [row.values for row in translated(full()).rows]
    assert {(one.fate.value, one.reason) for one in found.model_parts} == {
        ("no_counterpart", "the model is not active")
    }
    assert row_outcomes(found, "facts.json") == [("no_counterpart", "a constraint model; nothing of it is here")]


def test_a_type_of_two_products_or_of_a_name_that_two_products_have_is_none_of_them():
    products = [*small()["Product2"], {"StockKeepingUnit": "PLAN-2", "Name": "The PLAN", "IsActive": "true"}]
    beside = dict(model_tables(TYPES))
    beside["ExpressionSetConstraintObj"] = [
        *beside["ExpressionSetConstraintObj"],
        {"ReferenceObjectId": "01t1", "ConstraintModelTag": "RACK", "ConstraintModelTagType": "Type"},
        {"ReferenceObjectId": "01t1", "ConstraintModelTag": "CPUB", "ConstraintModelTagType": "Port"},
    ]
    facts = model_facts(["RACK", "PLAN", "CPUB"], requires=[pair("CPUB", "RACK"), pair("CPUB", "PLAN")])
    found = translate(with_model(small(Product2=products), beside, facts))
    assert "relationships" not in product(found, "CPU-B")
    assert [one[::2] for one in parts(found, "type")] == [("no_counterpart", 2), ("taken", 1)]


def test_files_that_are_no_facts_and_tables_without_facts_say_so():
    wrong: list[Any] = ["text", {"model": "M"}, model_facts(["RACK"], relations=[relation("RACK", "PLAN", -1)])]
    found = translate(with_model(small(), model_tables(TYPES), *wrong))
    assert row_outcomes(found, "facts.json") == [("no_counterpart", "not the facts of a constraint model")]
    why = "a constraint model is a program, and only facts about it are read"
    assert row_outcomes(found, "models/m/ExpressionSet.csv") == [("no_counterpart", why)]
    assert found.model_parts == []
    read = translated()
    assert row_outcomes(read, "facts.json") == [
        ("translated", "a constraint model; its parts are accounted for one by one")
    ]
    assert row_outcomes(read, "models/m/Product2.csv") == [
        ("no_counterpart", "it only says what the types of a constraint model are")
    ]


NAMES = st.sampled_from([*TYPES, "LineItem", "Other"])
PAIRS = st.lists(st.builds(pair, NAMES, NAMES), max_size=3)
NUMBERS = st.none() | st.integers(0, 60)
RELATIONS = st.lists(st.builds(relation, NAMES, NAMES, NUMBERS, NUMBERS), max_size=4)
WORDS = st.sampled_from(["small", "large", "huge", "1", "3", "2.5", "0..4", "9..2", "true", ""])
ATTRIBUTES = st.lists(
    st.fixed_dictionaries(
        {
            "owner": NAMES,
            "name": st.sampled_from(["Size", "seats", "Other"]),
            "values": st.lists(WORDS, max_size=4),
        }
    ),
    max_size=3,
)
FACTS = st.fixed_dictionaries(
    {"requires": PAIRS, "excludes": PAIRS, "recommends": PAIRS, "relations": RELATIONS, "attributes": ATTRIBUTES}
)


@given(st.lists(FACTS, min_size=1, max_size=2))
def test_every_part_of_any_model_is_accounted_for_once_and_what_is_here_can_be_imported(
    models: Sequence[dict[str, Any]],
):
    listed = [model_facts(list(TYPES), **facts) for facts in models]
    files = with_model(full(), model_tables(TYPES), *listed)
    found = translate(files)
    assert found.problems == []
    expected: Counter[str] = Counter()
    for facts in listed:
        for name in ("types", "relations", "attributes"):
            expected[name.removesuffix("s")] += len(facts[name])
        for name in ("requires", "excludes", "recommends"):
            expected[name] += len(facts[name])
    counted: Counter[str] = Counter()
    for one in found.model_parts:
        counted[one.part] += one.parts
    assert counted == +expected
    rows = Counter({file.name: len(file.rows) for file in files})
    assert {one.file: one.taken + one.translated + one.no_counterpart for one in found.files} == dict(rows)
    assert prepare_products([row for row in found.rows if row.section == "products"], {}, "").problems == []
