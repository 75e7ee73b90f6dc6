"""Nonsense in the terms of a line or quote is refused with its field and the way out, and nothing changes."""

from typing import Any

import pytest

from tests.support.engine import Tools
from tests.support.quotes import ACME
from tests.tools.test_special_terms import MACHINE, SEATS, made, refused

BECAUSE = {"price_reason": "matches the offer of a competitor"}
TERM = {"term_months": 12, "start_date": "2027-01-01"}


@pytest.mark.parametrize(
    ("line", "field", "way_out"),
    [
        ({**MACHINE, "unit_price": 9000}, "price_reason", "Say in price_reason why"),
        ({**SEATS, "ramp": [{"months": 12, "unit_price": 5}]}, "price_reason", "Say in price_reason why"),
        ({**MACHINE, "discount_pct": 5, "discount_amount": 100}, "discount_amount", "not both"),
        ({**SEATS, "ramp": [{"months": 5}, {"months": 6}]}, "ramp", "12"),
        ({**SEATS, "ramp": [{"months": 12, "unit_price": 5, "discount_pct": 5}], **BECAUSE}, "ramp/0", "one of them"),
        ({**MACHINE, "ramp": [{"months": 12}]}, "ramp", "Leave the ramp out"),
        ({**MACHINE, "discount_amount": 10**7}, "discount_amount", "at most the price of the line"),
        ({**SEATS, "term_months": 6, "end_date": "2027-06-30"}, "end_date", "term_months"),
        ({**SEATS, "start_date": "2026-12-01"}, "start_date", "2027-01-01"),
    ],
    ids=[
        "price without reason",
        "price in a ramp without reason",
        "percent and amount",
        "ramp that does not tile",
        "segment with two prices",
        "ramp of a one-time price",
        "more off than the price",
        "months and last day",
        "before the quote",
    ],
)
def test_g03_to_g06_the_field_and_the_way_out_are_named(tools: Tools, line: dict[str, Any], field: str, way_out: str):
    details = refused(tools, "quote_create", account_id=ACME, line_items=[line], **TERM)
    assert details["field"] == f"/line_items/0/{field}"
    error = tools.error("quote_create", account_id=ACME, line_items=[line], **TERM)
    assert way_out in str(error), error


def test_g04_a_target_above_the_total_names_the_total_and_what_to_do(tools: Tools):
    quote_id = made(tools, MACHINE)
    total = tools("quote_price", quote_id=quote_id)["pricing"]["total"]
    details = refused(tools, "quote_price", quote_id=quote_id, target_total=total + 1)
    assert (details["field"], details["maximum"]) == ("/target_total", total)
    assert "unit_price" in details["hint"]
    both = refused(tools, "quote_price", quote_id=quote_id, target_total=1, requested_discount_amount=1)
    assert both["field"] == "/target_total"
