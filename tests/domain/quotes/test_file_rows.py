"""Quotes as files hold them: whole or as rows of one line each, they are the same quotes."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.row_problems import SourceRow
from cpq.domain.quotes.file_rows import LINES_MAX, QUOTE_NOTES, quotes_of, validate

words = st.text("abcXYZ_.:-0189", min_size=1, max_size=8).filter(lambda text: text[0].isalnum())
lines = st.fixed_dictionaries(
    {"product_id": words, "quantity": st.integers(1, 1_000_000)},
    optional={
        "discount_pct": st.decimals(0, 100, places=6),
        "notes": st.text("ab c", min_size=1),
        "option_set": words,
        "attributes": st.dictionaries(words, words | st.booleans() | st.integers(-9, 9), max_size=3),
        "ramp": st.lists(st.fixed_dictionaries({"months": st.integers(1, 12)}), max_size=3),
    },
)
wholes = st.fixed_dictionaries(
    {"id": words, "account_id": words, "line_items": st.lists(lines, min_size=1, max_size=5)},
    optional={
        "currency": st.sampled_from(["USD", "eur"]),
        "term_months": st.integers(1, 1200),
        "start_date": st.dates(date(1900, 1, 1), date(2200, 12, 31)).map(str),
        "notes": st.text("ab c", min_size=1),
        "deal_id": words,
    },
)
quotes = st.lists(wholes, max_size=4, unique_by=lambda quote: quote["id"])


def whole_rows(values: list[dict[str, Any]]) -> list[SourceRow]:
    return [SourceRow("quotes", line, value) for line, value in enumerate(values, 1)]


def rows_of_lines(values: list[dict[str, Any]], *, repeats: bool) -> list[SourceRow]:
    """A row for each line; what is said of the quote stands in its first row only, or in all of them."""
    rows: list[SourceRow] = []
    for quote in values:
        said = {name: value for name, value in quote.items() if name not in ("line_items", "notes")}
        said |= {QUOTE_NOTES: quote["notes"]} if "notes" in quote else {}
        for place, line in enumerate(quote["line_items"]):
            of_quote = said if repeats or place == 0 else {"id": quote["id"]}
            rows.append(SourceRow("quotes", len(rows) + 2, {**of_quote, **line}))
    return rows


def drafts(rows: list[SourceRow]) -> list[Any]:
    found = []
    for source in quotes_of(iter(rows)):
        row, problems = validate(source)
        assert row is not None, problems
        found.append((row.id, row.as_draft()))
    return found


@given(quotes, st.booleans())
def test_a_row_for_each_line_says_the_same_as_the_whole_quote(values: list[dict[str, Any]], repeats: bool):
    assert drafts(rows_of_lines(values, repeats=repeats)) == drafts(whole_rows(values))


@given(quotes)
def test_every_line_knows_the_line_of_the_file_it_stood_on(values: list[dict[str, Any]]):
    rows = rows_of_lines(values, repeats=False)
    sources = list(quotes_of(iter(rows)))
    assert [line for source in sources for line in source.lines or ()] == [row.line for row in rows]
    assert [len(source.values["line_items"]) for source in sources] == [len(quote["line_items"]) for quote in values]


LINE = {"product_id": "p", "quantity": 1}


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"account_id": "a", **LINE}, [(2, "id", "Field required")]),
        ({"id": "q", **LINE}, [(2, "account_id", "Field required")]),
        ({"id": 7, "account_id": "a", **LINE}, [(2, "id", "Input should be a valid string")]),
        ({"id": "q", "account_id": "a", **LINE, "term_months": 0}, [(2, "term_months", "greater than or equal to 1")]),
        ({"id": "q", "account_id": "a", **LINE, "start_date": "1899-12-31"}, [(2, "start_date", "from 1900 to 2200")]),
        ({"id": "q", "account_id": "a", **LINE, "quantity": True}, [(2, "quantity", "is a boolean")]),
        ({"id": "q", "account_id": "a", **LINE, "quantity": 1_000_001}, [(2, "quantity", "less than or equal to")]),
        ({"id": "q", "account_id": "a", **LINE, "discount_pct": 1.5}, [(2, "discount_pct", "is a binary float")]),
        ({"id": "q", "account_id": "a", **LINE, "ramp": [{"months": 0}]}, [(2, "ramp.0.months", "greater than")]),
        ({"id": "q", "account_id": "a", **LINE, "prize": 1}, [(2, "prize", "is not a known field")]),
        ({"id": "q", "account_id": "a", "line_items": 5}, [(2, "line_items", "valid tuple")]),
        (
            {"id": "q", "account_id": "a", "line_items": [{}]},
            [(2, "line_items.0.product_id", ""), (2, "line_items.0.quantity", "")],
        ),
        ({"id": "q", "account_id": "a", "line_items": [LINE] * (LINES_MAX + 1)}, [(2, "line_items", "at most 10,000")]),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(values: dict[str, Any], problems: list[tuple[int, str, str]]):
    (source,) = quotes_of([SourceRow("quotes", 2, values)])
    row, found = validate(source)
    assert row is None
    assert [(problem.line, problem.field) for problem in found] == [problem[:2] for problem in problems]
    assert all(reason in problem.message for problem, (_, _, reason) in zip(found, problems, strict=True))
