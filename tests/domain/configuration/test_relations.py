"""Whether the products of one quote go together: requires, excludes, recommends, and what a bundle brings with it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.row_files import read_rows
from cpq.domain.catalog.preparation import prepare_products
from cpq.domain.configuration import CheckedRelations, ProductRelation, QuotedProduct, Related, check_relations
from cpq.domain.configuration.relations import Relation

SAMPLE = Path(__file__).parents[3] / "cpq" / "sample" / "catalog.yaml"
REQUIRES, EXCLUDES, RECOMMENDS = Relation.REQUIRES, Relation.EXCLUDES, Relation.RECOMMENDS
COMPONENT, SUBSTITUTE = Relation.COMPONENT, Relation.SUBSTITUTE

CATALOGUE = [
    ("dryer", REQUIRES, "filter", 1),
    ("station", REQUIRES, "sensor", 3),
    ("oil", EXCLUDES, "grease", 1),
    ("pump", RECOMMENDS, "hose", 1),
    ("pump", SUBSTITUTE, "old_pump", 1),
    ("kit", COMPONENT, "filter", 2),
    ("kit", COMPONENT, "pump", 1),
    ("set", COMPONENT, "dryer", 1),
    ("set", COMPONENT, "oil", 1),
    ("wagon", COMPONENT, "kit", 2),
    ("wagon", COMPONENT, "sensor", 1),
    ("mess", COMPONENT, "oil", 1),
    ("mess", COMPONENT, "grease", 1),
    ("ring", COMPONENT, "gnir", 1),
    ("gnir", COMPONENT, "ring", 1),
]


def relations(rows: Iterable[tuple[str, Relation, str, int]] = CATALOGUE) -> list[ProductRelation]:
    return [ProductRelation(*row) for row in rows]


def checked(*products: str | tuple[str, int]) -> CheckedRelations:
    lines = [QuotedProduct(line) if isinstance(line, str) else QuotedProduct(*line) for line in products]
    return check_relations(lines, relations())


@pytest.mark.parametrize(
    ("products", "expected"),
    [
        (["pump"], []),
        (["unknown"], []),
        (["dryer", "filter"], []),
        (["filter", "dryer"], []),
        (["dryer"], [(0, "dryer requires filter in the quote.", 1, None)]),
        (["pump", "dryer", "dryer"], [(1, "dryer requires filter in the quote.", 1, None)]),
        (["dryer", "kit"], []),
        (["dryer", "wagon"], []),
        (["set"], [(0, "dryer in set requires filter in the quote.", 1, None)]),
        (["set", "filter"], []),
        (["station", "sensor"], [(0, "station requires 3 × sensor in the quote.", 2, None)]),
        ([("station", 5), ("sensor", 3)], []),
        (["station", ("sensor", 2), "wagon"], []),
        (["station", ("wagon", 3)], []),
        (["oil", "grease"], [(0, "oil and grease exclude each other in one quote.", None, 1)]),
        (["grease", "pump", "oil"], [(2, "oil and grease exclude each other in one quote.", None, 0)]),
        (["oil", "grease", "oil", "grease"], [(0, "oil and grease exclude each other in one quote.", None, 1)]),
        (["grease", "set", "filter"], [(1, "oil in set and grease exclude each other in one quote.", None, 0)]),
        (["mess"], []),
        (["mess", "mess"], [(0, "oil in mess and grease exclude each other in one quote.", None, 1)]),
        (["mess", "grease"], [(0, "oil in mess and grease exclude each other in one quote.", None, 1)]),
        (["ring"], []),
        (
            ["oil", "dryer", "grease"],
            [
                (0, "oil and grease exclude each other in one quote.", None, 2),
                (1, "dryer requires filter in the quote.", 1, None),
            ],
        ),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_named_with_its_line(products: Any, expected: Any):
    found = checked(*products)
    assert [(p.line, p.message, p.missing, p.other_line) for p in found.problems] == expected
    assert found.problem_count == len(expected)


def test_a_problem_names_both_products():
    assert checked("pump", "set").problems == (
        Related(1, "dryer", REQUIRES, "filter", "dryer in set requires filter in the quote.", missing=1),
    )


def test_a_recommendation_is_advice_and_no_problem():
    assert checked("oil", "pump", "pump") == CheckedRelations(
        (), 0, (Related(1, "pump", RECOMMENDS, "hose", "pump goes well with hose."),)
    )
    assert checked("pump", "hose").advice == ()
    assert checked("kit").advice == ()
    assert [advice.line for advice in checked("kit", "pump").advice] == [1]


def test_either_side_may_declare_that_two_exclude_each_other():
    both = relations([("a", EXCLUDES, "b", 1), ("b", EXCLUDES, "a", 1)])
    for declared in (both, both[:1], both[1:]):
        found = check_relations([QuotedProduct("a"), QuotedProduct("b")], declared)
        assert found.problem_count == 1
        assert {found.problems[0].line, found.problems[0].other_line} == {0, 1}


def test_problems_and_advice_are_bounded_and_the_count_is_true():
    rows = [(f"p{n}", kind, f"q{n}", 1) for n in range(500) for kind in (REQUIRES, RECOMMENDS)]
    found = check_relations([QuotedProduct(f"p{n}") for n in range(500)], relations(rows))
    assert (len(found.problems), found.problem_count, len(found.advice)) == (20, 500, 20)


def test_bundles_within_bundles_within_bundles_come_to_an_end():
    rows = [(f"p{n}", COMPONENT, f"p{other}", 1_000_000) for n in range(20) for other in range(20)]
    assert check_relations([QuotedProduct("p0", 1_000_000)], relations(rows)).problems == ()


def test_every_sample_bundle_goes_together_by_itself():
    rows = [row for row in read_rows(SAMPLE, "products") if row.section == "products"]
    stored = [(part.id, one) for part in prepare_products(rows, {}, "main").ready for one in part.relations]
    declared = [ProductRelation(id_, Relation(one["kind"]), one["other_id"], one["quantity"]) for id_, one in stored]
    bundles = sorted({relation.product_id for relation in declared if relation.kind is COMPONENT})
    assert bundles
    for bundle in bundles:
        assert check_relations([QuotedProduct(bundle)], declared).problems == ()


ids = st.sampled_from("abcde")
kinds = st.sampled_from([REQUIRES, EXCLUDES, COMPONENT])
declared_rows = st.lists(st.tuples(ids, kinds, ids, st.integers(1, 3)).filter(lambda row: row[0] != row[2]), max_size=8)


def inside(product_id: str, rows: list[Any], depth: int = 8) -> list[str]:
    """Everything in one product, each piece as often as it is there."""
    parts = [
        other for mine, kind, other, count in rows if mine == product_id and kind is COMPONENT for _ in range(count)
    ]
    return [product_id, *(piece for part in parts if depth > 1 for piece in inside(part, rows, depth - 1))]


@given(st.lists(st.tuples(ids, st.integers(1, 3)), max_size=4), declared_rows.filter(lambda rows: len(rows) < 4))
def test_problems_are_those_that_unpacking_every_bundle_shows(lines: Any, rows: Any):
    rows = list(dict.fromkeys(rows))
    if any(product_id in inside(product_id, rows)[1:] for product_id, *_ in rows):
        return
    found = check_relations([QuotedProduct(*line) for line in lines], relations(rows))
    pieces = [[piece for _ in range(count) for piece in inside(product_id, rows)] for product_id, count in lines]
    everything = [piece for line in pieces for piece in line]
    wanting = {
        (mine, other, count - everything.count(other))
        for mine, kind, other, count in rows
        if kind is REQUIRES and mine in everything and everything.count(other) < count
    }
    assert {(p.product_id, p.other_id, p.missing) for p in found.problems if p.kind is REQUIRES} == wanting
    clashing = {
        frozenset((mine, other))
        for mine, kind, other, _ in rows
        if kind is EXCLUDES
        and any(mine in one and other in two for i, one in enumerate(pieces) for j, two in enumerate(pieces) if i != j)
    }
    excluded = [frozenset((p.product_id, p.other_id)) for p in found.problems if p.kind is EXCLUDES]
    assert set(excluded) == clashing
    assert len(excluded) == len(clashing)
    for problem in found.problems:
        assert problem.product_id in pieces[problem.line]
        assert problem.other_line is None or problem.other_id in pieces[problem.other_line]


@given(st.lists(ids, max_size=5), declared_rows, st.randoms())
def test_the_order_of_lines_and_relations_decides_only_what_is_named_first(products: Any, rows: Any, random: Any):
    shuffled_products, shuffled_rows = list(products), list(rows)
    random.shuffle(shuffled_products)
    random.shuffle(shuffled_rows)
    one = check_relations([QuotedProduct(product_id) for product_id in products], relations(rows))
    other = check_relations([QuotedProduct(product_id) for product_id in shuffled_products], relations(shuffled_rows))
    assert one.problem_count == other.problem_count
    assert {frozenset((p.product_id, p.other_id)) for p in one.problems} == {
        frozenset((p.product_id, p.other_id)) for p in other.problems
    }
