"""A stored price is proven by reckoning it again, and a difference is told by its line and field."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.base.text import canonical_json, read_json
from cpq.domain.pricing import price, result
from cpq.domain.pricing import request as requests_
from cpq.domain.pricing.replay import ABSENT, Difference, first_difference, reprice
from cpq.domain.pricing.request import Line, PriceRow, Product, Request
from tests.support.random_quotes import requests

FIELDS = result.PricedLine._fields
NUMBERS = ("list_amount", "regular", "net", "discount", "discount_off_list")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(requests_.Request._fields), inner),
)
REQUEST = Request(
    currency="USD",
    as_of="2026-11-16",
    lines=(Line("1", "a", 2, discount=10_000_000), Line("2", "a", 1)),
    products={"a": Product((PriceRow("list-a", 10_000_000, price_book_id="list"),))},
    price_books=("list",),
    tax_rates={"standard": 19_000_000},
)


def stored(request: Request = REQUEST) -> tuple[str, dict[str, Any]]:
    text = canonical_json(result.dump(price(request)))
    return text, read_json(text)


@given(requests)
def test_a_stored_request_gives_its_result_again_to_the_byte(request: Request):
    text = canonical_json(result.dump(price(request)))
    assert reprice(canonical_json(requests_.dump(request))) == text
    assert first_difference(text, text) is None


@given(requests, st.data())
def test_a_changed_amount_of_a_line_is_told_by_line_and_field(request: Request, data: st.DataObject):
    text, plain = stored(request)
    line = data.draw(st.sampled_from(plain["lines"]))
    name = data.draw(st.sampled_from(NUMBERS))
    place = FIELDS.index(name)
    before = line[place]
    line[place] += data.draw(st.sampled_from([-1, 1, 10**6]))
    found = first_difference(canonical_json(plain), text)
    million = Decimal(1_000_000)
    assert found == (line[0], name, line[place] / million, before / million)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda plain: plain.update(total=1), (None, "total", Decimal("0.000001"), Decimal("33.32"))),
        (lambda plain: plain.update(tax_note="x"), (None, "tax_note", "x", None)),
        (lambda plain: plain.pop("margin"), (None, "margin", ABSENT, None)),
        (lambda plain: plain.update(extra=True), (None, "extra", True, ABSENT)),
        (lambda plain: plain["lines"][1].__setitem__(2, 3), ("2", "quantity", 3, 1)),
        (lambda plain: plain["lines"].pop(), ("2", "line", ABSENT, "a line")),
        (lambda plain: plain["lines"].append(["3"]), ("3", "line", "a line", ABSENT)),
        (lambda plain: plain["lines"][0][-2].pop(), ("1", "steps.2", ABSENT, "line discount")),
        (
            lambda plain: plain["lines"][0][-2][1].__setitem__(1, 5),
            ("1", "steps.2.amount", Decimal("0.000005"), Decimal(18)),
        ),
        (
            lambda plain: plain["tax_groups"][0].__setitem__(1, 7_000_000),
            (None, "tax_groups.1.rate", Decimal(7), Decimal(19)),
        ),
        (lambda plain: plain["lines"][0].__delitem__(slice(10, None)), ("1", "billing_period", ABSENT, "one_time")),
        (lambda plain: plain["lines"][0].append(1), (None, "result", "not a result", "a result")),
        (lambda plain: plain["lines"].append({"id": "3"}), (None, "result", "not a result", "a result")),
        (lambda plain: plain.update(lines=5), (None, "result", "not a result", "a result")),
    ],
)
def test_the_first_difference_is_named(change: Any, difference: Difference):
    text, plain = stored()
    change(plain)
    assert first_difference(canonical_json(plain), text) == difference


def test_lines_are_told_before_the_totals_that_follow_from_them():
    text, plain = stored()
    plain["total"] = plain["lines"][1][FIELDS.index("net")] = 0
    assert first_difference(canonical_json(plain), text) == ("2", "net", 0, 10)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}"])
def test_a_text_that_is_no_result_differs_as_a_whole(text: str):
    assert first_difference(text, stored()[0]) == (None, "result", "not a result", "a result")


def test_another_spelling_of_the_same_values_is_a_difference():
    text, plain = stored()
    assert first_difference(json.dumps(plain), text) == (
        None,
        "result",
        "the same values, spelt otherwise",
        "canonical JSON",
    )


@given(JSON)
def test_what_is_no_request_cannot_be_priced(value: Any):
    with pytest.raises((ValueError, CpqError)):
        reprice(json.dumps(value))
