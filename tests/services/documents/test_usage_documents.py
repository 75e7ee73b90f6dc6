"""Documents with lines that are charged by use (G-07): without a commitment a dash is their price, and no zero."""

import pytest

from cpq.services.documents.design import TEMPLATES
from tests.support import papers
from tests.support.engine import Tools
from tests.support.papers import Paper
from tests.support.quotes import put_into

SEATS = {"product_id": "prod_pro_v2", "quantity": 5}
CALLS = {"product_id": "prod_use_api", "quantity": 1}
COMMITTED = {**CALLS, "commitment": {"quantity": 260_000, "per": "month"}}
NAME = "AirSight API calls"


def rows_of(paper: Paper, name: str) -> list[list[str]]:
    return [[one.text for one in paper.row_of(cell)] for cell in paper.cells if name in cell.text]


@pytest.mark.parametrize("template", TEMPLATES)
def test_g07_use_that_is_in_no_total_has_a_dash_for_its_price(desk: Tools, template: str):
    alternatives = [{**CALLS, "option_set": "Pay"}, {**COMMITTED, "option_set": "Commit"}]
    quote_id = papers.quoted(desk, *(alternatives if template == "comparison" else (CALLS,)))
    put_into(desk.app, quote_id, "sent")
    paper = Paper.of(desk("quote_pdf", quote_id=quote_id, template=template))
    name = "Plant software and monitoring" if template == "executive_summary" else NAME
    rows = rows_of(paper, name)
    assert any("–" in row for row in rows), rows
    assert "0.00" not in [text for row in rows for text in row]
    assert "Nothing for it is part of the total." in paper.text
    if template == "comparison":
        assert any(row[-2:] == ["–", "4,560.00"] for row in rows), rows
        assert "Rates for use" in paper.row_of(next(cell for cell in paper.cells if "USE-API" in cell.text))[1].text


def test_g07_a_confirmed_order_prints_the_rates_of_its_usage_lines(desk: Tools):
    quote_id = papers.quoted(desk, SEATS, CALLS)
    put_into(desk.app, quote_id, "sent")
    desk.seller("quote_accept", quote_id=quote_id, expected_version=1)
    paper = Paper.of(desk("quote_pdf", quote_id=quote_id, template="order_confirmation"))
    assert "Nothing for it is part of the total." in paper.text
    assert any(row[-2:] == ["–", "–"] for row in rows_of(paper, NAME))
