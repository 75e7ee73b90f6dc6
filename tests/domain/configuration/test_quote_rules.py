"""Rules over lines: totals equal a sum by hand, and a repair makes the rule hold with as few pieces as possible."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.configuration.declarations import QuoteRuleRow
from cpq.domain.configuration.quote_rules import (
    QuotedItem,
    addition,
    check_quote_rules,
    compile_quote_rule,
    measured,
)

amounts = st.decimals(0, 50, places=1)
items = st.lists(
    st.builds(
        QuotedItem,
        st.integers(0, 4),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["x", "y"]),
        st.integers(1, 9).map(Decimal),
        st.fixed_dictionaries({"size": amounts, "wet": st.booleans()}),
    ),
    max_size=6,
)
SETS = {"left": {"categories": ["x"]}, "right": {"categories": ["y"], "where": {"wet": True}}}


def rule(**construct: Any) -> Any:
    return compile_quote_rule(QuoteRuleRow.model_validate({"id": "R", "say": "Say.", "sets": SETS, **construct}))


def by_hand(given_items: list[QuotedItem]) -> tuple[Decimal, Decimal]:
    left = sum((one.quantity * one.values["size"] for one in given_items if one.category == "x"), Decimal(0))  # type: ignore[operator]
    wet = [one for one in given_items if one.category == "y" and one.values["wet"]]
    return left, sum((one.quantity * one.values["size"] for one in wet), Decimal(0))  # type: ignore[operator]


@given(items, st.sampled_from([">=", "<=", "=="]), amounts)
def test_a_comparison_of_sums_equals_the_sums_by_hand(quoted: list[QuotedItem], operator: str, constant: Decimal):
    compared = {"left": {"left.size": 1}, "op": operator, "right": {"right.size": 2, "const": constant}}
    found = check_quote_rules(quoted, [rule(compare=compared)])
    left, right = by_hand(quoted)
    holds = {">=": left >= 2 * right + constant, "<=": left <= 2 * right + constant, "==": left == 2 * right + constant}
    assert bool(found) != holds[operator]
    if found and operator == ">=":
        (need,) = found[0].needs
        assert (str(need.total), need.missing) == ("left.size", 2 * right + constant - left)


@given(items, st.integers(0, 12), st.integers(0, 12))
def test_bounds_of_pieces_and_lines_equal_a_count_by_hand(quoted: list[QuotedItem], low: int, high: int):
    pieces = sum(one.quantity for one in quoted if one.category == "x")
    rows = len({one.line for one in quoted if one.category == "x"})
    found = check_quote_rules(quoted, [rule(then={"left": {"min": low}, "left.lines": {"max": high}})])
    assert bool(found) == (pieces < low or rows > high)
    assert bool(check_quote_rules(quoted, [rule(excludes=["left", "right"])])) == (
        pieces > 0 and any(one.category == "y" and one.values["wet"] for one in quoted)
    )
    needs_right = not any(one.category == "y" and one.values["wet"] for one in quoted)
    assert bool(check_quote_rules(quoted, [rule(requires=["left", "right"])])) == (pieces > 0 and needs_right)


@given(st.decimals("0.1", 300, places=1), st.dictionaries(st.sampled_from("abcd"), amounts, max_size=4))
def test_what_is_added_gives_what_is_missing_with_the_fewest_pieces(missing: Decimal, offered: dict[str, Decimal]):
    best = addition(missing, offered.items())
    if best is None:
        assert not any(offered.values())
        return
    product_id, pieces = best
    assert offered[product_id] * pieces >= missing
    for each in offered.values():
        assert each * (pieces - 1) < missing
        if each * pieces >= missing:
            assert each >= offered[product_id]


@given(items, amounts)
def test_the_repair_of_a_missing_sum_makes_the_rule_hold(quoted: list[QuotedItem], constant: Decimal):
    compared = {"left": {"left.size": 1}, "op": ">=", "right": {"right.size": 1, "const": constant}}
    compiled = rule(compare=compared)
    for finding in check_quote_rules(quoted, [compiled]):
        (need,) = finding.needs
        values = {"size": Decimal(7)}
        best = addition(need.missing, [("new", measured(need.total, values))])
        assert best is not None
        added = QuotedItem(9, "new", "x", Decimal(best[1]), values)
        assert check_quote_rules([*quoted, added], [compiled]) == []


def test_what_is_missing_is_needed_and_what_is_too_much_is_not_allowed():
    bounds = {"left": {"max": 3}, "right": {"min": 2}, "left.lines": {"max": 1}, "left.size": {"max": Decimal("0.5")}}
    quoted = [QuotedItem(line, "a", "x", Decimal(500), {"size": Decimal(1), "wet": True}) for line in (0, 1)]
    (found,) = check_quote_rules(quoted, [rule(then=bounds)])
    assert found.found.split("; ") == [
        "left is 1000, and at most 3 are allowed",
        "right is 0, and at least 2 are needed",
        "left.lines is 2, and at most 1 is allowed",
        "left.size is 1000, and at most 0.5 is allowed",
    ]
