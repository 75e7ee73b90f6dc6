"""Ranges and sets of facts: never says "never" of what can happen, and implies only what follows."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.facts import FactsEnvironment, LineFacts, QuoteFacts
from cpq.domain.policy.language.compiler import compiled
from cpq.domain.policy.language.parser import read_condition
from cpq.domain.policy.language.regions import BOXES_MAX, Range, Region, Words, is_inside, is_never, key, region
from tests.support.policies import AFTER

numbers = st.integers(0, 4).map(Decimal)
bounds = st.integers(-1, 5).map(str)
orders = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
OTHERS = [
    "has_term",
    "has_term == false",
    "net > gross",
    "net + 1 > 2",
    "true",
    "net < net",
    "net == gross",
    "1 - net > gross - gross",
    "line_count < 2",
]
folds = st.builds(
    "{}(line.net {} {} for line in lines{})".format,
    st.sampled_from(["any", "all"]),
    orders,
    bounds,
    st.sampled_from(["", " if line.category == 'a'", " if line.quantity > 1"]),
) | st.builds("{}(line.net for line in lines) {} {}".format, st.sampled_from(["min", "max", "sum"]), orders, bounds)
words = st.builds(
    "{}({}line.category {} 'a' for line in lines)".format,
    st.sampled_from(["any", "all"]),
    st.sampled_from(["", "not "]),
    st.sampled_from(["==", "!="]),
)
sums = st.builds(
    "{} * net {} {} {} {}".format,
    st.sampled_from(["2", "-1", "0.5", "0"]),
    st.sampled_from("+-"),
    bounds,
    orders,
    bounds,
)
counts = st.builds("count(line.net > {} for line in lines) {} {}".format, bounds, orders, bounds)
choices = st.builds("(net if has_term else gross) {} {}".format, orders, bounds)
atoms = (
    st.builds("{} {} {}".format, st.sampled_from(["net", "gross"]), orders, bounds)
    | st.builds("{} {} net".format, bounds, st.sampled_from(["<", ">=", "=="]))
    | st.builds("net {} {{{}, {}}}".format, st.sampled_from(["in", "not in"]), bounds, bounds)
    | st.builds("segment {} '{}'".format, st.sampled_from(["==", "!="]), st.sampled_from("ab"))
    | st.builds("segment {} {{'{}', 'b'}}".format, st.sampled_from(["in", "not in"]), st.sampled_from("ac"))
    | st.sampled_from(OTHERS)
    | folds
    | words
    | sums
    | counts
    | choices
)
conditions = st.recursive(
    atoms,
    lambda inner: (
        st.builds("not ({})".format, inner)
        | st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner)
    ),
    max_leaves=6,
)
facts = st.builds(
    QuoteFacts,
    net=numbers,
    gross=numbers,
    segment=st.sampled_from("abc"),
    term_months=st.none() | numbers,
    lines=st.lists(
        st.builds(
            LineFacts, net=numbers, category=st.sampled_from("ab"), quantity=st.sampled_from([Decimal(1), Decimal(2)])
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)


def implies(first: Region, second: Region) -> bool:
    return all(any(is_inside(box, other) for other in second) for box in first)


def holds(text: str, quote: QuoteFacts) -> bool:
    return bool(compiled(read_condition(text, AFTER))(FactsEnvironment(quote, {}, ()), None))


@given(text=conditions, quote=facts)
def test_what_holds_somewhere_is_never_called_impossible(text: str, quote: QuoteFacts):
    if holds(text, quote):
        assert not is_never(read_condition(text, AFTER))


@given(first=conditions, second=conditions, quote=facts)
def test_what_is_implied_holds_wherever_the_first_does(first: str, second: str, quote: QuoteFacts):
    one, other = (region(read_condition(text, AFTER)) for text in (first, second))
    if implies(one, other) and holds(first, quote):
        assert holds(second, quote)
    if key(one) == key(other):
        assert holds(first, quote) is holds(second, quote)


@given(text=conditions, quote=facts)
def test_a_condition_and_its_opposite_share_nothing_and_leave_nothing_out(text: str, quote: QuoteFacts):
    node = read_condition(text, AFTER)
    assert region(node) or region(node, negated=True)
    assert region(read_condition(f"({text}) or not ({text})", AFTER))
    assert not (holds(text, quote) and holds(f"not ({text})", quote))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("net > 5", "net > 3", True),
        ("net > 5", "net >= 5", True),
        ("net >= 5", "net > 5", False),
        ("net == 5", "net in {5, 6}", True),
        ("net > 5 and gross > 1", "net > 3", True),
        ("net > 5 or gross > 1", "net > 3", False),
        ("segment == 'a'", "segment in {'a', 'b'}", True),
        ("segment == 'a'", "segment != 'b'", True),
        ("segment != 'a'", "segment != 'b'", False),
        ("net > gross", "net > gross or net > 5", True),
        ("any(line.net > 3 for line in lines)", "any(line.net > 3 for line in lines)", True),
        ("any(line.net > 5 for line in lines)", "max(line.net for line in lines) > 3", True),
        ("any(line.net > 5 for line in lines)", "not all(line.net <= 3 for line in lines)", True),
        ("any(line.net > 3 for line in lines)", "any(line.net > 5 for line in lines)", False),
        (
            "max(line.net for line in lines if line.quantity > 1) > 5",
            "any(line.net > 3 for line in lines if line.quantity > 1)",
            False,
        ),
        ("2 * net - 1 > 9", "net > 4", True),
        ("net < 3", "net >= 0", True),
    ],
)
def test_one_condition_may_imply_another(first: str, second: str, expected: bool):
    assert implies(region(read_condition(first, AFTER)), region(read_condition(second, AFTER))) is expected


def test_a_condition_of_too_many_ways_counts_as_one_unknown_word():
    ways = " and ".join(f"(net != {n} or gross != {n})" for n in range(8))
    node = read_condition(ways, AFTER)
    assert BOXES_MAX < 2**8
    assert region(node) == ({node: Words(frozenset({True}))},)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Range(low=Decimal(1)), Range(high=Decimal(5)), Range(Decimal(1), False, Decimal(5), False)),
        (Range(Decimal(1), True), Range(Decimal(1), False), Range(Decimal(1), False)),
        (Range(), Range(Decimal(1), True), Range(Decimal(1), True)),
        (Range(high=Decimal(1), is_high_in=True), Range(high=Decimal(1)), Range(high=Decimal(1))),
    ],
)
def test_ranges_meet_at_the_narrower_end(one: Range, other: Range, expected: Range):
    assert one.meet(other) == other.meet(one) == expected
    assert expected.is_within(one)
    assert expected.is_within(other)
