"""The language of conditions: exact, three-valued, typed at load, and closed to everything else."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.facts import FactsEnvironment, LineFacts, QuoteFacts
from cpq.domain.policy.language.compiler import column, compiled
from cpq.domain.policy.language.nodes import Declared, Kind
from cpq.domain.policy.language.parser import (
    DEPTH_MAX,
    LENGTH_MAX,
    TOKENS_MAX,
    ExpressionError,
    Scope,
    canonical,
    read,
    read_condition,
)
from cpq.domain.policy.language.trends import Trend, trends
from tests.support.policies import AFTER, BEFORE, quotes

LINES = (
    LineFacts(
        line_id="1",
        category="saas",
        quantity=Decimal(10),
        discount=Decimal(5),
        net=Decimal("0.1"),
        attributes={"export_controlled": True, "hp": 30, "model": "QMB30"},
    ),
    LineFacts(
        line_id="2",
        category="tanks",
        quantity=Decimal(1),
        discount=Decimal("20.01"),
        net=Decimal("0.2"),
        margin=Decimal(40),
    ),
)
WORDS = ["net", "line", ".", "lines", "any", "(", ")", "for", "in", ">", "5", "and", "'a'", "{", "}", ",", "if"]
QUOTE = QuoteFacts(
    currency="EUR", net=Decimal("0.3"), gross=Decimal(0), discount=Decimal(12), segment="smb", lines=LINES
)


LINE_PARTS = [
    "line.discount > 20",
    "5 >= line.discount",
    "line.margin < 10",
    'line.category == "saas"',
    'line.category in {"saas", ""}',
    "line.net > line.cost",
    "line.attributes.export_controlled",
    "line.attributes.hp > 30",
    "net > 500000000",
    "margin < 10",
    "line.net * 2 > net",
    "line.quantity > 0 and line.net / line.quantity > 100000",
    "(line.margin if has_term else line.discount) > 30",
    "true",
]
line_conditions = st.recursive(
    st.sampled_from(LINE_PARTS),
    lambda inner: (
        st.builds("not ({})".format, inner)
        | st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("({}) and ({}) and ({})".format, inner, inner, inner)
    ),
    max_leaves=5,
)


def value(text: str, facts: QuoteFacts = QUOTE, scope: Scope = AFTER) -> Any:
    environment = FactsEnvironment(facts, {"EUR": Decimal("1.10")}, ("net_30",))
    return compiled(read(text, scope))(environment, None)


def refusal(text: str, scope: Scope = AFTER) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        read_condition(text, scope)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1 + 0.2 == net", True),
        ("sum(line.net for line in lines) == net", True),
        ("discount > 12", False),
        ("discount >= 12", True),
        ("12.01 > discount", True),
        ("5 < discount <= 12", True),
        ("5 < discount < 12", False),
        ("-discount < -11", True),
        ("discount * 2 - 4 / 2", Decimal(22)),
        ("1_000", Decimal(1000)),
        ('currency == "EUR"', True),
        ("currency != 'EUR'", False),
        ('currency in {"EUR", "GBP"}', True),
        ('currency not in ["EUR", "GBP"]', False),
        ("discount in (11, 12.0)", True),
        ('"saas" in categories', True),
        ("is_standard_terms and not has_term", True),
        ("is_standard_terms == true", True),
        ("False or true", True),
        ("1 if discount > 10 else 2", Decimal(1)),
        ("net_value", Decimal("0.33")),
        ("line_count", Decimal(2)),
        ("any(line.discount > 20 for line in lines)", True),
        ("any(20.01 < line.discount for line in lines)", False),
        ("all(line.discount >= 5 for line in lines)", True),
        ("all(line.discount < 20 for line in lines)", False),
        ("max(line.discount for line in lines)", Decimal("20.01")),
        ("min(line.discount for line in lines)", Decimal(5)),
        ('max(line.discount for line in lines if line.category == "saas")', Decimal(5)),
        ("count(line.quantity > 1 for line in lines)", Decimal(1)),
        ('count(true for line in lines if line.category == "saas" if line.quantity > 10)', Decimal(0)),
        ("any(line.attributes.export_controlled for line in lines)", True),
        ("count(line.attributes.export_controlled for line in lines)", Decimal(1)),
        ("any(line.attributes.hp == 30 for line in lines)", True),
        ("any(line.discount > discount for line in lines)", True),
        ("\n  discount > 1\n  and discount < 20\n", True),
    ],
)
def test_a_condition_means_what_it_says_to_the_last_digit(text: str, expected: object):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("margin < 10", None),
        ("not margin < 10", None),
        ("margin == margin", None),
        ("margin + 1 > 0", None),
        ("margin in {1, 2}", None),
        ("margin < 10 and discount > 50", False),
        ("margin < 10 and discount > 5", None),
        ("margin < 10 or discount > 5", True),
        ("margin < 10 or discount > 50", None),
        ("1 if margin > 3 else 1", None),
        ("term_months > 36", None),
        ("has_term and term_months > 36", False),
        ("any(line.margin < 10 for line in lines)", None),
        ("any(line.margin < 50 for line in lines)", True),
        ("all(line.margin > 50 for line in lines)", False),
        ("all(line.margin > 10 for line in lines)", None),
        ("sum(line.cost for line in lines) > 0", None),
        ("min(line.margin for line in lines) > 0", None),
        ("count(line.margin > 0 for line in lines) > 0", None),
        ("sum(line.net for line in lines if line.margin > 10) > 0", None),
        ('any(line.margin < 10 for line in lines if line.category == "tanks")', False),
        ('all(line.margin > 50 for line in lines if line.category == "nothing")', True),
        ('max(line.net for line in lines if line.category == "nothing") > 1', None),
        ('any(line.attributes.model == "X" for line in lines)', None),
        ('any(line.attributes.model == "QMB30" for line in lines)', True),
    ],
)
def test_the_unknown_stays_unknown_unless_the_rest_decides(text: str, expected: bool | None):
    assert value(text) is expected


@pytest.mark.parametrize("kind", [True, "yes", Decimal(1), 1])
def test_an_attribute_of_another_kind_than_declared_is_unknown(kind: object):
    line = replace(LINES[0], attributes={"export_controlled": kind, "hp": kind, "model": kind})
    facts = replace(QUOTE, lines=(line,))
    known = {
        name: value(f"all(line.attributes.{name} == {literal} for line in lines)", facts) is not None
        for name, literal in [("export_controlled", "true"), ("hp", "1"), ("model", '"yes"')]
    }
    is_number = not isinstance(kind, bool | str)
    assert known == {"export_controlled": kind is True, "hp": is_number, "model": isinstance(kind, str)}


def test_a_division_by_nothing_is_a_fault_and_not_an_answer():
    for text in ("net / gross > 1", "any(line.net / gross > 1 for line in lines)", "1 / (net - 0.3) > 1 or true"):
        with pytest.raises(ArithmeticError):
            value(text)
    assert value("gross > 0 and net / gross > 1") is False


def test_a_fault_in_a_fold_does_not_depend_on_the_order_of_lines():
    facts = replace(QUOTE, lines=(replace(LINES[0], margin=Decimal(0), net=Decimal(1)), LINES[1], LINES[0]))
    for lines in (facts.lines, facts.lines[::-1]):
        for fold in ("any({})", "all({})", "count({}) == 1"):
            with pytest.raises(ArithmeticError):
                value(fold.format("line.net / line.margin > 0.001 for line in lines"), replace(facts, lines=lines))


@pytest.mark.parametrize(
    ("text", "offset", "message", "near"),
    [
        ("discont > 5", 0, "there is no fact discont", ["discount"]),
        ("net > 1 and segmnt == 'a'", 12, "there is no fact segmnt", ["segment"]),
        ("quantity > 5", 0, "there is no fact quantity; of a line it is line.quantity", ["line.quantity"]),
        ("any(line.discuont > 5 for line in lines)", 4, "there is no fact line.discuont", ["line.discount"]),
        (
            "any(line.attributes.export_contrled for line in lines)",
            4,
            "there is no fact line.attributes.export_contrled (declare it under attributes in terms.yaml)",
            ["line.attributes.export_controlled"],
        ),
        ("discount > 'a'", 11, "a number cannot be compared with a text", []),
        ("segment > 'a'", 10, "only numbers are ordered, and this is a text", []),
        ("segment and discount > 1", 0, "and takes a boolean, and this is a text", []),
        ("discount + segment > 1", 11, "+ takes a number, and this is a text", []),
        ("segment in 'abc'", 11, 'in needs a set such as {"EUR", "GBP"}, and this is a text', []),
        ("discount in {'a'}", 12, "a number cannot be in a set of text", []),
        ("segment in {}", 11, "a mapping is not part of the language", []),
        ("segment in {'a', 1}", 11, "a set lists texts, or numbers, and at least one", []),
        ("categories == categories", 14, "a set is only asked whether it holds a value, with in", []),
        ("discount", 0, "a condition is true or false, and this is a number", []),
        ("line.discount > 5", 0, "line is known only in a fold, as in any(line.discount > 20 for line in lines)", []),
        ("discount / 0 > 5", 11, "this always divides by zero", []),
        ("1 if true else segment", 15, "one branch is a number, the other a text", []),
        ("anny(true)", 0, "the only calls are any, all, sum, min, max, count over lines", ["any"]),
        ("any(lines)", 0, "write any(… for line in lines)", []),
        ("any(x.net > 1 for x in lines)", 18, "a fold reads exactly: for line in lines", []),
        ("any(any(line.net > 1 for line in lines) for line in lines)", 7, "a fold inside a fold", []),
        ("", 0, "the expression is empty", []),
        ("discount = 5", 9, "= has no meaning here; equality is written ==", []),
        ("discount > 5 # or less", 13, "# has no meaning here; write comments in YAML", []),
        ("discount >", 9, "not an expression: invalid syntax", []),
        ("segment in {'a' 'b'}", 16, "two texts follow each other; is a comma missing?", []),
        ("  ü > 1", 2, "ü has no meaning here", []),
        ("segment == 'ü' and discont > 1", 19, "there is no fact discont", ["discount"]),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_the_nearest_word(text: str, offset: int, message: str, near: list[str]):
    error = refusal(text)
    assert (error.message, error.offset, error.near[:1]) == (message, offset, near)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x') == 1",
        "().__class__.__bases__ == 1",
        "''.join == 1",
        "'{0.__class__}'.format(net) == ''",
        "line.__class__ == 1",
        "any(line.__class__ == 1 for line in lines)",
        "any(line.attributes.__len__ == 1 for line in lines)",
        "any(line.attributes['x'] for line in lines)",
        "any(line.net.real > 1 for line in lines)",
        "net.real > 1",
        "lines[0].net > 1",
        "eval('1') == 1",
        "open('x') == 1",
        "9**9**9**9 > 1",
        "net ** 2 > 1",
        "net // 2 > 1",
        "net % 2 > 1",
        "net << 99999999 > 1",
        "net @ net > 1",
        "~net > 1",
        "+net > 1",
        "(x := 5) > 1",
        "lambda: True",
        "(lambda x: x)(5) > 1",
        "f'{net}' == ''",
        "f'' == ''",
        "b'a' == ''",
        "'a' 'b' == segment",
        "'\\x41' == segment",
        "'''a''' == segment",
        "[line for line in lines] == 1",
        "{line for line in lines} == 1",
        "any([line.net > 1 for line in lines])",
        "any(line.net > 1 for line in lines for line in lines)",
        "any(line.net > 1 for line, x in lines)",
        "any(line.net > 1 for line in (line for line in lines))",
        "any(line.net > 1 async for line in lines)",
        "any((yield) for line in lines)",
        "any(*lines)",
        "any(x=1)",
        "sum((line.net for line in lines), 5) > 1",
        "max(1, 2) > 1",
        "await net",
        "None == None",
        "... == 1",
        "net is 1",
        "net is not 1",
        "1j == 1",
        "0x10 > 1",
        "1e999999 > 1",
        "9.e999999 > 1",
        "net > .5",
        "net > 5.",
        "007 > 1",
        "1__0 > 1",
        "net > 1; net > 2",
        "net > 1,",
        "print",
        "true.real == 1",
        "net\x00 > 1",
        "nеt > 1",
        "{**net}",
        "[*lines]",
        "net if net",
        "del net",
        "import os",
    ],
)
def test_everything_outside_the_language_is_refused_with_its_place(text: str):
    error = refusal(text)
    assert error.message
    assert 0 <= error.offset <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "true" + ")" * 5000,
        "not " * 390 + "true",
        "-" * 390 + "1 > 0",
        "net + " * 190 + "net > 1",
        "true and " * (TOKENS_MAX // 2) + "true",
        "segment == '" + "x" * 1000 + "'",
        "net > " + "9" * 1000,
        "net > 1" + " " * LENGTH_MAX,
        "[" * 300,
        "true if " * 100 + "true" + " else true" * 100,
    ],
)
def test_what_is_too_large_or_too_deep_is_refused_and_hurts_nobody(text: str):
    assert refusal(text).message


def test_brackets_cost_nothing_and_a_long_list_of_conditions_is_fine():
    assert value("(" * 40 + "true" + ")" * 40) is True
    assert value(" or ".join(["discount > 50"] * 90)) is False
    assert value("not " * (DEPTH_MAX - 1) + "true") is False


@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_a_condition_or_is_refused(text: str):
    try:
        read(text, AFTER)
    except ExpressionError as error:
        offset = error.offset
    else:
        offset = 0
    assert 0 <= offset <= max(len(text), 1)


def test_before_pricing_there_is_one_line_and_no_lines():
    node = read_condition('line.category == "saas" and line.quantity >= 10 and segment == "smb"', BEFORE)
    run = compiled(node)
    environment = FactsEnvironment(QUOTE, {}, ())
    assert [run(environment, line) for line in LINES] == [True, False]
    assert refusal("net > 1", BEFORE).message == "there is no fact net"
    assert refusal("line.discount > 1", BEFORE).message == "there is no fact line.discount"
    assert (
        refusal("any(line.quantity > 1 for line in lines)", BEFORE).message == "the lines are not known before pricing"
    )


def test_a_named_condition_is_put_in_and_its_size_is_bounded():
    doubled = {"d0": read_condition("net > 1", AFTER)}
    for level in range(1, 8):
        doubled[f"d{level}"] = read_condition(f"d{level - 1} and d{level - 1}", replace(AFTER, defined=doubled))
    assert value("not d3", scope=replace(AFTER, defined=doubled)) is True
    with pytest.raises(ExpressionError, match="more than 2000 parts"):
        read_condition("d7 and d7 and d7 and d7 and d7", replace(AFTER, defined=doubled))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("discount > 5", {"discount": Trend.RISES}),
        ("5 > discount", {"discount": Trend.FALLS}),
        ("not discount > 5", {"discount": Trend.FALLS}),
        ("margin < 10 or net_value > 5", {"margin": Trend.FALLS, "net_value": Trend.RISES}),
        ("discount > 5 and discount < 9", {"discount": Trend.EITHER}),
        ("currency == 'EUR'", {"currency": Trend.EITHER}),
        ("not is_standard_terms", {"is_standard_terms": Trend.FALLS}),
        ("net * 2 - gross / -4 > 1", {"net": Trend.RISES, "gross": Trend.RISES}),
        ("net * gross > 1", {"net": Trend.EITHER, "gross": Trend.EITHER}),
        ("1 / net > 1", {"net": Trend.EITHER}),
        ("net > gross", {"net": Trend.RISES, "gross": Trend.FALLS}),
        (
            "any(line.discount > 5 for line in lines if line.quantity > 3)",
            {"line.discount": Trend.RISES, "line.quantity": Trend.RISES},
        ),
        (
            "all(line.margin > 5 for line in lines if line.quantity > 3)",
            {"line.margin": Trend.RISES, "line.quantity": Trend.FALLS},
        ),
        ("sum(line.net for line in lines if line.cost > 3) < 5", {"line.net": Trend.FALLS, "line.cost": Trend.EITHER}),
        ("(net if has_term else gross) > 1", {"net": Trend.RISES, "gross": Trend.RISES, "has_term": Trend.EITHER}),
    ],
)  # fmt: skip
def test_a_condition_knows_which_way_each_fact_moves_it(text: str, expected: dict[str, Trend]):
    assert trends(read(text, AFTER)) == expected


@given(facts=quotes, more=st.decimals(0, 50, places=2))
def test_a_fact_a_condition_rises_with_never_silences_it_by_growing(facts: QuoteFacts, more: Decimal):
    for text in ("discount * 3 - 10 > 40", "not discount <= 20", "any(line.net < discount for line in lines)"):
        node = read(text, AFTER)
        assert trends(node)["discount"] is Trend.RISES
        before = value(text, facts)
        after = value(text, replace(facts, discount=min(facts.discount + more, Decimal(100))))
        assert after or not before


@given(text=line_conditions)
def test_the_canonical_text_means_the_same_and_is_its_own(text: str):
    scope = replace(AFTER, has_line=True)
    assert read(canonical(text), scope) == read(text, scope)
    assert canonical(canonical(text)) == canonical(text)


def test_layout_and_digit_groups_do_not_change_the_canonical_text():
    assert canonical("net>100_000  and\n segment=='a'") == canonical("net > 100000 and segment == 'a'")
    written = 'any( line . net>1_000 for line in lines if line.sku in{"a",  "b c"} )and not(net<-1)'
    assert canonical(written) == (
        'any(line.net > 1000 for line in lines if line.sku in {"a", "b c"}) and not (net < - 1)'
    )
    assert canonical("net > 0.1") != canonical("net > 0.1000000000000000055")


def test_an_attribute_may_be_declared_without_a_value_for_its_absence():
    scope = replace(AFTER, attributes={"hp": Declared(Kind.NUMBER)})
    assert value("any(line.attributes.hp > 30 for line in lines)", scope=scope) is None


@given(text=line_conditions, facts=quotes)
def test_all_lines_at_once_are_each_line_by_itself(text: str, facts: QuoteFacts):
    node = read_condition(text, replace(AFTER, has_line=True))
    environment = FactsEnvironment(facts, {"EUR": Decimal("1.10")}, ("net_30",))
    each = [compiled(node)(environment, line) for line in facts.lines]
    assert list(column(node)(environment)) == each
    expected = {"any": True if True in each else None if None in each else False}
    expected["all"] = False if False in each else None if None in each else True
    for fold, answer in expected.items():
        assert value(f"{fold}({text} for line in lines)", facts) is answer
